from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import junitparser
from hypothesis import given
from hypothesis import strategies as st

from curate.gate import evaluate
from curate.pipeline import Limit
from curate.render.junit import junit


def report(**stages: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 1,
        "name": "small",
        "status": "complete",
        "rows": {"input": 10, "kept": 8, "rejected": 2, "quarantined": 0},
        "rejected_share": 0.2,
        "stages": stages,
        "costs": {"wall_s": 2.5, "stages": {name: {"wall_s": 0.5} for name in stages}},
    }


EVALUATED = {"status": "evaluated", "reason": None, "rows_in": 10, "rejected": 2, "rejected_share": 0.2, "kept": 8}
SKIPPED = {"status": "not evaluated", "reason": "no row reached this stage", "rows_in": 0, "rejected": 0, "kept": 0}


def suites(text: str) -> dict[str, junitparser.TestSuite]:
    return {suite.name: suite for suite in junitparser.JUnitXml.fromstring(text.encode())}


def outcomes(suite: junitparser.TestSuite) -> dict[str, str]:
    return {case.name: type(case.result[0]).__name__ if case.result else "passed" for case in suite}


def test_every_outcome_has_its_place():
    told = report(exact_dup=EVALUATED, near_dup=SKIPPED)
    limits = [
        Limit("rejected_share", max=0.5),
        Limit("rejected_share", max=0.1),
        Limit("kept_share", min=0.9),
        Limit("rows.kept", min=9, severity="warn"),
    ]

    text = junit(evaluate(limits, told).to_dict(), told)

    gate, stages = suites(text)["small: gate"], suites(text)["small: stages"]
    assert outcomes(gate) == {
        "rejected_share max 0.5": "passed",
        "rejected_share max 0.1": "Failure",
        "kept_share min 0.9": "Error",
        "rows.kept min 9": "passed",
    }
    assert outcomes(stages) == {"exact_dup evaluated": "passed", "near_dup evaluated": "Error"}
    assert (gate.tests, gate.failures, gate.errors, gate.skipped) == (4, 1, 1, 0)
    assert (stages.tests, stages.failures, stages.errors, stages.time) == (2, 0, 1, 1.0)
    warned = next(case for case in gate if case.name == "rows.kept min 9")
    assert warned.system_out == "warning: 8 is less than 9; value 8"
    failed = next(case for case in gate if case.name == "rejected_share max 0.1")
    assert failed.result[0].message == "0.2 is more than 0.1; value 0.2"
    whole = junitparser.JUnitXml.fromstring(text.encode())
    assert (whole.tests, whole.failures, whole.errors, whole.time) == (6, 1, 2, 2.5)


def test_a_gate_with_nothing_to_judge_is_an_error():
    told = report() | {"rows": {"input": 0}}

    text = junit(evaluate([], told).to_dict(), told)

    assert outcomes(suites(text)["small: gate"]) == {"rows.input": "Error", "gate": "Error"}


def test_two_limits_on_one_number_are_two_tests():
    told = report(exact_dup=EVALUATED)

    text = junit(evaluate([Limit("rejected_share", max=0.5)] * 2, told).to_dict(), told)

    assert list(outcomes(suites(text)["small: gate"])) == ["rejected_share max 0.5", "rejected_share max 0.5 (2)"]


@given(st.text(max_size=50) | st.sampled_from(["]]>", "<!--", '"><x/>', "&lt;", "\x00\x1b[31m", "\ud800", "\ufffe", "a\r\nb"]))
def test_any_text_gives_xml_that_parses_and_adds_no_element(text: str):
    told = report(**{text: SKIPPED}) | {"name": text}
    check = {"metric": text, "outcome": "failed", "reason": text, "value": None}

    made = junit({"checks": [check, check | {"outcome": "warned"}, check | {"outcome": "not_evaluated"}]}, told)

    root = ET.fromstring(made.encode())
    assert {element.tag for element in root.iter()} <= {"testsuites", "testsuite", "testcase", "failure", "error", "system-out"}
    assert len(root.findall("testsuite/testcase")) == 4
    junitparser.JUnitXml.fromstring(made.encode())


def test_ten_thousand_failures_parse():
    told = report(exact_dup=EVALUATED)
    gate = evaluate(
        [Limit(f"groups.lang.{index}.rejected_share", max=0.1) for index in range(10_000)],
        told | {"groups": {"lang": {str(index): {"rejected_share": 0.5} for index in range(10_000)}}},
    )

    text = junit(gate.to_dict(), told)

    assert suites(text)["small: gate"].failures == 10_000
