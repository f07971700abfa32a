from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate import ci
from curate.render.github import SUMMARY_BYTES, annotate, command, summary

REPORT: dict[str, Any] = {
    "name": "small",
    "status": "complete",
    "rows": {"input": 10, "kept": 8, "rejected": 2, "quarantined": 0},
    "kept_share": 0.8,
    "rejected_share": 0.2,
    "quarantined_share": 0.0,
    "stages": {
        "exact_dup": {
            "status": "evaluated",
            "rows_in": 10,
            "rejected": 2,
            "rejected_share": 0.2,
            "kept": 8,
            "reasons": [{"rule": "is_true", "column": "is_copy", "limit": None, "rows": 2}],
        },
        "near_dup": {"status": "not evaluated", "reason": "no row reached this stage", "rows_in": 0},
    },
    "costs": {"wall_s": 1.0, "peak_memory_bytes": 1_000_000},
}


def check(outcome: str, metric: str = "rejected_share", reason: str = "0.2 is more than 0.1", **more: Any) -> dict[str, Any]:
    return {"metric": metric, "outcome": outcome, "reason": reason, "value": 0.2, "baseline": None, "max": 0.1, **more}


def gate(*checks: dict[str, Any]) -> dict[str, Any]:
    counts = {word: sum(one["outcome"] == word for one in checks) for word in ("passed", "warned", "failed", "not_evaluated")}
    return {"passed": counts["failed"] + counts["not_evaluated"] == 0, "counts": counts, "checks": list(checks)}


def test_the_summary_says_the_verdict_the_funnel_and_the_limits():
    page = summary(REPORT, gate(check("passed"), check("failed")), "runs/small")

    assert page.startswith("### ❌ curate <code>small</code>: the gate says NO\n\n10 rows in, 8 kept (80.0 %)")
    assert "| <code>exact&#95;dup</code> | 10 | 2 | 20.0 % | 8 |" in page
    assert "not evaluated: <code>no row reached this stage</code>" in page
    assert page.index("❌ **no**") < page.index("✅ yes")
    assert "| 2 | <code>exact&#95;dup&#46;is&#95;copy is true</code> |" in page


def test_ten_thousand_failures_stay_inside_every_limit():
    wide = "%,:\n|<b>" * 2_000
    judged = gate(*(check(outcome, f"m{index}", wide) for outcome in ("failed", "warned") for index in range(10_000)))
    report = REPORT | {"stages": {f"stage{index}{wide}": REPORT["stages"]["exact_dup"] for index in range(10_000)}}

    began = time.perf_counter()
    page, lines = summary(report, judged), annotate(judged, wide)

    assert len(page.encode()) <= SUMMARY_BYTES
    assert "**Gate**: 10,000 warned, 10,000 failed" in page
    assert "and 19,900 more lines" in page
    kinds = [line.split(" ")[0] for line in lines]
    assert (kinds.count("::error"), kinds.count("::warning"), len(lines)) == (10, 10, 20)
    assert "and 9,991 more" in lines[9]
    assert max(map(len, lines)) < 4_096
    assert time.perf_counter() - began < 5


def test_exactly_ten_are_all_shown():
    lines = annotate(gate(*(check("failed", f"m{index}") for index in range(10))))

    assert [re.search(r"::m(\d)", line)[1] for line in lines] == list("0123456789")  # type: ignore[index]


def test_a_summary_without_room_is_empty():
    assert summary(REPORT, None, room=10) == ""
    assert summary(REPORT, None, room=-5) == ""


@given(st.text(max_size=80) | st.sampled_from(["::stop-commands::x", "a\n::error::b", "a%0Ab", "a::b,c:d", "\r\n", "##[error]x"]))
def test_a_command_is_one_line_and_ends_its_properties_itself(text: str):
    line = command("error", text, text)

    assert "\n" not in line
    assert "\r" not in line
    kind, properties, _ = re.fullmatch(r"::(\w+) (title=[^:]*)::(.*)", line).groups()  # type: ignore[union-attr]
    assert kind == "error"
    assert "," not in properties


@given(
    st.text(max_size=80)
    | st.sampled_from(["|", "`", "</code><script>", "![x](http://y)", "@user", "#1", "a\n# b", "\\|", "&lt;"])
)
def test_no_text_of_others_is_markup(text: str):
    page = summary(REPORT | {"name": text}, gate(check("failed", text, text)))

    assert {tag for tag in re.findall(r"<[^>]*>", page)} <= {"<code>", "</code>", "<sub>", "</sub>"}
    for inner in re.findall(r"<code>(.*?)</code>", page, re.DOTALL):
        assert not re.search(r"[!\"$-%'-/:<-@\[-`{-~\n]", re.sub(r"&#\d+;", "", inner))
    rows = [line for line in page.splitlines() if line.startswith("| ❌")]
    assert [line.count("|") for line in rows] == [6]


@pytest.fixture
def on_github(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


def test_nothing_is_announced_elsewhere(capsys: pytest.CaptureFixture[str]):
    ci.announce(REPORT, gate(check("failed")))
    ci.announce_error("m", "p", "h")
    with ci.plain_text():
        pass

    assert capsys.readouterr() == ("", "")


def test_annotations_go_to_stderr_and_the_summary_is_appended(on_github: Path, capsys: pytest.CaptureFixture[str]):
    on_github.write_text("before\n")

    ci.announce(REPORT, gate(check("failed"), check("warned")), "runs/small")

    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "::error title=curate gate%3A small::rejected_share (max 0.1): 0.2 is more than 0.1",
        "::warning title=curate gate%3A small::rejected_share (max 0.1): 0.2 is more than 0.1",
    ]
    assert on_github.read_text().startswith("before\n### ❌ curate")


def test_what_a_step_wrote_before_counts(on_github: Path):
    on_github.write_bytes(b"x" * (SUMMARY_BYTES - 5_000))

    for _ in range(20):
        ci.announce(REPORT, gate(check("failed")))

    assert SUMMARY_BYTES - 5_000 < on_github.stat().st_size <= SUMMARY_BYTES


def test_a_summary_that_cannot_be_written_changes_no_verdict(
    on_github: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(on_github.parent / "no" / "folder"))

    ci.announce(REPORT, None)

    assert capsys.readouterr().err.startswith("::warning title=curate::the step summary cannot be written")


def test_text_is_printed_where_no_command_is_obeyed(on_github: Path, capsys: pytest.CaptureFixture[str]):
    import sys

    with ci.plain_text():
        print("::error::from a cell", file=sys.stderr)

    first, text, last = capsys.readouterr().err.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert (len(token), text, last) == (32, "::error::from a cell", f"::{token}::")
