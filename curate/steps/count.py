"""Counts of one part that add up over parts: the only source of the report's numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.check import Column
from curate.dataset import Roles, is_single, shown
from curate.policy import as_floats
from curate.steps.base import Job, PlannedStage
from curate.verdicts import Fates

UNIT_EDGES = np.linspace(0.0, 1.0, 21)
"""bins of what runs from 0 to 1"""
_STEPS = [step * 10.0**power for power in range(-6, 13) for step in (1, 2, 5)]
WIDE_EDGES = np.array([-np.inf, *(-edge for edge in reversed(_STEPS)), 0.0, *_STEPS, np.inf])
"""bins of every other measure: 1, 2, 5, 10, …, the same in every run so that counts add up"""
PART_WORDS, REPORT_WORDS = 1000, 50
"""the most frequent words of a category that a part and the report list; the rest are added up as `other`"""


def count_stages(job: Job, fates: Fates, columns: Sequence[pa.Table]) -> list[dict[str, Any]]:
    """Per stage: rows asked, rows without an answer, rejections by rule, and each column's summary.

    Rows without an answer are also counted by the categories of earlier stages, such as their language.
    """
    out = []
    known: dict[str, pa.Table] = {}
    for stage, table in zip(job.stages, columns, strict=True):
        unanswered = _unanswered(stage, table)
        counted = _count_stage(stage, fates, table, unanswered)
        if counted["missing"] and known:
            position = table.column("position").filter(pa.array(unanswered))
            counted["missing_by"] = {name: words_at(words, position) for name, words in known.items()}
        out.append(counted)
        categories = [column.name for column in stage.columns if column.kind == "category"]
        known |= {
            f"{stage.name}.{name}": table.select(["position", name]).rename_columns(["position", "word"]) for name in categories
        }
    return out


def judged_columns(roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
    """The columns by whose values the removal of rows is counted: the groups, and the label where it names classes."""
    kind = None if roles.label is None else schema.field(roles.label).type
    classes = kind is not None and is_single(kind) and not (pa.types.is_floating(kind) or pa.types.is_temporal(kind))
    return tuple(dict.fromkeys((*roles.group, *([roles.label] if classes and roles.label else []))))


def count_groups(values: Mapping[str, pa.ChunkedArray], stage: npt.NDArray[np.int16]) -> pa.Table:
    """Rows by value of each group column and by fate: columns `column`, `value`, `stage`, `rows`."""
    import polars as pl

    frames = []
    for name, column in values.items():
        frame = pl.DataFrame({"value": pl.Series(pl.from_arrow(shown(column))), "stage": stage})
        counted = frame.group_by("value", "stage").agg(pl.len().cast(pl.Int64).alias("rows"))
        frames.append(counted.select(pl.lit(name).alias("column"), "value", "stage", "rows").sort("value", "stage"))
    empty = pl.DataFrame(schema={"column": pl.String, "value": pl.String, "stage": pl.Int16, "rows": pl.Int64})
    return pl.concat([empty, *frames]).to_arrow()


def count_links(job: Job, columns: Sequence[pa.Table]) -> pa.Table:
    """How many rows point at each row, by stage: columns `stage`, `witness`, `rows`."""
    import polars as pl

    empty = pl.DataFrame(schema={"stage": pl.Int16, "witness": pl.UInt64, "rows": pl.Int64})
    frames = [empty]
    for stage, table in zip(job.stages, columns, strict=True):
        if stage.link is not None:
            links = pl.DataFrame({"witness": pl.Series(pl.from_arrow(table.column(stage.link)))}).drop_nulls()
            counted = links.group_by("witness").agg(pl.len().cast(pl.Int64).alias("rows"))
            frames.append(counted.select(pl.lit(stage.index, pl.Int16).alias("stage"), "witness", "rows").sort("witness"))
    return pl.concat(frames).to_arrow()


def words_at(words: pa.Table, position: pa.ChunkedArray) -> dict[str, int]:
    """How many of these rows (by position) have each word of a category; those without one are under `(missing)`.

    `words` has the columns `position` and `word`.
    """
    found = words.column("word").take(pc.index_in(position, value_set=words.column("position").combine_chunks()))
    counts = Counter({entry["values"]: entry["counts"] for entry in found.value_counts().to_pylist()})
    nothing = counts.pop(None, 0)
    listed, rest = _most(counts, PART_WORDS)
    return listed | ({"(missing)": nothing} if nothing else {}) | ({"(other)": rest} if rest else {})


def count_remarks(asked: pa.Table, categories: Mapping[str, pa.Table]) -> dict[str, Any]:
    """What was remarked on rows: by remark how many rows, how many by word, and by each category of an earlier stage.

    `asked` has the columns `position`, `keyed` and the remarks; `categories` are as for `words_at`.
    """
    out: dict[str, Any] = {}
    for name in asked.column_names[2:]:
        said = asked.select(["position", name]).filter(asked.column(name).is_valid())
        by = {category: words_at(words, said.column("position")) for category, words in categories.items()}
        out[name] = {"rows": said.num_rows, "words": _words(said.column(name))["words"], "by": by}
    return out


def add_remarks(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The remarks of all parts in the report's form, the most frequent words first."""
    out: dict[str, Any] = {}
    for remarks in parts:
        for name, one in remarks.items():
            told = out.setdefault(name, {"rows": 0, "words": Counter(), "by": {}})
            told["rows"] += one["rows"]
            told["words"].update(one["words"])
            for category, words in one["by"].items():
                told["by"].setdefault(category, Counter()).update(words)
    return {
        name: {
            "rows": told["rows"],
            "words": ranked(told["words"]),
            "by": {of: ranked(words) for of, words in told["by"].items() if words},
        }
        for name, told in out.items()
    }


def ranked(words: Mapping[str, int]) -> dict[str, int]:
    """Counts with the greatest first, ties by name."""
    return dict(sorted(words.items(), key=lambda item: (-item[1], item[0])))


def summary(column: Column, cells: pa.ChunkedArray) -> dict[str, Any]:
    """A column's summary; two summaries of disjoint rows add up with `add_summaries`."""
    if column.kind == "category":
        return _words(cells)
    values = as_floats(cells)
    present = values[~np.isnan(values)]
    out: dict[str, Any] = {"count": len(present), "missing": len(values) - len(present)}
    if column.kind == "flag":
        return {**out, "true": int(np.count_nonzero(present == 1.0))}
    finite = present[np.isfinite(present)]
    edges = edges_of(column)
    index = np.clip(np.searchsorted(edges, present, side="right") - 1, 0, len(edges) - 2)
    bins, counts = np.unique(index, return_counts=True)
    return {
        **out,
        "min": float(finite.min()) if len(finite) else None,
        "max": float(finite.max()) if len(finite) else None,
        "finite": len(finite),
        "sum": _sum(finite),
        "bins": {str(int(at)): int(count) for at, count in zip(bins, counts, strict=True)},
    }


def add_summaries(column: Column, summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The summary of all rows, in the report's form."""
    out: dict[str, Any] = {"kind": column.kind, "unit": column.unit, "doc": column.doc}
    out |= {name: sum(one[name] for one in summaries) for name in ("count", "missing")}
    if column.kind == "flag":
        return {**out, "true": sum(one["true"] for one in summaries)}
    if column.kind == "category":
        words: Counter[str] = Counter()
        for one in summaries:
            words.update(one["words"])
        listed, rest = _most(words, REPORT_WORDS)
        return {**out, "distinct": len(words), "words": listed, "other": rest + sum(one["other"] for one in summaries)}
    lows = [one["min"] for one in summaries if one["min"] is not None]
    highs = [one["max"] for one in summaries if one["max"] is not None]
    sums, finite = [one["sum"] for one in summaries], sum(one["finite"] for one in summaries)
    total = None if None in sums else _finite(sum(sums))
    counts: dict[int, int] = {}
    for one in summaries:
        for at, count in one["bins"].items():
            counts[int(at)] = counts.get(int(at), 0) + count
    edges = edges_of(column)
    return {
        **out,
        "min": min(lows, default=None),
        "max": max(highs, default=None),
        "mean": total / finite if finite and total is not None else None,
        "bins": [[_finite(edges[at]), _finite(edges[at + 1]), counts[at]] for at in sorted(counts)],
    }


def edges_of(column: Column) -> npt.NDArray[np.float64]:
    """The borders of a column's bins, which depend on its declaration alone."""
    return UNIT_EDGES if column.kind == "suspicion" or column.unit in ("share", "Jaccard") else WIDE_EDGES


def _unanswered(stage: PlannedStage, table: pa.Table) -> npt.NDArray[np.bool_]:
    missing = np.full(table.num_rows, bool(stage.columns))
    for column in stage.columns:
        if column.kind != "link":
            missing &= table.column(column.name).is_null().to_numpy()
    return missing


def _count_stage(stage: PlannedStage, fates: Fates, table: pa.Table, missing: npt.NDArray[np.bool_]) -> dict[str, Any]:
    mine = fates.stage == stage.index
    rules, counts = np.unique(np.where(fates.by_missing, -1 - fates.rule, fates.rule)[mine], return_counts=True)
    scored = [column for column in stage.columns if column.kind not in ("vector", "link")]
    return {
        "asked": table.num_rows,
        "missing": int(missing.sum()),
        "rejected": int(mine.sum()),
        "reasons": {str(int(rule)): int(count) for rule, count in zip(rules, counts, strict=True)},
        "scores": {column.name: summary(column, table.column(column.name)) for column in scored},
    }


def _words(cells: pa.ChunkedArray) -> dict[str, Any]:
    counts = Counter({entry["values"]: entry["counts"] for entry in cells.drop_null().value_counts().to_pylist()})
    listed, rest = _most(counts, PART_WORDS)
    return {"count": sum(counts.values()), "missing": cells.null_count, "words": listed, "other": rest}


def _most(counts: Counter[str], most: int) -> tuple[dict[str, int], int]:
    """The most frequent words, ties by name, and how many rows have another one."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: counts[word] for word in ranked[:most]}, sum(counts[word] for word in ranked[most:])


def _sum(values: npt.NDArray[np.float64]) -> float | None:
    with np.errstate(over="ignore"):
        return _finite(values.sum())


def _finite(number: float) -> float | None:
    """The number, None where JSON has no word for it."""
    return float(number) if np.isfinite(number) else None
