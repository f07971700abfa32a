"""The report: numbers only, summed from the counts each written part stored with itself."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from curate.check import GroupCheck
from curate.disparity import SOURCES, disparity, warnings, worst_ratio
from curate.execute import Outcome
from curate.grouping import FEW, MISSING, OTHERS, is_number, quantile_groups
from curate.intervals import wilson
from curate.meter import ACTIVITIES
from curate.policy import finite_or_none
from curate.rundir import VERSION
from curate.steps.base import PlannedStage
from curate.steps.count import add_summaries, judged_columns, ranked
from curate.steps.unreadable import unreadable
from curate.verdicts import ALIVE, QUARANTINED

LARGEST = 10
MOST_VALUES = 200
"""group values listed by name; the rest are added up"""
QUANTILES = 5
"""groups of numbers that are compared; `bias` has as many unless told"""
EXAMPLES = 20
_PLACE_IN_ROW = re.compile(r" \(byte \d+ of the row\)| at byte \d+ of the row")
"""what makes one kind of reason look like many"""


def build(name: str, outcome: Outcome, wall_s: float, workers: int) -> dict[str, Any]:
    """The whole of `report.json`. `costs` vary from run to run; every other number depends on the data and the pipeline."""
    rows = _rows(outcome)
    total = rows["input"]
    shares = {f"{verdict}_share": _share(rows[verdict], total) for verdict in ("kept", "rejected", "quarantined")}
    stages = _stages(outcome, total - rows["quarantined"])
    counted = _counted(outcome)
    sources, groups = _sources(outcome), _groups(counted, outcome)
    labels = {name: groups.pop(name) for name in list(groups) if name not in outcome.job.roles.group}
    people = disparity(_groups(_by_quantile(counted, outcome), outcome))
    uneven = people | disparity({SOURCES: sources} if SOURCES not in people else {})
    return {
        "version": VERSION,
        "name": name,
        "status": "complete",
        "rows": rows,
        **shares,
        "stages": stages,
        "sources": sources,
        "groups": groups,
        "labels": labels,
        "max_group_ratio": worst_ratio(people),
        "max_group_ratio_low": worst_ratio(people, "max_ratio_low"),
        "disparity": uneven,
        "uneven": warnings(uneven),
        "quarantine": _quarantine(outcome),
        "casts": list(outcome.dataset.casts),
        "witness_rejected_later": _witnesses_lost(outcome),
        "costs": _costs(outcome, wall_s, workers),
    }


def _rows(outcome: Outcome) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for fact in outcome.facts:
        counts.update(fact["counts"])
    return {"input": outcome.dataset.rows, **{verdict: counts[verdict] for verdict in ("kept", "rejected", "quarantined")}}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _stages(outcome: Outcome, alive: int) -> dict[str, Any]:
    out = {}
    readable = alive
    for stage in outcome.job.stages:
        facts = [fact["stages"][stage.index] for fact in outcome.facts]
        entry = _stage(outcome, stage, facts, readable if outcome.job.audit else alive)
        alive -= entry["rejected"]
        entry["kept"] = alive
        out[stage.name] = entry
    return out


def _stage(outcome: Outcome, stage: PlannedStage, facts: list[dict[str, Any]], rows_in: int) -> dict[str, Any]:
    asked, missing, rejected = (sum(fact[key] for fact in facts) for key in ("asked", "missing", "rejected"))
    reason = None
    if asked == 0:
        reason = "no row reached this stage" if rows_in == 0 else "no row met its condition"
    elif missing == asked:
        reason = "no row had the cells it needs"
    scored = [column for column in stage.columns if column.kind not in ("vector", "link")]
    entry: dict[str, Any] = {
        "check": stage.check.name,
        "version": stage.check.version,
        "status": "evaluated" if reason is None else "not evaluated",
        "reason": reason,
        "rows_in": rows_in,
        "asked": asked,
        "missing": missing,
        "missing_by": _missing_by(facts),
        "covered_share": _share(asked - missing, rows_in),
        "rejected": rejected,
        "rejected_share": _share(rejected, outcome.dataset.rows),
        "reasons": _reasons(outcome, stage, facts),
        "scores": {column.name: add_summaries(column, [fact["scores"][column.name] for fact in facts]) for column in scored},
    }
    if isinstance(stage.check, GroupCheck) and stage.link:
        entry["groups"] = _largest(outcome, stage)
    entry["detail"] = outcome.details.get(stage.name, {})
    return entry


def _missing_by(facts: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Rows without an answer by each category of an earlier stage, the most frequent first."""
    counts: dict[str, Counter[str]] = {}
    for fact in facts:
        for column, words in fact.get("missing_by", {}).items():
            counts.setdefault(column, Counter()).update(words)
    return {column: ranked(words) for column, words in counts.items()}


def _reasons(outcome: Outcome, stage: PlannedStage, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    counts: Counter[int] = Counter()
    for fact in facts:
        counts.update({int(rule): rows for rule, rows in fact["reasons"].items()})
    limits = outcome.limits.get(stage.index) or tuple(rule.limit(None) for rule in stage.policy.rules)
    out = []
    for index, (rule, limit) in enumerate(zip(stage.policy.rules, limits, strict=True)):
        out.append({"rule": rule.word, "column": rule.column, "limit": finite_or_none(limit), "rows": counts[index]})
        if counts[-1 - index]:
            out.append({"rule": "on_missing", "column": rule.column, "limit": None, "rows": counts[-1 - index]})
    return out


def _sources(outcome: Outcome) -> dict[str, Any]:
    counts: dict[str, Counter[int]] = {}
    for part, fact in zip(outcome.dataset.parts, outcome.facts, strict=True):
        mine = counts.setdefault(part.source_file, Counter())
        mine.update({ALIVE: fact["counts"].get("kept", 0), QUARANTINED: fact["counts"].get("quarantined", 0)})
        mine.update({index: stage["rejected"] for index, stage in enumerate(fact["stages"])})
    return {name: _tally(outcome, count) for name, count in counts.items()}


def _tally(outcome: Outcome, counts: Mapping[int, int]) -> dict[str, Any]:
    """Some rows by verdict, and what each stage took of those that reached it, given how many rows have which fate."""
    total, left = sum(counts.values()), sum(counts.values()) - counts.get(QUARANTINED, 0)
    rejected = sum(rows for stage, rows in counts.items() if stage >= 0)
    stages = {}
    readable = left
    for stage in outcome.job.stages:
        taken = counts.get(stage.index, 0)
        rows_in = readable if outcome.job.audit else left
        stages[stage.name] = {"rows_in": rows_in, "rejected": taken, **_rejected_share(taken, rows_in)}
        left -= taken
    return {
        "input": total,
        "kept": counts.get(ALIVE, 0),
        "rejected": rejected,
        "quarantined": counts.get(QUARANTINED, 0),
        **_rejected_share(rejected, total),
        "stages": stages,
    }


def _rejected_share(rejected: int, of: int) -> dict[str, float | None]:
    """The share, and its 95 % interval."""
    low, high = wilson(rejected, of) if of else (None, None)
    return {"rejected_share": _share(rejected, of), "rejected_low": low, "rejected_high": high}


def _groups(counted: Mapping[str, Mapping[str, Counter[int]]], outcome: Outcome) -> dict[str, Any]:
    """Rows by value of every group column and of the label, the values of most rows by name and the others together."""
    out: dict[str, Any] = {}
    for column, counts in counted.items():
        names = sorted(counts, key=lambda key: (-sum(counts[key].values()), key))
        out[column] = {key: _tally(outcome, counts[key]) for key in names[:MOST_VALUES]}
        if len(names) > MOST_VALUES:
            rest: Counter[int] = Counter()
            for key in names[MOST_VALUES:]:
                rest.update(counts[key])
            out[column][OTHERS] = _tally(outcome, rest)
    return out


def _counted(outcome: Outcome) -> dict[str, dict[str, Counter[int]]]:
    """By column and value, how many rows have which fate; a missing value is a group of its own, under `(missing)`."""
    import polars as pl

    store = outcome.job.store
    frame = pl.DataFrame(pl.from_arrow(pa.concat_tables([store.read(task.key, 0) for task in outcome.writes])))
    out: dict[str, dict[str, Counter[int]]] = {}
    for column in judged_columns(outcome.job.roles, outcome.job.schema):
        counts = out.setdefault(column, {})
        for value, stage, rows in frame.filter(pl.col("column") == column).select("value", "stage", "rows").iter_rows():
            counts.setdefault(_group_name(value), Counter())[stage] += rows
    return out


def _by_quantile(counted: Mapping[str, Mapping[str, Counter[int]]], outcome: Outcome) -> dict[str, Mapping[str, Counter[int]]]:
    """The same with columns of many different numbers cut into parts of equal size."""
    out: dict[str, Mapping[str, Counter[int]]] = {}
    for column, counts in counted.items():
        out[column] = counts
        numbers = is_number(outcome.job.schema.field(column).type)
        values = [name for name in counts if numbers and name != MISSING and math.isfinite(float(name))]
        if len(values) > FEW:
            parts = quantile_groups({name: sum(counts[name].values()) for name in values}, QUANTILES)
            merged: dict[str, Counter[int]] = {}
            for name, count in counts.items():
                merged.setdefault(parts.get(name, MISSING), Counter()).update(count)
            out[column] = merged
    return out


def _group_name(value: str | None) -> str:
    """What the report calls a group; a value spelt like one of our own names is put in quotes."""
    if value is None:
        return MISSING
    return f'"{value}"' if value.strip('"') in (MISSING, OTHERS) else value


def _largest(outcome: Outcome, stage: PlannedStage) -> dict[str, Any]:
    """How many rows have others pointing at them, and the rows most pointed at."""
    import polars as pl

    store = outcome.job.store
    links = pl.DataFrame(pl.from_arrow(pa.concat_tables([store.read(task.key, 1) for task in outcome.writes])))
    sizes = links.filter(pl.col("stage") == stage.index).group_by("witness").agg(pl.col("rows").sum())
    top = sizes.sort(["rows", "witness"], descending=[True, False]).head(LARGEST)
    largest = [{"witness_row": row, "rows": rows + 1} for row, rows in top.iter_rows()]
    return {"groups": sizes.height, "rows": int(sizes["rows"].sum()) + sizes.height, "largest": largest}


def _quarantine(outcome: Outcome) -> dict[str, Any]:
    reasons: Counter[str] = Counter()
    examples: list[dict[str, Any]] = []
    for part, fact in zip(outcome.dataset.parts, outcome.facts, strict=True):
        if not fact["counts"]["quarantined"]:
            continue
        table = unreadable(outcome.job, part)
        reasons.update(_PLACE_IN_ROW.sub("", reason) for reason in table.column("reason").to_pylist())
        for bad in table.slice(0, EXAMPLES - len(examples)).to_pylist():
            line = None if bad["line"] is None else part.first_line + bad["line"]
            examples.append(
                {
                    "source_file": part.source_file,
                    "source_row": part.first_source_row + bad["position"],
                    "line": line,
                    "reason": bad["reason"],
                }
            )
    return {"reasons": dict(reasons.most_common(MOST_VALUES)), "examples": examples}


def _witnesses_lost(outcome: Outcome) -> int:
    """Rows that explain a rejection and were themselves rejected by a later stage: their copies are gone with them."""
    import polars as pl

    store, rejected, witnesses = outcome.job.store, [], []
    if not any(stage.link for stage in outcome.job.stages):
        return 0
    for state in outcome.states:
        assert state.fates is not None
        table = pl.DataFrame(pl.from_arrow(store.read(state.fates).select(["stage", "witness"])))
        table = table.with_row_index("row", offset=state.part.first_row)
        rejected.append(table.filter(pl.col("stage") >= 0).select(pl.col("row").cast(pl.Int64)))
        witnesses.append(table.filter(pl.col("witness") >= 0).select("witness"))
    lost = pl.concat(witnesses).unique().join(pl.concat(rejected), left_on="witness", right_on="row", how="inner")
    return lost.height


def _costs(outcome: Outcome, wall_s: float, workers: int) -> dict[str, Any]:
    """Where the time went. `wall_s` and `waiting_s` are this session's; everything else sums all sessions of the run."""
    stages = {name: _step(costs) for name, costs in outcome.bill.items()}
    total = {key: sum(step.get(key, 0.0) for step in stages.values()) for key in ("cpu_s", "bytes_read", "bytes_written")}
    by_activity = {f"{activity}_s": sum(step.get(f"{activity}_s", 0.0) for step in stages.values()) for activity in ACTIVITIES}
    return {
        "wall_s": wall_s,
        "busy_s": outcome.busy_s,
        "waiting_s": max(0.0, workers * wall_s - outcome.busy_s) if not outcome.reused else None,
        "workers": workers,
        **total,
        **by_activity,
        "peak_memory_bytes": max((step["peak_memory_bytes"] for step in stages.values()), default=0),
        "tasks": outcome.tasks,
        "tasks_reused": outcome.reused,
        "stages": stages,
    }


def _step(costs: Mapping[str, float]) -> dict[str, Any]:
    rows = int(costs.get("rows_scored", costs.get("rows", 0)))
    wall = costs.get("wall_s", 0.0)
    return {
        "wall_s": wall,
        "cpu_s": costs.get("cpu_s", 0.0),
        **{f"{activity}_s": costs.get(f"{activity}_s", 0.0) for activity in ACTIVITIES},
        "rows": rows,
        "rows_per_s": rows / wall if wall else None,
        "bytes_read": int(costs.get("bytes_read", 0)),
        "bytes_written": int(costs.get("bytes_written", 0)),
        "peak_memory_bytes": int(costs.get("peak_memory_bytes", 0)),
    }
