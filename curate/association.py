"""How much one column says about another, with an interval: Cramér's V of two groupings, AUROC of a number and a group."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def table_of(rows: Counts, columns: Counts) -> Counts:
    """Counts by two codings, without empty lines and columns."""
    if not len(rows):
        return np.zeros((0, 0), np.int64)
    width = int(columns.max()) + 1
    table = np.bincount(rows * width + columns, minlength=(int(rows.max()) + 1) * width).reshape(-1, width)
    return np.asarray(table[table.any(axis=1)][:, table.any(axis=0)])


def chi_square(table: Counts) -> float:
    """Pearson's statistic; 0 where nothing varies."""
    total = table.sum()
    if min(table.shape, default=0) < 2:
        return 0.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / total
    return float((((table - expected) ** 2) / expected).sum())


def cramers_v(table: Counts) -> tuple[float, float, float] | None:
    """Cramér's V without its bias, 0 (independent) to 1 (one tells the other), and its interval; None where nothing varies.

    *Source*: Bergsma, "A bias-correction for Cramér's V and Tschuprow's T", 2013; the interval by the noncentral
    chi-square distribution (Smithson, "Confidence intervals", 2003), as `effectsize`'s and `MBESS`'.
    """
    r, k = table.shape
    total = int(table.sum())
    if min(r, k) < 2 or total < 2:
        return None
    chi, freedom = chi_square(table), (r - 1) * (k - 1)
    sides = min(r - (r - 1) ** 2 / (total - 1), k - (k - 1) ** 2 / (total - 1)) - 1
    if sides <= 0:
        return None
    value = math.sqrt(min(1.0, max(0.0, chi / total - freedom / (total - 1)) / sides))
    low, high = (math.sqrt(min(1.0, excess / total / sides)) for excess in _excesses(chi, freedom))
    return value, min(low, value), max(high, value)


def auroc(values: Floats, inside: npt.NDArray[np.bool_]) -> tuple[float, float, float] | None:
    """The chance that a value from inside is above one from outside, ties half, and its interval; None where a side is empty.

    *Source*: the interval is DeLong's variance on the logit scale (DeLong, DeLong and Clarke-Pearson, 1988), 0 and 1 excepted,
    where it is Wilson's for as many pairs as the smaller side has rows.
    """
    from curate.intervals import wilson

    n, m = int(inside.sum()), int((~inside).sum())
    if not n or not m:
        return None
    ranks = mid_ranks(values)
    of_one = (ranks[inside] - mid_ranks(values[inside])) / m
    of_other = 1 - (ranks[~inside] - mid_ranks(values[~inside])) / n
    area = float(of_one.mean())
    if area in (0.0, 1.0) or min(n, m) < 2:
        return area, *wilson(round(area * min(n, m)), min(n, m))
    spread = math.sqrt(of_one.var(ddof=1) / n + of_other.var(ddof=1) / m) / (area * (1 - area))
    middle = math.log(area / (1 - area))
    low, high = (1 / (1 + math.exp(-(middle + side * 1.959964 * spread))) for side in (-1, 1))
    return area, low, high


def mid_ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], np.float64)


def _excesses(chi: float, freedom: int) -> tuple[float, float]:
    """The ends of the noncentrality's interval, by bisection; 0 where even none would explain so small a statistic."""
    from scipy.stats import chi2, ncx2

    def solve(chance: float) -> float:
        if chi <= 0 or chi2.cdf(chi, freedom) <= chance:
            return 0.0
        low, high = 0.0, 2 * chi + 10 * math.sqrt(chi) + 50
        if chi > 10_000 + freedom:  # far from zero the distribution is normal, and the series would be slow
            return max(0.0, chi - freedom + (-1 if chance > 0.5 else 1) * 1.959964 * math.sqrt(max(0.0, 4 * chi - 2 * freedom)))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if ncx2.cdf(chi, freedom, middle) > chance else (low, middle)
        return (low + high) / 2

    return solve(0.975), solve(0.025)
