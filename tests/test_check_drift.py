"""`drift_between_splits`: planted shifts are found, none is seen where there is none, and 1,001 rows are judged as 1,000 are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from curate import api, shifts
from curate.check import make_check
from curate.dataset import Roles, Rows
from curate.errors import RequestError
from tests.benchmark_items import Words
from tests.runs import document, pipeline

ROLES = Roles(id="id", split="split")


def drift(table: pa.Table, roles: Roles = ROLES, order: Any = None, **parameters: Any) -> dict[str, Any]:
    check: Any = make_check("drift_between_splits", parameters)
    shown = table.select(list(check.needs(roles, table.schema)))
    told = check.evidence(check.fit(Rows(shown, np.arange(len(table), dtype=np.uint64), roles, 0)))
    json.dumps(told, allow_nan=False)
    return dict(told)


def verdicts(told: dict[str, Any]) -> dict[str, str]:
    return {line["column"]: line["verdict"] for line in told["drift"]}


def two_splits(rows: int, test: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    side = np.arange(rows) < test
    return pa.table(
        {
            "id": [f"r{at}" for at in range(rows)],
            "split": np.where(side, "test", "train").tolist(),
            "same": rng.normal(size=rows),
            "shifted": rng.normal(size=rows) + 0.8 * side,
            "wider": rng.normal(size=rows) * (1 + 2 * side),
            "kind": np.where(side & (rng.random(rows) < 0.5), "new", rng.choice(["a", "b", "c"], rows)).tolist(),
            "equal": rng.choice(["a", "b", "c"], rows),
            "holes": pa.array(np.where(side & (rng.random(rows) < 0.4), np.nan, rng.normal(size=rows)), from_pandas=True),
        }
    )


def test_planted_shifts_are_found_in_the_columns_that_have_them():
    found = verdicts(drift(two_splits(20_000, 5_000)))

    assert found == {
        "same": "alike",
        "shifted": "drift",
        "wider": "drift",
        "kind": "drift",
        "equal": "alike",
        "holes is missing": "drift",
        "holes": "alike",
    }


def test_the_verdict_is_the_same_for_1000_and_for_1001_rows():
    for seed in range(20):
        one, two = two_splits(1001, 500, seed).slice(0, 1000), two_splits(1001, 500, seed)

        first, second = drift(one), drift(two)

        assert verdicts(first) == verdicts(second)
        for left, right in zip(first["drift"], second["drift"], strict=True):
            assert abs(left["distance_low"] - right["distance_low"]) < 0.01


@pytest.mark.parametrize("rows", [300, 1_000, 1_001, 10_000])
def test_splits_at_random_are_hardly_ever_told_to_drift(rows: int):
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        table = pa.table(
            {
                "split": rng.choice(["a", "b"], rows),
                **{f"x{at}": rng.normal(size=rows) for at in range(5)},
                "c": rng.integers(0, 40, rows),
            }
        )
        alarms += sum(line["verdict"] == "drift" for line in drift(table, Roles(split="split"))["drift"])

    assert alarms == 0


def test_a_difference_too_small_to_matter_is_no_drift_on_many_rows():
    rng = np.random.default_rng(1)
    side = np.arange(200_000) % 2 == 0
    table = pa.table({"split": np.where(side, "a", "b").tolist(), "x": rng.normal(size=200_000) + 0.02 * side})

    assert verdicts(drift(table, Roles(split="split"))) == {"x": "alike"}


def test_distances_are_those_of_scipy_and_of_the_definition():
    rng = np.random.default_rng(2)
    one, two = np.round(rng.normal(size=200), 1), np.round(rng.normal(0.5, 2, size=333), 1)
    left, right = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1, 3])

    assert shifts.greatest_gap(one, two) == pytest.approx(stats.ks_2samp(one, two).statistic)
    assert shifts.total_variation(left, right, 4)[0] == pytest.approx(0.5 * (0.3 + 0.35 + 0.25 + 0.2))


def test_words_that_one_split_alone_has_are_a_distance():
    words = Words(2)
    texts = [words.sentence(20) + (" Sent from my phone." if at % 4 == 0 and at % 3 else "") for at in range(2400)]
    table = pa.table({"text": texts, "split": ["test" if at % 4 == 0 else "train" for at in range(2400)]})

    found = {line["column"]: line for line in drift(table, Roles(text=("text",), split="split"))["drift"]}

    assert found["words"]["verdict"] == "drift"
    assert found["words"]["distance"] == pytest.approx(2 / 3, abs=0.1)


def test_alike_texts_are_not_told_to_drift():
    words = Words(3)
    table = pa.table({"text": [words.sentence(20) for _ in range(2400)], "split": ["test", "train", "train"] * 800})

    found = verdicts(drift(table, Roles(text=("text",), split="split")))

    assert found["words"] != "drift"
    assert found["text length"] != "drift"


def test_few_rows_one_split_and_many_splits_are_said():
    few = two_splits(60, 30)
    one = few.set_column(1, "split", pa.array(["train"] * 60))
    many = few.set_column(1, "split", pa.array([f"s{at}" for at in range(60)]))

    assert set(verdicts(drift(few)).values()) == {"too few rows"}
    assert drift(one)["warnings"] == ["there is one split: nothing to compare"]
    assert "60 values" in drift(many)["warnings"][0]


def test_the_reference_can_be_named_and_must_exist():
    table = two_splits(1000, 500)

    assert {line["reference"] for line in drift(table, reference="train")["drift"]} == {"train"}
    with pytest.raises(RequestError, match="which is no split"):
        drift(table, reference="trian")
    with pytest.raises(RequestError, match="role `split`"):
        make_check("drift_between_splits", {}).needs(Roles(), table.schema)
    with pytest.raises(RequestError, match="does not have"):
        drift(table, of="shiftd")


def test_a_run_puts_the_table_and_the_warnings_into_the_report(tmp_path: Path):
    pq.write_table(two_splits(1000, 400), tmp_path / "rows.parquet", row_group_size=300)

    api.run(pipeline("drift_between_splits", roles=ROLES), tmp_path / "rows.parquet", tmp_path / "out")

    detail = document(tmp_path / "out")["stages"]["drift_between_splits"]["detail"]
    assert detail["drift"] == drift(two_splits(1000, 400))["drift"]
    assert detail["warnings"][0].startswith("`kind` of split `test` is 0.")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.none() | st.floats(), st.none() | st.text(max_size=5)), max_size=60)
)
def test_any_cells_give_distances_inside_their_intervals(rows: list[tuple[Any, ...]]):
    columns = [[row[at] for row in rows] for at in range(3)]
    table = pa.table(
        {
            "split": pa.array(columns[0], pa.string()),
            "x": pa.array(columns[1], pa.float64()),
            "c": pa.array(columns[2], pa.string()),
        }
    )

    told = drift(table, Roles(split="split", text=("c",)), min_rows=10)

    for line in told.get("drift", ()):
        if line["distance"] is not None:
            assert 0 <= line["distance_low"] <= line["distance"] <= line["distance_high"] <= 1
