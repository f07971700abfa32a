from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from curate.errors import RequestError
from curate.gate import evaluate
from curate.pipeline import Limit
from curate.progress import Several
from curate.render import explain, listing, terminal
from curate.render.events import Events
from curate.render.progress import TerminalProgress
from curate.render.words import count, percent, plural, safe, seconds, size

EVIL = "[/] [bold]x[/bold] \x1b[31mred\x1b[0m \u202egnp.exe \x07\r :smile:"

REPORT: dict[str, Any] = {
    "version": 1,
    "name": "reviews",
    "status": "complete",
    "rows": {"input": 2000, "kept": 1500, "rejected": 490, "quarantined": 10},
    "kept_share": 0.75,
    "rejected_share": 0.245,
    "quarantined_share": 0.005,
    "stages": {
        "exact_dup": {
            "status": "evaluated",
            "rows_in": 1990,
            "asked": 1990,
            "missing": 3,
            "rejected": 400,
            "rejected_share": 0.2,
            "kept": 1590,
            "reasons": [{"rule": "is_true", "column": "is_copy", "limit": 1.0, "rows": 400}],
        },
        "near_dup": {
            "status": "evaluated",
            "rows_in": 1590,
            "asked": 1590,
            "missing": 0,
            "rejected": 90,
            "rejected_share": 0.045,
            "kept": 1500,
            "reasons": [{"rule": "at_least", "column": "similarity", "limit": 0.8, "rows": 90}],
        },
        "label_noise": {"status": "not evaluated", "reason": "one class only", "rows_in": 1500},
    },
    "quarantine": {
        "reasons": {"invalid UTF-8": 9, EVIL: 1},
        "examples": [{"source_file": "a.jsonl", "source_row": 6, "line": 7, "reason": "invalid UTF-8"}],
    },
    "costs": {
        "wall_s": 2.5,
        "peak_memory_bytes": 512_000_000,
        "bytes_read": 12_300_000,
        "bytes_written": 9_000_000,
        "stages": {"near_dup": {"wall_s": 1.5}, "ingest": {"wall_s": 0.5}},
    },
    "casts": [],
    "witness_rejected_later": 2,
}

SUMMARY = """\
reviews: 2,000 rows in, 1,500 kept (75.0 %), 490 rejected (24.5 %), 10 quarantined

  stage        rows in       rejected  of input  missing   left
  (read)         2,000             10     0.5 %           1,990  ################
  exact_dup      1,990            400    20.0 %        3  1,590  #############...
  near_dup       1,590             90     4.5 %           1,500  ############....
  label_noise    1,500  not evaluated                            one class only

  rows  why rejected
   400  exact_dup.is_copy is true
    90  near_dup.similarity at least 0.8

  Quarantined (could not be read):
    9  invalid UTF-8
    1  [/] [bold]x[/bold] [31mred[0m gnp.exe   :smile:
      a.jsonl, line 7: invalid UTF-8

  note: 2 witness rows left at a later stage

  2.5 s, 800 rows/s; peak memory 512.0 MB; read 12.3 MB, wrote 9.0 MB
  most time in near_dup 1.5 s, ingest 0.5 s

Gate: NO: 2 of 3 limits
        metric                     value  limit    why
  NO    stages.label_noise.status                  not evaluated: stage `label_noise` was not evaluated: one
                                                   class only
  NO    rejected_share             0.245  max 0.1  0.245 is more than 0.1
  warn  near_dup.rejected_share    0.045  max 0    0.045 is more than 0

Kept rows: out/kept
Report: out/report.html
Ask why a row was rejected: curate why out ROW-OR-ID
"""


def shown(text: RenderableType) -> str:
    stream = io.StringIO()
    terminal.show(terminal.console_on(stream), text)
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _no_columns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLUMNS", raising=False)


def test_a_summary_is_the_whole_run_on_one_screen():
    gate = evaluate([Limit("rejected_share", max=0.1), Limit("near_dup.rejected_share", max=0, severity="warn")], REPORT)

    assert shown(terminal.summary(REPORT, gate.to_dict(), Path("out"))) == SUMMARY


def test_an_empty_run_has_a_summary():
    report = REPORT | {
        "rows": {"input": 0, "kept": 0, "rejected": 0, "quarantined": 0},
        "kept_share": None,
        "rejected_share": None,
        "stages": {},
        "quarantine": {"reasons": {}, "examples": []},
        "costs": {"wall_s": 0.0, "stages": {}},
        "witness_rejected_later": 0,
    }

    text = shown(terminal.summary(report))

    assert text.startswith("reviews: 0 rows in, 0 kept (?), 0 rejected (?), 0 quarantined\n")
    assert "Gate" not in text


@given(st.text(max_size=50))
def test_safe_text_cannot_drive_a_terminal(text: str):
    clean = safe(text)

    assert all(char.isprintable() or char.isspace() or ord(char) > 0x9F for char in clean)
    assert not set(clean) & set("\x1b\x9b\x07\n\r\u202e\u2066")
    clean.encode()


def test_safe_keeps_what_people_write():
    assert safe("naïve 日本語 👩‍💻 [b]\tend") == "naïve 日本語 👩‍💻 [b] end"
    assert safe("a\nb\x1b[0m", lines=True) == "a\nb[0m"
    assert safe("x" * 20, 10) == "xxxxxxx..."
    assert safe("\ud800") == "\ufffd"


def test_numbers_read_like_words():
    assert [percent(share) for share in (None, 0, 0.00001, 0.5, 0.99999, 1)] == [
        "?",
        "0.0 %",
        "<0.1 %",
        "50.0 %",
        ">99.9 %",
        "100.0 %",
    ]
    assert [seconds(wall) for wall in (0.04, 12.4, 75, 7300)] == ["0.0 s", "12 s", "1 min 15 s", "2 h 1 min"]
    assert [size(amount) for amount in (None, 999, 1500, 2.5e9, 4e15)] == ["?", "999 B", "1.5 kB", "2.5 GB", "4000.0 TB"]
    assert (count(1234567), plural(1, "row"), plural(2, "row")) == ("1,234,567", "1 row", "2 rows")


ANSWER: dict[str, Any] = {
    "row_id": 7,
    "id": "d7",
    "verdict": "rejected",
    "stage": "near_dup",
    "check": "near_dup",
    "column": "similarity",
    "rule": "at_least",
    "value": 0.8571428,
    "limit": 0.8,
    "source_file": "a.jsonl",
    "source_row": 7,
    "stages": [
        {
            "name": "near_dup",
            "status": "scored",
            "scores": {"similarity": 0.8571428, "near_copy_of": 3, "is_capped": False},
            "rules": [{"rule": "at_least", "column": "similarity", "limit": 0.8, "value": 0.8571428, "fires": True}],
        },
        {"name": "label_noise", "status": "not asked", "scores": {}, "rules": []},
    ],
    "row": {"id": "d7", "text": "Route 11 is closed " + EVIL, "stars": 4, "tags": ["a"], "note": None},
    "witness": {
        "row_id": 3,
        "id": "d3",
        "row": {"id": "d3", "text": "Route 12 is closed", "stars": 4, "tags": ["a"], "note": None},
    },
}


def test_why_shows_every_score_and_limit_and_both_texts():
    text = shown(explain.why(ANSWER))

    assert "Row 7 (d7) was rejected by near_dup: similarity at least 0.8 (its value: 0.857143)" in text
    assert "at least 0.8: rejects" in text
    assert "false: is_capped" in text
    assert "label_noise  not asked" in text
    assert "Route [-11-] is closed" in text
    assert "Route {+12+} is closed" in text
    assert "\x1b" not in text


def test_why_works_without_a_witness_and_for_quarantined_rows():
    kept = shown(explain.why(ANSWER | {"verdict": "kept", "witness": None, "rule": None}))
    quarantined = shown(
        explain.why(
            {"row_id": 1, "id": None, "verdict": "quarantined", "source_file": "a", "source_row": 1, "stages": [], "row": None}
        )
    )

    assert "Row 7 (d7) was kept" in kept
    assert "Route 11 is closed" in kept
    assert "Row 1 was quarantined" in quarantined


words = st.text(st.characters(exclude_characters="[]{}+-"), max_size=60)


@given(words, words)
def test_marking_differences_loses_no_text(a: str, b: str):
    left, right = explain.marked(a, b)

    assert left.plain.replace("[-", "").replace("-]", "") == safe(a, lines=True)
    assert right.plain.replace("{+", "").replace("+}", "") == safe(b, lines=True)


def test_huge_texts_are_compared_in_bounded_time():
    left, right = explain.marked("word " * 2_000_000, "other " * 2_000_000)

    assert "characters more" in left.plain
    assert len(right.plain) < 30_000


def test_a_diff_names_the_moves_and_the_numbers_that_moved():
    answer = {
        "rows": {"same": 90, "changed": 2},
        "transitions": {"rejected->kept": 2},
        "examples": [
            {
                "row_id": 5,
                "id": EVIL,
                "a": {"verdict": "rejected", "stage": "near_dup", "column": "similarity", "value": 0.85, "witness_id": "d3"},
                "b": {"verdict": "kept", "stage": None},
            }
        ],
        "report": {"rejected_share": {"a": 0.2, "b": 0.1}, "rows.input": {"a": 92, "b": 92}},
    }

    text = shown(explain.diff(answer))

    assert "90 rows were decided alike, 2 differently" in text
    assert "rejected -> kept" in text
    assert "rejected: near_dup.similarity 0.85, like d3" in text
    assert "rejected_share" in text
    assert "rows.input" not in text
    assert "\x1b" not in text


def test_a_check_is_explained_with_its_parameters():
    from curate.describe import checks

    for found in checks():
        text = shown(listing.check(found))
        assert all(f"{parameter['name']}: " in text for parameter in found["parameters"])
    assert "near_dup" in shown(listing.checks(checks()))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_plain_progress_is_a_line_now_and_then():
    stream, clock = io.StringIO(), Clock()
    with TerminalProgress(terminal.console_on(stream), clock) as progress:
        progress.start("near_dup", 1000, "rows")
        for _ in range(100):
            clock.now += 0.2
            progress.advance(10)
        progress.finish()

    lines = stream.getvalue().splitlines()
    assert lines[0] == "near_dup: 250 rows of 1,000 rows (25.0 %), 50 rows/s, 15 s left"
    assert lines[-1] == "near_dup: done, 1,000 rows in 20 s"
    assert len(lines) <= 5


def test_quick_steps_say_nothing():
    stream, clock = io.StringIO(), Clock()
    progress = TerminalProgress(terminal.console_on(stream), clock)
    for step in "abc":
        progress.start(step, 10, "parts")
        clock.now += 0.5
        progress.advance(10)
        progress.finish()
    progress.finish()

    assert stream.getvalue() == ""


def test_progress_on_a_terminal_is_a_bar_with_rate():
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    with TerminalProgress(console) as progress:
        progress.start("[/] near_dup \x07", 0, "bytes")
        progress.advance(5_000_000)
        progress.start("write", 4, "parts")
        progress.advance()
        progress.finish()

    assert "[/] near_dup" in stream.getvalue()
    assert "5.0 MB" in stream.getvalue()
    assert "\x07" not in stream.getvalue()


def test_events_are_whole_json_lines(tmp_path: Path):
    path, clock = tmp_path / "events.jsonl", Clock()

    def fail_after_a_step():
        with Events(path, clock) as events:
            told = Several(events)
            told.start("near_dup", 3, "parts")
            for _ in range(3):
                clock.now += 0.6
                told.advance()
            told.finish()
            told.advance()
            raise RuntimeError(EVIL)

    with pytest.raises(RuntimeError):
        fail_after_a_step()
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["event"] for event in found] == ["step_started", "step_progress", "step_finished", "run_failed"]
    assert found[2] == {
        "time_s": 101.8,
        "event": "step_finished",
        "step": "near_dup",
        "total": 3,
        "unit": "parts",
        "done": 3,
        "wall_s": 1.8,
    }
    assert found[3]["message"] == EVIL


def test_events_that_cannot_be_written_are_a_wrong_request(tmp_path: Path):
    with pytest.raises(RequestError, match="cannot be written"):
        Events(tmp_path / "no" / "folder.jsonl")
