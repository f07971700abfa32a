"""A linear model of texts: multinomial logistic regression over sparse features, by a few passes of AdaGrad.

Few passes and short steps instead of a penalty: on five sets of texts with known label errors it finds more of them than
scikit-learn's logistic regression (C = 3), and on 20,000 texts of 20 classes it takes a thirtieth of the time of its
stochastic gradient descent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curate.hashing import mix64

Floats = npt.NDArray[np.float32]
Int64s = npt.NDArray[np.int64]

PASSES = 5
STEP = 0.05
FIRST_SQUARE = 0.1
"""the sum of squared slopes that AdaGrad begins with, which keeps the first steps short"""


@dataclass(frozen=True)
class Linear:
    """The weights of features (features x classes); a class that was not seen has probability 0."""

    weights: Floats
    seen: npt.NDArray[np.bool_]

    def probabilities(self, features: Any) -> npt.NDArray[np.float64]:
        """Rows x classes."""
        logits = np.where(self.seen, np.asarray(features @ self.weights, np.float64), -np.inf)
        logits -= logits.max(axis=1, keepdims=True)
        shares = np.exp(logits)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fit_linear(features: Any, labels: Int64s, classes: int, seed: int) -> Linear:
    """Class-balanced, in `PASSES` passes over the rows of a CSR matrix; the order of rows in a pass is drawn by the seed.

    Cost: two multiplications a filled cell, class and pass, and 8 bytes a feature and class.
    """
    from curate.kernels.softmax import train

    rows = np.arange(len(labels), dtype=np.uint64)
    orders = np.array([np.argsort(mix64(rows, seed + turn), kind="stable") for turn in range(PASSES)])
    counts = np.bincount(labels, minlength=classes)
    importance = (len(labels) / (np.count_nonzero(counts) * np.maximum(counts, 1))).astype(np.float32)
    weights = np.zeros((features.shape[1], classes), np.float32)
    squares = np.full_like(weights, FIRST_SQUARE)
    starts, places = features.indptr.astype(np.int64), features.indices.astype(np.int32)
    train(starts, places, features.data.astype(np.float32), labels, importance, orders, STEP, weights, squares)
    return Linear(weights, counts > 0)
