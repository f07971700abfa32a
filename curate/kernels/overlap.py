"""How much of known items stands in a text: runs of words they share, and words and pairs of words they share.

`count_rows` counts over many texts how common each run and word is; `score_rows` scores each text by itself.
Tables are open: a hash, 0 for none, beside the number of what it is the hash of.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from curate.kernels.sequences import prefixes, run_hash

U64 = np.uint64
U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FULL = 0.8
"""the share of an item's words from which on a text is taken to hold the item"""
UNKNOWN, HIDDEN = -1, -2
"""a word of no item; a word that says nothing, or stands in a run that is counted already"""
SEEN_SLOTS = 1 << 14
"""places by which unknown words of a window are told apart, roughly"""


class Runs(NamedTuple):
    """The runs of all items: their lengths; a table; where each run stands in the items, its length, and whether it counts."""

    sizes: Int64s
    powers: U64s
    slots: U64s
    numbers: Int64s
    bounds: Int64s
    items: Int64s
    places: Int64s
    length: Int64s
    counts: Bools


class Words(NamedTuple):
    """The words and pairs of words of all items: a table; what each weighs; by width of window the items that have it."""

    slots: U64s
    numbers: Int64s
    weight: Floats
    widths: Int64s
    bounds: Int64s
    items: Int64s
    totals: Floats
    unknown: float


class Counts(NamedTuple):
    """Of texts: how many hold each run without its item, how many each word, how many each item."""

    runs: Int64s
    words: Int64s
    items: Int64s


class Scores(NamedTuple):
    """Of each text: the greatest share of an item's words in runs, with that item; the greatest likeness, with its item."""

    overlap: Floats
    overlap_item: Int64s
    likeness: Floats
    likeness_item: Int64s


class Found(NamedTuple):
    """Scratch: the runs of one text, which items they touch, and how many words of each item they cover."""

    seen: Int64s
    covered_at: Int64s
    covered: Int64s
    touched: Int64s
    runs: Int64s
    sizes: Int64s


def make_found(runs: Runs, words: int, items: int) -> Found:
    """Scratch for items with so many words together."""
    features = len(runs.length)
    return Found(
        np.full(features, -1, np.int64),
        np.full(words, -1, np.int64),
        np.zeros(items, np.int64),
        np.zeros(items, np.int64),
        np.zeros(features, np.int64),
        np.zeros(2, np.int64),
    )


@nb.njit(cache=True, nogil=True)
def fill(hashes: U64s, slots: U64s, numbers: Int64s) -> None:
    """Put hashes, each once, into an empty table that is at least twice as large, numbered as they stand."""
    mask = U64(slots.size - 1)
    for index in range(hashes.size):
        at = (hashes[index] >> U64(17)) & mask
        while slots[at] != U64(0):
            at = (at + U64(1)) & mask
        slots[at], numbers[at] = hashes[index], index


@nb.njit(cache=True, nogil=True)
def _number(value: np.uint64, slots: U64s, numbers: Int64s) -> int:
    mask = U64(slots.size - 1)
    at = (value >> U64(17)) & mask
    while slots[at] != U64(0):
        if slots[at] == value:
            return numbers[at]
        at = (at + U64(1)) & mask
    return UNKNOWN


@nb.njit(cache=True, nogil=True)
def hash_runs(tokens: U64s, bounds: Int64s, sizes: Int64s, scale: U64s, out: U64s) -> None:
    """The hashes of all runs of text t that have `sizes[t]` words, end to end; the texts have at least so many."""
    at = 0
    for text in range(sizes.size):
        own = tokens[bounds[text] : bounds[text + 1]]
        before = prefixes(own)
        for start in range(own.size - sizes[text] + 1):
            out[at] = run_hash(before, start, sizes[text], scale)
            at += 1


@nb.njit(cache=True, nogil=True)
def count_rows(tokens: U64s, bounds: Int64s, runs: Runs, words: Words, item_words: Int64s, found: Found, counts: Counts) -> None:
    """Add what the texts hold to `counts`."""
    seen = np.full(words.weight.size, -1, np.int64)
    for row in range(bounds.size - 1):
        before, covered = _read(tokens[bounds[row] : bounds[row + 1]], row, runs, found)
        for index in range(found.sizes[1]):
            item = found.touched[index]
            counts.items[item] += int(found.covered[item] >= FULL * item_words[item])
        for index in range(found.sizes[0]):
            run = found.runs[index]
            whole = False
            for at in range(runs.bounds[run], runs.bounds[run + 1]):
                item = runs.items[at]
                if item_words[item] > runs.length[run]:
                    whole |= found.covered[item] >= FULL * item_words[item]
                else:
                    whole |= 2 * runs.length[run] >= covered.size
            counts.runs[run] += int(not whole)
        _forget(found)
        for size in range(1, 3):
            for start in range(covered.size - size + 1):
                word = _number(run_hash(before, start, size, runs.powers), words.slots, words.numbers)
                if word >= 0 and seen[word] != row:
                    seen[word] = row
                    counts.words[word] += 1


@nb.njit(cache=True, nogil=True)
def score_rows(tokens: U64s, bounds: Int64s, runs: Runs, words: Words, item_words: Int64s, found: Found, scores: Scores) -> None:
    """Score each text; `item_words` are the words of each item that count, 0 for an item of which none does."""
    acc = np.zeros(words.totals.size, np.float64)
    hit = np.zeros(words.totals.size, np.int64)
    seen = np.full(words.weight.size, -1, np.int64)
    strange = np.full(SEEN_SLOTS, -1, np.int64)
    stamp = np.zeros(1, np.int64)
    for row in range(bounds.size - 1):
        before, covered = _read(tokens[bounds[row] : bounds[row + 1]], row, runs, found)
        for index in range(found.sizes[1]):
            item = found.touched[index]
            if item_words[item]:
                share = min(1.0, found.covered[item] / item_words[item])
                if _better(share, item, scores.overlap[row], scores.overlap_item[row]):
                    scores.overlap[row], scores.overlap_item[row] = share, item
        _forget(found)
        _liken(row, before, covered, runs.powers, words, acc, hit, seen, strange, stamp, scores)


@nb.njit(cache=True, nogil=True, inline="always")
def _better(value: float, item: int, best: float, best_item: int) -> bool:
    """Greater, or as great and of an item that stands before."""
    return value > 0 and (value > best or (value == best and item < best_item))


@nb.njit(cache=True, nogil=True)
def _read(own: U64s, row: int, runs: Runs, found: Found) -> tuple[U64s, Bools]:
    """The prefixes of a text's words, and which of these stand in runs of items; `found` lists the runs."""
    before = prefixes(own)
    covered = np.zeros(own.size, np.bool_)
    _find_runs(before, row, runs, found, covered)
    return before, covered


@nb.njit(cache=True, nogil=True)
def _find_runs(before: U64s, row: int, runs: Runs, found: Found, covered: Bools) -> None:
    """Every run of the text that is one of an item: listed once, its words in the text and in the items marked."""
    found.sizes[:] = 0
    for size in runs.sizes:
        for start in range(before.size - size):
            run = _number(run_hash(before, start, size, runs.powers), runs.slots, runs.numbers)
            if run < 0:
                continue
            covered[start : start + size] = True
            if found.seen[run] == row:
                continue
            found.seen[run] = row
            found.runs[found.sizes[0]] = run
            found.sizes[0] += 1
            if runs.counts[run]:
                for at in range(runs.bounds[run], runs.bounds[run + 1]):
                    _cover(runs.items[at], runs.places[at], size, row, found)


@nb.njit(cache=True, nogil=True)
def _cover(item: int, place: int, size: int, row: int, found: Found) -> None:
    if found.covered[item] == 0:
        found.touched[found.sizes[1]] = item
        found.sizes[1] += 1
    for at in range(place, place + size):
        if found.covered_at[at] != row:
            found.covered_at[at] = row
            found.covered[item] += 1


@nb.njit(cache=True, nogil=True)
def _forget(found: Found) -> None:
    for index in range(found.sizes[1]):
        found.covered[found.touched[index]] = 0


@nb.njit(cache=True, nogil=True)
def _liken(
    row: int,
    before: U64s,
    covered: Bools,
    scale: U64s,
    words: Words,
    acc: Floats,
    hit: Int64s,
    seen: Int64s,
    strange: Int64s,
    stamp: Int64s,
    scores: Scores,
) -> None:
    """The greatest likeness of a window of the text to an item; windows are about twice as long as the item, half overlapping."""
    size = before.size - 1
    number = np.full((size, 2), HIDDEN, np.int64)
    value = np.zeros((size, 2), np.uint64)
    for start in range(size):
        for more in range(2):
            if covered[start] or start + more >= size or covered[start + more]:
                continue
            value[start, more] = run_hash(before, start, more + 1, scale)
            word = _number(value[start, more], words.slots, words.numbers)
            number[start, more] = HIDDEN if word >= 0 and words.weight[word] == 0 else word
    features = words.weight.size
    for width in range(words.widths.size):
        step = words.widths[width] // 2
        first = 0
        while first == 0 or first + step < size:
            stamp[0] += 1
            total, hits = 0.0, 0
            for start in range(first, min(size, first + 2 * step)):
                for more in range(2):
                    word = number[start, more]
                    if word == HIDDEN:
                        continue
                    if word == UNKNOWN:
                        slot = value[start, more] >> U64(50)
                        if strange[slot] != stamp[0]:
                            strange[slot] = stamp[0]
                            total += words.unknown
                        continue
                    if seen[word] == stamp[0]:
                        continue
                    seen[word] = stamp[0]
                    total += words.weight[word]
                    low = width * features + word
                    for at in range(words.bounds[low], words.bounds[low + 1]):
                        item = words.items[at]
                        if acc[item] == 0:
                            hit[hits] = item
                            hits += 1
                        acc[item] += words.weight[word]
            for index in range(hits):
                item = hit[index]
                own = words.totals[item]
                likeness = min(1.0, acc[item] / np.sqrt(own * max(own, total)))
                acc[item] = 0
                if _better(likeness, item, scores.likeness[row], scores.likeness_item[row]):
                    scores.likeness[row], scores.likeness_item[row] = likeness, item
            first += step
