"""Folds in which copies stay together: each class spread evenly, and the same folds for any order of the rows."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate import minhash

Int64s = npt.NDArray[np.int64]
U64s = npt.NDArray[np.uint64]

COPIES_ALIKE = 0.8
"""texts that are about so similar share a fold; what is linked by chance besides costs nothing but a little balance"""
MOST_OF_ALL = 0.1
"""a cluster of a larger share of the rows is no cluster of copies; its rows are taken apart again"""


def copies_of_texts(text: pa.LargeStringArray) -> Int64s:
    """For each text the first row (by place) of the cluster of texts that share a band of minima with it.

    The bands are chosen for 0.8 (see `minhash.choose_bands`), pairs are not verified. Texts without a word are alone.
    """
    from curate.kernels.links import join_rows, roots
    from curate.kernels.signatures import sign

    signed = sign(text, minhash.signing(*minhash.choose_bands(COPIES_ALIKE), SHINGLE, minhash.BY_SCRIPT))
    rows = np.flatnonzero(signed.shingles)
    key = signed.keys[rows].ravel()
    row = np.repeat(rows, signed.keys.shape[1])
    order = np.argsort(key, kind="stable")
    parent = np.arange(len(text))
    join_rows(key[order], row[order].astype(np.uint64), parent)
    return _apart(np.asarray(roots(parent, np.arange(len(text)))))


SHINGLE = 3
"""words in a shingle: fewer than near_dup's five, since labelled texts are short"""


def copies_by_key(key: U64s) -> Int64s:
    """For each row the first row with an equal key."""
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return _apart(first[inverse])


def merged(*groupings: Int64s) -> Int64s:
    """Rows that any grouping puts together."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    rows = len(groupings[0])
    at = np.arange(rows)
    links = sparse.coo_array(
        (np.ones(rows * len(groupings)), (np.tile(at, len(groupings)), np.concatenate(groupings))), shape=(rows, rows)
    )
    return np.asarray(connected_components(links, directed=False)[1], np.int64)


def _apart(group: Int64s) -> Int64s:
    sizes = np.bincount(group, minlength=len(group))
    giant = (sizes[group] > max(MOST_OF_ALL * len(group), 2)) & (len(group) > 50)
    return np.where(giant, np.arange(len(group)), group)


def assign(labels: Int64s, groups: Int64s, key: U64s, folds: int) -> Int64s:
    """The fold of each row, 0 to `folds` - 1: groups whole, each class as even as they allow.

    Groups of several rows come first, the largest first, each into the fold with the fewest rows of its commonest
    class; the other rows fill up. `key` is a number a row that its contents give: it takes the place of chance.
    """
    classes = int(labels.max(initial=-1)) + 1
    filled = np.zeros((folds, classes), np.int64)
    fold = np.full(len(labels), -1, np.int64)
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    together = np.flatnonzero(sizes[group] > 1)
    least = np.full(len(sizes), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(least, group, key)
    order = together[np.lexsort((labels[together], least[group[together]], -sizes[group[together]]))]
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    for start, stop in itertools.pairwise([*starts.tolist(), len(order)]):
        rows = order[start:stop]
        counts = np.bincount(labels[rows], minlength=classes)
        best = np.lexsort((filled.sum(axis=1), filled[:, counts.argmax()]))[0]
        fold[rows] = best
        filled[best] += counts
    for label in range(classes):
        rows = np.flatnonzero((fold < 0) & (labels == label))
        rows = rows[np.argsort(key[rows], kind="stable")]
        fold[rows] = _filling(filled[:, label], len(rows), label)
    return fold


def _filling(filled: Int64s, rows: int, first: int) -> Int64s:
    """The folds of so many more rows: the emptiest filled up, then one after the other from the `first`."""
    folds = len(filled)
    level = filled.copy()
    out = np.empty(rows, np.int64)
    given = 0
    while given < rows and level.max() > level.min():
        out[given] = level.argmin()
        level[out[given]] += 1
        given += 1
    out[given:] = (np.arange(rows - given) + first) % folds
    return out
