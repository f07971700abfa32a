"""Which rejected rows the report shows, with their witnesses: the same ones whatever wrote the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.dataset import OUTSIDE, Dataset, Part
from curate.excerpt import excerpts
from curate.hashing import key_of, mix64
from curate.meter import Meter
from curate.policy import finite_or_none
from curate.rundir import VERSION
from curate.steps.base import Batch, Job, StoredTask, publish
from curate.steps.group import by_part
from curate.verdicts import Fates

if TYPE_CHECKING:
    import polars as pl

SAMPLES = 20
"""rows shown a reason"""
TEXT_CHARACTERS = 1 << 16
"""at most so much of a shown row is kept: enough to find where it differs from its witness"""
MOST_COLUMNS = 8
"""cells shown of a row without text"""
SHOWN = pa.schema([("row", pa.uint64()), ("id", pa.string()), ("text", pa.string())])
"""What `write` keeps of a row that the report shows."""


@dataclass(frozen=True)
class Choose(StoredTask):
    """The sample of every reason; before it, a segment a part and one for what is outside, the rows to show (witnesses too)."""

    fates: tuple[str, ...]
    starts: tuple[int, ...]

    def run(self, job: Job) -> None:
        import polars as pl

        meter = Meter()
        found = [
            _of_part(Fates.from_table(job.store.read(key)), start, job.seed)
            for key, start in zip(self.fates, self.starts, strict=True)
        ]
        chosen = _first(pl.concat(found))
        rows = pl.concat([chosen["row"], chosen["witness"].drop_nulls()]).unique().sort()
        segments = by_part(pa.table({"row": rows.to_arrow()}), [*self.starts, OUTSIDE])
        publish(job, self.key, [*segments, chosen.drop("order").to_arrow()], meter, "write")


def make_choose(job: Job, parts: Sequence[Part], fates: Sequence[str]) -> Choose:
    """The one task that chooses, given the final fates of the parts."""
    starts = tuple(part.first_row for part in parts)
    return Choose(key_of(["choose", list(fates), list(starts), job.seed]), tuple(fates), starts)


def rows_to_show(job: Job, choose: str, part: Part) -> npt.NDArray[np.bool_]:
    """True for the rows of a part that the report shows."""
    wanted = np.zeros(part.rows, bool)
    wanted[job.store.read(choose, part.index).column("row").to_numpy() - np.uint64(part.first_row)] = True
    return wanted


def to_show(job: Job, batch: Batch, ids: npt.NDArray[np.uint64], names: pa.Array, wanted: npt.NDArray[np.bool_]) -> pa.Table:
    """What the report shows of the wanted rows of a batch, in `SHOWN`; `ids` are row ids, `names` the callers' ids."""
    mask = pa.array(wanted)
    columns = list(job.roles.text) or batch.table.column_names[:MOST_COLUMNS]
    rows = batch.table.select(columns).filter(mask).to_pylist() if wanted.any() else []
    texts = [_text(row, bare=bool(job.roles.text)) for row in rows]
    return pa.table([pa.array(ids[wanted]), names.filter(mask), pa.array(texts, pa.string())], schema=SHOWN)


def samples(job: Job, dataset: Dataset, choose: Choose, rows: pa.Table, report: Mapping[str, Any]) -> dict[str, Any]:
    """`samples.json`: by stage, and by reason, rows with an excerpt, and their witnesses.

    `rows` has every row to show once, in `SHOWN`; those from outside may be more.
    """
    known = {row["row"]: row for row in rows.to_pylist()}
    chosen = job.store.read(choose.key, len(choose.starts) + 1).to_pylist()
    out: dict[str, Any] = {}
    for stage in job.stages:
        reasons: dict[tuple[str, str, float | None], list[dict[str, Any]]] = {}
        for row in (row for row in chosen if row["stage"] == stage.index):
            rule = stage.policy.rules[row["rule"]]
            limit = None if row["by_missing"] else finite_or_none(row["limit"])
            reason = ("on_missing" if row["by_missing"] else rule.word, rule.column, limit)
            part = dataset.part_of(row["row"])
            place = {"source_file": part.source_file, "source_row": part.first_source_row + row["row"] - part.first_row}
            reasons.setdefault(reason, []).append({**excerpts(row, known), **place})
        told = {(one["rule"], one["column"], one["limit"]): one for one in report["stages"][stage.name]["reasons"]}
        out[stage.name] = [{**told[reason], "samples": picked} for reason, picked in reasons.items()]
    return {"version": VERSION, "stages": out}


def _text(row: Mapping[str, Any], bare: bool) -> str:
    """The texts of a row, a line each; or, where it has none, its first cells by name."""
    cells = row.items() if not bare else [("", cell) for cell in row.values() if cell is not None]
    return "\n".join(f"{name}: {cell}" if name else str(cell) for name, cell in cells)[:TEXT_CHARACTERS]


def _of_part(fates: Fates, start: int, seed: int) -> pl.DataFrame:
    import polars as pl

    at = np.flatnonzero(fates.stage >= 0)
    ids = at.astype(np.uint64) + np.uint64(start)
    frame = pl.DataFrame(
        {
            "stage": fates.stage[at],
            "rule": fates.rule[at],
            "by_missing": fates.by_missing[at],
            "order": mix64(ids, seed),
            "row": ids,
            "value": fates.value[at],
            "limit": fates.limit[at],
            "witness": fates.witness[at],
        }
    )
    return _first(frame.with_columns(witness=pl.when(pl.col("witness") >= 0).then(pl.col("witness").cast(pl.UInt64))))


def _first(frame: pl.DataFrame) -> pl.DataFrame:
    """The first `SAMPLES` rows of every reason, in a random order that the seed fixes."""
    by = ["stage", "rule", "by_missing"]
    return frame.sort([*by, "order"]).group_by(by, maintain_order=True).head(SAMPLES).sort([*by, "order"])
