"""How far two sets of rows are apart in one column, from 0 to 1, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.distances import tvd
from curate.facets import Facet

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

WORD_SLOTS = 1 << 16
"""words of a text are told apart by so many hashes"""
MOST_TEXTS = 20_000
"""texts of a side whose words are read"""


class Distance(NamedTuple):
    """A distance, how it was measured, the rows on both sides, and by how much it is expected to be too great by chance."""

    column: str
    measure: str
    value: float
    rows: int
    reference_rows: int
    bias: float = 0.0

    def interval(self, alpha: float) -> tuple[float, float]:
        """The ends between which the true distance is, but for a chance of `alpha`."""
        if not (self.rows and self.reference_rows):
            return 0.0, 1.0
        margin = math.sqrt(math.log(2 / alpha) / 2 * (1 / self.rows + 1 / self.reference_rows))
        return max(0.0, self.value - margin - self.bias), min(1.0, self.value + margin)


def of_column(name: str, column: Facet, here: Bools, there: Bools) -> Iterator[Distance]:
    """The distance of the values, and of being missing where some are."""
    missing = column.missing
    if missing[here | there].any():
        value = abs(float(missing[here].mean()) - float(missing[there].mean())) if here.any() and there.any() else 0.0
        yield Distance(f"{name} is missing", "share", value, int(here.sum()), int(there.sum()))
    here, there = here & ~missing, there & ~missing
    rows, other = int(here.sum()), int(there.sum())
    if column.kind == "category":
        value, bias = total_variation(column.codes[here], column.codes[there], len(column.names))
        yield Distance(name, "total variation", value, rows, other, bias)
    else:
        yield Distance(name, "Kolmogorov-Smirnov", greatest_gap(column.numbers[here], column.numbers[there]), rows, other)


def greatest_gap(one: Floats, two: Floats) -> float:
    """The Kolmogorov-Smirnov distance of two samples; 0 where one is empty."""
    if not (len(one) and len(two)):
        return 0.0
    one, two = np.sort(one), np.sort(two)
    both = np.concatenate([one, two])
    shares = np.searchsorted(one, both, side="right") / len(one) - np.searchsorted(two, both, side="right") / len(two)
    return float(np.abs(shares).max())


def total_variation(one: npt.NDArray[np.int64], two: npt.NDArray[np.int64], values: int) -> tuple[float, float]:
    """The total variation of two samples of codes, and at most how much of it is chance; 0 where one is empty."""
    if not (len(one) and len(two)):
        return 0.0, 0.0
    left, right = np.bincount(one, minlength=values) / len(one), np.bincount(two, minlength=values) / len(two)
    pooled = np.bincount(np.concatenate([one, two]), minlength=values) / (len(one) + len(two))
    bias = 0.5 * float(np.sqrt(pooled * (1 - pooled) * (1 / len(one) + 1 / len(two))).sum())
    return float(tvd(left, right)), bias


def of_words(text: pa.LargeStringArray, here: Bools, there: Bools, learnt: Bools) -> Distance:
    """How well words tell the two sides apart: the distance of a classifier's scores, on rows that it was not learnt on."""
    from curate.kernels.signatures import shingle_sets
    from curate.minhash import BY_SCRIPT, signing

    known = text.is_valid().to_numpy(zero_copy_only=False)
    chosen = np.flatnonzero(_first(here & known) | _first(there & known))
    bounds, words = shingle_sets(text.take(pa.array(chosen)), signing(1, 1, 1, BY_SCRIPT))
    slot = (words >> np.uint64(48)).astype(np.int64)
    row = np.repeat(np.arange(len(chosen)), np.diff(bounds))
    side, learnt = here[chosen], learnt[chosen]
    score = np.zeros(len(chosen))
    for half in (learnt, ~learnt):
        weight = _log_odds(slot, row, side, half)
        score += np.where(half, 0.0, np.bincount(row, weights=weight[slot], minlength=len(chosen)))
    gaps, sizes = [], []
    for half in (learnt, ~learnt):
        one, two = score[half & side], score[half & ~side]
        gaps.append(greatest_gap(one, two))
        sizes.append((len(one), len(two)))
    value = float(np.mean(gaps))
    return Distance("words", "classifier on held-out rows", value, min(s[0] for s in sizes), min(s[1] for s in sizes))


def _first(mask: Bools) -> Bools:
    """At most `MOST_TEXTS` of the rows; they stand in the order of their ids, so every so many-th is taken."""
    places = np.flatnonzero(mask)
    step = -(-len(places) // MOST_TEXTS) if len(places) else 1
    out = np.zeros(len(mask), np.bool_)
    out[places[::step]] = True
    return out


def _log_odds(slot: npt.NDArray[np.int64], row: npt.NDArray[np.int64], side: Bools, half: Bools) -> Floats:
    """The weight of each word: naive Bayes over which rows have it, from one half of the rows."""
    counts = []
    for own in (half & side, half & ~side):
        rows = np.bincount(slot[own[row]], minlength=WORD_SLOTS)
        counts.append(np.log((rows + 0.5) / (own.sum() + 1.0)))
    weight: Floats = counts[0] - counts[1]
    return weight
