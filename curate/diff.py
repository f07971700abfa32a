"""What changed between two runs: rows matched by the caller's id, or by their place in the source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from curate.rundir import read_document

EXAMPLES = 20
PLACE = ["source_file", "source_row"]


def diff(a: str | Path, b: str | Path) -> dict[str, Any]:
    """Rows whose verdict or reason differs between run `a` and run `b`, and how the totals moved.

    Rows are matched by id where both runs have a unique one for every readable row, else by
    source file and row. Raises `RequestError` where a folder holds no finished run.
    """
    before, after = Path(a), Path(b)
    reports = read_document(before, "report.json"), read_document(after, "report.json")
    left, right = _verdicts(before), _verdicts(after)
    by = ["id"] if _has_ids(left) and _has_ids(right) else PLACE
    joined = _join(left, right, by).collect()
    verdicts = joined.select(pl.col("verdict").fill_null("absent"), pl.col("verdict_b").fill_null("absent"))
    differs = [pl.col(name).ne_missing(pl.col(f"{name}_b")) for name in ("verdict", "stage", "column", "rule")]
    changed = joined.filter(pl.any_horizontal(differs)).sort("row_id", "row_id_b", nulls_last=True)
    moves = (
        verdicts.filter(pl.col("verdict") != pl.col("verdict_b"))
        .group_by("verdict", "verdict_b")
        .len()
        .sort("verdict", "verdict_b")
    )
    return {
        "a": str(before),
        "b": str(after),
        "matched_by": by,
        "rows": {"same": joined.height - changed.height, "changed": changed.height},
        "transitions": {f"{old}->{new}": count for old, new, count in moves.iter_rows()},
        "examples": [_example(row) for row in changed.head(EXAMPLES).iter_rows(named=True)],
        "report": _deltas(*reports),
    }


def _verdicts(run: Path) -> pl.LazyFrame:
    columns = ["row_id", *PLACE, "id", "verdict", "stage", "column", "rule", "value", "witness_id", "witness_row"]
    return pl.scan_parquet(sorted(map(str, (run / "verdicts").glob("*.parquet"))), glob=False).select(columns)


def _join(left: pl.LazyFrame, right: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
    """All rows of both runs; rows that could not be read have no id, and are matched by their place."""
    if by == PLACE:
        return left.join(right, on=PLACE, how="full", suffix="_b", coalesce=True)
    named, unnamed = pl.col("id").is_not_null(), pl.col("id").is_null()
    with_id = left.filter(named).join(right.filter(named), on="id", how="full", suffix="_b", coalesce=True)
    without = left.filter(unnamed).join(right.filter(unnamed), on=PLACE, how="full", suffix="_b", coalesce=True)
    return pl.concat([with_id, without], how="diagonal")


def _has_ids(verdicts: pl.LazyFrame) -> bool:
    readable = verdicts.filter(pl.col("verdict") != "quarantined")
    rows, present, distinct = (
        readable.select(pl.len(), pl.col("id").count().alias("ids"), pl.col("id").n_unique().alias("distinct")).collect().row(0)
    )
    return bool(rows and rows == present == distinct)


def _example(row: Mapping[str, Any]) -> dict[str, Any]:
    def side(suffix: str) -> dict[str, Any]:
        return {name: row.get(f"{name}{suffix}") for name in ("verdict", "stage", "column", "value", "witness_id", "witness_row")}

    first = row["row_id"] if row["row_id"] is not None else row.get("row_id_b")
    name = row["id"] if row["id"] is not None else row.get("id_b")
    return {"row_id": first, "id": name, "a": side(""), "b": side("_b")}


def _deltas(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of both reports side by side: totals, and rejections by stage."""
    out = {name: {"a": a[name], "b": b[name]} for name in ("kept_share", "rejected_share", "quarantined_share")}
    out |= {f"rows.{name}": {"a": a["rows"][name], "b": b["rows"][name]} for name in a["rows"]}
    for stage in dict.fromkeys((*a["stages"], *b["stages"])):
        out[f"{stage}.rejected"] = {
            side: report["stages"].get(stage, {}).get("rejected") for side, report in (("a", a), ("b", b))
        }
    return out
