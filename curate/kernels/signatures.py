"""Shingles, minima and band keys of whole Arrow columns, and the sets of shingles of chosen rows.

For each text: its tokens, a piece at a time; runs of `size` tokens as 64-bit hashes; for each of k fixed
permutations of the 32-bit numbers the smallest one that a shingle maps to, slot by slot, so that each is one
vector reduction; and the minima of each band folded to a key. Nothing of a text is kept but `size` - 1 tokens
from piece to piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.cells import fold, lengths
from curate.groups import stretches
from curate.kernels.words import DONE, FIRST, SECOND, Pad, begin_text, make_pad, next_tokens
from curate.minhash import CHARACTERS, Signing

U64 = np.uint64
U32 = np.uint32
U64s = npt.NDArray[np.uint64]
U32s = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

STRIP = 4096
"""shingles whose minima are taken at once: their halves stay in the nearest cache"""
LANES = 64
"""a strip is filled to a multiple of this, so that no minimum is taken outside the vector loop"""
NO_TOKEN = U64(0xA0761D6478BD642F)
"""stands in for the tokens that a short text lacks"""
THIRD = U64(0x94D049BB133111EB)
STRETCH = 1 << 18
"""shingles that texts may have whose sets are made in the same memory"""
MOST_SAMPLED = 64
"""shingles of one text that are sampled"""
SAMPLED = (1 << 13) - 1
"""the bits that are 0 in one shingle of 8,192, which is a key of its own: a sample of pairs, whatever their bands"""


class Signed(NamedTuple):
    """Of n texts: band keys (n x bands), the number of shingles (0 without a token), and whether tokens were too few for one.

    `sampled_rows` and `sampled` are shingles taken by chance, with the text each is of.
    """

    keys: U64s
    shingles: Int64s
    short: Bools
    sampled_rows: Int64s
    sampled: U64s


class Strip(NamedTuple):
    """Scratch: some shingles, their upper halves, and the least so far under each permutation."""

    shingles: U64s
    halves: U32s
    least: U32s


def sign(text: pa.LargeStringArray, signing: Signing) -> Signed:
    """Sign each text; one that is null has no shingle.

    Cost: one pass, and memory that depends on the number of texts alone.
    """
    rows = len(text)
    most = np.minimum(_sizes(text) + 1, MOST_SAMPLED)  # no text has more tokens than bytes, however Python folds it
    signed = Signed(
        np.zeros((rows, signing.bands), np.uint64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.bool_),
        np.empty(int(most.sum()), np.int64),
        np.empty(int(most.sum()), np.uint64),
    )
    strip = _strip(signing)
    count = np.zeros(1, np.int64)
    for where in _readings(text):
        _sign_texts(*where, make_pad(len(signing.places)), strip, signing, signed, count)
    return signed._replace(sampled_rows=signed.sampled_rows[: count[0]], sampled=signed.sampled[: count[0]])


def shingle_sets(text: pa.LargeStringArray, signing: Signing) -> tuple[Int64s, U64s]:
    """The set of shingles of each text, in rising order, end to end: bounds (n + 1) and values; none for a null."""
    sizes = _sizes(text)
    most = sizes + 1 if signing.mode == CHARACTERS else sizes // 2 + 1
    counts, pieces = np.zeros(len(text), np.int64), [np.empty(0, np.uint64)]
    scratch = np.empty(0, np.uint64)
    for start, stop in stretches(most, STRETCH):
        room = np.zeros(stop - start + 1, np.int64)
        np.cumsum(most[start:stop], out=room[1:])
        if room[-1] > len(scratch):  # as a rule once: fresh memory costs more than what is written to it
            scratch, spare = np.empty(room[-1], np.uint64), np.empty(room[-1], np.uint64)
        for where in _readings(text.slice(start, stop - start)):
            _collect_texts(*where, make_pad(len(signing.places)), signing, room, scratch, spare, counts[start:stop])
        packed = np.empty(counts[start:stop].sum(), np.uint64)
        _pack(scratch, room, counts[start:stop], packed)
        pieces.append(packed)
    bounds = np.zeros(len(text) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    return bounds, np.concatenate(pieces)


Reading = tuple[np.uint64, Int64s, bool, Int64s, Int64s, Bools]
"""where texts lie, where each begins, whether Python folded them; which are read, for which rows; which it must fold"""


def _readings(text: pa.LargeStringArray) -> Iterator[Reading]:
    """What a kernel is to read: the texts that say something, and then those of them that it left to Python, folded."""
    slow = np.zeros(len(text), np.bool_)
    wanted = np.flatnonzero(_sizes(text))
    yield *_buffers(text), False, wanted, wanted, slow
    if slow.any():
        rows = np.flatnonzero(slow)
        folded = pa.array([fold(cell) for cell in text.take(pa.array(rows)).to_pylist()], pa.large_string())
        yield *_buffers(folded), True, np.arange(len(rows)), rows, np.zeros(len(text), np.bool_)


def _buffers(text: pa.LargeStringArray) -> tuple[np.uint64, Int64s]:
    """Where the bytes of a column lie, and where each cell begins."""
    if not len(text):
        return U64(0), np.zeros(1, np.int64)
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
    data = text.buffers()[2]
    return U64(0 if data is None else data.address), offsets


def _sizes(text: pa.LargeStringArray) -> Int64s:
    """The bytes of each text, 0 for a null."""
    return np.maximum(lengths(text), 0)


def _strip(signing: Signing) -> Strip:
    return Strip(
        np.empty(STRIP, np.uint64), np.zeros(STRIP + LANES, np.uint32), np.empty(signing.bands * signing.rows, np.uint32)
    )


@nb.njit(cache=True, nogil=True)
def _sign_texts(
    base: np.uint64,
    offsets: Int64s,
    folded: bool,
    texts: Int64s,
    rows: Int64s,
    slow: Bools,
    pad: Pad,
    strip: Strip,
    signing: Signing,
    signed: Signed,
    sampled: Int64s,
) -> None:
    size = signing.places.size
    tokens = pad.tokens
    for index in range(texts.size):
        text, row = texts[index], rows[index]
        begin_text(pad)
        strip.least[:] = 0xFFFFFFFF
        held = shingles = seen = 0
        first = sampled[0]
        while pad.cursor[DONE] == 0:
            found = next_tokens(base + U64(offsets[text]), offsets[text + 1] - offsets[text], folded, pad, signing.mode, held)
            if found < 0:
                slow[row] = True
                break
            seen += found
            have = held + found
            if pad.cursor[DONE] and seen < size:
                have = _filled(tokens, have, size)
            for start in range(0, have - size + 1, STRIP):
                count = min(STRIP, have - size + 1 - start)
                _hash_shingles(tokens, start, count, signing.places, strip.shingles)
                _lower_minima(strip, count, signing)
                shingles += count
                if _chosen(strip.shingles, count):
                    most = first + MOST_SAMPLED
                    sampled[0] = _sample(strip.shingles, count, row, signed, sampled[0], most)
            held = _carried(tokens, have, size)
        if slow[row]:
            sampled[0] = first
            continue
        signed.shingles[row] = shingles
        signed.short[row] = 0 < seen < size
        _fold_bands(strip.least, signing, signed.keys[row])


@nb.njit(cache=True, nogil=True)
def _collect_texts(
    base: np.uint64,
    offsets: Int64s,
    folded: bool,
    texts: Int64s,
    rows: Int64s,
    slow: Bools,
    pad: Pad,
    signing: Signing,
    room: Int64s,
    values: U64s,
    spare: U64s,
    counts: Int64s,
) -> None:
    size = signing.places.size
    tokens = pad.tokens
    for index in range(texts.size):
        text, row = texts[index], rows[index]
        begin_text(pad)
        held = seen = at = 0
        while pad.cursor[DONE] == 0:
            found = next_tokens(base + U64(offsets[text]), offsets[text + 1] - offsets[text], folded, pad, signing.mode, held)
            if found < 0:
                slow[row] = True
                break
            seen += found
            have = held + found
            if pad.cursor[DONE] and seen < size:
                have = _filled(tokens, have, size)
            made = max(have - size + 1, 0)
            _hash_shingles(tokens, 0, made, signing.places, values[room[row] + at :])
            at += made
            held = _carried(tokens, have, size)
        if not slow[row]:
            counts[row] = _sort_unique(values[room[row] : room[row] + at], spare)


@nb.njit(cache=True, nogil=True)
def _filled(tokens: U64s, have: int, size: int) -> int:
    """Fill a text of fewer tokens than a shingle has up to one; one of none is left as it is."""
    if have == 0:
        return 0
    tokens[have:size] = NO_TOKEN
    return max(have, size)


@nb.njit(cache=True, nogil=True)
def _carried(tokens: U64s, have: int, size: int) -> int:
    """Move the tokens that later shingles begin with to the front; how many they are."""
    held = min(have, size - 1)
    for place in range(held):
        tokens[place] = tokens[have - held + place]
    return held


@nb.njit(cache=True, nogil=True)
def _hash_shingles(tokens: U64s, start: int, count: int, places: U64s, out: U64s) -> None:
    """A multilinear hash of each run of tokens, then scrambled: the upper half decides the minima."""
    for index in range(count):
        out[index] = tokens[start + index] * places[0]
    for step in range(1, places.size):
        place = places[step]
        for index in range(count):
            out[index] += tokens[start + step + index] * place
    for index in range(count):
        value = out[index]
        value ^= value >> U64(32)
        value *= SECOND
        out[index] = value ^ (value >> U64(29))


@nb.njit(cache=True, nogil=True)
def _lower_minima(strip: Strip, count: int, signing: Signing) -> None:
    halves = strip.halves
    for index in range(count):
        halves[index] = U32(strip.shingles[index] >> U64(32))
    filled = (count + LANES - 1) // LANES * LANES
    for index in range(count, filled):
        halves[index] = halves[0]
    for slot in range(signing.bands * signing.rows):
        factor, shift = signing.factors[slot], signing.shifts[slot]
        least = strip.least[slot]
        for index in range(filled):
            least = min(least, U32(halves[index] * factor + shift))
        strip.least[slot] = least


@nb.njit(cache=True, nogil=True)
def _chosen(shingles: U64s, count: int) -> int:
    """How many of the shingles are sampled; a vector loop, where `_sample` is none."""
    chosen = 0
    for index in range(count):
        chosen += int(shingles[index] & U64(SAMPLED) == U64(0))
    return chosen


@nb.njit(cache=True, nogil=True)
def _sample(shingles: U64s, count: int, row: int, signed: Signed, at: int, most: int) -> int:
    for index in range(count):
        if shingles[index] & U64(SAMPLED) == U64(0) and at < most:
            signed.sampled_rows[at] = row
            signed.sampled[at] = _mix(shingles[index]) | U64(1)
            at += 1
    return at


@nb.njit(cache=True, nogil=True)
def _fold_bands(least: U32s, signing: Signing, out: U64s) -> None:
    """A key a band: a hash of the band's number and its minima in order. Keys of bands are even, of samples odd."""
    for band in range(signing.bands):
        key = _mix(U64(band + 1))
        for row in range(signing.rows):
            key = _mix(key ^ U64(least[band * signing.rows + row]))
        out[band] = key & ~U64(1)


@nb.njit(cache=True, nogil=True, inline="always")
def _mix(value: np.uint64) -> np.uint64:
    value += FIRST
    value = (value ^ (value >> U64(30))) * SECOND
    value = (value ^ (value >> U64(27))) * THIRD
    return value ^ (value >> U64(31))


@nb.njit(cache=True, nogil=True)
def _sort_unique(values: U64s, spare: U64s) -> int:
    """Sort well-mixed numbers in place and drop repeats; how many are left.

    One distribution by the leading bits, about one number a bucket, and an insertion sort that finds little to move.
    """
    count = values.size
    bits = 0
    while (1 << bits) < count:
        bits += 1
    if count > 32:
        shift = U64(64 - bits)
        ends = np.zeros((1 << bits) + 1, np.int32)
        for index in range(count):
            ends[(values[index] >> shift) + U64(1)] += 1
        for bucket in range(1 << bits):
            ends[bucket + 1] += ends[bucket]
        for index in range(count):
            bucket = values[index] >> shift
            spare[ends[bucket]] = values[index]
            ends[bucket] += 1
        values[:] = spare[:count]
    for index in range(1, count):
        value, place = values[index], index - 1
        while place >= 0 and values[place] > value:
            values[place + 1] = values[place]
            place -= 1
        values[place + 1] = value
    kept = min(count, 1)
    for index in range(1, count):
        if values[index] != values[kept - 1]:
            values[kept] = values[index]
            kept += 1
    return kept


@nb.njit(cache=True, nogil=True)
def _pack(values: U64s, room: Int64s, counts: Int64s, packed: U64s) -> None:
    at = 0
    for row in range(counts.size):
        for place in range(counts[row]):
            packed[at] = values[room[row] + place]
            at += 1
