"""Which of many alike rows stay: one pass in order of preference, each row against the kept rows it shares a bucket with.

A row is removed exactly when some kept row that it is compared with is similar enough, so no chain removes
anything, and nothing has to be settled twice: a row's fate is known before it decides another's.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from curate.kernels.records import record_similarity
from curate.kernels.vectors import signed

U64 = np.uint64
U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

COMPARED, CUT, FULL = range(3)
"""what `survivors` counts: pairs compared, rows with too many candidates, buckets with too many kept rows"""
FEW = 1024
"""pairs of full buckets, and rows that share them, that a crowd has room for at first"""
MOST_HITS = 64
"""buckets in common above which candidates count as equally hopeful"""


class Alike(NamedTuple):
    """n rows with their buckets and their sets: those of row i begin at `starts[i]` and `bounds[i]`; sets are sorted.

    Buckets stand in an order that is the same for all rows, though not that of their numbers.
    """

    starts: Int64s
    buckets: Int64s
    bounds: Int64s
    sets: U64s
    weights: Floats
    """of the columns of records; none for texts"""


class Crowd(NamedTuple):
    """The kept rows of full buckets that share a second full one: a hash table of the two, with a chain of rows for each."""

    ones: Int64s
    twos: Int64s
    heads: Int64s
    sizes: Int64s
    rows: Int64s
    nexts: Int64s
    used: Int64s
    """pairs of buckets and rows so far"""


def survivors(
    alike: Alike, order: Int64s, fixed: Bools, itself: Int64s, limit: float, most: int
) -> tuple[Int64s, Floats, Int64s]:
    """For each row the kept row that removes it (-1 where it stays), how similar the two are, and the counts.

    `order` holds the rows from the most to the least preferred; `fixed` rows are kept whatever they are like; a row is
    not compared with the one, if any, that is the same document met again (`itself`, -1 for none). Of
    several kept rows the most similar is named, the most preferred among equals. Of a bucket the `most` preferred kept
    rows are met by everybody, later ones by rows that share a second full bucket; a row is compared with at most
    `most` rows, those first that it shares most buckets with.
    """
    rows = len(order)
    witness, value, counts = np.full(rows, -1, np.int64), np.zeros(rows), np.zeros(3, np.int64)
    sizes = np.bincount(alike.buckets) if len(alike.buckets) else np.zeros(1, np.int64)
    room = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.minimum(sizes, most), out=room[1:])
    kept = np.empty(room[-1], np.int64)
    _decide(alike, order, fixed, itself, limit, most, room, kept, witness, value, counts)
    return witness, value, counts


def similarities(alike: Alike, left: Int64s, right: Int64s) -> tuple[Floats, Bools, Int64s]:
    """Of each pair of rows: the Jaccard similarity of their sets, whether they share a bucket, and the items in common."""
    value, together, common = np.zeros(len(left)), np.zeros(len(left), np.bool_), np.zeros(len(left), np.int64)
    _compare(alike, left, right, value, together, common)
    return value, together, common


@nb.njit(cache=True, nogil=True)
def _compare(alike: Alike, left: Int64s, right: Int64s, value: Floats, together: Bools, common: Int64s) -> None:
    for pair in range(left.size):
        one, two = left[pair], right[pair]
        common[pair] = _common(alike, one, two)
        value[pair] = _jaccard(alike, one, two, common[pair])
        for place in range(alike.starts[one], alike.starts[one + 1]):
            for other in range(alike.starts[two], alike.starts[two + 1]):
                together[pair] |= alike.buckets[place] == alike.buckets[other]


@nb.njit(cache=True, nogil=True)
def _decide(
    alike: Alike,
    order: Int64s,
    fixed: Bools,
    itself: Int64s,
    limit: float,
    most: int,
    room: Int64s,
    kept: Int64s,
    witness: Int64s,
    value: Floats,
    counts: Int64s,
) -> None:
    rows = order.size
    crowd = _empty_crowd(FEW, FEW)
    filled = np.zeros(room.size, np.int64)
    met = np.full(rows, -1, np.int64)  # the last row that met this one, so that each is met once
    hits = np.zeros(rows, np.int64)
    turn = np.empty(rows, np.int64)
    candidates = np.empty(rows, np.int64)
    for rank in range(rows):
        row = order[rank]
        turn[row] = rank
        if not fixed[row]:
            found = _meet(alike, row, most, room, filled, kept, crowd, met, hits, candidates)
            chosen = _most_hopeful(candidates, hits, found, most)
            counts[COMPARED] += chosen
            counts[CUT] += int(chosen < found)
            best, similarity = np.int64(-1), 0.0
            for index in range(chosen):
                other = candidates[index]
                if other == itself[row]:
                    continue
                alikeness = _similarity(alike, row, other, max(limit, similarity))
                if alikeness >= limit and (alikeness > similarity or (alikeness == similarity and turn[other] < turn[best])):
                    best, similarity = other, alikeness
            if best >= 0:
                witness[row], value[row] = best, similarity
                continue
        crowd = _with_room(crowd, 2 * (alike.starts[row + 1] - alike.starts[row]))
        _keep(alike, row, most, room, filled, kept, crowd, counts)


@nb.njit(cache=True, nogil=True)
def _meet(
    alike: Alike,
    row: int,
    most: int,
    room: Int64s,
    filled: Int64s,
    kept: Int64s,
    crowd: Crowd,
    met: Int64s,
    hits: Int64s,
    candidates: Int64s,
) -> int:
    """Gather the kept rows that share a bucket with a row, and count the buckets that they share."""
    found = 0
    last_full = last_but_one = signed(-1)
    for place in range(alike.starts[row], alike.starts[row + 1]):
        bucket = alike.buckets[place]
        for index in range(filled[bucket]):
            found = _note(kept[room[bucket] + index], row, met, hits, candidates, found)
        if filled[bucket] == most:
            for before in (last_full, last_but_one):
                node = np.int64(-1) if before < 0 else crowd.heads[_slot(crowd, before, bucket)]
                while node >= 0:
                    found = _note(crowd.rows[node], row, met, hits, candidates, found)
                    node = crowd.nexts[node]
            last_but_one, last_full = last_full, bucket
    return found


@nb.njit(cache=True, nogil=True, inline="always")
def _note(other: int, row: int, met: Int64s, hits: Int64s, candidates: Int64s, found: int) -> int:
    if met[other] != row:
        met[other], hits[other], candidates[found] = row, 0, other
        found += 1
    hits[other] += 1
    return found


@nb.njit(cache=True, nogil=True)
def _keep(alike: Alike, row: int, most: int, room: Int64s, filled: Int64s, kept: Int64s, crowd: Crowd, counts: Int64s) -> None:
    """Let later rows meet this one: in its buckets, and in pairs of those that are full."""
    last_full = last_but_one = signed(-1)
    for place in range(alike.starts[row], alike.starts[row + 1]):
        bucket = alike.buckets[place]
        if filled[bucket] < room[bucket + 1] - room[bucket]:
            kept[room[bucket] + filled[bucket]] = row
            filled[bucket] += 1
            counts[FULL] += int(filled[bucket] == most)
            if filled[bucket] < most:
                continue
        for before in (last_full, last_but_one):
            if before >= 0:
                slot = _slot(crowd, before, bucket)
                if crowd.sizes[slot] == 0:
                    crowd.ones[slot], crowd.twos[slot] = before, bucket
                    crowd.used[0] += 1
                if crowd.sizes[slot] < most:
                    node = crowd.used[1]
                    crowd.rows[node], crowd.nexts[node] = row, crowd.heads[slot]
                    crowd.heads[slot] = node
                    crowd.sizes[slot] += 1
                    crowd.used[1] += 1
        last_but_one, last_full = last_full, bucket


@nb.njit(cache=True, nogil=True)
def _slot(crowd: Crowd, one: int, two: int) -> int:
    """Where a pair of buckets is, or would be."""
    mixed = (U64(one) * U64(0x9E3779B97F4A7C15)) ^ (U64(two) * U64(0xC2B2AE3D27D4EB4F))
    mixed ^= mixed >> U64(29)
    slot = signed(mixed) & (crowd.heads.size - 1)
    while crowd.sizes[slot] and (crowd.ones[slot] != one or crowd.twos[slot] != two):
        slot = (slot + 1) & (crowd.heads.size - 1)
    return slot


@nb.njit(cache=True, nogil=True)
def _empty_crowd(slots: int, rows: int) -> Crowd:
    places = np.zeros((3, slots), np.int64)
    chains = np.empty((2, rows), np.int64)
    return Crowd(places[0], places[1], np.full(slots, -1), places[2], chains[0], chains[1], np.zeros(2, np.int64))


@nb.njit(cache=True, nogil=True)
def _with_room(crowd: Crowd, more: int) -> Crowd:
    """The same crowd, or a copy where so many pairs and rows more would not fit."""
    pairs, rows = crowd.used
    if 2 * (pairs + more) <= crowd.heads.size and rows + more <= crowd.rows.size:
        return crowd
    slots, room = crowd.heads.size, crowd.rows.size
    while slots < 2 * (pairs + more):
        slots *= 2
    while room < rows + more:
        room *= 2
    wider = _empty_crowd(slots, room)
    wider.used[:], wider.rows[:rows], wider.nexts[:rows] = crowd.used, crowd.rows[:rows], crowd.nexts[:rows]
    for old in range(crowd.heads.size):
        if crowd.sizes[old]:
            new = _slot(wider, crowd.ones[old], crowd.twos[old])
            wider.ones[new], wider.twos[new] = crowd.ones[old], crowd.twos[old]
            wider.heads[new], wider.sizes[new] = crowd.heads[old], crowd.sizes[old]
    return wider


@nb.njit(cache=True, nogil=True)
def _most_hopeful(candidates: Int64s, hits: Int64s, found: int, most: int) -> int:
    """Move to the front the candidates that share most buckets, at most so many; how many they are."""
    if found <= most:
        return found
    tally = np.zeros(MOST_HITS + 1, np.int64)
    for index in range(found):
        tally[min(hits[candidates[index]], MOST_HITS)] += 1
    level, above = MOST_HITS, 0
    while above + tally[level] <= most:
        above += tally[level]
        level -= 1
    at = 0
    spare = most - above
    for index in range(found):
        other = candidates[index]
        hit = min(hits[other], MOST_HITS)
        if hit > level or (hit == level and spare > 0):
            spare -= int(hit == level)
            candidates[at] = other
            at += 1
    return at


@nb.njit(cache=True, nogil=True, inline="always")
def _similarity(alike: Alike, one: int, two: int, least: float) -> float:
    """The Jaccard similarity of two rows, or that of two records; or 0 where their sizes alone rule out `least`."""
    if alike.weights.size:
        bounds = alike.bounds
        return record_similarity(alike.sets, bounds[one], bounds[one + 1], bounds[two], bounds[two + 1], alike.weights)
    few = alike.bounds[one + 1] - alike.bounds[one]
    many = alike.bounds[two + 1] - alike.bounds[two]
    if few > many:
        few, many = many, few
    if few < least * many * (1 - 1e-9):
        return 0.0
    return _jaccard(alike, one, two, _common(alike, one, two))


@nb.njit(cache=True, nogil=True, inline="always")
def _jaccard(alike: Alike, one: int, two: int, common: int) -> float:
    both = alike.bounds[one + 1] - alike.bounds[one] + alike.bounds[two + 1] - alike.bounds[two] - common
    return common / both if both else 0.0


@nb.njit(cache=True, nogil=True)
def _common(alike: Alike, one: int, two: int) -> int:
    """The items that two sorted sets have in common."""
    sets = alike.sets
    place, stop = alike.bounds[one], alike.bounds[one + 1]
    other, end = alike.bounds[two], alike.bounds[two + 1]
    common = 0
    while place < stop and other < end:
        mine, theirs = sets[place], sets[other]
        common += int(mine == theirs)
        place += int(mine <= theirs)
        other += int(theirs <= mine)
    return common
