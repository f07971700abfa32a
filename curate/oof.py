"""Out-of-fold class probabilities: every row is judged by models that saw neither it nor a copy of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate import encode, features, folds, interop
from curate.linear import fit_linear

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

TREE_ROWS = 20_000
"""trees over the features of texts are grown for at most so many rows: their cost rises faster than the rows"""
CELLS = 60_000_000
"""where the sets of characters would hold more cells than this together, texts are told apart by their words alone"""
TEMPERATURES = np.exp(np.linspace(np.log(0.2), np.log(5.0), 65))
Fitted = Callable[[Int64s, Int64s], Floats]
"""given the rows to train on and the rows to judge, the probabilities of the latter"""


@dataclass(frozen=True)
class Family:
    """A kind of model: what the report calls it, and how one fold is trained and judged."""

    name: str
    judge: Fitted


@dataclass(frozen=True)
class Judged:
    """What came of it: probabilities (n x classes), the models' names, how many were trained, and the temperature."""

    probabilities: Floats
    models: list[str]
    trainings: int
    temperature: float
    assessable: npt.NDArray[np.bool_]
    """whether the models that judged a row knew its class"""


def out_of_fold(families: list[Family], labels: Int64s, fold: Int64s, classes: int) -> Judged:
    """The mean of all families' out-of-fold probabilities, and the temperature that would calibrate it."""
    total = np.zeros((len(labels), classes))
    trainings, assessable = 0, np.zeros(len(labels), np.bool_)
    with interop.one_thread():
        for number in range(int(fold.max(initial=-1)) + 1):
            held, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            assessable[held] = np.isin(labels[held], labels[rest])
            if len(held) and len(rest):
                for family in families:
                    total[held] += family.judge(rest, held)
                    trainings += 1
    total /= max(len(families), 1)
    return Judged(total, [family.name for family in families], trainings, best_temperature(total, labels), assessable)


def tempered(shares: Floats, temperature: float) -> Floats:
    """Probabilities raised to 1 / temperature and made to sum to 1 again; a row of zeros stays one."""
    raised = np.power(shares, 1 / temperature)
    total = raised.sum(axis=1, keepdims=True)
    tempered: Floats = np.divide(raised, total, out=np.zeros_like(raised), where=total > 0)
    return tempered


def best_temperature(shares: Floats, labels: Int64s) -> float:
    """The temperature from 0.2 to 5 with the least log loss of the labels (Guo et al., 2017), but rows of probability 0."""
    given = shares[np.arange(len(labels)), labels]
    rows = given > 0
    if not rows.any():
        return 1.0
    logs = np.log(np.maximum(shares[rows], 1e-12))
    own = np.log(given[rows])
    losses = [float(np.mean(np.log(np.exp(logs / t).sum(axis=1)) - own / t)) for t in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def text_families(text: pa.LargeStringArray, labels: Int64s, seed: int, fast: bool) -> tuple[list[Family], dict[str, Any]]:
    """Logistic regression over TF-IDF of words and characters, and, for up to `TREE_ROWS` rows, trees over their presence."""
    classes = int(labels.max(initial=-1)) + 1
    kinds: tuple[tuple[str, int], ...] = features.WORDS + features.CHARACTERS
    held = {kind: features.sets(text, *kind) for kind in features.WORDS}
    letters = pc.sum(pc.utf8_length(text)).as_py() or 0
    if letters * len(features.CHARACTERS) <= CELLS:
        held |= {kind: features.sets(text, *kind) for kind in features.CHARACTERS}
    else:
        kinds = features.WORDS
    sparse = [held[kind] for kind in kinds]
    weights = features.weigh(sparse, kinds)
    linear = features.weighted(sparse, weights)

    def judge_linear(rest: Int64s, rows: Int64s) -> Floats:
        return fit_linear(linear[rest], labels[rest], classes, seed).probabilities(linear[rows])

    words = "words" if kinds == features.WORDS else "words and characters"
    families = [Family(f"logistic regression over TF-IDF of {words}", judge_linear)]
    if not fast and len(text) <= TREE_ROWS:
        chosen = [kind for kind in (("words", 1), ("chars", 4)) if kind in kinds]
        present = _present(held, weights, chosen)

        def judge_trees(rest: Int64s, rows: Int64s) -> Floats:
            return interop.probabilities(interop.text_trees(present[rest], labels[rest], seed), present[rows], classes)

        families.append(
            Family(f"{interop.TREES} extremely randomised trees over the presence of words and characters", judge_trees)
        )
    return families, {"weights": weights, "linear": linear}


def _present(held: dict[tuple[str, int], Any], weights: features.Weights, chosen: list[tuple[str, int]]) -> Any:
    parts = [features.without_rare(held[kind], weights.idf[weights.kinds.index(kind)]) for kind in chosen]
    return features.stacked(parts)


def table_families(table: encode.Encoded, labels: Int64s, seed: int, fast: bool) -> list[Family]:
    """Gradient boosting over histograms; and, unless `fast`, logistic regression and extremely randomised trees."""
    classes = int(labels.max(initial=-1)) + 1
    dense = table.dense()

    def boosting(rest: Int64s, rows: Int64s) -> Floats:
        model = interop.table_boosting(table.values[rest], labels[rest], table.categories, seed)
        return interop.probabilities(model, table.values[rows], classes)

    def linear(rest: Int64s, rows: Int64s) -> Floats:
        return interop.probabilities(interop.table_linear(dense[rest], labels[rest]), dense[rows], classes)

    def forest(rest: Int64s, rows: Int64s) -> Floats:
        return interop.probabilities(interop.table_forest(dense[rest], labels[rest], seed), dense[rows], classes)

    one = Family("gradient boosting over histograms", boosting)
    if fast:
        return [one]
    return [one, Family("logistic regression", linear), Family(f"{interop.TREES} extremely randomised trees", forest)]


def vector_families(vectors: npt.NDArray[np.float32], labels: Int64s, fast: bool) -> list[Family]:
    """Logistic regression over standardised vectors; and, unless `fast`, the 15 nearest ones."""
    classes = int(labels.max(initial=-1)) + 1
    wide = vectors.astype(np.float64)

    def linear(rest: Int64s, rows: Int64s) -> Floats:
        return interop.probabilities(interop.table_linear(wide[rest], labels[rest]), wide[rows], classes)

    def near(rest: Int64s, rows: Int64s) -> Floats:
        return interop.probabilities(interop.neighbours(wide[rest], labels[rest]), wide[rows], classes)

    families = [Family("logistic regression over vectors", linear)]
    return families if fast else [*families, Family("15 nearest vectors", near)]


def folds_of(labels: Int64s, groups: Int64s, key: encode.U64s, count: int) -> Int64s:
    """At most `count` folds, fewer where there are fewer groups."""
    return folds.assign(labels, groups, key, max(1, min(count, len(np.unique(groups)))))
