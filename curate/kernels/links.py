"""Rows that share a key: which keys have company, and which rows hang together."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from curate.kernels.vectors import signed

U64 = np.uint64
U64s = npt.NDArray[np.uint64]
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
