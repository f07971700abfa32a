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

import numpy as np
import numpy.typing as npt

from curate.hashing import mix64

U32s = npt.NDArray[np.uint32]
U64s = npt.NDArray[np.uint64]

VERSION = 1
"""of permutations and band keys: keys of another version never meet"""
PERMUTATIONS = 128
"""minima a text may cost, unless the similarity is too low for so few"""
DETECTION = 0.999
"""the least chance that a pair exactly at the limit becomes a candidate, where we choose"""
BLOCK = 1 << 16
"""shingles permuted at once, so that a long text needs no more memory than a short one"""


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


def minima(hashes: U64s, bounds: npt.NDArray[np.int64], count: int) -> U32s:
    """The signature of each set (n sets, none empty -> n x count), from hashes laid end to end."""
    numbers = (hashes >> np.uint64(32)).astype(np.uint32)
    factors, shifts = _permutations(count)
    least = np.full((count, len(bounds) - 1), 0xFFFFFFFF, np.uint32)
    for low in range(0, len(numbers), BLOCK):
        block = numbers[low : low + BLOCK]
        first = int(np.searchsorted(bounds, low, side="right")) - 1
        last = int(np.searchsorted(bounds, low + len(block), side="left"))
        starts = np.maximum(bounds[first:last] - low, 0)
        for index in range(count):
            mapped = block * factors[index]
            mapped += shifts[index]
            slot = least[index, first:last]
            np.minimum(slot, np.minimum.reduceat(mapped, starts), out=slot)
    return np.ascontiguousarray(least.T)


def band_keys(signatures: U32s, bands: int, rows: int) -> U64s:
    """One 64-bit key a band (n x bands): a hash of the band's number and its minima, in order."""
    folded = signatures[:, : bands * rows].reshape(len(signatures), bands, rows).astype(np.uint64)
    keys = np.broadcast_to(mix64(np.arange(bands, dtype=np.uint64), seed=VERSION), folded.shape[:2])
    for row in range(rows):
        keys = mix64(keys ^ folded[:, :, row])
    return keys


def _bands_needed(similarity: float, rows: int) -> int:
    hit = similarity**rows
    return 1 if hit >= DETECTION else math.ceil(math.log(1.0 - DETECTION) / math.log1p(-hit))


def _permutations(count: int) -> tuple[U32s, U32s]:
    drawn = mix64(np.arange(count, dtype=np.uint64), seed=VERSION + 1000)
    return (drawn >> np.uint64(32)).astype(np.uint32) | np.uint32(1), drawn.astype(np.uint32)
