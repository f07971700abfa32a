"""Rows that share a key: which keys have company, and which rows hang together."""

from __future__ import annotations

from collections.abc import Sequence

import numba as nb
import numpy as np
import numpy.typing as npt

from curate.kernels.vectors import signed

U64 = np.uint64
U64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def perhaps_shared(keys: U64s) -> Bools:
    """True for every key that occurs more than once, and for a few that do not: two bits for each of many slots."""
    slots = 1 << max(10, (16 * len(keys)).bit_length())
    once, twice, shared = np.zeros(slots // 8, np.uint8), np.zeros(slots // 8, np.uint8), np.empty(len(keys), np.bool_)
    _mark(keys, U64(slots - 1), once, twice, shared)
    return shared


@nb.njit(cache=True, nogil=True)
def _mark(keys: U64s, mask: np.uint64, once: npt.NDArray[np.uint8], twice: npt.NDArray[np.uint8], shared: Bools) -> None:
    for index in range(keys.size):
        slot = (keys[index] >> U64(1)) & mask
        bit = np.uint8(1) << np.uint8(slot & U64(7))
        place = slot >> U64(3)
        twice[place] |= once[place] & bit
        once[place] |= bit
    for index in range(keys.size):
        slot = (keys[index] >> U64(1)) & mask
        shared[index] = (twice[slot >> U64(3)] >> np.uint8(slot & U64(7))) & np.uint8(1)


def buckets_of_rows(linked: Sequence[tuple[Int32s, U64s]], rows: int) -> tuple[Int64s, Int64s]:
    """Where the buckets of each row begin (rows + 1), and the buckets: a number for each even key, in the order of the keys.

    `linked` are rows and their keys, equal keys together.
    """
    starts = np.zeros(rows + 2, np.int64)
    for row, key in linked:
        _count(row, key, starts)
    np.cumsum(starts, out=starts)
    keys, buckets = np.empty(starts[-1], np.uint64), np.empty(starts[-1], np.int64)
    last = np.array([1, 2**64 - 1], np.uint64)
    for row, key in linked:
        _fill(row, key, last, starts[1:], keys, buckets)
    _sort_by_key(starts, keys, buckets)
    return starts[:-1], buckets


@nb.njit(cache=True, nogil=True)
def _count(rows: Int32s, keys: U64s, starts: Int64s) -> None:
    for index in range(rows.size):
        starts[rows[index] + 2] += signed(keys[index] & U64(1) == U64(0))


@nb.njit(cache=True, nogil=True)
def _fill(rows: Int32s, keys: U64s, last: U64s, ends: Int64s, out: U64s, buckets: Int64s) -> None:
    """Behind each row's `ends` its keys and buckets; `last` are the key before and its bucket."""
    for index in range(rows.size):
        row, key = rows[index], keys[index]
        if key & U64(1):
            continue
        if key != last[0]:
            last[0] = key
            last[1] += U64(1)
        out[ends[row]], buckets[ends[row]] = key, signed(last[1])
        ends[row] += 1


@nb.njit(cache=True, nogil=True)
def _sort_by_key(starts: Int64s, keys: U64s, buckets: Int64s) -> None:
    """Each row's keys in rising order, and its buckets with them: few and mostly in order."""
    for row in range(starts.size - 2):
        for index in range(starts[row] + 1, starts[row + 1]):
            key, bucket, place = keys[index], buckets[index], index - 1
            while place >= starts[row] and keys[place] > key:
                keys[place + 1], buckets[place + 1] = keys[place], buckets[place]
                place -= 1
            keys[place + 1], buckets[place + 1] = key, bucket


@nb.njit(cache=True, nogil=True)
def join_rows(keys: U64s, rows: U64s, parent: Int64s) -> None:
    """Unite the rows of each key, in forests whose roots are their least rows; equal keys stand together."""
    for index in range(1, keys.size):
        if keys[index] == keys[index - 1]:
            one, two = root(parent, signed(rows[index - 1])), root(parent, signed(rows[index]))
            if one < two:
                parent[two] = one
            else:
                parent[one] = two


@nb.njit(cache=True, nogil=True)
def root(parent: Int64s, row: int) -> int:
    """The least row of a row's group; the way there is halved for the next search."""
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@nb.njit(cache=True, nogil=True)
def roots(parent: Int64s, rows: Int64s) -> Int64s:
    """The root of each row."""
    found = np.empty(rows.size, np.int64)
    for index in range(rows.size):
        found[index] = root(parent, rows[index])
    return found
