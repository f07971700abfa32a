"""The meter: what a task cost goes to the steps that it worked for, and to nobody twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from runs import numbered, pipeline
from toy_checks import Amount

from curate import api
from curate.meter import Meter, add_bills


def test_a_window_is_billed_to_its_own_step_and_the_rest_to_the_task() -> None:
    meter = Meter()
    with meter.seconds("score", "language"):
        time.sleep(0.03)
    with meter.seconds("read", "missing"):
        time.sleep(0.01)
    time.sleep(0.01)
    bill = meter.total("missing")

    assert bill["language"]["wall_s"] == bill["language"]["score_s"] >= 0.03
    assert 0.02 <= bill["missing"]["wall_s"]
    assert bill["missing"]["wall_s"] >= bill["missing"]["read_s"]
    assert bill["missing"]["peak_memory_bytes"] == bill["language"]["peak_memory_bytes"] > 0


def test_the_steps_of_a_task_add_up_to_its_time() -> None:
    started = time.perf_counter()
    meter = Meter()
    for step in ("missing", "language", "pii"):
        with meter.seconds("score", step):
            time.sleep(0.01)
    bill = meter.total("missing")

    total = sum(step["wall_s"] for step in bill.values())

    assert total <= time.perf_counter() - started
    assert total >= 0.03


def test_bills_add_up_but_for_the_peak() -> None:
    one, two = ({"a": {"wall_s": wall_s, "peak_memory_bytes": peak}} for wall_s, peak in ((1.0, 5.0), (2.0, 3.0)))

    assert add_bills(iter([one, two])) == {"a": {"wall_s": 3.0, "peak_memory_bytes": 5.0}}


def test_every_stage_of_a_pass_has_its_time_and_rate(room: Path) -> None:
    costs = api.run(pipeline("missing", Amount(), "pii"), numbered(200), room / "out").report["costs"]

    for name in ("missing", "amount", "pii"):
        step = costs["stages"][name]
        assert step["wall_s"] > 0
        assert step["rows_per_s"] == pytest.approx(step["rows"] / step["wall_s"])
        assert step["peak_memory_bytes"] > 0
    assert sum(step["wall_s"] for step in costs["stages"].values()) == pytest.approx(costs["busy_s"])
