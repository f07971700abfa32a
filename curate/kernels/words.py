"""Words at memory speed: a text as a stream of token hashes, a piece at a time.

A piece is folded into scratch memory (pure ASCII of a short text needs no folding), where words are runs of
bytes that are a-z, 0-9, _ or above 0x7F, and everything else has become a space. Then 64 bytes at a time are
lowered and turned into a bit mask of word bytes, whose changes are where words begin and end.

Memory does not depend on the length of a text: a word that a piece cuts is carried to the next one.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from curate.kernels.vectors import address, copy_block, high_bits, load8, load64, lower_words, signed, store8, trailing_zeros
from curate.letters import (
    ALONE,
    COMPATIBLE,
    COMPOSED,
    EXPANDS,
    FOLD,
    JOINS,
    LAST_HAN,
    LETTER,
    MARK,
    MOST_GROWTH,
    PAIR_SLOTS,
    SLOW,
    TABLE,
    letters,
)
from curate.minhash import BY_SCRIPT, CHARACTERS

U64 = np.uint64
U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

PIECE = 1 << 15
"""bytes of a text that are folded at once"""
LONGEST = 4096
"""bytes of a word; a longer one is cut as several"""
FIRST = U64(0x9E3779B97F4A7C15)
SECOND = U64(0xBF58476D1CE4E5B9)
SPACE = U64(0x2545F4914F6CDD1D)
"""stands between two words where characters are tokens"""

PLACE, CARRIED, STARTER, CLASS, CHANGED, IN_WORD, GAP, ANY, DONE = range(9)
"""what is remembered from piece to piece"""

_HASHED = U64(0xFFFFFFFFFFFFFFFF)


class Pad(NamedTuple):
    """Tables and scratch memory to read texts with; addresses stand beside the arrays that they belong to."""

    entries: npt.NDArray[np.uint32]
    classes: npt.NDArray[np.uint8]
    expansions: npt.NDArray[np.uint32]
    pairs: U64s
    joined: npt.NDArray[np.uint32]
    folded: npt.NDArray[np.uint8]
    lower: npt.NDArray[np.uint8]
    tokens: U64s
    cursor: Int64s
    marks: Int64s
    folded_at: np.uint64
    lower_at: np.uint64


def make_pad(held: int) -> Pad:
    """Scratch memory that can hold so many tokens before those of a piece."""
    size = MOST_GROWTH * PIECE + LONGEST + 256
    folded, lower = np.empty(size, np.uint8), np.empty(size, np.uint8)
    tokens = np.empty(held + size, np.uint64)
    return Pad(
        *letters(), folded, lower, tokens, np.zeros(9, np.int64), np.empty((16, 2), np.int64), address(folded), address(lower)
    )


@nb.njit(cache=True, nogil=True)
def begin_text(pad: Pad) -> None:
    """Make ready for the first piece of a text."""
    pad.cursor[:] = 0


@nb.njit(cache=True, nogil=True)
def next_tokens(source: np.uint64, size: int, folded: bool, pad: Pad, mode: int, held: int) -> int:
    """Write the hashes of the next piece's tokens behind the first `held`; how many, or -1 where Python must fold the text.

    `folded`: Python did. `cursor[DONE]` is set after the last piece.
    """
    cursor = pad.cursor
    place = cursor[PLACE]
    if place == 0 and size <= PIECE and mode != CHARACTERS and is_ascii(source, size):
        cursor[DONE] = 1
        found, _ = _hash_words(source, size, True, pad.lower_at, pad.tokens, held)
        return found
    piece = min(PIECE, size - place)
    final = place + piece == size
    carried = cursor[CARRIED]
    total, used = _fold(source + U64(place), piece, final, folded, pad, carried, mode == BY_SCRIPT)
    if total < 0:
        return -1
    cursor[PLACE] = place + used
    cursor[DONE] = int(final)
    if mode == CHARACTERS:
        return _hash_characters(total, pad, held)
    found, read = _hash_words(pad.folded_at, total, final, pad.lower_at, pad.tokens, held)
    for index in range(total - read):
        pad.folded[index] = pad.folded[read + index]
    cursor[CARRIED] = total - read
    return found


@nb.njit(cache=True, nogil=True)
def is_ascii(source: np.uint64, size: int) -> bool:
    """Whether every byte is below 0x80."""
    place = 0
    while place + 64 <= size:
        if high_bits(source + U64(place)) != U64(0):
            return False
        place += 64
    high = U64(0)
    while place < size:
        high |= load8(source + U64(place))
        place += 1
    return bool(high < U64(0x80))


@nb.njit(cache=True, nogil=True, inline="always")
def _hash(place: np.uint64, size: np.uint64) -> np.uint64:
    """The hash of a word's bytes, eight at a time; a word has no NUL, so a short tail filled with them says its length."""
    value = FIRST
    while size > U64(8):
        value = (value ^ load64(place)) * FIRST
        value ^= value >> U64(32)
        place += U64(8)
        size -= U64(8)
    value = (value ^ (load64(place) & (_HASHED >> (U64(64) - U64(8) * size)))) * SECOND
    return value ^ (value >> U64(29))


@nb.njit(cache=True, nogil=True)
def _hash_words(source: np.uint64, size: int, final: bool, lower: np.uint64, tokens: U64s, held: int) -> tuple[int, int]:
    """Hash the words of a folded piece; how many, and the bytes read: an unfinished word at the end is left unless `final`."""
    found = held
    carry = U64(0)
    start = U64(0)
    inside = False
    at = U64(0)
    stop = U64(size)
    while at < stop:
        if at + U64(64) <= stop:
            mask = lower_words(source + at, lower + at)
        else:
            for index in range(stop - at):
                store8(lower + at + U64(index), load8(source + at + U64(index)))
            mask = lower_words(lower + at, lower + at) & ((U64(1) << (stop - at)) - U64(1))
        turns = mask ^ ((mask << U64(1)) | carry)
        carry = mask >> U64(63)
        while turns != U64(0):
            here = at + trailing_zeros(turns)
            turns &= turns - U64(1)
            if here == stop:
                break  # the end of the piece, perhaps not of the word
            if inside:
                while here - start > U64(LONGEST):
                    tokens[found] = _hash(lower + start, U64(LONGEST))
                    found += 1
                    start += U64(LONGEST)
                tokens[found] = _hash(lower + start, here - start)
                found += 1
            start = here
            inside = not inside
        at += U64(64)
    if not inside:
        return found - held, size
    while stop - start > U64(LONGEST):
        tokens[found] = _hash(lower + start, U64(LONGEST))
        found += 1
        start += U64(LONGEST)
    if final:
        tokens[found] = _hash(lower + start, stop - start)
        return found + 1 - held, size
    return found - held, signed(start)


@nb.njit(cache=True, nogil=True)
def _hash_characters(total: int, pad: Pad, held: int) -> int:
    """Hash each character of a folded piece; one space between two words is a token too."""
    cursor, lower = pad.cursor, pad.lower_at
    place = 0
    while place < total:
        lower_words(pad.folded_at + U64(place), lower + U64(place))
        place += 64
    found = held
    place = 0
    while place < total:
        lead = load8(lower + U64(place))
        if lead < U64(0x80) and not (U64(0x61) <= lead <= U64(0x7A) or U64(0x30) <= lead <= U64(0x39) or lead == U64(0x5F)):
            cursor[GAP] = 1
            place += 1
            continue
        width = U64(1) if lead < U64(0x80) else U64(2) if lead < U64(0xE0) else U64(3) if lead < U64(0xF0) else U64(4)
        if cursor[GAP] and cursor[ANY]:
            pad.tokens[found] = SPACE
            found += 1
        pad.tokens[found] = _hash(lower + U64(place), width)
        found += 1
        cursor[GAP] = 0
        cursor[ANY] = 1
        place += signed(width)
    return found - held


@nb.njit(cache=True, nogil=True)
def _fold(source: np.uint64, size: int, final: bool, folded: bool, pad: Pad, at: int, alone: bool) -> tuple[int, int]:
    """Fold a piece to `folded[at:]`; where that ends (-1: Python must fold the text) and the bytes read.

    A character cut by the end of the piece is left for the next one. ASCII is copied as it is and lowered later.
    """
    cursor, target = pad.cursor, pad.folded_at
    starter, last_class, changed = cursor[STARTER], cursor[CLASS], cursor[CHANGED] != 0
    in_word = cursor[IN_WORD] != 0
    marks, lone = 0, True
    if last_class:
        marks = pad.marks.shape[0]  # marks of an earlier piece cannot be moved
    composed = starter >= 0x80  # of a starter of an earlier piece it is not known
    begun = -1  # where the last starter was written; unknown for one of an earlier piece
    place = 0
    while place < size:
        before = place
        while place + 64 <= size:
            copy_block(source + U64(place), target + U64(at))
            plain = signed(trailing_zeros(high_bits(source + U64(place))))
            place += plain
            at += plain
            if plain < 64:
                break
        else:
            while place < size:
                byte = load8(source + U64(place))
                if byte >= U64(0x80):
                    break
                store8(target + U64(at), byte)
                place += 1
                at += 1
        if place > before:
            starter = signed(load8(source + U64(place - 1)))
            last_class = marks = 0
            lone = False
            changed = 0x41 <= starter <= 0x5A
            composed = False
            begun = at - 1
            in_word = 0x30 <= starter <= 0x39 or 0x61 <= (starter | 0x20) <= 0x7A or starter == 0x5F
        while place < size:
            lead = signed(load8(source + U64(place)))
            if lead < 0x80:
                break
            width = 2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)
            if place + width > size:
                if final:
                    return -1, place
                size = place
                break
            code = lead & (0x7F >> width)
            for index in range(1, width):
                code = (code << 6) | (signed(load8(source + U64(place + index))) & 0x3F)
            place += width
            entry = _entry(code, pad.entries)
            combining = signed(pad.classes[code]) if code < TABLE else 0
            if folded:
                combining = 0
            elif entry & SLOW:
                return -1, place
            elif entry & JOINS:
                whole = _joined(starter, code, pad)
                if whole and (last_class or begun < 0):
                    return -1, place
                if whole:
                    code, entry, combining, at = whole, _entry(whole, pad.entries), 0, begun
                elif composed or (changed and (starter >= 0x80 or _joined(starter | 0x20, code, pad))):
                    return -1, place
                if entry & SLOW:
                    return -1, place
            if combining == 0:
                marks, lone = 0, False
            elif marks == pad.marks.shape[0]:
                return -1, place
            lone |= entry & ALONE != 0
            written = at
            letter, mark = entry & LETTER, entry & MARK
            if entry & EXPANDS:
                for index in range(3):
                    one = signed(pad.expansions[entry & FOLD, index])
                    if one:
                        written = at
                        at = _encode(one, target, at)
                        last_class = signed(pad.classes[one])
                        if last_class:
                            pad.marks[marks, 0], pad.marks[marks, 1] = last_class, written
                            marks += 1
                in_word, starter, changed, begun = True, code, True, -1
                continue
            if combining == 0:
                starter, changed, begun = code, entry & FOLD != code, at
                composed = entry & COMPOSED != 0
            if alone and entry & ALONE:
                store8(target + U64(at), U64(0x20))
                at = _encode(entry & FOLD, target, at + 1)
                store8(target + U64(at), U64(0x20))
                at += 1
                in_word = False
            elif letter or (mark and in_word):
                at = _encode(entry & FOLD, target, at)
                in_word = True
            else:
                store8(target + U64(at), U64(0x20))
                at += 1
                in_word = False
            if combining:
                pad.marks[marks, 0], pad.marks[marks, 1] = combining, written
                marks += 1
                if combining < last_class:
                    if alone and lone:
                        return -1, place  # what is a word of its own, and what stands on one, depends on the order
                    _order_marks(pad, marks, at)
            last_class = max(last_class, combining) if combining else 0
    cursor[STARTER], cursor[CLASS], cursor[CHANGED], cursor[IN_WORD] = starter, last_class, int(changed), int(in_word)
    return at, place


@nb.njit(cache=True, nogil=True)
def _order_marks(pad: Pad, marks: int, at: int) -> None:
    """Move the last mark before those of a higher class; `marks` holds the class of each and where it is written."""
    marked, text = pad.marks, pad.folded
    last = marks - 1
    first = last
    while first > 0 and marked[first - 1, 0] > marked[last, 0]:
        first -= 1
    start, own, width = marked[first, 1], marked[last, 0], at - marked[last, 1]
    moved = text[at - width : at].copy()
    for place in range(at - width - 1, start - 1, -1):
        text[place + width] = text[place]
    text[start : start + width] = moved
    for index in range(last, first, -1):
        marked[index, 0], marked[index, 1] = marked[index - 1, 0], marked[index - 1, 1] + width
    marked[first, 0], marked[first, 1] = own, start


@nb.njit(cache=True, nogil=True, inline="always")
def _entry(code: int, entries: npt.NDArray[np.uint32]) -> int:
    if code < TABLE:
        return signed(entries[code])
    if code > LAST_HAN:
        return 0
    return code | LETTER | ALONE | (SLOW if COMPATIBLE[0] <= code <= COMPATIBLE[1] else 0)


@nb.njit(cache=True, nogil=True)
def _joined(one: int, two: int, pad: Pad) -> int:
    """The character that NFC makes of two; 0 where it leaves them."""
    pair = U64(one << 21 | two)
    at = (pair * FIRST >> U64(40)) % U64(PAIR_SLOTS)
    while pad.pairs[at] != U64(0):
        if pad.pairs[at] == pair:
            return signed(pad.joined[at])
        at = (at + U64(1)) % U64(PAIR_SLOTS)
    return 0


@nb.njit(cache=True, nogil=True, inline="always")
def _encode(code: int, target: np.uint64, at: int) -> int:
    """Write a character as UTF-8; where the next one goes."""
    if code < 0x80:
        store8(target + U64(at), U64(code))
        return at + 1
    if code < 0x800:
        store8(target + U64(at), U64(0xC0 | (code >> 6)))
        store8(target + U64(at + 1), U64(0x80 | (code & 0x3F)))
        return at + 2
    if code < 0x10000:
        store8(target + U64(at), U64(0xE0 | (code >> 12)))
        store8(target + U64(at + 1), U64(0x80 | ((code >> 6) & 0x3F)))
        store8(target + U64(at + 2), U64(0x80 | (code & 0x3F)))
        return at + 3
    store8(target + U64(at), U64(0xF0 | (code >> 18)))
    for index in range(3):
        store8(target + U64(at + 1 + index), U64(0x80 | ((code >> (12 - 6 * index)) & 0x3F)))
    return at + 4
