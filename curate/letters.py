"""What each character is to a tokeniser: letter, mark, a script without spaces, and how it folds.

A *word* is a run of letters, digits and underscores, with the marks that stand on them, after folding (see
`curate.cells.fold`). In scripts that write no spaces (Han, Kana, Thai, Lao, Khmer, Myanmar) each character
is a word. Everything else parts words.

The tables let compiled code fold a text only while it can prove that `fold` would do the same: each
character is one that NFC leaves alone or replaces by itself, it joins with nothing before it, marks stand in
canonical order. A text that needs more is folded by Python first. They are made from this Python's own
Unicode tables, so the two cannot disagree.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curate.cells import fold

SPACELESS = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b16f"  # Kana
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    "\u0e81-\u0edf"  # Lao
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9"  # Khmer
    "\u1000-\u1049\u1050-\u109d\ua9e0-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f"  # Myanmar
)
"""the inside of a character class of a regular expression"""

TABLE = 0x20000
"""code points with an entry of their own"""
LAST_HAN = 0x323AF
"""from `TABLE` to here every code point is Han; beyond, none is part of a word"""
COMPATIBLE = (0x2F800, 0x2FA1F)
"""Han that NFC replaces, above `TABLE`"""
FOLD = (1 << 21) - 1
"""the bits of an entry that hold the folded character, or the place of several in `expansions`"""
LETTER, MARK, ALONE, EXPANDS, JOINS, COMPOSED, SLOW = (1 << bit for bit in range(21, 28))
"""letter, digit or underscore; mark; script without spaces; folds to several; may join what is before it; is joined of two;
Python must fold"""
PAIR_SLOTS = 4096
PLAIN_SPANS = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xAC00, 0xD7A4))
"""Han and Hangul syllables: letters that fold to themselves, too many to ask one by one"""
UNUSED_SPAN = (0xD800, 0xF900)
"""surrogates and private use: no letters"""
MOST_GROWTH = 2
"""a text whose folded bytes could be more than so many times its own is left to Python"""


class Letters(NamedTuple):
    """Per code point its entry and combining class; what folds to two or three; pairs that NFC joins, and to what."""

    entries: npt.NDArray[np.uint32]
    classes: npt.NDArray[np.uint8]
    expansions: npt.NDArray[np.uint32]
    pairs: npt.NDArray[np.uint64]
    joined: npt.NDArray[np.uint32]


@functools.cache
def letters() -> Letters:
    """The tables, made once a process in about 60 ms."""
    codes = _codes()
    characters = list(map(chr, codes.tolist()))
    entries = np.zeros(TABLE, np.uint32)
    for start, stop in PLAIN_SPANS:
        entries[start:stop] = np.arange(start, stop, dtype=np.uint32) | np.uint32(LETTER)
    entries[codes] = codes | _kinds(characters)
    classes = np.zeros(TABLE, np.uint8)
    classes[codes] = list(map(unicodedata.combining, characters))
    pairs, joined, joining = _pairs(characters)
    expansions: list[tuple[int, ...]] = [(0, 0, 0)]
    for character, folded in zip(characters, _folded(characters), strict=True):
        if folded != character:
            entries[ord(character)] = _folding(character, folded, entries, expansions)
    entries[joined[joined > 0]] |= np.uint32(COMPOSED)
    entries[joining] |= np.where(entries[joining] & FOLD == joining, JOINS, SLOW).astype(np.uint32)
    for span in (slice(0x1161, 0x1176), slice(0x11A8, 0x11C3)):
        entries[span] |= np.uint32(SLOW)  # vowels and tails that join to Hangul syllables
    simple = np.flatnonzero((entries & (SLOW | EXPANDS)) == 0)
    entries[simple[np.isin(entries[simple] & FOLD, _spaceless())]] |= np.uint32(ALONE)
    return Letters(entries, classes, np.array(expansions, np.uint32), pairs, joined)


def _codes() -> npt.NDArray[np.uint32]:
    spans = sorted((*PLAIN_SPANS, UNUSED_SPAN))
    bounds = [0, *itertools.chain.from_iterable(spans), TABLE]
    return np.concatenate([np.arange(*gap, dtype=np.uint32) for gap in zip(bounds[::2], bounds[1::2], strict=True)])


def _kinds(characters: list[str]) -> npt.NDArray[np.uint32]:
    letter = np.array(list(map(str.isalnum, characters)))
    letter[ord("_")] = True
    mark = np.array([category[0] == "M" for category in map(unicodedata.category, characters)])
    return np.where(letter, LETTER, np.where(mark, MARK, 0)).astype(np.uint32)


def _folded(characters: list[str]) -> list[str]:
    """`fold` of each character: all at once, each on a line of its own, which no folding crosses."""
    ascii_part = [character.casefold() for character in characters[:0x80]]
    return ascii_part + fold("\n".join(characters[0x80:])).split("\n")


def _folding(character: str, folded: str, entries: npt.NDArray[np.uint32], expansions: list[tuple[int, ...]]) -> int:
    """The entry of a character that folds to something else."""
    if max(folded) >= chr(TABLE):
        return SLOW
    kinds = [int(entries[ord(one)]) & (LETTER | MARK) for one in folded]
    classes = list(map(unicodedata.combining, folded))
    grown = len(folded.encode()) > MOST_GROWTH * len(character.encode()) or len(folded) > 3
    if unicodedata.combining(character) or classes[0] or grown or (len(folded) > 1 and not (all(kinds) and kinds[0] == LETTER)):
        return SLOW
    if len(folded) == 1:
        return ord(folded) | kinds[0]
    expansions.append(tuple([*map(ord, folded), 0][:3]))
    return (len(expansions) - 1) | EXPANDS | LETTER


def _pairs(characters: list[str]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """A hash table of the pairs that NFC joins, what each becomes, and the characters that stand second."""
    parts = [(character, unicodedata.decomposition(character)) for character in characters]
    canonical = [(character, *whole.split()) for character, whole in parts if " " in whole and whole[0] != "<"]
    stable = [(whole, int(one, 16), int(two, 16)) for whole, one, two in canonical if unicodedata.is_normalized("NFC", whole)]
    pairs, joined = np.zeros(PAIR_SLOTS, np.uint64), np.zeros(PAIR_SLOTS, np.uint32)
    for whole, one, two in stable:
        at = pair_slot(one << 21 | two)
        while pairs[at]:
            at = (at + 1) % PAIR_SLOTS
        pairs[at], joined[at] = one << 21 | two, ord(whole)
    return pairs, joined, np.unique(np.array([two for *_, two in stable], np.uint32))


def pair_slot(pair: int) -> int:
    """Where the search for a pair begins."""
    return (pair * 0x9E3779B97F4A7C15 >> 40) % PAIR_SLOTS


def _spaceless() -> npt.NDArray[np.int64]:
    """The code points of `SPACELESS` that have an entry."""
    spans = re.findall(r"(.)(?:-(.))?", SPACELESS)
    codes = np.concatenate([np.arange(ord(first), ord(last or first) + 1) for first, last in spans])
    return codes[codes < TABLE]
