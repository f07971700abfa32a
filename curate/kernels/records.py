"""Records as sets of pieces of their cells: the sets, the keys that alike records share, and how alike two are.

A record's set holds the runs of characters of all its cells. The leading byte of a number is the column it
is from, so one sorted list keeps the columns apart and in order, and nothing else has to be stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.groups import stretches
from curate.kernels.signatures import (
    NO_TOKEN,
    STRETCH,
    U32,
    U64,
    Bools,
    Int64s,
    U32s,
    U64s,
    _hash_shingles,
    _mix,
    _pack,
    _readings,
    _sizes,
    _sort_unique,
)
from curate.kernels.words import DONE, Pad, begin_text, make_pad, next_tokens
from curate.minhash import CHARACTERS

Floats = npt.NDArray[np.float64]

EDGE = U64(0xD6E8FEB86659FD93)
"""stands before the first and behind the last character of a cell, so that where a word begins and ends counts"""
COLUMN_SHIFT = 56
"""the bits of a number below those that say its column"""
HALF_SHIFT = 24
"""the 32 bits above these of a number decide the minima"""
FINENESS = 1e9
"""similarities are rounded to this share, so that one which is exactly at a limit reaches it"""


class Slots(NamedTuple):
    """What keys are made of: each slot's permutation, how soon a slot draws a column (columns x slots), slots of a key."""

    factors: U32s
    shifts: U32s
    waits: Floats
    rows: int


class Drawn(NamedTuple):
    """Scratch: per slot how soon its column was drawn so far, the least number of that column, that column; and room."""

    wait: Floats
    least: U32s
    column: U64s
    scratch: U32s


class Sets(NamedTuple):
    """The sets of n records, end to end: the first record's number, bounds (n + 1) and sorted values."""

    first: int
    bounds: Int64s
    values: U64s


def record_sets(columns: Sequence[pa.LargeStringArray], places: Sequence[U64s]) -> Iterator[Sets]:
    """The sets of all records, some at a time; a cell that is null or has no letter or digit adds nothing.

    `places[c]` are the weights of the characters in a piece of column c. Cost: one pass; 16 bytes of memory a
    character of a stretch.
    """
    sizes = np.stack([_sizes(column) for column in columns], axis=1)
    most = np.where(sizes > 0, sizes + 3, 0)
    pads = [make_pad(len(each) + 1) for each in places]
    for start, stop in stretches(most.sum(axis=1), STRETCH):
        room = np.zeros((stop - start) * len(columns) + 1, np.int64)
        np.cumsum(most[start:stop].ravel(), out=room[1:])
        values, spare = np.empty(room[-1], np.uint64), np.empty(room[-1], np.uint64)
        counts = np.zeros(len(room) - 1, np.int64)
        for at, column in enumerate(columns):
            for where in _readings(column.slice(start, stop - start)):
                _collect_cells(*where, pads[at], places[at], at, len(columns), room, values, spare, counts)
        packed = np.empty(counts.sum(), np.uint64)
        _pack(values, room, counts, packed)
        bounds = np.zeros(stop - start + 1, np.int64)
        np.cumsum(counts.reshape(-1, len(columns)).sum(axis=1), out=bounds[1:])
        yield Sets(start, bounds, packed)


def record_keys(sets: Sets, weights: Floats, slots: Slots) -> tuple[Int64s, U64s]:
    """The records that can be compared at all, and the keys of each."""
    bands = len(slots.factors) // slots.rows
    keys = np.empty((len(sets.bounds) - 1, bands), np.uint64)
    kept = np.zeros(len(keys), np.bool_)
    _sign_records(sets.bounds, sets.values, weights, slots, keys, kept)
    row = np.flatnonzero(kept)
    return row + sets.first, keys[row]


def record_similarities(bounds: Int64s, values: U64s, left: Int64s, right: Int64s, weights: Floats) -> Floats:
    """How alike the records of each pair are, of which `features` gave bounds and values."""
    found = np.zeros(len(left))
    _compare(bounds, values, left, right, weights, found)
    return found


@nb.njit(cache=True, nogil=True)
def _collect_cells(
    base: np.uint64,
    offsets: Int64s,
    folded: bool,
    texts: Int64s,
    rows: Int64s,
    slow: Bools,
    pad: Pad,
    places: U64s,
    column: int,
    columns: int,
    room: Int64s,
    values: U64s,
    spare: U64s,
    counts: Int64s,
) -> None:
    size = places.size
    tokens = pad.tokens
    tag = U64(column) << U64(COLUMN_SHIFT)
    for index in range(texts.size):
        text, row = texts[index], rows[index]
        cell = row * columns + column
        begin_text(pad)
        tokens[0] = EDGE
        held, seen, at = 1, 0, 0
        while pad.cursor[DONE] == 0:
            found = next_tokens(base + U64(offsets[text]), offsets[text + 1] - offsets[text], folded, pad, CHARACTERS, held)
            if found < 0:
                slow[row] = True
                break
            seen += found
            have = held + found
            if pad.cursor[DONE] and seen:
                tokens[have] = EDGE
                have += 1
                for place in range(have, size):
                    tokens[place] = NO_TOKEN
                have = max(have, size)
            made = max(have - size + 1, 0)
            _hash_shingles(tokens, 0, made, places, values[room[cell] + at :])
            at += made
            held = min(have, size - 1)
            for place in range(held):
                tokens[place] = tokens[have - held + place]
        if slow[row]:
            continue
        mine = values[room[cell] : room[cell] + at]
        counts[cell] = _sort_unique(mine, spare)  # which needs well-mixed leading bits, so the column comes after
        for place in range(counts[cell]):
            mine[place] = tag | (mine[place] >> U64(64 - COLUMN_SHIFT))


@nb.njit(cache=True, nogil=True)
def _sign_records(bounds: Int64s, values: U64s, weights: Floats, slots: Slots, keys: U64s, kept: Bools) -> None:
    """A key: a hash of its slots, each the least of one column's numbers; the column is drawn, the likelier the heavier."""
    many = slots.factors.size
    drawn = Drawn(np.empty(many), np.empty(many, np.uint32), np.empty(many, np.uint64), np.empty(many, np.uint32))
    half = weights.sum() / 2
    for row in range(kept.size):
        drawn.wait[:] = np.inf
        weight, place, stop = 0.0, bounds[row], bounds[row + 1]
        while place < stop:
            column = values[place] >> U64(COLUMN_SHIFT)
            begin = place
            while place < stop and values[place] >> U64(COLUMN_SHIFT) == column:
                place += 1
            weight += weights[np.int64(column)]
            _draw(values[begin:place], column, weights[np.int64(column)], slots, drawn)
        kept[row] = weight > half
        if kept[row]:
            for band in range(keys.shape[1]):
                key = _mix(U64(band + 1))
                for slot in range(band * slots.rows, (band + 1) * slots.rows):
                    key = _mix(key ^ (drawn.column[slot] << U64(32)) ^ U64(drawn.least[slot]))
                keys[row, band] = key & ~U64(1)


@nb.njit(cache=True, nogil=True)
def _draw(cell: U64s, column: np.uint64, weight: float, slots: Slots, drawn: Drawn) -> None:
    """Give to the slots that draw this column before those seen so far the least number of its cell."""
    factors, shifts, waits, low = slots.factors, slots.shifts, slots.waits[np.int64(column)], drawn.scratch
    low[:] = U32(0xFFFFFFFF)
    for place in range(cell.size):
        half = U32(cell[place] >> U64(HALF_SHIFT))
        for slot in range(low.size):
            low[slot] = min(low[slot], U32(half * factors[slot] + shifts[slot]))
    slowness = 1.0 / (weight * np.sqrt(cell.size))
    for slot in range(low.size):
        wait = waits[slot] * slowness
        sooner = wait < drawn.wait[slot]
        drawn.wait[slot] = wait if sooner else drawn.wait[slot]
        drawn.least[slot] = low[slot] if sooner else drawn.least[slot]
        drawn.column[slot] = column if sooner else drawn.column[slot]


@nb.njit(cache=True, nogil=True)
def record_similarity(values: U64s, one: int, one_stop: int, two: int, two_stop: int, weights: Floats) -> float:
    """How alike two records are, from 0 to 1, whose sets lie at `values[one:one_stop]` and `values[two:two_stop]`.

    The mean over the columns filled in both of the Jaccard similarity of the two cells, each column counting by
    its weight times the square root of the length of its cells; 0 unless these columns hold more than half of all weight.
    """
    compared = total = alike = 0.0
    while one < one_stop and two < two_stop:
        column = values[one] >> U64(COLUMN_SHIFT)
        theirs = values[two] >> U64(COLUMN_SHIFT)
        if column < theirs:
            one += 1
            continue
        if theirs < column:
            two += 1
            continue
        start, other, common = one, two, 0
        end = (column + U64(1)) << U64(COLUMN_SHIFT)
        while one < one_stop and two < two_stop and values[one] < end and values[two] < end:
            mine, its = values[one], values[two]
            common += int(mine == its)
            one += int(mine <= its)
            two += int(its <= mine)
        while one < one_stop and values[one] < end:
            one += 1
        while two < two_stop and values[two] < end:
            two += 1
        both = one - start + two - other
        share = weights[np.int64(column)] * np.sqrt(both)
        compared += weights[np.int64(column)]
        total += share
        alike += share * (common / (both - common))
    if 2 * compared <= weights.sum():
        return 0.0
    return np.rint(alike / total * FINENESS) / FINENESS


@nb.njit(cache=True, nogil=True)
def _compare(bounds: Int64s, values: U64s, left: Int64s, right: Int64s, weights: Floats, found: Floats) -> None:
    for pair in range(left.size):
        one, two = left[pair], right[pair]
        found[pair] = record_similarity(values, bounds[one], bounds[one + 1], bounds[two], bounds[two + 1], weights)
