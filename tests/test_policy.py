"""Rules reject exactly what their words say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.errors import RequestError
from curate.policy import RULES, Policy, WorstFraction, as_floats, decide, finite_or_none, make_rule

NAN, INF = math.nan, math.inf
CELLS = [NAN, -INF, -1.0, 0.0, 0.5, 0.5, 1.0, INF]
FLOATS = st.lists(st.one_of(st.just(NAN), st.floats(allow_nan=False), st.sampled_from([0.0, 0.5, 1.0])), max_size=50)


def fired(rule: dict[str, Any], cells: list[float], on_missing: str = "keep") -> list[bool]:
    made = make_rule(rule)
    values = np.array(cells, np.float64)
    limit = made.limit(values)
    policy = Policy((made,), on_missing)  # type: ignore[arg-type]
    return (decide(policy, {made.column: values}, (limit,), len(cells)).rule >= 0).tolist()


@pytest.mark.parametrize(
    ("rule", "rejected"),
    [
        ({"above": 0.5, "of": "x"}, [1.0, INF]),
        ({"at_least": 0.5, "of": "x"}, [0.5, 0.5, 1.0, INF]),
        ({"below": 0.5, "of": "x"}, [-INF, -1.0, 0.0]),
        ({"is_true": "x"}, [1.0]),
        ({"worst_fraction": 0.25, "of": "x"}, [1.0, INF]),
        ({"worst_fraction": 0.375, "of": "x"}, [1.0, INF]),
        ({"worst_fraction": 0.49, "of": "x"}, [1.0, INF]),
        ({"worst_fraction": 0.5, "of": "x"}, [0.5, 0.5, 1.0, INF]),
    ],
)
def test_a_rule_rejects_what_its_word_says_and_never_a_missing_cell(rule: dict[str, Any], rejected: list[float]) -> None:
    assert [cell for cell, hit in zip(CELLS, fired(rule, CELLS), strict=True) if hit] == rejected


@pytest.mark.parametrize("word", [rule.word for rule in RULES])
def test_a_missing_cell_is_kept_unless_the_policy_says_otherwise(word: str) -> None:
    rule = {"is_true": "x"} if word == "is_true" else {word: 0.5, "of": "x"}

    assert fired(rule, [NAN, NAN]) == [False, False]
    assert fired(rule, [NAN, NAN], "reject") == [True, True]


@given(FLOATS, st.floats(0.001, 0.999))
def test_worst_fraction_never_rejects_more_than_its_share_of_the_rows_asked(cells: list[float], share: float) -> None:
    hits = fired({"worst_fraction": share, "of": "x"}, cells)

    kept = [cell for cell, hit in zip(cells, hits, strict=True) if not hit and not math.isnan(cell)]
    gone = [cell for cell, hit in zip(cells, hits, strict=True) if hit]
    assert len(gone) <= share * len(cells)
    assert not any(math.isnan(cell) for cell in gone)
    assert not kept or not gone or max(kept) < min(gone)


@given(st.lists(st.integers(0, 1000), unique=True, max_size=60), st.floats(0.001, 0.999))
def test_worst_fraction_uses_all_of_its_share_where_no_values_are_equal(cells: list[int], share: float) -> None:
    assert sum(fired({"worst_fraction": share, "of": "x"}, [float(cell) for cell in cells])) == int(share * len(cells))


def test_ties_at_the_border_are_kept() -> None:
    assert fired({"worst_fraction": 0.4, "of": "x"}, [1.0, 1.0, 1.0, 0.0, 2.0]) == [False, False, False, False, True]
    assert fired({"worst_fraction": 0.9, "of": "x"}, [3.0] * 10) == [False] * 10


@pytest.mark.parametrize("cells", [[], [NAN], [NAN, NAN, NAN]])
def test_worst_fraction_of_no_values_rejects_none_and_has_no_limit_to_print(cells: list[float]) -> None:
    rule = WorstFraction(worst_fraction=0.9, of="x")

    assert not any(fired({"worst_fraction": 0.9, "of": "x"}, cells))
    assert finite_or_none(rule.limit(np.array(cells, np.float64))) is None


def test_the_limit_of_a_share_that_all_values_fit_into_is_a_number() -> None:
    limit = WorstFraction(worst_fraction=0.9, of="x").limit(np.array([NAN, NAN, NAN, 2.0]))

    assert finite_or_none(limit) == math.nextafter(2.0, -INF)


@given(FLOATS, st.tuples(st.floats(-2, 2), st.floats(-2, 2)), st.sampled_from(["above", "at_least"]))
def test_a_lower_limit_rejects_at_least_the_same_rows(cells: list[float], limits: tuple[float, float], word: str) -> None:
    loose, tight = (fired({word: limit, "of": "x"}, cells) for limit in (max(limits), min(limits)))

    assert all(tight[at] for at, hit in enumerate(loose) if hit)


def test_the_first_rule_that_fires_is_the_reason() -> None:
    policy = Policy((make_rule({"above": 5, "of": "x"}), make_rule({"below": 9, "of": "y"})))
    columns = {"x": np.array([9.0, 1.0, 9.0, NAN]), "y": np.array([1.0, 1.0, 20.0, NAN])}

    made = decide(policy, columns, (5.0, 9.0), 4)

    assert made.rule.tolist() == [0, 1, 0, -1]
    assert made.value.tolist()[:3] == [9.0, 1.0, 9.0]
    assert made.limit.tolist()[:3] == [5.0, 9.0, 5.0]
    assert np.isnan(made.value[3])


def test_a_missing_cell_is_a_reason_of_its_own() -> None:
    policy = Policy((make_rule({"above": 5, "of": "x"}), make_rule({"below": 9, "of": "y"})), "reject")
    columns = {"x": np.array([9.0, NAN, 1.0]), "y": np.array([NAN, 1.0, NAN])}

    made = decide(policy, columns, (5.0, 9.0), 3)

    assert made.rule.tolist() == [0, 0, 1]
    assert made.by_missing.tolist() == [False, True, True]


def test_no_rules_reject_nothing() -> None:
    made = decide(Policy(), {}, (), 3)

    assert made.rule.tolist() == [-1, -1, -1]


def test_cells_become_floats_whatever_they_are() -> None:
    assert as_floats(pa.array([True, False, None])).tolist()[:2] == [1.0, 0.0]
    assert as_floats(pa.chunked_array([pa.array([1.5]), pa.array([None], pa.float64())])).tolist()[0] == 1.5
    assert np.isnan(as_floats(pa.array([None], pa.float64())))[0]
    assert as_floats(pa.array([], pa.bool_())).tolist() == []


@pytest.mark.parametrize(
    ("written", "match"),
    [
        ({"abvoe": 0.5, "of": "x"}, "above"),
        ({"above": 0.5, "below": 0.1, "of": "x"}, "exactly one"),
        ({"above": 0.5}, "of"),
        ({"of": "x"}, "exactly one"),
        ({"above": "much", "of": "x"}, "above"),
        ({"above": INF, "of": "x"}, "finite"),
        ({"at_least": NAN, "of": "x"}, "finite"),
        ({"worst_fraction": 0, "of": "x"}, "greater than 0"),
        ({"worst_fraction": 1, "of": "x"}, "less than 1"),
        ({"worst_fraction": 5, "of": "x"}, "less than 1"),
        ({"above": 1, "of": "x", "on": "y"}, "on"),
        ([], "mapping"),
        ("above", "mapping"),
    ],
)
def test_a_rule_that_is_no_rule_is_refused_with_what_was_expected(written: Any, match: str) -> None:
    with pytest.raises(RequestError, match=match) as caught:
        make_rule(written, "stage 1")

    assert caught.value.place == "stage 1"
