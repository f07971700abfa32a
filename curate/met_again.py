"""Rows from outside the input that are rows of it met again: a document is never a copy of itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.dataset import Rows
from curate.hashing import mix64

U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]


def names(rows: Rows, bounds: Int64s, values: U64s) -> dict[str, pa.Array]:
    """The id of each row, and a hash of its set of shingles: together they tell a row that is met again."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix64(values), dtype=np.uint64)])
    ids = rows.text(rows.roles.id) if rows.roles.id else pa.nulls(len(rows), pa.large_string())
    return {"id": ids, "content": pa.array(sums[bounds[1:]] - sums[bounds[:-1]])}


def flags(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    """A column of flags; all false where there is none."""
    if name not in table.column_names:
        return np.zeros(table.num_rows, np.bool_)
    return np.asarray(table.column(name).to_numpy(zero_copy_only=False), np.bool_)


def met_again(features: pa.Table, outside: npt.NDArray[np.bool_], order: Int64s) -> Int64s:
    """For each row of the input the row from outside that it is: of the same id and the same set of shingles; else -1."""
    itself = np.full(features.num_rows, -1, np.int64)
    if not outside.any() or "id" not in features.column_names:
        return itself
    named = list(zip(features["id"].to_pylist(), features["content"].to_pylist(), strict=True))
    known = {named[row]: row for row in order[::-1].tolist() if outside[row] and named[row][0] is not None}
    for row in np.flatnonzero(~outside).tolist():
        itself[row] = known.get(named[row], -1)
    return itself


def named_inside(witness: Int64s, itself: Int64s, order: Int64s) -> Int64s:
    """Name, for a witness from outside that is also a kept row of the input and preferred to the removed one, that row."""
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order))
    here = np.full(len(order), -1, np.int64)
    again = np.flatnonzero((itself >= 0) & (witness < 0))
    again = again[np.argsort(-turn[again])]
    here[itself[again]] = again  # the most preferred is written last
    removed = np.flatnonzero(witness >= 0)
    inside = here[witness[removed]]
    better = (inside >= 0) & (turn[inside] < turn[removed])
    named = witness.copy()
    named[removed[better]] = inside[better]
    return named
