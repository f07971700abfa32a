"""What a run says of near duplicates beside the verdicts: the curve, what was compared, and what a sample saw."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from curate import api
from curate.check import make_check
from curate.intervals import wilson
from curate.render.curve import curve, missed, words

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
    assert (sample["not_found"], sample["share"], sample["low"]) == (0, 0.0, 0.0)
    assert sample["high"] == wilson(0, sample["sampled"])[1]
    assert sum(of for low, _, of, _ in detail["observed"] if low >= 0.8) == sample["sampled"]
    page = (run.path / "report.html").read_text()
    assert "Which pairs are found" in page
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
    }
    assert found["observed"] == [[0.45, 0.5, 8, 1], [0.5, 0.55, 30, 5]]


def test_an_empty_sample_says_nothing() -> None:
    found = make_check("near_dup", {}).summary({})  # type: ignore[attr-defined]

    assert found["missed"] == {"sampled": 0, "not_found": 0, "share": None, "low": 0.0, "high": 1.0}
    assert missed(found) == "No pair at or above the limit was in the sample, so it says nothing of missed pairs."


def test_the_plan_says_what_will_be_found(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(source(), tmp_path / "data.parquet")

    planned = api.plan(api.Pipeline.from_dict(PIPELINE), str(tmp_path / "data.parquet")).to_dict()

    facts = planned["stages"][0]["facts"]
    assert facts["shingle"] == "5 words, or characters where a script has no spaces"
    assert words(facts) == "A pair is found with a chance of 0.5478 at 0.5, 0.8678 at 0.6, 0.9899 at 0.7, 1 at 0.8, 1 at 0.9"
    assert planned["disk"]["store_bytes"] > 25 * 24 * 120


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
