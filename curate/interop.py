"""The only place that speaks NumPy to scikit-learn and cleanlab: models with their settings, and confident learning.

Every model gets its own `random_state` from the caller, so no global generator is touched, and runs on one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TREES = 200


def text_trees(features: Any, labels: Int64s, seed: int) -> Any:
    """Extremely randomised trees (Geurts, Ernst and Wehenkel, 2006) over the presence of features, class-balanced."""
    from sklearn.ensemble import ExtraTreesClassifier

    model = ExtraTreesClassifier(TREES, min_samples_leaf=3, class_weight="balanced", random_state=seed, n_jobs=1)
    return model.fit(features, labels)


def table_boosting(table: Any, labels: Int64s, categories: Bools, seed: int) -> Any:
    """Gradient boosting over histograms, with missing values and categories as they are."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.1, categorical_features=categories if categories.any() else None, early_stopping=False,
        random_state=seed, min_samples_leaf=20 if len(labels) >= 400 else 5,
    )  # fmt: skip
    return model.fit(table, labels)


def table_linear(table: Floats, labels: Int64s) -> Any:
    """Logistic regression (C = 1) over standardised columns."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    with _quiet():
        return make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=500)).fit(table, labels)


def table_forest(table: Floats, labels: Int64s, seed: int) -> Any:
    """Extremely randomised trees over numbers."""
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(TREES, min_samples_leaf=2, random_state=seed, n_jobs=1).fit(table, labels)


def neighbours(vectors: Floats, labels: Int64s) -> Any:
    """The 15 nearest vectors, weighted by their distance."""
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(min(15, len(labels)), weights="distance").fit(vectors, labels)


def probabilities(model: Any, features: Any, classes: int) -> Floats:
    """A fitted model's probabilities as n x classes; 0 for classes it has not seen."""
    out = np.zeros((features.shape[0], classes))
    out[:, model.classes_] = model.predict_proba(features)
    return out


def prune_by_noise_rate(labels: Int64s, shares: npt.NDArray[Any]) -> Bools:
    """Confident learning's flags (Northcutt, Jiang and Chuang, 2021): cleanlab's `filter.find_label_issues` at its default."""
    from cleanlab.filter import find_label_issues

    with _quiet():
        return np.asarray(find_label_issues(labels, shares, filter_by="prune_by_noise_rate", n_jobs=1), np.bool_)


@contextmanager
def one_thread() -> Iterator[None]:
    """Models in here run on one thread: those of OpenMP wait for each other spinning, which takes minutes on a busy machine."""
    import sklearn.ensemble  # noqa: F401  # what is loaded later is not limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """No warning of a solver that stops at its limit: a ranking needs no last digit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
