"""Intervals for shares that were counted, for their differences and ratios, and what is left of many tests at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist


def wilson(hits: float, of: float, z: float = 1.959964) -> tuple[float, float]:
    """The interval of a share, `hits` out of `of`, at 95 % unless `z` says otherwise; (0, 1) where nothing was counted.

    *Source*: Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if not of:
        return 0.0, 1.0
    share, spread = hits / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    return (0.0 if hits == 0 else middle - half), (1.0 if hits == of else middle + half)


def newcombe(hits: int, of: int, other_hits: int, other_of: int, z: float = 1.959964) -> tuple[float, float]:
    """The interval of a share less another, of rows that are counted apart; (-1, 1) where one of them counts nothing.

    *Source*: Newcombe, "Interval estimation for the difference between independent proportions", 1998, method 10.
    """
    if not of or not other_of:
        return -1.0, 1.0
    share, other = hits / of, other_hits / other_of
    (low, high), (other_low, other_high) = wilson(hits, of, z), wilson(other_hits, other_of, z)
    difference = share - other
    return (
        difference - math.hypot(share - low, other_high - other),
        difference + math.hypot(high - share, other - other_low),
    )


def ratio_of_shares(hits: int, of: int, other_hits: int, other_of: int, z: float = 1.959964) -> tuple[float, float, float]:
    """A share over another, and the ends of its interval; NaN, 0 and infinity where one of them counts nothing.

    Where one of the shares is nothing, half a row is added to all four counts for the ratio, so that it is finite; the upper
    end is infinite where the other share may be nothing. The lower end is above 1 where `newcombe`'s is above 0, and only there.

    *Source*: Donner and Zou, "Closed-form confidence intervals for functions of the normal mean and standard deviation",
    2012 (MOVER-R), over Wilson's ends; the half row is Haldane's and Anscombe's.
    """
    if not of or not other_of:
        return math.nan, 0.0, math.inf
    half = 0.0 if hits and other_hits else 0.5
    ratio = (hits + half) / (of + half) / ((other_hits + half) / (other_of + half))
    p, q = hits / of, other_hits / other_of
    (p_low, p_high), (q_low, q_high) = wilson(hits, of, z), wilson(other_hits, other_of, z)
    below = math.sqrt(max(0.0, (p * q) ** 2 - p_low * q_high * (2 * p - p_low) * (2 * q - q_high)))
    above = math.sqrt(max(0.0, (p * q) ** 2 - p_high * q_low * (2 * p - p_high) * (2 * q - q_low)))
    low = p_low * (2 * p - p_low) / (p * q + below) if p_low else 0.0
    return ratio, low, (p * q + above) / (q_low * (2 * q - q_low)) if q_low else math.inf


def p_of_shares(hits: int, of: int, other_hits: int, other_of: int) -> float:
    """How often two equal shares would differ so much: the two-sided score test, which is Pearson's without correction."""
    together = of + other_of
    share = (hits + other_hits) / together if together else 0.0
    if not of or not other_of or share in (0.0, 1.0):
        return 1.0
    spread = math.sqrt(share * (1 - share) * (1 / of + 1 / other_of))
    return math.erfc(abs(hits / of - other_hits / other_of) / spread / math.sqrt(2))


def false_discovery(chances: Sequence[float]) -> list[float]:
    """Of each p value the q value: the least false discovery rate at which it counts as a finding.

    *Source*: Benjamini and Hochberg, "Controlling the false discovery rate", 1995; as `statsmodels`' `fdr_bh`.
    """
    order = sorted(range(len(chances)), key=lambda at: chances[at])
    found, least = [1.0] * len(chances), 1.0
    for rank in range(len(chances), 0, -1):
        least = min(least, chances[order[rank - 1]] * len(chances) / rank)
        found[order[rank - 1]] = least
    return found


def z_of(pairs: int) -> float:
    """The deviation for intervals at 95 % that hold for so many comparisons at once (Bonferroni's)."""
    return NormalDist().inv_cdf(1 - 0.025 / max(1, pairs))
