"""Texts that share a band of their signatures: which rows are linked, and what is needed to compare them exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.groups import run_lengths, run_starts

U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

SAMPLE_ROWS = 16
"""rows that share a sampled shingle (an odd key) which are compared for the estimate; a shingle of more rows says nothing"""


def links_of(shard: pa.Table) -> pa.Table:
    """The rows of every key that more than one row has, and not too many where the key is a sampled shingle."""
    from curate.kernels.links import perhaps_shared

    row, key = shard.column("row").to_numpy(), shard.column("key").to_numpy()
    perhaps = perhaps_shared(key)
    row, key = row[perhaps], key[perhaps]
    order = np.lexsort((row, key))
    row, key = row[order], key[order]
    once = run_starts(key, row)
    row, key = row[once], key[once]
    length = run_lengths(run_starts(key))
    wanted = (length > 1) & ((key % 2 == 0) | (length <= SAMPLE_ROWS))
    return pa.table({"row": row[wanted], "key": key[wanted]})


def alike_rows(
    links: pa.Table, row: U64s, sets: pa.LargeListArray, weights: npt.NDArray[np.float64]
) -> tuple[Any, tuple[Int64s, Int64s]]:
    """Rows by their place, with their buckets and sets (`Alike`); and the pairs that share a sampled shingle."""
    from curate.kernels.links import buckets_of_rows
    from curate.kernels.survivors import Alike

    by_row = np.argsort(row).astype(np.int32)
    row = row[by_row]
    linked = [(by_row[np.searchsorted(row, batch["row"].to_numpy())], batch["key"].to_numpy()) for batch in links.to_batches()]
    samples = [(place[key % 2 == 1], key[key % 2 == 1]) for place, key in linked]
    alike = Alike(*buckets_of_rows(linked, len(row)), sets.offsets.to_numpy(), sets.values.to_numpy(), weights)
    place, key = zip(*samples, strict=True) if samples else ([np.empty(0, np.int32)], [np.empty(0, np.uint64)])
    return alike, _pairs(np.concatenate(place).astype(np.int64), np.concatenate(key))


def _pairs(place: Int64s, key: U64s) -> tuple[Int64s, Int64s]:
    """All pairs of places with equal keys, each once."""
    order = np.argsort(key, kind="stable")
    place, key = place[order], key[order]
    left: list[Int64s] = [np.empty(0, np.int64)]
    right: list[Int64s] = [np.empty(0, np.int64)]
    for step in range(1, SAMPLE_ROWS):
        same = np.flatnonzero(key[step:] == key[:-step])
        if not len(same):
            break
        left.append(np.minimum(place[same], place[same + step]))
        right.append(np.maximum(place[same], place[same + step]))
    pairs = np.unique(np.stack([np.concatenate(left), np.concatenate(right)]), axis=1)
    return pairs[0], pairs[1]
