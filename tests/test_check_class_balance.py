from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.check import make_check
from curate.checks.class_balance import ClassBalance
from curate.dataset import Roles, Rows
from curate.errors import RequestError
from curate.intervals import wilson
from curate.testing import run_check

ROLES = Roles(label="label")


def evidence(labels: pa.Array, **parameters: Any) -> dict[str, Any]:
    check = make_check("class_balance", parameters)
    assert isinstance(check, ClassBalance)
    rows = Rows(pa.table({"label": labels}), np.arange(len(labels), dtype=np.uint64), ROLES)
    return dict(check.evidence(check.fit(rows)))


def test_the_balance_is_counted_by_class():
    told = evidence(pa.array(["a"] * 60 + ["b"] * 30 + ["c"] * 10 + [None] * 5))

    balance = told["balance"]
    entropy = -(0.6 * math.log(0.6) + 0.3 * math.log(0.3) + 0.1 * math.log(0.1))
    assert (balance["classes"], balance["rows"], balance["without_label"]) == (3, 100, 5)
    assert (balance["largest"], balance["smallest"], balance["imbalance_ratio"]) == ("a", "c", 6.0)
    assert (balance["entropy"], balance["effective_classes"]) == pytest.approx((entropy, math.exp(entropy)))
    assert [(line["class"], line["rows"]) for line in told["classes"]] == [("a", 60), ("b", 30), ("c", 10)]
    assert (told["classes"][0]["share_low"], told["classes"][0]["share_high"]) == wilson(60, 100)


def test_balanced_weights_are_scikit_learns():
    from sklearn.utils.class_weight import compute_class_weight

    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    expected = compute_class_weight("balanced", classes=np.array(["a", "b", "c"]), y=np.array(labels))

    told = evidence(pa.array(labels))

    assert [line["balanced_weight"] for line in told["classes"]] == pytest.approx(expected.tolist())


@pytest.mark.parametrize(
    "labels",
    [
        pa.array(["no", "yes", "no", None]),
        pa.array([False, True, False, None]),
        pa.array([3, 70, 3, None]),
        pa.array(["no", "yes", "no", None]).dictionary_encode(),
        pa.array([0.0, 1.0, 0.0, float("nan")]),
    ],
)
def test_every_way_of_writing_labels_counts_alike(labels: pa.Array):
    table = pa.table({"label": labels})

    found = run_check(ClassBalance(), table, ROLES).column("class_share").to_pylist()

    assert found == pytest.approx([2 / 3, 1 / 3, 2 / 3, None])


@pytest.mark.parametrize("labels", [pa.array([None, None], pa.string()), pa.array([], pa.string())])
def test_no_label_at_all_is_said(labels: pa.Array):
    assert evidence(labels) == {"not_assessed": "no row has a label"}


def test_one_class_is_a_balance_of_one():
    balance = evidence(pa.array(["a"] * 20))["balance"]

    assert (balance["imbalance_ratio"], balance["entropy"], balance["effective_classes"]) == (1.0, 0.0, 1.0)


def test_a_measured_number_names_no_classes():
    labels = pa.array([at / 7 for at in range(100)])

    found = run_check(ClassBalance(), pa.table({"label": labels}), ROLES)

    assert "names no classes" in evidence(labels)["not_assessed"]
    assert found.column("class_share").null_count == 100


def test_small_classes_are_warned_of_by_name():
    told = evidence(pa.array(["a"] * 60 + ["b"] * 9), least=10)

    assert told["warnings"] == ["1 of 2 classes have fewer than 10 rows, such as b"]
    assert evidence(pa.array(["a"] * 60 + ["b"] * 10), least=10)["warnings"] == []


def test_many_classes_are_listed_from_both_ends():
    told = evidence(pa.array([f"c{at}" for at in range(300) for _ in range(at + 1)]))

    assert (len(told["classes"]), told["classes_left_out"]) == (200, 100)
    assert (told["classes"][0]["class"], told["classes"][-1]["class"]) == ("c299", "c0")


@pytest.mark.parametrize("roles", [Roles(), Roles(label="many")])
def test_nothing_to_count_is_a_clear_request_error(roles: Roles):
    schema = pa.schema([("x", pa.string()), ("many", pa.list_(pa.string()))])

    with pytest.raises(RequestError, match="`class_balance` looks at the label"):
        ClassBalance().needs(roles, schema)


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=60))
def test_the_effective_number_lies_between_one_and_the_classes(labels: list[str]):
    balance = evidence(pa.array(labels))["balance"]

    assert 1 - 1e-9 <= balance["effective_classes"] <= balance["classes"] + 1e-9
    assert balance["imbalance_ratio"] >= 1
