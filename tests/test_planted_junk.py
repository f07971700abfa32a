"""What the text checks of pipelines/corpus.yaml find of the junk in the sample corpus, by kind, and what it costs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from runs import scores, verdicts

from curate import api

TEXT_STAGES = ("text_quality", "english")
REAL = ("original", "other_language")


@pytest.fixture(scope="module")
def rows(root: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The truth of each row, what became of it and its scores."""
    whole = api.load(root / "pipelines" / "corpus.yaml")
    run = api.run(whole, root / "sample_data" / "corpus", tmp_path_factory.mktemp("corpus") / "out").path
    truth = pl.read_parquet(root / "sample_data" / "truth.parquet").with_columns(pl.col("source_row").cast(pl.UInt64))
    told = verdicts(run).join(scores(run), on="row_id").join(truth, on=["source_file", "source_row"], suffix="_truth")
    assert told.height == truth.height
    return told


def of_kind(rows: pl.DataFrame, *kinds: str) -> pl.DataFrame:
    found = rows.filter(pl.col("kind").is_in(kinds))
    assert found.height
    return found


@pytest.mark.parametrize(
    ("kind", "least", "columns"),
    [
        ("symbols", 24, {"alphabetic_word_share"}),
        ("code", 23, {"alphabetic_word_share"}),
        ("keywords", 23, {"newlines_per_word", "stop_words"}),
        ("boilerplate", 28, {"newlines_per_word"}),
        ("repeated_lines", 19, {"repeated_char_share"}),
        ("repeated_paragraphs", 19, {"repeated_char_share"}),
        ("lorem_ipsum", 22, {"newlines_per_word", "has_lorem_ipsum"}),
    ],
)
def test_junk_is_rejected_for_what_it_is(rows: pl.DataFrame, kind: str, least: int, columns: set[str]) -> None:
    found = of_kind(rows, kind).filter(pl.col("stage").is_in(TEXT_STAGES))

    assert found.height >= least
    assert set(found["column"]) == columns


def test_the_text_checks_reject_less_than_three_in_a_hundred_real_documents(rows: pl.DataFrame) -> None:
    real = of_kind(rows, *REAL)

    alarms = real.filter(pl.col("stage").is_in(TEXT_STAGES))

    assert real.height == 2142
    assert alarms.height < 0.03 * real.height
    assert alarms.filter(pl.col("kind") == "other_language").height <= 3


def test_no_copy_is_rejected_by_the_text_checks_before_it_is_found(rows: pl.DataFrame) -> None:
    copies = of_kind(rows, "exact_copy", "normalised_copy", "near_copy", "chain", "personal_data", "look_alike")

    assert copies.filter(pl.col("stage").is_in(TEXT_STAGES))["id"].to_list() == []


def test_mojibake_passes_the_text_checks_but_half_of_it_is_in_no_language_for_sure(rows: pl.DataFrame) -> None:
    unsure = pl.col("language.confidence") < 0.5

    assert of_kind(rows, "mojibake").filter(pl.col("stage").is_in(TEXT_STAGES)).height <= 6
    assert of_kind(rows, "mojibake").filter(unsure | pl.col("stage").is_in(TEXT_STAGES)).height >= 13
    assert of_kind(rows, *REAL).filter(unsure).height < 0.01 * 2142


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("email", "emails"),
        ("ip", "ips"),
        ("phone", "phones"),
        ("card", "cards"),
        ("iban", "ibans"),
        ("secret", "secrets"),
    ],
)
def test_personal_data_is_counted_where_it_was_planted(rows: pl.DataFrame, kind: str, column: str) -> None:
    planted = of_kind(rows, "personal_data", "look_alike").select("id", "planted", f"pii.{column}").rows()

    expected = {name: Counter((kinds or "").split(","))[kind] for name, kinds, _ in planted}

    assert sum(expected.values()) == 16
    assert {name: count for name, _, count in planted} == expected


def test_what_only_looks_like_personal_data_is_not_counted(rows: pl.DataFrame) -> None:
    assert of_kind(rows, "look_alike").filter(pl.col("pii.has_pii"))["id"].to_list() == []


def test_reports_reject_nothing_and_the_gate_counts_the_rows_with_personal_data(rows: pl.DataFrame) -> None:
    assert rows.filter(pl.col("stage").is_in(["language", "pii"])).height == 0
    assert rows.filter(pl.col("pii.has_pii"), pl.col("kind") == "personal_data").height == 48
    assert rows.filter(pl.col("pii.has_pii"), pl.col("kind") != "personal_data")["kind"].unique().to_list() == ["original"]
