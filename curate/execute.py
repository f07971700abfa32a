"""Run a plan: every stage on every part, then the files, then the proof, then the publish.

Resume is running again. A task whose result is in the store is not done twice, and what is
published never depends on how often a run was interrupted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from curate.dataset import Dataset, Part
from curate.engines.base import Engine
from curate.errors import InputError, InvariantError
from curate.hashing import identity_sum, key_of
from curate.intake import Intake
from curate.meter import Bill, add_bills, add_counts
from curate.pipeline import Pipeline
from curate.plan import Pass, passes
from curate.progress import Progress
from curate.rundir import RunDir
from curate.sink import json_lines
from curate.steps.base import Job, Task
from curate.steps.count import add_remarks
from curate.steps.fit import make_fit, make_samples
from curate.steps.group import Match, group_check, make_features, make_groups, make_matches, make_verifies
from curate.steps.judge import make_judge, make_spreads, resolve_limits
from curate.steps.outside import (
    IndexKeys,
    Outside,
    accept,
    make_accepted,
    make_index_features,
    make_index_keys,
    make_named,
    make_outside_keys,
)
from curate.steps.sample import Choose, make_choose
from curate.steps.scan import make_scan
from curate.steps.unreadable import unreadable
from curate.steps.write import Write, make_ids, make_witness_ids, make_witnesses, make_write, quarantine_records

Facts = dict[str, Any]


@dataclass
class PartState:
    """How far one part has come."""

    part: Part
    fates: str | None = None
    seen: str = "start"
    alive_rows: int = 0
    columns: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """What the report is made of."""

    dataset: Dataset
    job: Job
    states: list[PartState]
    writes: list[Write]
    choose: Choose
    outside: tuple[str, ...]
    """where what is known of witnesses from outside is stored"""
    facts: list[Facts]
    bill: Bill
    details: dict[str, dict[str, Any]]
    limits: dict[int, tuple[float, ...]]
    busy_s: float
    tasks: int
    reused: int


class Runner:
    """Runs tasks step by step on an engine and keeps the account."""

    def __init__(self, job: Job, engine: Engine, progress: Progress) -> None:
        self.job, self.engine, self.progress = job, engine, progress
        self.bills: list[Bill] = []
        self.details: dict[str, dict[str, Any]] = {}
        self.limits: dict[int, tuple[float, ...]] = {}
        self.used: set[str] = set()
        self.outside: dict[int, Outside] = {}
        """by stage, what it compares with from outside the input"""
        self.known: dict[int, str] = {}
        """by stage, where the names of the rows of its index are stored"""
        self.tasks = self.reused = 0

    def run(self, step: str, tasks: Sequence[Task]) -> list[Facts]:
        """The facts of each task, in the order of `tasks`."""
        if not tasks:
            return []
        self.progress.start(step, len(tasks), "parts")
        done: dict[str, Facts] = {}
        waiting = [task for task in tasks if not task.is_done(self.job)]
        finished = {task.key for task in tasks} - {task.key for task in waiting}
        for key in finished:
            done[key] = self.job.store.facts(key)
        self.progress.advance(len(tasks) - len(waiting))
        for task, facts in self.engine.map(self.job, waiting):
            done[task.key] = facts
            self.progress.advance()
        self.progress.finish()
        self.tasks, self.reused = self.tasks + len(tasks), self.reused + len(finished)
        self.bills += [facts["bill"] for facts in done.values()]
        self.used |= set(done) | {key for facts in done.values() for key in facts.get("published", ())}
        return [done[task.key] for task in tasks]


def score(runner: Runner, dataset: Dataset) -> list[PartState]:
    """Every stage on every part: the fates and the columns of all rows, in the store."""
    states = [PartState(part) for part in dataset.parts]
    for work in passes(runner.job.stages):
        fitted = _fit(runner, work, states)
        _scan(runner, work, states, fitted)
    return states


def check_quarantine(pipeline: Pipeline, job: Job, parts: Sequence[Part], unreadable_rows: int) -> None:
    """Raise `InputError` with the first reasons when more rows are unreadable than the pipeline allows."""
    rows = sum(part.rows for part in parts)
    if not rows or unreadable_rows / rows <= pipeline.quarantine_limit:
        return
    examples = []
    for part in parts:
        for bad in unreadable(job, part).slice(0, 3).to_pylist():
            line = f"line {part.first_line + bad['line']}" if bad["line"] else f"row {part.first_source_row + bad['position']}"
            examples.append(f"{part.source_file}, {line}: {bad['reason']}")
        if len(examples) >= 3:
            break
    allowed = min(1.0, math.ceil(unreadable_rows / rows * 1000) / 1000)
    evidence = job.root / "unreadable.jsonl"
    evidence.write_bytes(json_lines(record for part in parts for record in quarantine_records(part, unreadable(job, part))))
    raise InputError(
        f"{unreadable_rows} of {rows} rows cannot be read, a share of {unreadable_rows / rows:.3g}, "
        f"and quarantine_limit allows {pipeline.quarantine_limit:g}: " + "; ".join(examples[:3]),
        place="quarantine_limit",
        hint=f"every one of them is listed in {evidence}: mend them, or go on without them: --set quarantine_limit={allowed:g}",
    )


def write(runner: Runner, out: RunDir, taken: Intake, states: list[PartState], unchanged: Callable[[], None]) -> Outcome:
    """Write and publish the data files, unless exactly these are in place; the proof comes before the publish."""
    job, parts = runner.job, taken.dataset.parts
    fates = [_known(state.fates) for state in states]
    has_links = any(stage.link for stage in job.stages)
    ids, outside = _witness_ids(runner, parts, fates) if has_links else (None, ())
    choose = make_choose(job, parts, fates)
    runner.run("samples", [choose])
    tasks = [make_write(job, state.part, out.path, _known(state.fates), state.columns, ids, choose.key) for state in states]
    key = key_of([task.key for task in tasks])
    staged = [dataclasses.replace(task, folder=str(out.staging(key))) for task in tasks]
    if out.is_publishing(key) or _is_published(runner, out, key, tasks):
        facts = [job.store.facts(task.key) for task in tasks]
        runner.bills += [fact["bill"] for fact in facts]
        runner.used |= {task.key for task in tasks}
        runner.tasks, runner.reused = runner.tasks + len(tasks), runner.reused + len(tasks)
    else:
        facts = runner.run("write", staged)
    _prove(taken.dataset, facts)
    if _is_published(runner, out, key, tasks):
        out.tidy()
    else:
        unchanged()
        out.publish(key)
    job.store.keep_only(runner.used)
    bills = add_bills(iter([*taken.bills, *runner.bills]))
    busy = sum(costs.get("wall_s", 0.0) for costs in bills.values())
    return Outcome(
        taken.dataset,
        job,
        states,
        tasks,
        choose,
        outside,
        facts,
        bills,
        runner.details,
        runner.limits,
        busy,
        runner.tasks,
        runner.reused,
    )


def remember(runner: Runner, states: Sequence[PartState]) -> None:
    """Add the kept rows to the indexes of the stages that keep one."""
    job, parts = runner.job, [state.part for state in states]
    fates = [_known(state.fates) for state in states]
    for index, outside in runner.outside.items():
        if outside.index is None:
            continue
        made = make_accepted(job, index, parts, fates)
        runner.run(f"{job.stages[index].name}: index", made)
        identity = job.stages[index].check.identity()
        accept(job, index, outside, key_of([identity, [[state.part.key, state.seen] for state in states]]), made)


def _witness_ids(runner: Runner, parts: Sequence[Part], fates: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Where the callers' ids of all witnesses are stored, and where what is known of those from outside is."""
    job = runner.job
    witnesses = make_witnesses(parts, fates)
    runner.run("witnesses", [witnesses])
    ids = make_ids(job, parts, witnesses) if job.roles.id is not None else []
    runner.run("witness ids", ids)
    rows = sum(part.rows for part in parts)
    named = [
        task
        for stage, outside in runner.outside.items()
        for task in make_named(job, stage, outside, witnesses.key, len(parts), rows)
    ]
    runner.run("witness ids", named)
    outside = (*(task.key for task in named), *runner.known.values())
    joined = make_witness_ids(ids, outside)
    runner.run("witness ids", [joined])
    return joined.key, outside


def _is_published(runner: Runner, out: RunDir, key: str, tasks: Sequence[Write]) -> bool:
    store = runner.job.store
    if not all(store.has(task.key) for task in tasks):
        return False
    sizes = {name: size for task in tasks for name, size in store.facts(task.key)["sizes"].items()}
    return out.is_published(key, sizes)


def _prove(dataset: Dataset, facts: Sequence[Facts]) -> None:
    """Kept, rejected and quarantined are together exactly the input's rows, by identity."""
    expected = actual = 0
    for part, fact in zip(dataset.parts, facts, strict=True):
        expected += _span_sum(part)
        actual += sum(fact["identities"].values())
    counted = sum(sum(fact["counts"].values()) for fact in facts)
    if counted != dataset.rows or (expected - actual) % 2**64:
        raise InvariantError(
            f"the input has {dataset.rows} rows and the ledger {counted}, or not the same ones; nothing was published",
            hint="please report this with the pipeline file",
        )


def _span_sum(part: Part) -> int:
    step = 1 << 20
    stop = part.first_row + part.rows
    return sum(identity_sum(np.arange(at, min(at + step, stop), dtype=np.uint64)) for at in range(part.first_row, stop, step))


def _fit(runner: Runner, work: Pass, states: list[PartState]) -> dict[int, str]:
    """Fit the state the pass needs: stage to state key."""
    if work.fit is None:
        return {}
    alive = sum(state.alive_rows for state in states)
    parts = {state.part: (_known(state.fates), state.seen) for state in states}
    samples = make_samples(runner.job, work.fit, parts, alive, [state.columns for state in states])
    runner.run(f"{runner.job.stages[work.fit].name}: sample", samples)
    fit = make_fit(runner.job, work.fit, samples)
    facts = runner.run(f"{runner.job.stages[work.fit].name}: fit", [fit])
    runner.details[runner.job.stages[work.fit].name] = {**facts[0]["evidence"], "fitted_rows": facts[0]["fitted"]}
    return {work.fit: fit.key}


def _scan(runner: Runner, work: Pass, states: list[PartState], fitted: Mapping[int, str]) -> None:
    """One pass: the row stages of all parts, then the group stage that ends it, or a limit that needs all rows."""
    job = runner.job
    tasks = [make_scan(job, state.part, work.stages, state.fates, state.seen, fitted, state.columns) for state in states]
    label = " + ".join(job.stages[index].name for index in work.stages) or "read"
    facts = runner.run(label, tasks)
    keys: dict[Part, str] = {}
    for state, task, fact in zip(states, tasks, facts, strict=True):
        state.fates, state.seen, state.alive_rows = task.key, fact["alive"], fact["alive_rows"]
        state.columns += fact["columns"]
        if "keys" in fact:
            keys[state.part] = fact["keys"]
    if keys:
        _group(runner, work.stages[-1], keys, states)
    elif work.stages and job.stages[work.stages[-1]].policy.needs_all_rows:
        _judge(runner, work.stages[-1], states)


def _group(runner: Runner, index: int, keys: Mapping[Part, str], states: list[PartState]) -> None:
    """Match, verify and settle one group stage, and spread its columns over the parts."""
    job, name = runner.job, runner.job.stages[index].name
    parts = [state.part for state in states]
    outside = runner.outside.get(index, Outside())
    own = [keys[part] for part in parts]
    foreign = make_outside_keys(job, index, outside)
    runner.run(f"{name}: read what it compares with", foreign)
    all_keys = own + [task.key for task in foreign]
    looked_up = _look_up(runner, index, outside, own, parts)
    all_keys += [looked_up[0].key] if looked_up else []
    matches = make_matches(job, index, all_keys, [part.first_row for part in parts])
    found = runner.run(f"{name}: match", matches)
    detail: dict[str, Any] = {
        **job.stages[index].check.facts(),
        "pairs": sum(fact["pairs"] for fact in found),
        "keys": sum(fact["keys"] for fact in found),
        "shards": job.shards,
    }
    settled = [task.key for task in matches]
    if group_check(job.stages[index]).verifies:
        settled, more = _verify(runner, index, matches, parts, looked_up)
        detail |= more
    spreads = make_spreads(job, index, keys, settled, [state.columns for state in states])
    spread = runner.run(f"{name}: columns", spreads)
    runner.details[name] = detail | add_remarks(fact["remarks"] for fact in spread)
    for state, task in zip(states, spreads, strict=True):
        state.columns.append(task.key)
    _judge(runner, index, states)


def _look_up(
    runner: Runner, index: int, outside: Outside, keys: Sequence[str], parts: Sequence[Part]
) -> tuple[IndexKeys, int] | None:
    """The rows of a stage's index that share a key with the input, and how many they are."""
    if outside.index is None:
        return None
    first = sum(part.rows for part in (*parts, *outside.parts))
    task = make_index_keys(runner.job, index, outside, keys, first)
    return task, runner.run(f"{runner.job.stages[index].name}: look up", [task])[0]["entries"]


def _verify(
    runner: Runner, index: int, matches: Sequence[Match], parts: Sequence[Part], looked_up: tuple[IndexKeys, int] | None
) -> tuple[list[str], dict[str, Any]]:
    """Group the linked rows, read them again, and settle each batch: where the columns are stored, and the evidence."""
    job, name, outside = runner.job, runner.job.stages[index].name, runner.outside.get(index, Outside())
    spans = [(part.first_row, part.rows, part.text_bytes) for part in (*parts, *outside.parts)]
    rows = sum(part.rows for part in parts)
    spans += [(looked_up[0].first_row, looked_up[1], 0)] if looked_up else []
    groups = make_groups(index, matches, spans)
    joined = runner.run(f"{name}: groups", [groups])[0]
    batches = joined["batches"]
    features: list[Task] = [*make_features(job, index, parts, groups.key, batches)]
    features += make_features(job, index, outside.parts, groups.key, batches, outside=True)
    if looked_up:
        features.append(make_index_features(index, looked_up[0], groups.key, len(spans) - 1, rows, batches))
        runner.known[index] = features[-1].key
    runner.run(f"{name}: features", features)
    starts = [*(part.first_row for part in parts), rows]
    verifies = make_verifies(index, groups, batches, [task.key for task in features], starts)
    proven = runner.run(f"{name}: verify", verifies)
    evidence = group_check(job.stages[index]).summary(add_counts(fact["counts"] for fact in proven))
    verified = sum(fact["proven"] for fact in proven)
    return [task.key for task in verifies], {
        "linked_rows": joined["rows"],
        "batches": batches,
        "verified_pairs": verified,
        **evidence,
    }


def _judge(runner: Runner, index: int, states: list[PartState]) -> None:
    job = runner.job
    limits = resolve_limits(job, index, [state.columns[-1] for state in states])
    runner.limits[index] = limits
    tasks = [make_judge(job, index, _known(state.fates), state.columns[-1], limits) for state in states]
    facts = runner.run(f"{job.stages[index].name}: decide", tasks)
    for state, task, fact in zip(states, tasks, facts, strict=True):
        state.fates, state.seen, state.alive_rows = task.key, fact["alive"], fact["alive_rows"]


def _known(key: str | None) -> str:
    assert key is not None, "a pass must come first"
    return key
