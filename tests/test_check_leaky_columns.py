"""`leaky_columns`: columns that tell the label are told apart from good features, ids and times; labels named in text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate import api
from curate.check import make_check
from curate.dataset import Roles, Rows
from curate.errors import RequestError
from curate.testing import PROMISES, run_check, sample
from tests.benchmark_items import Words
from tests.runs import document, pipeline, scores

ROLES = Roles(id="id", label="label")


def facts(table: pa.Table, roles: Roles = ROLES, **parameters: Any) -> dict[str, Any]:
    check: Any = make_check("leaky_columns", parameters)
    shown = table.select(list(check.needs(roles, table.schema)))
    return dict(check.evidence(check.fit(Rows(shown, np.arange(len(table), dtype=np.uint64), roles, 0))))


def by_column(told: dict[str, Any]) -> dict[str, Any]:
    return {line["column"]: line for line in told["columns"]}


@pytest.fixture(scope="module")
def planted() -> pa.Table:
    """2,000 rows of two classes, with columns that leak, columns that help, and columns that say nothing."""
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 2000)
    return pa.table(
        {
            "id": [f"r{at:05}" for at in range(2000)],
            "label": np.where(label == 1, "paid", "due").tolist(),
            "paid_on": pa.array([f"2024-01-{1 + at % 28:02}" if one else None for at, one in enumerate(label)]),
            "threshold": 5 * label + rng.uniform(0, 4.9, 2000),
            "middle": np.where(label == 1, rng.uniform(0.4, 0.6, 2000), rng.choice([0.1, 0.9], 2000)),
            "helps": label + rng.normal(0, 1, 2000),
            "noise": rng.normal(0, 1, 2000),
            "region": rng.choice(["n", "e", "s", "w"], 2000),
            "counter": np.arange(2000) * 3,
            "day": pa.array(np.arange(2000, dtype=np.int32), pa.date32()),
        }
    )


def test_columns_that_tell_the_label_are_named_and_good_features_are_not(planted: pa.Table):
    found = by_column(facts(planted))

    assert {name: line["verdict"] for name, line in found.items()} == {
        "id": "like an id",
        "paid_on": "tells the label",
        "threshold": "tells the label",
        "middle": "tells the label",
        "helps": "-",
        "noise": "-",
        "region": "-",
        "counter": "like an id",
        "day": "like a time",
    }
    assert found["helps"]["tells_low"] < found["helps"]["tells"] < found["helps"]["tells_high"]
    assert found["counter"]["like_time"]
    assert found["threshold"]["information"] == pytest.approx(1, abs=0.05)


def test_columns_that_say_nothing_save_no_guesses(planted: pa.Table):
    found = by_column(facts(planted))

    for name in ("noise", "region"):
        assert abs(found[name]["tells"]) < 0.1
        assert found[name]["information"] < 0.02
    assert found["noise"]["auroc_low"] <= 0.5 <= found["noise"]["auroc_high"]


def test_the_auroc_of_a_shifted_number_lies_in_its_interval(planted: pa.Table):
    found = by_column(facts(planted))["helps"]

    assert found["auroc_low"] <= 0.7602 <= found["auroc_high"]  # the normal distribution at 1 / sqrt(2)


def test_a_label_of_many_numbers_is_cut(planted: pa.Table):
    target = np.arange(2000) ** 1.1
    table = planted.drop_columns(["label"]).append_column("label", pa.array(target)).append_column("twin", pa.array(-target))

    told = facts(table)

    assert told["label"] == {"rows": 2000, "classes": 5, "cut": True}
    assert by_column(told)["twin"]["verdict"] == "tells the label"
    assert by_column(told)["noise"]["verdict"] == "-"


@pytest.mark.parametrize("encode", [str, lambda one: one == "paid", lambda one: {"paid": 7, "due": -3}[one]])
def test_the_encoding_of_the_label_changes_nothing(planted: pa.Table, encode: Any):
    labels = [encode(one) for one in planted["label"].to_pylist()]
    table = planted.set_column(1, "label", pa.array(labels))

    found, expected = by_column(facts(table)), by_column(facts(planted))

    assert {name: (line["tells"], line["verdict"]) for name, line in found.items()} == {
        name: (line["tells"], line["verdict"]) for name, line in expected.items()
    }


def test_one_class_or_few_rows_are_said():
    few = pa.table({"id": list("abc"), "label": ["x", "y", None], "c": [1, 2, 3]})
    one = pa.table({"id": [str(at) for at in range(200)], "label": ["x"] * 200, "c": range(200)})

    assert facts(few)["warnings"] == ["nothing was looked for: fewer than 100 rows have a label"]
    assert facts(one)["warnings"] == ["nothing was looked for: the label has one class"]


def named_texts() -> pa.Table:
    words = Words(11)
    labels = ["late_delivery" if at % 3 == 0 else "refund" if at % 3 == 1 else "no" for at in range(600)]
    texts = [words.sentence(12) + (" Late delivery!" if at % 3 == 0 and at % 5 else "") for at in range(600)]
    texts = [text + (" zqx" if at % 3 == 1 else "") for at, text in enumerate(texts)]
    return pa.table({"id": [f"r{at}" for at in range(600)], "text": texts, "label": labels})


def test_labels_that_the_text_names_and_words_of_one_class_are_told():
    told = facts(named_texts(), Roles(id="id", text=("text",), label="label"))

    assert [(line["label"], line["share"], line["verdict"]) for line in told["label_in_text"]] == [
        ("late_delivery", 0.8, "named"),
        ("refund", 0.0, "-"),
    ]
    words = {line["word"]: line for line in told["telling_words"]}
    assert set(words) == {"zqx", "late", "delivery"}
    assert words["zqx"]["label"] == "refund"
    assert words["zqx"]["of_label"] == 1.0
    assert told["warnings"] == [
        "the text names the label: `late_delivery` in 80% of its rows",
        "one word tells a class: `zqx` refund, `delivery` late_delivery, `late` late_delivery",
    ]


def test_a_run_flags_the_rows_whose_text_names_their_label(tmp_path: Path):
    pq.write_table(named_texts(), tmp_path / "rows.parquet")
    roles = Roles(id="id", text=("text",), label="label")

    api.run(pipeline("leaky_columns", roles=roles), tmp_path / "rows.parquet", tmp_path / "out")

    found = scores(tmp_path / "out")["leaky_columns.label_in_text"].to_list()
    assert found == [None if at % 3 == 2 else at % 3 == 0 and at % 5 > 0 for at in range(600)]
    assert document(tmp_path / "out")["stages"]["leaky_columns"]["detail"]["label"]["classes"] == 3


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_the_contract_holds_with_few_rows_enough(promise: Any):
    promise(make_check("leaky_columns", {"min_rows": 10}), *sample(120))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b", "[/]", "(x"]), st.floats(), st.none() | st.text(max_size=9)), max_size=60)
)
def test_any_cells_give_finite_facts(rows: list[tuple[str | None, float, str | None]]):
    columns = [[row[at] for row in rows] for at in range(3)]
    table = pa.table(
        {
            "label": pa.array(columns[0], pa.string()),
            "x": pa.array(columns[1], pa.float64()),
            "text": pa.array(columns[2], pa.string()),
        }
    )
    roles = Roles(text=("text",), label="label")

    told = facts(table, roles, min_rows=10)
    found = run_check(make_check("leaky_columns", {"min_rows": 10}), table, roles)

    assert len(found) == len(rows)
    for line in told.get("columns", ()):
        assert all(np.isfinite(value) for value in line.values() if isinstance(value, float))


def test_without_a_label_the_request_is_refused():
    with pytest.raises(RequestError, match="role `label`"):
        make_check("leaky_columns", {}).needs(Roles(), pa.schema([("x", pa.int64())]))
