from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.gate import evaluate, metrics_of
from curate.pipeline import Limit

REPORT: dict[str, Any] = {
    "version": 1,
    "name": "reviews",
    "status": "complete",
    "rows": {"input": 10, "kept": 5, "rejected": 5, "quarantined": 0},
    "rejected_share": 0.5,
    "kept_share": 0.5,
    "quarantined_share": None,
    "stages": {
        "near_dup": {
            "status": "evaluated",
            "rejected": 2,
            "rejected_share": 0.2,
            "scores": {"similarity": {"mean": 0.5, "max": None}, "is_copy": {"true": 2}},
        },
        "rows": {"status": "evaluated", "rejected": 3},
    },
    "sources": {"a.b/c.parquet": {"rejected_share": 0.1}},
}


def only(limit: Limit, report: dict[str, Any] = REPORT, baseline: dict[str, Any] | None = None) -> tuple[str, str, int]:
    result = evaluate([limit], report, baseline)
    (check,) = result.checks
    return check.outcome, check.reason, result.exit_code


def changed(**values: Any) -> dict[str, Any]:
    return copy.deepcopy(REPORT) | values


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("rejected_share", 0.5),
        ("rows.input", 10),
        ("rows.rejected", 5),
        ("stages.rows.rejected", 3),
        ("near_dup.rejected_share", 0.2),
        ("stages.near_dup.rejected", 2),
        ("near_dup.scores.similarity.mean", 0.5),
        ("near_dup.scores.is_copy.true", 2),
        ("sources.a.b/c.parquet.rejected_share", 0.1),
    ],
)
def test_a_metric_is_a_path_into_the_report(metric: str, value: float):
    (check,) = evaluate([Limit(metric, min=value, max=value)], REPORT).checks

    assert (check.outcome, check.value) == ("passed", value)
    assert metric in metrics_of(REPORT) or metric.startswith("stages.")


@pytest.mark.parametrize(
    ("limit", "outcome", "exit_code"),
    [
        (Limit("rejected_share", max=0.5), "passed", 0),
        (Limit("rejected_share", max=0.4), "failed", 3),
        (Limit("rejected_share", max=0.4, severity="warn"), "warned", 0),
        (Limit("rejected_share", min=0.6), "failed", 3),
        (Limit("rejected_share", min=0.4, max=0.6), "passed", 0),
    ],
)
def test_a_limit_includes_its_bound(limit: Limit, outcome: str, exit_code: int):
    assert (only(limit)[0], only(limit)[2]) == (outcome, exit_code)


@pytest.mark.parametrize("severity", ["fail", "warn"])
@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("rejected_shar", "nearest: rejected_share"),
        ("near_dup.rejectd_share", "nearest: near_dup.rejected_share"),
        ("near_dub.rejected_share", "near_dup.rejected_share"),
        ("quite_other", "no number `quite_other`"),
        ("quarantined_share", "no value"),
        ("near_dup.scores.similarity.max", "no value"),
        ("near_dup", "is not a number in the report; it holds near_dup.rejected"),
        ("name", "is not a number"),
    ],
)
def test_a_number_that_is_not_there_is_never_passed(metric: str, reason: str, severity: Any):
    outcome, said, exit_code = only(Limit(metric, max=1e9, severity=severity))

    assert (outcome, exit_code) == ("not_evaluated", 3)
    assert reason in said


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.1", [1]])
def test_what_is_no_finite_number_is_never_passed(value: Any):
    assert only(Limit("rejected_share", max=1e9), changed(rejected_share=value))[0] == "not_evaluated"


def test_a_gate_without_limits_says_no():
    for limits in ([], None):
        result = evaluate(limits, REPORT)

        assert (result.passed, result.outcome, result.exit_code) == (False, "not_evaluated", 3)
        assert "states no limits" in result.checks[0].reason


@pytest.mark.parametrize("rows", [{"input": 0}, {}])
def test_a_run_of_no_rows_says_no(rows: dict[str, int]):
    result = evaluate([Limit("rejected_share", max=1)], changed(rows=rows))

    assert result.exit_code == 3
    assert "read no rows" in result.checks[0].reason


def test_an_incomplete_run_says_no():
    result = evaluate([Limit("rejected_share", max=1)], changed(status="failed"))

    assert result.exit_code == 3
    assert result.checks[0].metric == "status"


def test_a_stage_that_was_not_evaluated_says_no_and_so_does_each_limit_on_it():
    report = changed()
    report["stages"]["near_dup"] |= {"status": "not evaluated", "reason": "only one class", "rejected_share": 0.0}

    elsewhere = evaluate([Limit("rejected_share", max=1)], report)
    on_it = evaluate([Limit("near_dup.rejected_share", max=1, severity="warn")], report)

    assert [check.outcome for check in elsewhere.checks] == ["not_evaluated", "passed"]
    assert elsewhere.checks[0].reason == "stage `near_dup` was not evaluated: only one class"
    assert not elsewhere.passed
    assert [check.outcome for check in on_it.checks] == ["not_evaluated", "not_evaluated"]
    assert not on_it.passed


@pytest.mark.parametrize(
    ("limit", "before", "outcome"),
    [
        (Limit("rejected_share", max_increase=0.1), 0.4, "passed"),
        (Limit("rejected_share", max_increase=0.1), 0.39, "failed"),
        (Limit("rejected_share", max_increase=0.1), 0.9, "passed"),
        (Limit("rejected_share", max_decrease=0.1), 0.9, "failed"),
        (Limit("rejected_share", max_decrease=0.2), 0.7, "passed"),
        (Limit("rejected_share", max_increase=0.1, severity="warn"), 0.1, "warned"),
        (Limit("rejected_share", max=0.4, max_increase=0.3), 0.4, "failed"),
    ],
)
def test_a_change_is_held_against_the_baseline(limit: Limit, before: float, outcome: str):
    assert only(limit, baseline=changed(rejected_share=before))[0] == outcome


@pytest.mark.parametrize("baseline", [None, {"status": "complete"}, changed(rejected_share=None)])
def test_a_change_without_a_baseline_number_is_never_passed(baseline: dict[str, Any] | None):
    outcome, reason, exit_code = only(Limit("rejected_share", max_increase=1), baseline=baseline)

    assert (outcome, exit_code) == ("not_evaluated", 3)
    assert "baseline" in reason


def test_a_failure_outranks_what_was_not_evaluated_in_words_only():
    result = evaluate([Limit("nope", max=1), Limit("rejected_share", max=0.1)], REPORT)

    assert (result.outcome, result.passed) == ("failed", False)


def test_gate_json_says_everything():
    written = evaluate([Limit("rejected_share", max=0.4, severity="warn"), Limit("kept_share", min=0.1)], REPORT).to_dict()

    assert (written["version"], written["passed"], written["outcome"], written["exit_code"]) == (1, True, "warned", 0)
    assert written["counts"] == {"passed": 1, "warned": 1, "failed": 0, "not_evaluated": 0}
    assert written["checks"][0]["reason"] == "0.5 is more than 0.4"
    json.dumps(written, allow_nan=False)


metrics = st.sampled_from(["rejected_share", "near_dup.rejected_share", "nope", "name", "quarantined_share"])
limits = st.builds(
    lambda metric, bound, severity: Limit(metric, max=bound, severity=severity),
    metrics,
    st.floats(0, 1),
    st.sampled_from(["fail", "warn"]),
)


@given(st.lists(limits, max_size=5))
def test_yes_means_that_something_was_judged_and_nothing_is_open_or_broken(given_limits: list[Limit]):
    result = evaluate(given_limits, REPORT)

    outcomes = [check.outcome for check in result.checks]
    assert result.passed == (bool(given_limits) and set(outcomes) <= {"passed", "warned"})
    assert result.exit_code == (0 if result.passed else 3)
