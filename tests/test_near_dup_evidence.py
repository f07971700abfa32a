"""What a run says of near duplicates beside the verdicts: the curve, what was compared, and what a sample saw."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from curate import api
from curate.check import make_check
from curate.evidence import count_copies, summary
from curate.intervals import wilson
from curate.render import listing, terminal
from curate.render.curve import copies, curve, cut, missed, words

PIPELINE = {"name": "x", "roles": {"id": "id", "text": "text"}, "stages": ["near_dup"]}


def source() -> pa.Table:
    """60 long texts, and of each a copy with some words changed."""
    pick = random.Random(3)
    texts = []
    for _ in range(60):
        text = [f"w{pick.randrange(10**6)}" for _ in range(2_000)]
        texts.append(" ".join(text))
        for at in pick.sample(range(2_000), 20):
            text[at] = "changed"
        texts.append(" ".join(text))
    return pa.table({"id": [f"r{row}" for row in range(120)], "text": texts})


def test_a_run_says_what_it_compared_and_what_a_sample_saw(tmp_path: Path) -> None:
    run = api.run(PIPELINE, source=source(), out=tmp_path / "out")

    detail = run.report["stages"]["near_dup"]["detail"]
    assert (detail["bands"], detail["minima_a_band"]) == (25, 5)
    assert detail["curve"][16] == [0.8, pytest.approx(0.99995, abs=1e-4)]
    assert (detail["linked_rows"], detail["verified_pairs"], detail["compared_pairs"]) == (120, 60, 60)
    assert (detail["cut_rows"], detail["full_buckets"]) == (0, 0)
    sample = detail["missed"]
    assert 5 <= sample["sampled"] <= 60  # a shingle in 8,192, of about 1,800 that two texts share
    assert (sample["not_found"], sample["share"], sample["low"], sample["reason"]) == (0, 0.0, 0.0, None)
    assert sample["high"] == wilson(0, sample["sampled"])[1]
    assert sum(of for low, _, of, _ in detail["observed"] if low >= 0.8) == sample["sampled"]
    assert (detail["buckets"], detail["full_share"], detail["cut_share"]) == (
        pytest.approx(0.905**5 * 25 * 60, rel=0.1),
        0.0,
        0.0,
    )
    assert [[low, high] for low, high, _ in detail["near_copies"]] == [[0.9, 0.92]]  # 20 words of 2,000 take 100 shingles
    assert detail["near_copies"][0][2] == 60
    page = (run.path / "report.html").read_text()
    assert "Which pairs are found" in page
    assert "Near copies by their similarity" in page
    assert "No row had more candidates than are compared." in page
    assert missed(detail) in page


def test_pairs_below_the_limit_show_the_curve_and_count_as_missed_for_a_lower_limit() -> None:
    check = make_check("near_dup", {"similarity": 0.5, "bands": 4, "rows": 5})
    counts = {
        "compared": 7,
        "sampled": 40,
        "sampled_found": 10,
        "sampled_10": 30,
        "sampled_found_10": 5,
        "sampled_9": 8,
        "sampled_found_9": 1,
    }

    found = check.summary(counts)  # type: ignore[attr-defined]

    assert found["missed"] == {
        "sampled": 40,
        "not_found": 30,
        "share": 0.75,
        "low": pytest.approx(0.5981, abs=1e-4),
        "high": pytest.approx(0.8581, abs=1e-4),
        "reason": None,
    }
    assert found["observed"] == [[0.45, 0.5, 8, 1], [0.5, 0.55, 30, 5]]


def test_an_empty_sample_says_nothing_but_why() -> None:
    found = make_check("near_dup", {}).summary({})  # type: ignore[attr-defined]

    reason = "no sampled pair reached the limit"
    assert found["missed"] == {"sampled": 0, "not_found": 0, "share": None, "low": None, "high": None, "reason": reason}
    assert missed(found) == f"How many pairs are missed is not known: {reason}."
    assert (found["cut_share"], found["full_share"], found["near_copies"]) == (None, None, [])


def test_no_sample_is_taken_of_records_and_the_report_says_so() -> None:
    found = make_check("near_dup", {"record": ["name"]}).summary({"compared": 3})  # type: ignore[attr-defined]

    assert (found["missed"]["high"], found["missed"]["reason"]) == (None, "no sample is taken of records")


def test_missed_pairs_are_said_with_an_upper_bound_that_is_never_rounded_down() -> None:
    sample = {"sampled": 830, "not_found": 0, "share": 0.0, "low": 0.0, "high": wilson(0, 830)[1]}
    some = {"sampled": 200, "not_found": 3, "share": 0.015, "low": 0.005, "high": 0.0432}

    assert missed({"missed": sample}) == (
        "Of 830 sampled pairs at or above the limit none was missed: at most 0.47 %, at 95 %."  # 0.4607
    )
    assert missed({"missed": some}) == (
        "Of 200 sampled pairs at or above the limit 3 were missed: about 1.5 %, at most 4.32 %, at 95 %."
    )
    assert missed({}) == ""


def test_rows_and_buckets_that_were_cut_are_said_with_their_shares() -> None:
    counts = {"cut_rows": 24, "rows": 1_200, "full_buckets": 3, "buckets": 1_000}

    found = make_check("near_dup", {}).summary(counts)  # type: ignore[attr-defined]

    assert (found["cut_share"], found["full_share"]) == (0.02, 0.003)
    assert cut(found) == (
        "24 rows (2.0 % of those with a candidate) had more candidates than are compared; 3 of 1,000 buckets (0.3 %) were full."
    )


def test_near_copies_are_counted_in_steps_of_two_hundredths_and_all_are_drawn() -> None:
    values = np.array([0.58, 0.6, 0.7, 0.719, 0.72, 0.98, 1.0])

    found = summary(count_copies(values))["near_copies"]

    assert found == [[0.58, 0.6, 1], [0.6, 0.62, 1], [0.7, 0.72, 2], [0.72, 0.74, 1], [0.98, 1.0, 2]]
    drawn = copies({"near_copies": found}, 0.58)
    assert drawn.count("<rect") == 5
    assert "0.98 to 1: 2 rows" in drawn
    assert copies({"near_copies": []}, 0.58) == ""


def test_texts_too_short_for_a_shingle_are_counted_by_script_and_language(tmp_path: Path) -> None:
    texts = ["one two", "три слова здесь", "你好", "12 34", "ｆｕｌｌ width", "...", None, "  ", "one two three four five"]
    source = pa.table({"id": [str(row) for row in range(9)], "text": texts})

    run = api.run({**PIPELINE, "stages": ["near_dup"]}, source=source, out=tmp_path / "out")

    detail = run.report["stages"]["near_dup"]["detail"]
    assert detail["short"] == {"rows": 5, "words": {"Latin": 2, "Cyrillic": 1, "Han": 1, "no letter": 1}, "by": {}}
    assert detail["wordless"] == {"rows": 3, "words": {"blank": 1, "marks only": 1, "null": 1}, "by": {}}
    page = (run.path / "report.html").read_text()
    assert "Latin 2, Cyrillic 1, Han 1, no letter 1" in page
    assert "blank 1, marks only 1, null 1" in page


def test_short_texts_are_counted_by_the_categories_of_earlier_stages_over_all_parts(tmp_path: Path) -> None:
    english = "This is an English sentence with several words in it."
    for part in ("a", "b"):
        rows = pa.table({"id": [f"{part}{row}" for row in range(3)], "text": [english, "Hello there you", None]})
        pq.write_table(rows, tmp_path / f"{part}.parquet")

    run = api.run({**PIPELINE, "stages": ["language", "near_dup"]}, source=str(tmp_path / "*.parquet"), out=tmp_path / "out")

    detail = run.report["stages"]["near_dup"]["detail"]
    language = {row["language.language"] for row in pq.read_table(run.path / "scores").to_pylist() if row["row_id"] in (1, 4)}
    assert (detail["short"]["rows"], detail["short"]["by"]) == (2, {"language.language": {language.pop() or "(missing)": 2}})
    assert detail["wordless"]["by"] == {"language.language": {"(missing)": 2}}


def test_the_plan_says_what_will_be_found(tmp_path: Path) -> None:
    pq.write_table(source(), tmp_path / "data.parquet")

    planned = api.plan(api.Pipeline.from_dict(PIPELINE), str(tmp_path / "data.parquet")).to_dict()

    facts = planned["stages"][0]["facts"]
    assert facts["shingle"] == "5 words, or characters where a script has no spaces"
    assert words(facts) == (
        "Found, by theory, of pairs of a similarity: 54.8 % at 0.5, 86.8 % at 0.6, 99.0 % at 0.7, 99.9 % at 0.75, "
        ">99.9 % at 0.8, >99.9 % at 0.85, >99.9 % at 0.9, >99.9 % at 0.95"
    )
    need = planned["groups"]["near_dup"]
    assert need["disk_bytes"] >= 16 * 25 * 120 + 1.4 * 120 * 12_000
    assert need["memory_bytes"] == 26 * 120
    assert planned["disk"]["store_bytes"] > need["disk_bytes"]
    shown = printed(listing.plan(planned))
    assert "near_dup: 25 bands of 5 minima over shingles of 5 words, or characters" in shown
    assert "similarity       0.5      0.6      0.7     0.75" in shown
    assert "pairs found   54.8 %   86.8 %   99.0 %   99.9 %  >99.9 %" in shown


@pytest.mark.parametrize(("sampled", "lost", "said"), [(830, 0, True), (29, 0, False), (29, 1, True), (0, 0, False)])
def test_the_terminal_has_a_line_where_the_sample_says_something(sampled: int, lost: int, said: bool) -> None:
    counts = {"sampled": sampled, "sampled_found": sampled - lost}
    detail = make_check("near_dup", {}).summary(counts)  # type: ignore[attr-defined]
    stage = {"status": "evaluated", "rows_in": 2, "rejected": 0, "rejected_share": 0.0, "kept": 2, "detail": detail}
    rows = {"input": 2, "kept": 2, "rejected": 0, "quarantined": 0}

    shown = printed(terminal.summary({"name": "x", "status": "complete", "rows": rows, "stages": {"near_dup": stage}}))

    assert (f"near_dup: {missed(detail)}" in shown) is said
    assert ("sampled pair" in shown) is said


def printed(text: Any) -> str:
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(text)
    return capture.get()


def test_the_curve_is_drawn_with_its_limit_and_points() -> None:
    drawn = curve({"curve": [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]], "observed": [[0.5, 0.55, 10, 5], [0.6, 0.65, 0, 0]]}, 0.8)

    assert drawn.count("<circle") == 1
    assert 'class="limit"' in drawn
    assert curve({}, 0.8) == ""


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)]
)
def test_wilson_intervals(hits: int, of: int, low: float, high: float) -> None:
    assert wilson(hits, of) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_rows_without_a_word_are_counted_by_their_language(tmp_path: Path) -> None:
    english, german = "This is an English sentence with several words in it.", "Dies ist ein deutscher Satz mit vielen Wörtern."
    texts = pa.table({"id": ["a", "b", "c", "d"], "text": [english, "...", None, german]})

    run = api.run({**PIPELINE, "stages": ["language", "near_dup"]}, source=texts, out=tmp_path / "out")

    stage = run.report["stages"]["near_dup"]
    assert (stage["missing"], stage["missing_by"]) == (2, {"language.language": {"(missing)": 2}})
    assert "2 without an answer (language.language: (missing) 2)" in (run.path / "report.html").read_text()
