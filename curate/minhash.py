"""MinHash signatures and their bands: which texts are worth comparing at all.

For each of k fixed permutations of the 32-bit numbers, the smallest number a set maps to; two
sets have the same one with a probability equal to their Jaccard similarity (Broder, "On the
resemblance and containment of documents", 1997). Sets that agree on all rows of at least one
band become candidates (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4).

The permutations are x -> a x + b modulo 2^32, a odd, over the upper half of well-mixed 64-bit
hashes: residues of a machine word, so no product overflows into another answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curate.hashing import mix64

VERSION = 2
"""of tokens, shingles, permutations and band keys: what another version made is never compared"""
PERMUTATIONS = 128
"""minima a text may cost, unless the similarity is too low for so few"""
BY_SCRIPT, WHOLE_WORDS, CHARACTERS = 0, 1, 2
"""tokens are words, and characters in scripts without spaces; words in every script; characters"""
DETECTION = 0.999
"""the least chance that a pair exactly at the limit becomes a candidate, where we choose"""


class Signing(NamedTuple):
    """How texts are signed: the kind of tokens, the weight of each place in a shingle, permutations, bands and rows."""

    mode: int
    places: npt.NDArray[np.uint64]
    factors: npt.NDArray[np.uint32]
    shifts: npt.NDArray[np.uint32]
    bands: int
    rows: int


def choose_bands(similarity: float, bands: int | None = None, rows: int | None = None) -> tuple[int, int]:
    """Bands and rows a band: as given, or the most rows that still find a pair at the limit.

    More rows mean fewer useless candidates, more bands fewer missed pairs. 0.8 gives 25 x 5.
    """
    if rows is not None:
        return bands or max(PERMUTATIONS // rows, _bands_needed(similarity, rows), 1), rows
    for count in range(PERMUTATIONS // (bands or 1), 1, -1):
        if detection(similarity, bands or PERMUTATIONS // count, count) >= DETECTION:
            return bands or PERMUTATIONS // count, count
    return bands or max(PERMUTATIONS, _bands_needed(similarity, 1)), 1


def detection(similarity: float, bands: int, rows: int) -> float:
    """The chance that a pair of this similarity becomes a candidate."""
    return 1.0 - (1.0 - similarity**rows) ** bands


def detection_curve(bands: int, rows: int) -> tuple[tuple[float, float], ...]:
    """For similarities 0, 0.05, …, 1 the chance that such a pair becomes a candidate."""
    return tuple((step / 20, detection(step / 20, bands, rows)) for step in range(21))


def signing(bands: int, rows: int, size: int, mode: int) -> Signing:
    """How texts are signed by so many bands of so many minima, over shingles of `size` tokens."""
    drawn = mix64(np.arange(bands * rows, dtype=np.uint64), seed=VERSION + 1000)
    factors = (drawn >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    places = mix64(np.arange(size, dtype=np.uint64), seed=VERSION) | np.uint64(1)
    return Signing(mode, places, factors, drawn.astype(np.uint32), bands, rows)


def _bands_needed(similarity: float, rows: int) -> int:
    hit = similarity**rows
    return 1 if hit >= DETECTION else math.ceil(math.log(1.0 - DETECTION) / math.log1p(-hit))
