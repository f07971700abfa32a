"""Words, shingles, sets, minima and keys as plainly as they can be said: what the kernels must equal bit by bit."""

from __future__ import annotations

import functools
import re
import unicodedata

from curate.cells import fold
from curate.letters import SPACELESS

HAN_PLANES = "\U00020000-\U000323af"
WORD_BYTES = 4096
BITS = 2**64
FIRST, SECOND, THIRD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
NO_TOKEN, SPACE = 0xA0761D6478BD642F, 0x2545F4914F6CDD1D


def words(text: str, mode: str = "auto") -> list[str]:
    """The words of a text, folded, in order; in `auto` mode a script without spaces gives one a character."""
    return _pattern(mode).findall(fold(text))


def characters(text: str) -> list[str]:
    """The characters of all words, with one space between two words."""
    return list(" ".join(words(text, "whole")))


def tokens(text: str, mode: str = "auto") -> list[int]:
    """The hash of each token."""
    if mode == "characters":
        return [SPACE if one == " " else hash_of(one.encode()) for one in characters(text)]
    pieces = [word.encode() for word in words(text, mode)]
    return [hash_of(one[at : at + WORD_BYTES]) for one in pieces for at in range(0, len(one), WORD_BYTES)]


def hash_of(word: bytes) -> int:
    """Eight bytes at a time."""
    value = FIRST
    *blocks, last = [int.from_bytes(word[at : at + 8], "little") for at in range(0, len(word), 8)]
    for block in blocks:
        value = (value ^ block) * FIRST % BITS
        value ^= value >> 32
    value = (value ^ last) * SECOND % BITS
    return value ^ (value >> 29)


def shingles(text: str, places: list[int], mode: str = "auto") -> list[int]:
    """The hash of each run of tokens; a text with fewer is one run, filled up."""
    found = tokens(text, mode)
    if 0 < len(found) < len(places):
        found += [NO_TOKEN] * (len(places) - len(found))
    runs = [found[at : at + len(places)] for at in range(len(found) - len(places) + 1)]
    return [_scramble(sum(token * place for token, place in zip(run, places, strict=True)) % BITS) for run in runs]


def keys(text: str, places: list[int], factors: list[int], shifts: list[int], bands: int, mode: str = "auto") -> list[int]:
    """The key of each band: a hash of the least numbers that its permutations map the text's shingles to."""
    halves = [one >> 32 for one in shingles(text, places, mode)]
    least = [min((half * factor + shift) % 2**32 for half in halves) for factor, shift in zip(factors, shifts, strict=True)]
    rows = len(factors) // bands
    found = []
    for band in range(bands):
        key = mix(band + 1)
        for minimum in least[band * rows : (band + 1) * rows]:
            key = mix(key ^ minimum)
        found.append(key - key % 2)
    return found


def mix(value: int) -> int:
    """splitmix64."""
    value = (value + FIRST) % BITS
    value = (value ^ (value >> 30)) * SECOND % BITS
    value = (value ^ (value >> 27)) * THIRD % BITS
    return value ^ (value >> 31)


def _scramble(value: int) -> int:
    value = (value ^ (value >> 32)) * SECOND % BITS
    return value ^ (value >> 29)


@functools.cache
def _pattern(mode: str) -> re.Pattern[str]:
    marks = "".join(chr(c) for c in range(0x300, 0x20000) if unicodedata.category(chr(c))[0] == "M")
    if mode == "whole":
        return re.compile(rf"[\w{HAN_PLANES}]+(?:[{marks}]+[\w{HAN_PLANES}]*)*")
    own_marks = re.sub(f"[{SPACELESS}]", "", marks)
    letter = rf"[^\W{SPACELESS}]"
    return re.compile(f"{letter}+(?:[{own_marks}]+{letter}*)*|[{SPACELESS}]")
