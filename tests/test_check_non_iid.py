"""`non_iid`: planted order is found, sorted labels are told apart from it, and shuffled rows are independent."""

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

from curate import api
from curate.check import make_check
from curate.dataset import Roles, Rows
from tests.runs import document, pipeline

ROLES = Roles(id="id", label="label")
ROWS = 6_000


def order(table: pa.Table, roles: Roles = ROLES, shown: Any = None, **parameters: Any) -> dict[str, Any]:
    check: Any = make_check("non_iid", parameters)
    ids = np.arange(len(table), dtype=np.uint64)
    if shown is not None:
        table, ids = table.take(pa.array(shown)), ids[shown]
    told = check.evidence(check.fit(Rows(table.select(list(check.needs(roles, table.schema))), ids, roles, 0)))
    json.dumps(told, allow_nan=False)
    return dict(told)


def verdicts(told: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(line["column"], line["way"]): line["verdict"] for line in told["order"]}


def data(label: np.ndarray, seed: int = 0, **more: Any) -> pa.Table:
    rng = np.random.default_rng(seed)
    base = {
        "id": np.arange(len(label)),
        "label": [f"c{one}" for one in label],
        "tied_to_label": label + rng.normal(size=len(label)),
    }
    return pa.table({**base, "noise": rng.normal(size=len(label)), "colour": rng.choice(list("rgb"), len(label)), **more})


def test_shuffled_rows_are_independent():
    found = order(data(np.random.default_rng(4).integers(0, 3, ROWS)))

    assert set(verdicts(found).values()) == {"independent"}
    assert found["warnings"] == []


def test_label_sorted_rows_are_sorted_and_not_dependent():
    found = verdicts(order(data(np.sort(np.random.default_rng(4).integers(0, 3, ROWS)))))

    assert found[("tied_to_label", "trend")] == "by label only"
    assert found[("tied_to_label", "neighbours")] == "by label only"
    assert found[("label", "neighbours")] == "follows the order"
    for way in ("trend", "neighbours"):
        assert found[("noise", way)] == "independent"
    assert found[("colour", "neighbours")] == "independent"


def test_a_trend_and_blocks_are_found_within_sorted_labels_too():
    rng = np.random.default_rng(5)
    label = np.sort(rng.integers(0, 3, ROWS))
    trend = np.arange(ROWS) / ROWS + rng.normal(0, 0.5, ROWS)
    trend -= np.array([trend[label == one].mean() for one in range(3)])[label]
    blocks = np.repeat(rng.normal(size=ROWS // 20), 20) + rng.normal(size=ROWS)
    people = np.repeat(rng.choice(list("abcdefgh"), ROWS // 5), 5)

    found = verdicts(order(data(label, trend=trend, blocks=blocks, people=people)))

    assert found[("trend", "trend")] == "follows the order"
    assert found[("blocks", "neighbours")] == "follows the order"
    assert found[("blocks", "trend")] == "independent"
    assert found[("people", "neighbours")] == "follows the order"


def test_the_raw_trend_is_spearmans():
    rng = np.random.default_rng(6)
    values = np.round(np.arange(500) / 300 + rng.normal(size=500), 1)

    line = order(pa.table({"x": values}), Roles())["order"][0]

    assert line["raw"] == pytest.approx(stats.spearmanr(values, np.arange(500)).statistic, abs=1e-4)
    assert line["raw_low"] < line["raw"] < line["raw_high"]


@pytest.mark.parametrize("rows", [200, 1_000, 1_001])
def test_random_order_is_hardly_ever_told_to_matter(rows: int):
    alarms = 0
    for seed in range(40):
        table = data(np.random.default_rng(seed + 100).integers(0, 4, rows), seed)
        alarms += sum(verdict == "follows the order" for verdict in verdicts(order(table)).values())

    assert alarms == 0


def test_the_order_in_which_rows_are_shown_changes_nothing():
    table = data(np.sort(np.random.default_rng(4).integers(0, 3, 900)))

    assert order(table, shown=np.random.default_rng(1).permutation(900)) == order(table)


def test_few_rows_are_said_and_so_is_what_to_do():
    assert set(verdicts(order(data(np.arange(60) % 3))).values()) == {"too few rows"}
    told = order(data(np.sort(np.arange(3000) % 3)))["warnings"]
    assert any("shuffle before a split by position" in one for one in told)


def test_a_run_puts_the_table_into_the_report(tmp_path: Path):
    rng = np.random.default_rng(8)
    lengths = np.arange(400) // 40 + rng.integers(0, 3, 400)
    table = pa.table({"id": [f"r{at}" for at in range(400)], "text": ["word " * int(size) + "." for size in lengths]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=90)

    api.run(pipeline("non_iid"), tmp_path / "rows.parquet", tmp_path / "out")

    detail = document(tmp_path / "out")["stages"]["non_iid"]["detail"]
    assert verdicts(detail) == {("text length", "trend"): "follows the order", ("text length", "neighbours"): "follows the order"}
    assert detail["fitted_rows"] == 400


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.none() | st.sampled_from("ab"), st.none() | st.floats(), st.none() | st.text(max_size=3)), max_size=60)
)
def test_any_cells_give_numbers_inside_their_intervals(rows: list[tuple[Any, ...]]):
    columns = [[row[at] for row in rows] for at in range(3)]
    table = pa.table(
        {
            "label": pa.array(columns[0], pa.string()),
            "x": pa.array(columns[1], pa.float64()),
            "c": pa.array(columns[2], pa.string()),
        }
    )

    for line in order(table, Roles(label="label"), min_rows=10)["order"]:
        for key in ("raw", "within_label"):
            if line.get(key) is not None:
                assert -1 <= line[f"{key}_low"] <= line[key] + 1e-3
                assert line[key] - 1e-3 <= line[f"{key}_high"] <= 1
