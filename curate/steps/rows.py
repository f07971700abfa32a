"""What a stage is shown of a table, and what becomes of what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.check import FitCheck, RowCheck, Scores, checked_scores
from curate.dataset import Part, Rows
from curate.errors import InvariantError
from curate.hashing import key_of
from curate.policy import as_floats, decide
from curate.steps.base import Job, PlannedStage, Positions, Used
from curate.verdicts import Fates

Bools = npt.NDArray[np.bool_]


def score_rows(
    stage: PlannedStage, table: pa.Table, ids: npt.NDArray[np.uint64], job: Job, state: Mapping[str, npt.NDArray[Any]] | None
) -> dict[str, pa.Array]:
    """A row or fit check's columns for the rows of `table`: rows with a null needed cell are hidden and scored missing."""
    shown, visible = shown_rows(stage, table, ids, job)
    scores: Scores
    if isinstance(stage.check, FitCheck):
        assert state is not None, f"{stage.name} was not fitted"
        scores = stage.check.score(shown, state)
    elif isinstance(stage.check, RowCheck):
        scores = stage.check.score(shown)
    else:
        raise InvariantError(f"`{stage.name}` is neither a row nor a fit check")
    checked = checked_scores(stage.check, stage.columns, scores, len(shown))
    if visible.all():
        return checked
    index = pa.array(np.cumsum(visible) - 1, mask=~visible)
    return {name: array.take(index) for name, array in checked.items()}


def shown_rows(stage: PlannedStage, table: pa.Table, ids: npt.NDArray[np.uint64], job: Job) -> tuple[Rows, Bools]:
    """The rows a check gets to see, and which of the rows asked they are."""
    visible = visible_rows(stage, table)
    needed = table.select([*stage.needs, *(used.name for used in stage.uses)])
    if visible.all():
        return Rows(needed, ids, job.roles, job.seed), visible
    return Rows(needed.filter(pa.array(visible)), ids[visible], job.roles, job.seed), visible


def visible_rows(stage: PlannedStage, table: pa.Table) -> Bools:
    """Rows whose needed cells are all there; every row for a check that sees nulls."""
    visible = np.ones(table.num_rows, bool)
    if not stage.check.sees_nulls:
        for name in stage.needs:
            column = table.column(name)
            if column.null_count:
                visible &= column.is_valid().to_numpy()
    return visible


def used_tables(job: Job, uses: Sequence[Used], stored: Sequence[str]) -> list[pa.Table]:
    """The columns of the stages that are used, a table for each, from where it is `stored`; what is read, is read once."""
    tables = {key: job.store.read(key) for key in dict.fromkeys(stored)}
    return [tables[key].select(["position", used.column]) for used, key in zip(uses, stored, strict=True)]


def with_used(uses: Sequence[Used], tables: Sequence[pa.Table], table: pa.Table, positions: Positions) -> pa.Table:
    """The table with columns of stages, from their `used_tables`; null where there is none."""
    for used, known in zip(uses, tables, strict=True):
        at = known.column("position").to_numpy()
        place = np.minimum(np.searchsorted(at, positions), max(len(at) - 1, 0))
        found = at[place] == positions if len(at) else np.zeros(len(positions), bool)
        cells = known.column(used.column).take(pa.array(place, mask=~found))
        table = table.append_column(used.name, cells.cast(used.type))
    return table


def columns_schema(stage: PlannedStage) -> pa.Schema:
    """The stored form of a stage's columns: the position in the part, then the declared columns."""
    return pa.schema([("position", pa.int64()), *((column.name, column.type) for column in stage.columns)])


def judge_rows(fates: Fates, stage: PlannedStage, columns: pa.Table, limits: tuple[float, ...]) -> None:
    """Let a stage's policy reject rows, given its columns for the rows asked."""
    positions = columns.column("position").to_numpy()
    wanted = {rule.column for rule in stage.policy.rules}
    cells = {name: as_floats(columns.column(name)) for name in wanted}
    decision = decide(stage.policy, cells, limits, len(positions))
    witness = np.full(len(positions), -1, np.int64)
    if stage.link is not None:
        witness = columns.column(stage.link).cast(pa.int64()).fill_null(-1).to_numpy()
    fates.reject(stage.index, positions, decision, witness)


def row_ids(part: Part, positions: Positions) -> npt.NDArray[np.uint64]:
    """The row ids of positions in a part."""
    return positions.astype(np.uint64) + np.uint64(part.first_row)


def mask_digest(mask: Bools) -> str:
    """A digest of which rows a mask holds."""
    return key_of(["rows", len(mask), np.packbits(mask).tobytes().hex() if mask.size else ""])
