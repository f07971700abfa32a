"""The gate's answer as JUnit XML: what CI services and `junitparser` read.

| in the run                            | in JUnit                                        |
|---------------------------------------|-------------------------------------------------|
| a limit that is kept                  | a passed test                                   |
| a limit of severity `warn`, broken    | a passed test; `system-out` says what was broken |
| a limit that is broken                | `failure`                                       |
| a limit that could not be judged      | `error`                                         |
| a stage, evaluated or not             | a passed test, or `error`; its time is the stage's |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from curate.render.words import count, number

LONGEST = 4_000
"""characters of one message: a CI service that gets more shows none of it"""
_NOT_XML = re.compile("[^\\t\\n\\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""what XML 1.0 does not allow or discourages: control characters, halves of characters, U+FFFE and U+FFFF"""


@dataclass(frozen=True)
class _Case:
    """One test: what it is called, how it came out, and why."""

    name: str
    outcome: str
    reason: str = ""
    kind: str = ""
    time_s: float = 0.0


def junit(gate: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """The document, with one suite for the limits of the gate and one for the stages.

    Times are those of the run's last session. No text of the data stands in it but the names
    a metric or a reason mentions, and nothing that XML cannot hold.
    """
    costs = report.get("costs") or {}
    name = str(report.get("name") or "run")
    root = ET.Element("testsuites", {"name": _clean(f"curate {name}")})
    suites = [("gate", list(_limits(gate, report))), ("stages", list(_stages(report)))]
    for called, cases in suites:
        _add_suite(root, f"{name}: {called}", f"{name}.{called}", cases)
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    root.set("skipped", "0")
    root.set("time", _seconds(costs.get("wall_s")))
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _limits(gate: Mapping[str, Any], report: Mapping[str, Any]) -> Iterator[_Case]:
    """A test a limit; that every stage was evaluated is the other suite's."""
    told = {f"stages.{name}.status" for name in report.get("stages") or {}}
    for check in gate.get("checks") or ():
        if check["metric"] in told and not limit_words(check):
            continue
        value = "" if check.get("value") is None else f"value {number(check['value'])}"
        before = "" if check.get("baseline") is None else f"baseline {number(check['baseline'])}"
        reason = "; ".join(filter(None, (check.get("reason"), value, before)))
        yield _Case(" ".join(filter(None, (check["metric"], limit_words(check)))), check["outcome"], reason, "gate")


def limit_words(check: Mapping[str, Any]) -> str:
    """The limits of a check in words: "min 0.1, max 0.4"."""
    words = {"min": "min", "max": "max", "max_increase": "rise", "max_decrease": "fall"}
    return ", ".join(f"{word} {number(check[key])}" for key, word in words.items() if check.get(key) is not None)


def _stages(report: Mapping[str, Any]) -> Iterator[_Case]:
    costs = (report.get("costs") or {}).get("stages") or {}
    for name, stage in (report.get("stages") or {}).items():
        time_s = (costs.get(name) or {}).get("wall_s") or 0.0
        if stage.get("status") == "evaluated":
            told = f"{count(stage.get('rows_in'))} rows in, {count(stage.get('rejected'))} rejected"
            yield _Case(f"{name} evaluated", "passed", told, time_s=time_s)
        else:
            reason = stage.get("reason") or "no reason was recorded"
            yield _Case(f"{name} evaluated", "not_evaluated", f"stage `{name}` was not evaluated: {reason}", time_s=time_s)


def _add_suite(root: ET.Element, name: str, classname: str, cases: Sequence[_Case]) -> None:
    outcomes = Counter(case.outcome for case in cases)
    numbers = {"tests": len(cases), "failures": outcomes["failed"], "errors": outcomes["not_evaluated"], "skipped": 0}
    attributes = {"name": _clean(name), **{key: str(value) for key, value in numbers.items()}}
    suite = ET.SubElement(root, "testsuite", {**attributes, "time": _seconds(sum(case.time_s for case in cases))})
    seen: Counter[str] = Counter()
    for case in cases:
        seen[case.name] += 1
        called = case.name if seen[case.name] == 1 else f"{case.name} ({seen[case.name]})"
        test = ET.SubElement(suite, "testcase", {"classname": _clean(classname), "name": _clean(called)})
        test.set("time", _seconds(case.time_s))
        _add_outcome(test, case)


def _add_outcome(test: ET.Element, case: _Case) -> None:
    reason = _clean(case.reason)
    if case.outcome in ("failed", "not_evaluated"):
        tag = "failure" if case.outcome == "failed" else "error"
        ET.SubElement(test, tag, {"type": case.outcome, "message": reason}).text = reason
    elif case.outcome == "warned":
        ET.SubElement(test, "system-out").text = f"warning: {reason}"
    elif reason:
        ET.SubElement(test, "system-out").text = reason


def _clean(text: object) -> str:
    """A text that XML can hold, of a bearable length."""
    clean = _NOT_XML.sub("", str(text))
    return clean if len(clean) <= LONGEST else clean[: LONGEST - 3] + "..."


def _seconds(wall_s: float | None) -> str:
    return f"{wall_s or 0.0:.3f}"
