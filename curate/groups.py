"""Rows that share something: the array steps that every `match` and `settle` is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

U64s = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def with_company(keys: U64s) -> Places:
    """The places of keys that occur more than once, in rising order."""
    order = np.argsort(keys, kind="stable")
    same = keys[order][1:] == keys[order][:-1]
    shared = np.zeros(len(keys), np.bool_)
    shared[1:] |= same
    shared[:-1] |= same
    return np.sort(order[shared])


def run_starts(*sorted_columns: npt.NDArray[Any]) -> Bools:
    """True where a run of equal values begins, in columns sorted together."""
    starts = np.ones(len(sorted_columns[0]), np.bool_)
    starts[1:] = False
    for column in sorted_columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def first_of_run(starts: Bools) -> Places:
    """For each place the place where its run begins."""
    return np.flatnonzero(starts)[np.cumsum(starts) - 1] if len(starts) else np.empty(0, np.int64)


def stretches(sizes: Places, most: int) -> Iterator[tuple[int, int]]:
    """Where to begin and end so that the sizes between add up to `most` or less; a larger one stands alone."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield start, stop
        start = stop


def run_lengths(starts: Bools) -> Places:
    """For each place the length of its run."""
    bounds = np.append(np.flatnonzero(starts), len(starts))
    return np.repeat(np.diff(bounds), np.diff(bounds))
