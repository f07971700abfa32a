"""How differently the labels of a group and of all other rows are spread: the pre-training measures of SageMaker Clarify.

In each, *d* is the group and *a* all other rows; a share is one of the label's values. Signs: a positive class imbalance
says that the group is the smaller part, a positive difference that the others get the favourable label more often.

| measure | formula | range |
|---|---|---|
| `ci` class imbalance | (n_a - n_d) / (n_a + n_d) | -1 to 1 |
| `dpl` difference in proportions of labels | q_a - q_d, shares of the favourable label | -1 to 1 |
| `kl` Kullback-Leibler divergence | sum of P_a log(P_a / P_d) | from 0; none where infinite |
| `js` Jensen-Shannon divergence | half of KL(P_a, P) and of KL(P_d, P), P their mean | 0 to log 2 |
| `lp` norm of the difference, p = 2 | root of the sum of (P_a - P_d)² | 0 to root 2 |
| `tvd` total variation distance | half the sum of abs(P_a - P_d) | 0 to 1 |
| `ks` Kolmogorov-Smirnov, as Clarify has it | largest abs(P_a - P_d) | 0 to 1 |
| `cddl` conditional demographic disparity in labels | mean over strata, by their rows, of: the group's part of the unfavourable labels less its part of the favourable | -1 to 1 |

*Source*: Hardt et al., "Amazon SageMaker Clarify: machine learning bias detection and explainability in the cloud", KDD 2021.
Where we differ: every value of the label that occurs on either side counts (Clarify's package keeps those both sides have,
so that the most extreme difference has distance 0); a divergence that is infinite is none, with a reason; a stratum with labels
of one kind only cannot be compared and is left out, and how many rows remain is told.
"""  # noqa: E501

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from curate.hashing import mix64

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
TIMES = 400
"""how often counts are drawn again for an interval"""
DISTANCES = ("js", "lp", "tvd", "ks")


def class_imbalance(group: int, rest: int) -> float | None:
    """Clarify's CI: positive where the group is smaller than the rest."""
    return (rest - group) / (rest + group) if rest + group else None


def distances(group: Counts, rest: Counts, seed: int) -> dict[str, Any]:
    """KL, and the four distances with intervals, from the counts of each label in the group and in all other rows.

    The intervals are the basic bootstrap's at 95 %: the counts are drawn `TIMES` times, by the seed. They end at 0, which
    is where the lower end is if the group is like the rest.
    """
    both = np.stack([rest, group])
    both = both[:, both.any(axis=0)]
    if not both.sum(axis=1).all():
        return {"kl": None, **{key: None for name in DISTANCES for key in (name, f"{name}_low", f"{name}_high")}}
    shares = both / both.sum(axis=1, keepdims=True)
    numbers = redrawn(both, seed)
    totals = numbers.sum(axis=-1, keepdims=True)
    drawn: Floats = np.where(totals > 0, numbers / np.maximum(totals, 1.0), shares)
    found: dict[str, Any] = {"kl": kl(shares[0], shares[1])}
    for name in DISTANCES:
        value = float(_MEASURES[name](shares[0], shares[1]))
        ends = np.quantile(_MEASURES[name](drawn[:, 0], drawn[:, 1]), [0.975, 0.025])
        low, high = (max(0.0, float(2 * value - end)) for end in ends)
        found |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return found


def redrawn(counts: Counts, seed: int, times: int = TIMES) -> Floats:
    """Counts drawn again, each as a Poisson number around itself: shape `times` by that of the counts.

    The draws are the quantiles of mixed integers, so that no library's generator is part of the answer.
    """
    from scipy.stats import poisson

    places = np.arange(times * counts.size, dtype=np.uint64)
    chance = (mix64(places, seed) >> np.uint64(11)).astype(np.float64) / 2.0**53 + 2.0**-54
    drawn = poisson.ppf(chance.reshape(times, *counts.shape), np.maximum(counts, 1e-300))
    return np.asarray(np.where(counts > 0, drawn, 0.0), np.float64)


def kl(one: Floats, other: Floats) -> float | None:
    """Kullback-Leibler divergence in nats; None where it is infinite: `other` never has what `one` has."""
    there = one > 0
    if np.any(other[there] == 0):
        return None
    return float(np.sum(one[there] * np.log(one[there] / other[there])))


def js(one: Floats, other: Floats) -> Floats:
    """Jensen-Shannon divergence in nats, along the last axis."""
    mean = (one + other) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(side > 0, side * np.log(side / mean), 0.0).sum(axis=-1) for side in (one, other)]
    return np.asarray((parts[0] + parts[1]) / 2)


def lp(one: Floats, other: Floats) -> Floats:
    """Euclidean norm of the difference, along the last axis."""
    return np.asarray(np.sqrt(((one - other) ** 2).sum(axis=-1)))


def tvd(one: Floats, other: Floats) -> Floats:
    """Total variation distance, along the last axis."""
    return np.asarray(np.abs(one - other).sum(axis=-1) / 2)


def ks(one: Floats, other: Floats) -> Floats:
    """Largest difference of a share, along the last axis."""
    return np.asarray(np.abs(one - other).max(axis=-1))


_MEASURES = {"js": js, "lp": lp, "tvd": tvd, "ks": ks}


def cddl(inside: npt.NDArray[np.bool_], favourable: npt.NDArray[np.bool_], strata: Counts) -> tuple[float | None, float]:
    """Conditional demographic disparity in labels, and the share of rows in strata that have labels of both kinds."""
    rows = np.bincount(strata).astype(np.float64)
    good = np.bincount(strata, weights=favourable)
    own = np.bincount(strata, weights=inside)
    own_good = np.bincount(strata, weights=inside & favourable)
    usable = (good > 0) & (good < rows)
    if not usable.any():
        return None, 0.0
    weight, good, own, own_good = rows[usable], good[usable], own[usable], own_good[usable]
    disparity = (own - own_good) / (weight - good) - own_good / good
    return float((disparity * weight).sum() / weight.sum()), float(weight.sum() / len(strata))
