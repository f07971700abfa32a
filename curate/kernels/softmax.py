"""Multinomial logistic regression over sparse features, trained in a few passes: the weights of a feature lie side by side."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@nb.njit(cache=True, nogil=True, fastmath=True)
def train(
    starts: Int64s,
    features: Int32s,
    values: Floats,
    labels: Int64s,
    importance: Floats,
    orders: Int64s,
    rate: float,
    weights: Floats,
    squares: Floats,
) -> None:
    """Fit `weights` (features x classes) in place, one pass for each row of `orders` (passes x rows).

    `starts`, `features` and `values` are the rows of a CSR matrix, `importance` a factor for the loss of each class;
    `squares`, of the shape of `weights`, begins small and positive. A step is that of AdaGrad (Duchi, Hazan and Singer,
    2011): features that are rarely seen take longer ones.
    """
    classes = weights.shape[1]
    logits = np.empty(classes, np.float32)
    for turn in range(orders.shape[0]):
        for row in orders[turn]:
            logits[:] = 0
            for at in range(starts[row], starts[row + 1]):
                own, value = weights[features[at]], values[at]
                for one in range(classes):
                    logits[one] += own[one] * value
            top = logits.max()
            total = np.float32(0)
            for one in range(classes):
                logits[one] = np.exp(logits[one] - top)
                total += logits[one]
            label = labels[row]
            factor = importance[label]
            for one in range(classes):
                logits[one] = factor * (logits[one] / total - (1 if one == label else 0))
            for at in range(starts[row], starts[row + 1]):
                own, seen, value = weights[features[at]], squares[features[at]], values[at]
                for one in range(classes):
                    slope = logits[one] * value
                    seen[one] += slope * slope
                    own[one] -= np.float32(rate) * slope / np.sqrt(seen[one])
