"""From texts to sets of shingles: words, runs of words, and a 64-bit hash for each.

A *word* is a run of letters, digits and underscores (marks belong to the letter they stand on),
after folding (see `curate.cells.fold`). In scripts that write no spaces (Han, Kana, Thai, Lao,
Khmer, Myanmar) each character is a word; a text may mix both kinds. A *shingle* is `size` words
in a row. A text of fewer words is one shingle: all its words.

Hashes: XXH3-64 of a word's UTF-8; a shingle is the sum of its words' hashes, each times an odd
constant of its position, modulo 2^64, then splitmix64. Numbers wrap by design: they are residues,
never taken modulo a prime, so nothing overflows.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from curate.cells import fold
from curate.hashing import mix64

U64s = npt.NDArray[np.uint64]

VERSION = 1
"""of words, shingles and their hashes: sets of another version cannot be compared"""

SPACELESS = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b16f"  # Kana
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    "\u0e81-\u0edf"  # Lao
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9"  # Khmer
    "\u1000-\u1049\u1050-\u109d\ua9e0-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f"  # Myanmar
)
PLAIN_WORD = re.compile(r"\w+")
PERHAPS_MIXED = re.compile("[\u0300-\u036f\u0483-\u0489\u0591-\u1cff\u1dc0-\u1dff\u20d0-\u20f0\u2cef-\U0010ffff]")
"""finds every mark and every spaceless letter, and more; texts without a hit need only `PLAIN_WORD`, three times as fast"""

LONG_TEXT = 1 << 20
"""characters above which words are found one at a time, not as a list"""
VOCABULARY = 1 << 18
"""words remembered at once"""
NO_WORD = np.uint64(0x2545F4914F6CDD1D)
"""stands in for the words that a short text lacks"""


@dataclass(frozen=True)
class Shingles:
    """The shingle hashes of n texts end to end: those of text i are `hashes[bounds[i]:bounds[i + 1]]`.

    `content[i]` is a hash of text i's words in order: texts with equal words have it in common.
    """

    hashes: U64s
    bounds: npt.NDArray[np.int64]
    content: U64s


def shingle(texts: Iterable[str], size: int) -> Shingles:
    """The shingles of each text, repeats included; none for a text without a word."""
    vocabulary = _Vocabulary()
    found = [_word_hashes(text, size, vocabulary) for text in texts]
    counts = np.array([len(hashes) for hashes in found], np.int64)
    content = np.array([xxhash.xxh3_64_intdigest(hashes.data) for hashes in found], np.uint64)
    words = np.concatenate(found) if found else np.empty(0, np.uint64)
    ends = np.cumsum(counts)
    starts_one = np.ones(len(words), np.bool_)
    for back in range(1, size):
        starts_one[ends[counts > 0] - back] = False
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(np.where(counts > 0, counts - (size - 1), 0), out=bounds[1:])
    return Shingles(_runs(words, size)[starts_one], bounds, content)


def words(text: str) -> Iterable[str]:
    """The words of a text, folded, in order."""
    folded = fold(text)
    pattern = _mixed_word() if not folded.isascii() and PERHAPS_MIXED.search(folded) else PLAIN_WORD
    return pattern.findall(folded) if len(folded) < LONG_TEXT else (hit[0] for hit in pattern.finditer(folded))


class _Vocabulary(dict[str, int]):
    """Hashes of words seen lately; it forgets them all when it is full."""

    def __missing__(self, word: str) -> int:
        if len(self) >= VOCABULARY:
            self.clear()
        hashed = self[word] = xxhash.xxh3_64_intdigest(word.encode())
        return hashed


def _word_hashes(text: str, size: int, vocabulary: _Vocabulary) -> U64s:
    hashes = np.fromiter(map(vocabulary.__getitem__, words(text)), np.uint64)
    lacking = size - len(hashes)
    return hashes if lacking <= 0 or not len(hashes) else np.append(hashes, np.full(lacking, NO_WORD))


def _runs(words: U64s, size: int) -> U64s:
    """The hash of the `size` words from each place on; the last `size - 1` places are padding."""
    factors = mix64(np.arange(size, dtype=np.uint64), seed=VERSION) | np.uint64(1)
    padded = np.append(words, np.zeros(size - 1, np.uint64))
    total = np.zeros(len(words), np.uint64)
    for offset, factor in enumerate(factors):
        total += padded[offset : offset + len(words)] * factor
    return mix64(total)


@functools.cache
def _mixed_word() -> re.Pattern[str]:
    marks = "".join(chr(c) for c in range(0x300, 0x1F000) if unicodedata.category(chr(c))[0] == "M")
    letter = rf"[^\W{SPACELESS}]"
    return re.compile(f"{letter}+(?:[{marks}]+{letter}*)*|[{SPACELESS}]")
