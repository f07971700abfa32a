"""The ledger refuses to hold a row twice, never, or unexplained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.errors import InvariantError
from curate.hashing import identity_sum
from curate.policy import Decision
from curate.verdicts import ALIVE, QUARANTINED, SCHEMA, Fates, Names, Verdicts

NAMES = Names(("first", "second"), ("check_a", "check_b"), ((("a", "above"),), (("b", "below"), ("c", "is_true"))))
NOBODY = np.empty(0, np.int64)


def fates(rows: int = 6) -> Fates:
    """Rows 1 and 4 rejected (by `second`, its second rule, with row 0 as witness), row 3 unreadable."""
    made = Fates.fresh(rows, np.array([3]))
    rule = np.array([1, -1, 1], np.int16)
    numbers = np.array([0.9, np.nan, np.nan])
    missing = np.array([False, False, True])
    made.reject(1, np.array([1, 2, 4]), Decision(rule, numbers, np.array([0.8, np.nan, 0.8]), missing), np.array([10, -1, -1]))
    return made


def ids(rows: int = 6, first: int = 10) -> Any:
    return np.arange(first, first + rows, dtype=np.uint64)


def ledger(made: Fates, first: int = 10) -> Verdicts:
    return Verdicts(ids(len(made.stage), first), made, first, NAMES)


def test_a_whole_ledger_counts_and_names_its_rows() -> None:
    made = ledger(fates())

    assert made.counts() == {"kept": 3, "rejected": 2, "quarantined": 1}
    assert made.identities() == {
        "kept": identity_sum(np.array([10, 12, 15], np.uint64)),
        "rejected": identity_sum(np.array([11, 14], np.uint64)),
        "quarantined": identity_sum(np.array([13], np.uint64)),
    }
    assert sum(made.identities().values()) % 2**64 == identity_sum(ids())


def test_the_table_has_one_row_a_row_in_the_promised_columns() -> None:
    text = pa.nulls(6, pa.string())

    table = ledger(fates()).to_table("a.parquet", 100, text, (text, text))

    assert table.schema == SCHEMA
    assert table.column("verdict").to_pylist() == ["kept", "rejected", "kept", "quarantined", "rejected", "kept"]
    assert table.slice(1, 1).to_pylist() == [
        {
            "row_id": 11, "source_file": "a.parquet", "source_row": 101, "id": None, "verdict": "rejected", "stage": "second",
            "check": "check_b", "column": "c", "rule": "is_true", "value": 0.9, "limit": 0.8, "witness_row": 10,
            "witness_id": None, "witness_source": None,
        }
    ]  # fmt: skip
    assert (
        table.slice(4, 1).to_pylist()[0] | {"rule": "on_missing", "value": None, "limit": 0.8} == table.slice(4, 1).to_pylist()[0]
    )
    kept = table.filter(pa.array([True, False, True, True, False, True]))
    for name in ("stage", "check", "column", "rule", "value", "limit", "witness_row"):
        assert kept.column(name).null_count == 4


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(ids(5), id="a row is left out at the end"),
        pytest.param(ids(7), id="a row too many"),
        pytest.param(ids(first=11), id="the part begins late"),
        pytest.param(np.array([10, 11, 11, 13, 14, 15], np.uint64), id="a row twice"),
        pytest.param(np.array([10, 11, 12, 13, 15, 14], np.uint64), id="out of order"),
        pytest.param(np.array([10, 11, 12, 14, 15, 16], np.uint64), id="a gap"),
    ],
)
def test_a_gap_or_an_overlap_is_refused(wrong: Any) -> None:
    with pytest.raises(InvariantError, match="gap or an overlap"):
        Verdicts(wrong, fates(), 10, NAMES)


def test_a_rejection_without_a_reason_is_refused() -> None:
    made = fates()
    made.stage[0] = 1

    with pytest.raises(InvariantError, match="rejection without a reason"):
        ledger(made)


@pytest.mark.parametrize("at", [0, 3])
def test_a_reason_without_a_rejection_is_refused(at: int) -> None:
    made = fates()
    made.rule[at] = 0

    with pytest.raises(InvariantError, match="reason without a rejection"):
        ledger(made)


@pytest.mark.parametrize("stage", [2, -3])
def test_a_stage_that_the_pipeline_does_not_have_is_refused(stage: int) -> None:
    made = fates()
    made.stage[1] = stage

    with pytest.raises(InvariantError, match="stage that the pipeline does not have"):
        ledger(made)


def test_a_row_as_its_own_witness_is_refused() -> None:
    made = fates()
    made.witness[1] = 11

    with pytest.raises(InvariantError, match="own witness"):
        ledger(made)


def test_the_first_reason_stays() -> None:
    made = Fates.fresh(2, NOBODY)
    for stage, value in ((0, 1.0), (1, 2.0)):
        one = Decision(np.array([0, 0], np.int16), np.full(2, value), np.full(2, 0.5), np.zeros(2, bool))
        made.reject(stage, np.array([0, 1]), one, np.array([7, -1]))

    assert made.stage.tolist() == [0, 0]
    assert made.value.tolist() == [1.0, 1.0]
    assert made.witness.tolist() == [7, -1]


def test_a_row_that_could_not_be_read_is_never_rejected() -> None:
    made = Fates.fresh(2, np.array([1]))
    made.reject(0, np.array([1]), Decision(np.zeros(1, np.int16), np.ones(1), np.ones(1), np.zeros(1, bool)), np.array([-1]))

    assert made.stage.tolist() == [ALIVE, QUARANTINED]
    assert made.alive.tolist() == [True, False]
    assert made.readable.tolist() == [True, False]


@given(st.lists(st.sampled_from([-2, -1, 0, 1]), max_size=30))
def test_fates_come_back_from_the_store_as_they_were(stages: list[int]) -> None:
    made = Fates.fresh(len(stages), NOBODY)
    made.stage[:] = stages
    made.rule[made.stage >= 0] = 0

    again = Fates.from_table(made.to_table())

    for name, array in vars(made).items():
        other = getattr(again, name)
        assert other.dtype == array.dtype
        assert np.array_equal(other, array, equal_nan=other.dtype.kind == "f")
    assert ledger(again).counts() == ledger(made).counts()


@given(st.sets(st.integers(0, 2**64 - 1)), st.randoms())
def test_the_fingerprints_of_disjoint_sets_add_up_and_know_no_order(rows: set[int], random: Any) -> None:
    order = list(rows)
    random.shuffle(order)
    cut = len(order) // 2
    one, two = (np.array(part, np.uint64) for part in (order[:cut], order[cut:]))

    assert (identity_sum(one) + identity_sum(two)) % 2**64 == identity_sum(np.array(sorted(rows), np.uint64))


def test_a_swapped_row_changes_the_fingerprint_that_equal_counts_hide() -> None:
    assert identity_sum(np.array([1, 2, 3], np.uint64)) != identity_sum(np.array([1, 2, 4], np.uint64))
    assert identity_sum(np.array([0, 3], np.uint64)) != identity_sum(np.array([1, 2], np.uint64))
