"""Folds: groups whole, classes even, and nothing that depends on the order of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from curate.folds import assign, copies_by_key, copies_of_texts, merged
from curate.hashing import mix64

CASES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8)), min_size=1, max_size=60)


@given(CASES, st.integers(2, 6))
def test_groups_stay_whole_and_every_row_has_a_fold(cases: list[tuple[int, int]], folds: int) -> None:
    labels, groups = np.array(cases, np.int64).T
    key = mix64(np.arange(len(labels), dtype=np.uint64))

    fold = assign(labels, groups, key, folds)

    assert ((fold >= 0) & (fold < folds)).all()
    assert all(len(set(fold[groups == group].tolist())) == 1 for group in set(groups.tolist()))


@given(CASES, st.integers(2, 6))
def test_the_order_of_rows_changes_no_fold(cases: list[tuple[int, int]], folds: int) -> None:
    labels, groups = np.array(cases, np.int64).T
    key = mix64(np.arange(len(labels), dtype=np.uint64))
    order = np.random.default_rng(len(cases)).permutation(len(labels))

    fold = assign(labels, groups, key, folds)
    again = assign(labels[order], groups[order], key[order], folds)

    assert again.tolist() == fold[order].tolist()


def test_single_rows_spread_each_class_evenly() -> None:
    labels = np.repeat([0, 1, 2], [50, 23, 4])

    fold = assign(labels, np.arange(77), mix64(np.arange(77, dtype=np.uint64)), 5)

    for label in range(3):
        counts = np.bincount(fold[labels == label], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_near_copies_are_together_and_others_are_not() -> None:
    words = [f"word{at}" for at in range(40)]
    texts = [" ".join(words), " ".join([*words[:39], "other"]), " ".join(words[::-1]), "", None]

    group = copies_of_texts(pa.array(texts, pa.large_string()))

    assert group[0] == group[1]
    assert len(set(group.tolist())) == 4


def test_groupings_are_merged_through_their_links() -> None:
    one, other = copies_by_key(np.array([1, 1, 2, 3], np.uint64)), np.array([0, 1, 1, 3])

    together = merged(one, other)

    assert together[0] == together[1] == together[2] != together[3]
