"""Which labels are wrong, how many, and how sure that is: from labels and out-of-fold probabilities.

Two regimes (the report names the one it found):

* `random`: the model disagrees with labels and is sure of it, as with random flips. Confident learning counts and
  picks such rows well.
* `structured`: it disagrees and is unsure, as with labels that people got wrong for a reason. Confident learning finds
  next to nothing there; a label that the model gives less than half the probability is the better sign, and the mean
  of what models deny the given labels the better count (measured on eight sets with human or rule-made noise).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curate import interop
from curate.intervals import wilson
from curate.oof import best_temperature, tempered

Floats = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SURE = 0.5
"""where confident learning picks at least so much of what the model disagrees with, the regime is `random`"""
DOUBT = 0.5
"""in the regime `structured` a label is likely wrong from this suspicion on"""
CALIBRATING = 20_000
LEAST_BUDGET = 0.05
"""a class or group may always lose so much, where the user says nothing else"""
FEWEST = 100
"""below so many rows, or below 10 likely errors, no noise rate is called reliable"""


@dataclass(frozen=True)
class Assessed:
    """What labels and probabilities say together.

    `suspicion` (n, 0 to 1) is 1 - the probability of the given label; `confident` and `disagree` are the flags of the two
    rules; `likely` those of the regime's rule, before any budget; `rate` the estimated share of wrong labels, with
    an interval, which is None where the rate is not reliable.
    """

    suspicion: npt.NDArray[np.float64]
    suggested: Int64s
    confident: Bools
    disagree: Bools
    likely: Bools
    regime: str
    rate: float
    low: float | None
    high: float | None


def assess(labels: Int64s, shares: Floats) -> Assessed:
    """Judge n labels by n x k probabilities; rows of the wrong length or with gaps must be left out before.

    Cost: cleanlab's own, and a pass over the probabilities.
    """
    given, likeliest = given_and_likeliest(labels, shares)
    disagree = likeliest != labels
    some = disagree.any() and labels.min() < labels.max()
    confident = interop.prune_by_noise_rate(labels, shares) if some else np.zeros(len(labels), np.bool_)
    is_random = confident.sum() >= SURE * disagree.sum()
    suspicion = np.clip(1 - given, 0, 1)
    likely = confident if is_random else suspicion >= DOUBT
    count, low, high = int(confident.sum()), None, None
    rate = count / max(len(labels), 1) if is_random else float(suspicion.mean()) if len(labels) else 0.0
    if is_random and len(labels) >= FEWEST and count >= 10:
        low, high = wilson(count, len(labels))
    regime = "random" if is_random else "structured"
    return Assessed(suspicion, suggested(likeliest, likely, labels, shares), confident, disagree, likely, regime, rate, low, high)


def given_and_likeliest(labels: Int64s, shares: Floats) -> tuple[npt.NDArray[np.float64], Int64s]:
    """The probability of each row's label, and its likeliest class."""
    return shares[np.arange(len(labels)), labels].astype(np.float64), shares.argmax(axis=1)


def suggested(likeliest: Int64s, likely: Bools, labels: Int64s, shares: Floats) -> Int64s:
    """The likeliest class; of a label that is likely wrong and still the likeliest, the likeliest but it."""
    own = np.flatnonzero(likely & (likeliest == labels))
    others = shares[own]
    others[np.arange(len(own)), labels[own]] = -1
    out = likeliest.copy()
    out[own] = others.argmax(axis=1)
    return out


def within_budget(likely: Bools, suspicion: npt.NDArray[np.float64], member: Int64s, budget: float) -> dict[int, float]:
    """For each class or group with more likely errors than its budget, the suspicion that a row must reach to stay in it.

    `member` gives the class or group of each row (below 0: none). The budget is a share of the members.
    """
    mine = np.flatnonzero(likely & (member >= 0))
    if not len(mine):
        return {}
    most = (budget * np.bincount(member[member >= 0])).astype(np.int64)
    mine = mine[np.lexsort((-suspicion[mine], member[mine]))]
    starts = np.flatnonzero(np.diff(member[mine], prepend=-1))
    rank = np.arange(len(mine)) - np.repeat(starts, np.diff(starts, append=len(mine)))
    first_beyond = mine[rank == most[member[mine]]]
    return {int(member[row]): float(np.nextafter(suspicion[row], 2.0)) for row in first_beyond}


def default_budget(share: float) -> float:
    """Twice the share of all rows, and at least 5 %."""
    return max(2 * share, LEAST_BUDGET)


def confusion(labels: Int64s, suggested: Int64s, likely: Bools, classes: int) -> Int64s:
    """Counts of given x suggested labels among the likely errors."""
    cells = np.bincount(labels[likely] * classes + suggested[likely], minlength=classes * classes)
    return cells.reshape(classes, classes)


def precision(labels: Int64s, shares: Floats, flagged: Bools) -> float:
    """The share of flagged labels that are wrong, as far as the models know: what they deny them after one temperature.

    NaN where nothing is flagged. The temperature is that of at most `CALIBRATING` rows.
    """
    if not flagged.any():
        return float("nan")
    some = slice(None, None, len(labels) // CALIBRATING + 1)
    temperature = best_temperature(np.asarray(shares[some], np.float64), labels[some])
    calibrated = tempered(np.asarray(shares[flagged], np.float64), temperature)
    return float(1 - calibrated[np.arange(len(calibrated)), labels[flagged]].mean())


def looks_in_sample(labels: Int64s, shares: Floats) -> bool:
    """Whether the probabilities know the labels too well to be out of sample: no label in 2,000 is disagreed with."""
    return len(labels) >= 200 and float((shares.argmax(axis=1) != labels).mean()) < 0.0005
