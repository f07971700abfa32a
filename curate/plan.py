"""What a run will do, worked out before it does anything.

Stages are resolved against the schema (columns, rules, needs), then cut into *passes*: a pass
reads the data once, scores a run of row checks, and makes the keys of the group check that ends
it. How data is cut depends on the data alone, never on the machine, so every engine and worker
count writes the same bytes.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curate.check import Check, Emitted, FitCheck, GroupCheck
from curate.dataset import Roles
from curate.errors import InvariantError, RequestError, did_you_mean
from curate.expression import parse
from curate.pipeline import Pipeline, Stage
from curate.policy import Rule
from curate.sink import check_writable
from curate.steps.base import PlannedStage, Used
from curate.verdicts import REASONS

SHARD_KEYS = 2_000_000
"""a shard of a group check holds about so many keys"""
SMALL_BYTES = 64 << 20
"""sources below this size are run in the command's own process: starting workers would cost more than they save"""
PARENT_BYTES = 400 << 20
WORKER_BYTES = 700 << 20
"""what one process needs at the batch, part and shard sizes above, measured with room to spare"""


@dataclass(frozen=True)
class Pass:
    """One reading of the data: the stages it scores, by index."""

    stages: tuple[int, ...]
    fit: int | None = None
    """the stage whose state must be fitted before this pass"""


def resolve(pipeline: Pipeline, schema: pa.Schema, until: str | None = None) -> tuple[PlannedStage, ...]:
    """Every stage with its columns, needs and rules; `RequestError` for whatever the data does not have."""
    pipeline.roles.check_against(schema)
    check_writable(pipeline.output.format, schema)
    taken = [name for name in REASONS.names if name in schema.names]
    if taken:
        raise RequestError(
            f"the data has a column `{taken[0]}`, a name that rejected/ adds itself",
            place="source",
            hint="rename the column first (a rejected/ folder keeps the input's columns beside the curate_* ones)",
        )
    stages = pipeline.stages
    if until is not None:
        names = [stage.name for stage in stages]
        if until not in names:
            raise RequestError(f"there is no stage `{until}`", place="--until", hint=did_you_mean(until, names))
        stages = stages[: names.index(until) + 1]
    planned: list[PlannedStage] = []
    for index, stage in enumerate(stages):
        planned.append(_resolve(index, stage, pipeline.roles, schema, planned))
    _names_are_free(planned, schema)
    return tuple(planned)


def passes(stages: Sequence[PlannedStage]) -> list[Pass]:
    """Cut stages into passes: after a group check or a limit that needs all rows, before a fit or a use of earlier columns."""
    out: list[Pass] = []
    current: list[int] = []
    fit: int | None = None
    for stage in stages:
        fits = isinstance(stage.check, FitCheck)
        if fits or stage.uses:
            if current or not out:
                out.append(Pass(tuple(current), fit))
            current, fit = [], stage.index if fits else None
        current.append(stage.index)
        if isinstance(stage.check, GroupCheck) or stage.policy.needs_all_rows:
            out.append(Pass(tuple(current), fit))
            current, fit = [], None
    if current or not out:
        out.append(Pass(tuple(current), fit))
    return out


def shard_count(stages: Sequence[PlannedStage], rows: int) -> int:
    """How many shards group checks get: a power of two that the number of rows alone decides."""
    per_row = max((stage.check.keys_per_row() for stage in stages if isinstance(stage.check, GroupCheck)), default=1)
    wanted = max(1, -(-rows * per_row // SHARD_KEYS))
    return min(4096, 1 << (wanted - 1).bit_length())


def machine_memory() -> int:
    """Bytes of memory this process may use: the machine's, or the container's or the process's limit where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    total = total if limit == resource.RLIM_INFINITY else min(total, limit)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                total = min(total, int(file.read()))
        except (OSError, ValueError):
            continue
    return total


def machine_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def runs_here(workers: int | None, source_bytes: int) -> bool:
    """Whether a run starts no workers, none being asked for, since its source is small."""
    return workers is None and source_bytes < SMALL_BYTES


def fit_workers(workers: int | None, memory: int | None) -> tuple[int, int]:
    """(workers, memory budget in bytes): as many workers as asked for, or the cores, that fit the budget.

    Raises `RequestError` where not even one fits.
    """
    budget = memory if memory is not None else machine_memory() * 6 // 10
    wanted = workers if workers is not None else machine_cores()
    if wanted < 1:
        raise RequestError(f"--workers is {wanted}", hint="give a whole number from 1")
    if budget < WORKER_BYTES:
        raise RequestError(
            f"a memory budget of {budget >> 20} MiB is too small",
            place="--memory",
            hint=f"one process needs {WORKER_BYTES >> 20} MiB",
        )
    affordable = (budget - PARENT_BYTES) // WORKER_BYTES
    return max(1, min(wanted, affordable)), budget


def _resolve(index: int, stage: Stage, roles: Roles, schema: pa.Schema, before: Sequence[PlannedStage]) -> PlannedStage:
    place = f"stage {index + 1}, {stage.name}"
    try:
        needs = stage.check.needs(roles, schema)
        _columns_exist(needs, schema)
        uses = _used(stage.check, roles, before)
        columns = stage.check.columns(roles, schema)
        policy = stage.policy(stage.check.default_rules(roles, schema))
        if stage.when is not None:
            condition = parse(stage.when)
            _columns_exist(condition.columns, schema)
            condition.mask(schema.empty_table())
    except RequestError as err:
        raise RequestError(err.message, place=err.place or place, hint=err.hint) from err
    scalar = [column.name for column in columns if column.kind not in ("vector", "link", "category")]
    for rule in policy.rules:
        if rule.column not in scalar:
            raise RequestError(
                f"a rule looks at `{rule.column}`, which `{stage.check.name}` does not emit",
                place=place,
                hint=did_you_mean(rule.column, scalar),
            )
    adds = tuple(Used(name, index, column, kind) for name, (column, kind) in stage.check.adds(roles, schema).items())
    return PlannedStage(index, stage.name, stage.check, policy, stage.when, needs, columns, uses, adds)


def _names_are_free(stages: Sequence[PlannedStage], schema: pa.Schema) -> None:
    """Refuse a column that kept rows would get twice."""
    taken = [*schema.names, *REASONS.names]
    for stage in stages:
        for one in stage.adds:
            if one.name in taken:
                raise RequestError(
                    f"kept rows cannot get a column `{one.name}`: there is one of that name",
                    place=f"stage {stage.index + 1}, {stage.name}",
                    hint="give it a name of its own",
                )
            taken.append(one.name)


def _used(check: Check, roles: Roles, before: Sequence[PlannedStage]) -> tuple[Used, ...]:
    """The columns of earlier stages that a check asks for."""
    emitted = {one.name: (stage.index, one.column) for stage in before for one in _emitted(stage)}
    wanted = check.uses(roles, [one for stage in before for one in _emitted(stage)])
    if wanted and isinstance(check, GroupCheck):
        raise InvariantError(f"`{check.name}` is a group check and asks for columns of earlier stages")
    return tuple(Used(name, index, column.name, column.type) for name in wanted for index, column in (emitted[name],))


def _emitted(stage: PlannedStage) -> list[Emitted]:
    return [Emitted(stage.name, stage.check.name, column) for column in stage.columns]


def _columns_exist(names: Sequence[str], schema: pa.Schema) -> None:
    for name in names:
        if name not in schema.names:
            raise RequestError(f"the data has no column `{name}`", hint=did_you_mean(name, schema.names))


def describe(stages: Sequence[PlannedStage]) -> list[dict[str, Any]]:
    """The stages for people and for JSON."""
    return [
        {
            "name": stage.name,
            "check": stage.check.name,
            "version": stage.check.version,
            "parameters": stage.check.parameters(),
            "reads": list(stage.reads),
            "uses": [used.name for used in stage.uses],
            "columns": [column.name for column in stage.columns],
            "rules": [{"rule": rule.word, "column": rule.column, "limit": _limit(rule)} for rule in stage.policy.rules],
            "on_missing": stage.policy.on_missing,
            "when": stage.when,
            "facts": stage.check.facts(),
        }
        for stage in stages
    ]


def _limit(rule: Rule) -> float | None:
    """A rule's limit where it is known before any row is scored."""
    return None if rule.needs_all_rows else rule.limit(None)
