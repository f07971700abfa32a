"""Hashed features of texts: which words, pairs of words and character n-grams a text holds, weighted by how rare they are.

The sets come from the kernels that near duplicates are found with, so case, spelling variants and scripts are treated
alike everywhere, at hundreds of megabytes a second; a vocabulary is never built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate import minhash

if TYPE_CHECKING:
    from scipy import sparse

U64s = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]

WORDS = (("words", 1), ("words", 2))
CHARACTERS = (("chars", 3), ("chars", 4), ("chars", 5))
BITS = 20
"""features fall into 2^20 slots a kind; with 100,000 distinct ones, one in twenty shares its slot"""


@dataclass(frozen=True)
class Weights:
    """What fitted texts say of each slot of each kind: the weight of a feature there, 0 for one that was too rare."""

    kinds: tuple[tuple[str, int], ...]
    idf: tuple[Floats, ...]

    def to_state(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays; slots of no weight are left out."""
        state: dict[str, npt.NDArray[Any]] = {"kinds": np.array([f"{kind} {size}" for kind, size in self.kinds], dtype=np.str_)}
        for at, weights in enumerate(self.idf):
            slots = np.flatnonzero(weights)
            state |= {f"slots{at}": slots.astype(np.int32), f"idf{at}": weights[slots]}
        return state

    @staticmethod
    def from_state(state: Any) -> Weights:
        """The weights that `to_state` wrote."""
        kinds = [str(word).split() for word in state["kinds"]]
        idf = []
        for at in range(len(kinds)):
            weights = np.zeros(1 << BITS, np.float32)
            weights[state[f"slots{at}"]] = state[f"idf{at}"]
            idf.append(weights)
        return Weights(tuple((kind, int(size)) for kind, size in kinds), tuple(idf))


def sets(text: pa.LargeStringArray, kind: str, size: int) -> sparse.csr_array:
    """Which slots each text has: a sparse matrix of ones, texts x 2^20, for runs of `size` words or characters."""
    from scipy import sparse

    from curate.kernels.signatures import shingle_sets

    mode = minhash.WHOLE_WORDS if kind == "words" else minhash.CHARACTERS
    bounds, values = shingle_sets(text, minhash.signing(1, 1, size, mode))
    mixed = values * np.uint64(0x9E3779B97F4A7C15) + np.uint64(size * 7919)
    slots = (mixed >> np.uint64(64 - BITS)).astype(np.int32)
    made = sparse.csr_array((np.ones(len(slots), np.float32), slots, narrow(bounds)), shape=(len(text), 1 << BITS))
    made.sum_duplicates()
    made.data[:] = 1
    return made


def narrow(indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int32] | npt.NDArray[np.int64]:
    """32-bit places where they suffice, since scikit-learn's trees take no others."""
    return indices.astype(np.int32) if indices[-1] < 2**31 else indices


def stacked(parts: list[sparse.csr_array]) -> sparse.csr_array:
    """Sparse matrices side by side."""
    from scipy import sparse

    made = sparse.csr_array(sparse.hstack(parts, format="csr", dtype=np.float32))
    made.indptr, made.indices = narrow(made.indptr), made.indices.astype(np.int32)
    return made


def weigh(matrices: list[sparse.csr_array], kinds: tuple[tuple[str, int], ...], least: int = 2) -> Weights:
    """Inverse document frequencies (scikit-learn's smoothed ones); features of fewer than `least` texts weigh nothing."""
    idf = []
    for matrix in matrices:
        frequency = np.bincount(matrix.indices, minlength=1 << BITS)
        weights = (np.log((1 + matrix.shape[0]) / (1 + frequency)) + 1).astype(np.float32)
        idf.append(np.where(frequency >= least, weights, np.float32(0)))
    return Weights(kinds, tuple(idf))


def weighted(matrices: list[sparse.csr_array], weights: Weights) -> sparse.csr_array:
    """TF-IDF with every text of length 1 in each kind, the slots of no weight left out: texts x features."""
    parts = []
    for matrix, idf in zip(matrices, weights.idf, strict=True):
        kept = matrix[:, np.flatnonzero(idf)]
        kept = kept.multiply(idf[idf > 0]).tocsr()
        length = np.sqrt(np.asarray(kept.multiply(kept).sum(axis=1)).ravel())
        length[length == 0] = 1
        kept.data /= np.repeat(length, np.diff(kept.indptr)).astype(np.float32)
        parts.append(kept)
    return stacked(parts)


def without_rare(matrix: sparse.csr_array, idf: Floats) -> sparse.csr_array:
    """The ones of the slots that have a weight."""
    return matrix[:, np.flatnonzero(idf)]
