"""Lines, paragraphs and runs of tokens that come again inside one text.

Two are the same when their 64-bit hashes are; in a text of a million lines that errs once in 40 million.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from curate.english import SPACE, TERMINAL
from curate.kernels.utf8 import character_at, character_before, kind_of

Bytes = npt.NDArray[np.uint8]
Kinds = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]
U64s = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

SHORT_LINE = 30
"""characters of a short line (FineWeb)"""
TOP_GRAMS, REPEATED_GRAMS = (2, 4), (5, 10)
"""tokens of the runs whose most frequent one is looked for, and of those that are looked for again (Gopher)"""
ODD = np.uint64(0xD6E8FEB86659FD93)
NEWLINE, RETURN = 0x0A, 0x0D


class LineNumbers(NamedTuple):
    """What `read_lines` counts; `pieces` stand between runs of newlines, the empty ends of a text among them."""

    pieces: int
    repeated: int
    repeated_characters: int
    paragraphs: int
    repeated_paragraphs: int
    repeated_paragraph_characters: int
    lines: int
    punctuated: int
    short: int
    newlines: int


@nb.njit(cache=True, nogil=True)
def read_lines(data: Bytes, start: int, stop: int, table: Kinds, slots: U64s, entries: int) -> LineNumbers:
    """Count what newlines part, and what of it comes again. A return before a newline belongs to it.

    `entries` are at least the lines (`count_filled`), `slots` is scratch: a power of two, at least 16 and twice the
    entries. Nothing blank is a line or repeats one.
    """
    mask = _clear(slots, entries)
    pieces, repeated, repeated_characters, lines, punctuated, short, newlines = 0, 0, 0, 0, 0, 0, 0
    at = start
    while at <= stop and start < stop:
        end, after = _line_end(data, at, stop)
        newlines += after <= stop
        pieces += end > at or at == start or after > stop
        if end > at:
            one, characters, blank = _read_part(data, at, end, table)
            if not blank:
                lines += 1
                punctuated += bool(kind_of(table, character_before(data, end, at)[0]) & TERMINAL)
                short += characters <= SHORT_LINE
                if not _is_new(slots, mask, one):
                    repeated += 1
                    repeated_characters += characters
        at = after
    _clear(slots, entries)
    paragraphs, again, again_characters = _read_paragraphs(data, start, stop, table, slots, mask)
    return LineNumbers(
        pieces, repeated, repeated_characters, paragraphs, again, again_characters, lines, punctuated, short, newlines
    )


@nb.njit(cache=True, nogil=True)
def _read_paragraphs(data: Bytes, start: int, stop: int, table: Kinds, slots: U64s, mask: np.uint64) -> tuple[int, int, int]:
    """Paragraphs of the text without whitespace at its ends, those that come again, and the characters of these."""
    while start < stop:
        code, width = character_at(data, start, stop)
        if not kind_of(table, code) & SPACE:
            break
        start += width
    while start < stop:
        code, width = character_before(data, stop, start)
        if not kind_of(table, code) & SPACE:
            break
        stop -= width
    paragraphs, again, again_characters = 0, 0, 0
    first, last, at = start, start, start
    while at <= stop and start < stop:
        end, after = _line_end(data, at, stop)
        if end > at:
            last = end
        if end == at or after > stop:  # an empty line, or the end of the text, ends a paragraph
            if last > first:
                paragraphs += 1
                one, characters, blank = _read_part(data, first, last, table)
                if not blank and not _is_new(slots, mask, one):
                    again += 1
                    again_characters += characters
            first, last = after, after
        at = after
    return paragraphs, again, again_characters


@nb.njit(cache=True, nogil=True)
def _line_end(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Where the line ends, and where the next one begins; that is beyond `stop` after the last one."""
    end = at
    while end < stop and data[np.uint64(end)] != NEWLINE:
        end += 1
    after = end + 1
    if end < stop:
        while end > at and data[end - 1] == RETURN:
            end -= 1
    return end, after


@nb.njit(cache=True, nogil=True)
def _read_part(data: Bytes, start: int, stop: int, table: Kinds) -> tuple[np.uint64, int, bool]:
    """Hash, characters, and whether all of them are whitespace; returns before newlines are passed over."""
    one, characters, blank, at = np.uint64(0), 0, True, start
    while at < stop and blank:
        code, width = character_at(data, at, stop)
        blank = bool(kind_of(table, code) & SPACE)
        at += width
    at = start
    while at < stop:
        byte = data[np.uint64(at)]
        if byte == RETURN:
            run = at
            while run < stop and data[run] == RETURN:
                run += 1
            if run < stop and data[run] == NEWLINE:
                at = run
                byte = data[at]
            else:
                while at < run - 1:
                    one = (one + np.uint64(RETURN + 1)) * ODD
                    characters += 1
                    at += 1
        one = (one + np.uint64(byte) + np.uint64(1)) * ODD
        characters += byte & 0xC0 != 0x80
        at += 1
    return mix(one), characters, blank


@nb.njit(cache=True, nogil=True)
def count_filled(data: Bytes, start: int, stop: int) -> int:
    """At least as many as the lines that are not empty."""
    found, filled = 0, False
    for at in range(start, stop):
        byte = data[np.uint64(at)]
        found += (byte != NEWLINE) & (byte != RETURN) & (not filled)
        filled = (byte != NEWLINE) & (filled | (byte != RETURN))
    return found


@nb.njit(cache=True, nogil=True)
def read_grams(
    marks: U64s,
    lengths: Int64s,
    joined: Int64s,
    count: int,
    slots: U64s,
    counts: Int64s,
    firsts: Int64s,
    grams: U64s,
    out: Int64s,
) -> None:
    """For runs of 2 to 10 tokens, the characters of the most frequent one (with spaces) or of those that come again.

    `marks` are the hashes of the tokens; `lengths[i]` the characters before token i, `joined[i]` where it
    begins when spaces join them. Of equally frequent runs the first counts. A run that comes again
    is counted whole, and the next may begin behind it.
    """
    for index in range(count):
        grams[index] = marks[index]
    for size in range(TOP_GRAMS[0], REPEATED_GRAMS[1] + 1):
        for index in range(count - size + 1):
            grams[index] = grams[index] * ODD + marks[index + size - 1]
        mask = _clear(slots, count)
        if size <= TOP_GRAMS[1]:
            out[size] = _top(grams, lengths, joined, count, size, slots, mask, counts, firsts)
        else:
            out[size] = _repeated(grams, lengths, count, size, slots, mask)


@nb.njit(cache=True, nogil=True)
def _top(
    grams: U64s,
    lengths: Int64s,
    joined: Int64s,
    count: int,
    size: int,
    slots: U64s,
    mask: np.uint64,
    counts: Int64s,
    firsts: Int64s,
) -> int:
    most, first = 0, 0
    for index in range(count - size + 1):
        slot = _slot(slots, mask, grams[index])
        if slots[slot] == 0:
            slots[slot] = grams[index] | np.uint64(1)
            counts[slot] = 0
            firsts[slot] = index
        counts[slot] += 1
        if counts[slot] > most or (counts[slot] == most and firsts[slot] < first):
            most, first = counts[slot], firsts[slot]
    if most == 0:
        return 0
    last = first + size - 1
    return int(most * (joined[last] - joined[first] + lengths[last + 1] - lengths[last]))


@nb.njit(cache=True, nogil=True)
def _repeated(grams: U64s, lengths: Int64s, count: int, size: int, slots: U64s, mask: np.uint64) -> int:
    characters, index = 0, 0
    while index < count - size + 1:
        if _is_new(slots, mask, grams[index]):
            index += 1
        else:
            characters += lengths[index + size] - lengths[index]
            index += size
    return characters


@nb.njit(cache=True, nogil=True)
def _clear(slots: U64s, entries: int) -> np.uint64:
    """Empty as much of the table as so many entries need; the mask of its places."""
    size = 16
    while size < 2 * entries:
        size *= 2
    for slot in range(size):
        slots[slot] = 0
    return np.uint64(size - 1)


@nb.njit(cache=True, nogil=True, inline="always")
def _slot(slots: U64s, mask: np.uint64, one: np.uint64) -> np.uint64:
    key = one | np.uint64(1)
    at = mix(key) & mask
    while slots[at] != 0 and slots[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@nb.njit(cache=True, nogil=True, inline="always")
def _is_new(slots: U64s, mask: np.uint64, one: np.uint64) -> bool:
    """Put a hash into the table; true if it was not there."""
    at = _slot(slots, mask, one)
    new = slots[at] == 0
    slots[at] = one | np.uint64(1)
    return bool(new)


@nb.njit(cache=True, nogil=True, inline="always")
def mix(one: np.uint64) -> np.uint64:
    """Spread a hash over all its bits."""
    one = (one ^ one >> np.uint64(32)) * ODD
    return one ^ one >> np.uint64(32)
