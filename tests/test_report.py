"""Every number of the report can be counted again from the ledger and the scores."""

from __future__ import annotations

import itertools
import json
import math
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import document, flag, numbered, pipeline, quarantined, rows_in, scores, verdicts, write_jsonl, write_parquet
from toy_checks import Amount, Centre, Length, SameValue

from curate import api
from curate.check import Column
from curate.dataset import Roles
from curate.intervals import wilson
from curate.pipeline import REPORT_NAMES, Stage
from curate.steps.count import add_summaries, edges_of, summary

ROLES = Roles(id="id", text="text", group=("lang", "kind"))
STAGES = [
    "missing",
    Stage(Amount(), on_missing="reject", reject=[{"above": 0.9, "of": "amount"}, {"below": 0.1, "of": "amount"}]),
    Stage(SameValue(), when='lang != "de"'),
    "exact_dup",
    "near_dup",
    flag(Amount(), name="worst", worst_fraction=0.2, of="amount"),
    flag(Centre(), above=0.2, of="distance"),
    Stage(Length(), name="nobody", when='lang == "xx"'),
]


@pytest.fixture
def source(room: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("curate.source.parquet.PART_BYTES", 1)
    table = numbered(120)
    table = table.append_column("lang", pa.array([("de", "en", None)[at % 3] for at in range(120)], pa.string()))
    table = table.append_column("kind", pa.array([at % 5 for at in range(120)], pa.int64()))
    write_parquet(room / "in" / "a.parquet", table.slice(0, 70), 25)
    write_jsonl(room / "in" / "b.jsonl", [b"{", *table.slice(70).to_pylist(), b"[]"])
    return room / "in"


@pytest.mark.parametrize("mode", ["staged", "audit"])
def test_stage_numbers_are_those_of_the_ledger_and_the_scores(room: Path, source: Path, mode: str) -> None:
    run = api.run(pipeline(*STAGES, roles=ROLES, mode=mode), source, room / "out")

    ledger, cells, rows_in_stage = verdicts(run.path), scores(run.path), 120
    for name, stage in run.report["stages"].items():
        mine = ledger.filter(pl.col("stage") == name)
        assert stage["rows_in"] == (120 if mode == "audit" else rows_in_stage)
        rows_in_stage -= mine.height
        assert stage["kept"] == rows_in_stage
        assert stage["rejected"] == mine.height
        assert stage["rejected_share"] == mine.height / 122
        assert_reasons(stage, mine)
        for column, told in stage["scores"].items():
            assert_summary(told, cells[f"{name}.{column}"], stage["asked"])
        assert stage["status"] == ("not evaluated" if name == "nobody" else "evaluated")
    assert rows_in_stage == run.report["rows"]["kept"]


def assert_reasons(stage: dict[str, Any], mine: pl.DataFrame) -> None:
    told = {(reason["column"], reason["rule"]): reason["rows"] for reason in stage["reasons"] if reason["rows"]}
    assert told == Counter(mine.select("column", "rule").iter_rows())
    limits = {
        (reason["column"], reason["rule"]): reason["limit"] for reason in stage["reasons"] if reason["rule"] != "on_missing"
    }
    for column, rule, limit in mine.filter(pl.col("rule") != "on_missing").select("column", "rule", "limit").iter_rows():
        assert limits[column, rule] == limit


def assert_summary(told: dict[str, Any], cells: pl.Series, asked: int) -> None:
    present = cells.drop_nulls()
    assert told["count"] == present.len()
    assert told["missing"] == asked - present.len()
    if told["kind"] == "flag":
        assert told["true"] == present.sum()
        return
    assert (told["min"], told["max"]) == (present.min(), present.max())
    assert told["mean"] == (pytest.approx(present.mean()) if present.len() else None)
    assert sum(count for *_, count in told["bins"]) == present.len()
    for low, high, count in told["bins"]:
        low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
        last = told["bins"][-1][1] == high
        assert count == sum(low <= value < high or (last and value == high) for value in present)


def test_sources_and_groups_add_up_to_the_whole(room: Path, source: Path) -> None:
    run = api.run(pipeline(*STAGES, roles=ROLES), source, room / "out")

    ledger, report = verdicts(run.path), run.report
    assert {name: tally(told) for name, told in report["sources"].items()} == recount(ledger, "source_file")
    rows = rows_in(run.path, "kept"), rows_in(run.path, "rejected")
    for column in ("lang", "kind"):
        told = report["groups"][column]
        for at, verdict in enumerate(("kept", "rejected")):
            names = Counter("(missing)" if row[column] is None else str(row[column]) for row in rows[at])
            assert {name: group[verdict] for name, group in told.items() if group[verdict]} == names
        assert sum(group["input"] for group in told.values()) == 120
        assert all(group["input"] == sum(tally(group)) for group in told.values())
        assert all(group["rejected_share"] == group["rejected"] / group["input"] for group in told.values())
    ledger_of_stage = Counter(ledger["stage"].drop_nulls().to_list())
    for told in (report["sources"], *report["groups"].values()):
        for stage, taken in ledger_of_stage.items():
            assert sum(group["stages"][stage]["rejected"] for group in told.values()) == taken


@pytest.mark.parametrize("mode", ["staged", "audit"])
def test_what_each_stage_takes_of_a_group_is_told_with_an_interval(room: Path, mode: str) -> None:
    texts = ["one text", "one text", "one text", "two text", None, "four text"]
    table = pa.table({"id": list("abcdef"), "text": texts, "lang": ["en", "en", "de", "en", "en", None]})

    run = api.run(pipeline("missing", "exact_dup", roles=Roles(id="id", text="text", group="lang"), mode=mode), table, room)

    told = run.report["groups"]["lang"]
    seen = 4 if mode == "audit" else 3
    low, high = wilson(1, seen)
    expected = {"rows_in": seen, "rejected": 1, "rejected_share": 1 / seen, "rejected_low": low, "rejected_high": high}
    assert told["en"]["stages"]["missing"]["rows_in"] == 4
    assert told["en"]["stages"]["exact_dup"] == expected
    assert (told["en"]["rejected_low"], told["en"]["rejected_high"]) == wilson(2, 4)
    assert told["de"]["stages"]["exact_dup"]["rejected_share"] == 1.0
    assert told["(missing)"]["stages"]["exact_dup"]["rejected"] == 0
    assert told["(missing)"]["stages"]["exact_dup"]["rejected_high"] == wilson(0, 1)[1]


def test_no_stage_can_be_called_like_a_key_or_a_step_of_the_report(room: Path, source: Path) -> None:
    report = api.run(pipeline("exact_dup", roles=ROLES), source, room / "out").report

    assert set(report) | (set(report["costs"]["stages"]) - {"exact_dup"}) <= REPORT_NAMES


def test_a_group_spelt_like_a_name_of_ours_is_another_group(room: Path) -> None:
    values = [None, "(missing)", '"(missing)"', "(other values)", "missing"]
    table = pa.table({"id": list("abcde"), "text": list("vwxyz"), "lang": values})

    run = api.run(pipeline("exact_dup", roles=Roles(id="id", text="text", group="lang")), table, room)

    names = {"(missing)", '"(missing)"', '""(missing)""', '"(other values)"', "missing"}
    assert {name: group["input"] for name, group in run.report["groups"]["lang"].items()} == dict.fromkeys(names, 1)


def tally(told: dict[str, Any]) -> tuple[int, int, int]:
    return told["kept"], told["rejected"], told["quarantined"]


def recount(ledger: pl.DataFrame, column: str) -> dict[str, tuple[int, int, int]]:
    out = {}
    for (name,), rows in ledger.group_by(column):
        counts = Counter(rows["verdict"].to_list())
        out[str(name)] = (counts["kept"], counts["rejected"], counts["quarantined"])
    return out


def test_groups_of_alike_rows_are_counted_by_who_points_at_whom(room: Path, source: Path) -> None:
    run = api.run(pipeline("exact_dup", roles=ROLES), source, room / "out")

    pointed = Counter(verdicts(run.path)["witness_row"].drop_nulls().to_list())
    told = run.report["stages"]["exact_dup"]["groups"]
    assert told["groups"] == len(pointed)
    assert told["rows"] == sum(pointed.values()) + len(pointed)
    ranked = sorted(pointed, key=lambda row: (-pointed[row], row))[:10]
    ids = dict(verdicts(run.path).select("row_id", "id").iter_rows())
    expected = [{"witness_row": row, "rows": pointed[row] + 1, "witness_id": ids[row]} for row in ranked]
    assert told["largest"] == expected


def test_witnesses_that_were_rejected_later_are_counted(room: Path) -> None:
    table = pa.table(
        {"id": list("abcd"), "text": ["one text", "one text", "two text", "two text"], "value": [0.9, 0.9, 0.1, 0.1]}
    )

    run = api.run(pipeline("exact_dup", flag(Amount(), above=0.5, of="amount")), table, room / "out")

    assert run.report["witness_rejected_later"] == 1
    assert verdicts(run.path)["witness_id"].to_list() == [None, "a", None, "c"]


def test_unreadable_rows_are_listed_with_their_reasons_and_places(room: Path, source: Path) -> None:
    run = api.run(pipeline("missing", roles=ROLES), source, room / "out")

    told = run.report["quarantine"]
    found = quarantined(run.path)
    assert sum(told["reasons"].values()) == len(found) == 2
    assert [(one["source_file"], one["source_row"], one["line"], one["reason"]) for one in told["examples"]] == [
        (one["source_file"], one["source_row"], one["line"], one["reason"]) for one in found
    ]
    assert [one["line"] for one in found] == [1, 52]
    assert [one["source_row"] for one in found] == [0, 51]


def test_the_documents_on_disk_are_the_report_and_plain_json(room: Path, source: Path) -> None:
    run = api.run(pipeline(*STAGES, roles=ROLES, gate=[{"metric": "rejected_share", "max": 0.0}]), source, room / "out")

    assert document(run.path) == json.loads(json.dumps(run.report, allow_nan=False))
    assert document(run.path, "gate.json") == json.loads(json.dumps(run.gate, allow_nan=False))
    assert run.exit_code == 3
    record = document(run.path, "manifest.json")
    assert sum(part["rows"] for part in record["parts"]) == 122
    assert {name: (run.path / name).stat().st_size for name in record["files"]} == record["files"]
    assert [part["first_row"] for part in record["parts"]] == sorted(part["first_row"] for part in record["parts"])
    assert {source["name"] for source in record["sources"]} == {"a.parquet", "b.jsonl"}


def test_costs_name_every_stage_and_activity(room: Path, source: Path) -> None:
    costs = api.run(pipeline(*STAGES, roles=ROLES), source, room / "out").report["costs"]

    assert set(costs["stages"]) >= {"ingest", "missing", "amount", "exact_dup", "near_dup", "centre", "write"}
    assert costs["bytes_read"] > 0
    assert costs["bytes_written"] > 0
    assert costs["peak_memory_bytes"] > 1 << 20
    assert all(
        step[f"{activity}_s"] >= 0 for step in costs["stages"].values() for activity in ("read", "decode", "score", "write")
    )
    assert costs["stages"]["missing"]["rows"] == 120
    assert costs["tasks_reused"] == 0


COLUMNS = [
    Column("s", "suspicion", "d"),
    Column("m", "measure", "d", "points"),
    Column("j", "measure", "d", "Jaccard"),
    Column("f", "flag", "d"),
]
FLOATS = st.lists(st.one_of(st.none(), st.floats(), st.floats(0, 1)), max_size=40)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FLOATS, st.lists(st.integers(0, 40), max_size=3), st.sampled_from(COLUMNS[1:3]))
def test_summaries_of_parts_add_up_to_the_summary_of_the_whole(
    values: list[float | None], cuts: list[int], column: Column
) -> None:
    whole = pa.chunked_array([pa.array(values, pa.float64())])
    bounds = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]

    parts = [summary(column, whole.slice(start, stop - start)) for start, stop in itertools.pairwise(bounds)]
    together, at_once = add_summaries(column, parts), add_summaries(column, [summary(column, whole)])

    json.dumps(together, allow_nan=False)
    for told in (together, at_once):
        mean = told.pop("mean")
        assert mean is None or math.isfinite(mean)
    assert together == at_once
    assert at_once["count"] + at_once["missing"] == len(values)
    assert sum(count for *_, count in at_once["bins"]) == at_once["count"]


@pytest.mark.parametrize("column", COLUMNS)
def test_bins_rise_and_cover_everything(column: Column) -> None:
    edges = edges_of(column).tolist()

    assert edges == sorted(set(edges))
    if column.kind == "measure" and column.unit == "points":
        assert (edges[0], edges[-1]) == (-math.inf, math.inf)


# The sample corpus, whose truth is known.


@pytest.fixture(scope="module")
def corpus(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    whole = api.load(root / "pipelines" / "corpus.yaml")
    return api.run(whole, root / "sample_data" / "corpus", tmp_path_factory.mktemp("corpus") / "out").path


@pytest.fixture(scope="module")
def truth(root: Path, corpus: Path) -> pl.DataFrame:
    """The truth of each row beside what became of it."""
    told = pl.read_parquet(root / "sample_data" / "truth.parquet").with_columns(pl.col("source_row").cast(pl.UInt64))
    joined = told.join(verdicts(corpus), on=["source_file", "source_row"], how="full", suffix="_run", coalesce=True)
    assert joined.height == told.height == 2753
    assert joined.filter(pl.col("id").ne_missing(pl.col("id_run"))).height == 0
    return joined


@pytest.fixture(scope="module")
def pairs(root: Path) -> dict[frozenset[str], float]:
    return {frozenset((a, b)): alike for a, b, alike in pl.read_parquet(root / "sample_data" / "truth_pairs.parquet").iter_rows()}


def test_the_quarantined_rows_are_the_broken_ones(truth: pl.DataFrame) -> None:
    broken = truth.filter(pl.col("kind") == "broken")["row_id"].to_list()

    assert truth.filter(pl.col("verdict") == "quarantined")["row_id"].to_list() == broken
    assert len(broken) == 8


def test_rows_without_text_are_rejected_as_missing_and_no_others(truth: pl.DataFrame) -> None:
    planted = truth.filter(pl.col("kind").is_in(["empty", "blank", "null_text"]))["row_id"].to_list()

    assert truth.filter(pl.col("stage") == "missing")["row_id"].to_list() == planted
    assert len(planted) == 45


def test_of_a_row_and_its_planted_copies_the_first_stays_and_is_the_witness_of_the_others(truth: pl.DataFrame) -> None:
    planted = truth.filter(pl.col("kind").is_in(["exact_copy", "normalised_copy"]))
    found = dict(truth.filter(pl.col("stage") == "exact_dup").select("id", "witness_id").iter_rows())
    row_of = dict(truth.filter(pl.col("id").is_not_null()).select("id", "row_id").iter_rows())
    expected: dict[str, str] = {}
    for (original,), copies in planted.group_by("of"):
        first, *others = sorted((str(original), *copies["id"]), key=lambda name: row_of[name])
        expected |= dict.fromkeys(others, first)

    assert len(expected) == planted.height == 120
    assert {name: found.get(name) for name in expected} == expected


def test_rows_are_rejected_as_copies_only_of_the_same_text(truth: pl.DataFrame, texts: dict[str, str | None]) -> None:
    copies = truth.filter(pl.col("stage") == "exact_dup").select("id", "witness_id").rows()

    assert [pair for pair in copies if plain(texts[pair[0]]) != plain(texts[pair[1]])] == []
    kept = [plain(texts[name]) for name in truth.filter(pl.col("verdict") == "kept")["id"] if (texts[name] or "").strip()]
    assert len(set(kept)) == len(kept)


@pytest.fixture(scope="module")
def texts(corpus: Path) -> dict[str, str | None]:
    return {row["id"]: row["text"] for folder in ("kept", "rejected") for row in rows_in(corpus, folder)}


def plain(text: str | None) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text or "").casefold())
    return " ".join(folded.split())


def test_no_row_is_rejected_that_is_less_alike_to_its_kept_witness_than_the_limit(
    truth: pl.DataFrame, pairs: dict[frozenset[str], float]
) -> None:
    near = truth.filter(pl.col("stage") == "near_dup")
    verdict = dict(truth.select("id", "verdict").iter_rows())

    assert near.height > 300
    for name, value, witness in near.select("id", "value", "witness_id").iter_rows():
        assert verdict[witness] == "kept"
        assert value >= 0.8
        assert pairs[frozenset((name, witness))] == pytest.approx(value, abs=1e-12)


def test_hardly_any_two_kept_rows_are_as_alike_as_the_limit(truth: pl.DataFrame, pairs: dict[frozenset[str], float]) -> None:
    kept = set(truth.filter(pl.col("verdict") == "kept")["id"])
    compared = kept | set(truth.filter(pl.col("stage").is_in(["exact_dup", "near_dup"]))["id"])
    alike = [pair for pair, similarity in pairs.items() if similarity >= 0.8 and pair <= compared]

    missed = [sorted(pair) for pair in alike if pair <= kept]

    assert len(alike) > 800
    assert len(missed) <= 0.01 * len(alike), missed


def test_rows_like_no_other_are_kept_but_for_what_the_text_checks_reject(
    truth: pl.DataFrame, pairs: dict[frozenset[str], float]
) -> None:
    twins = {name for pair, similarity in pairs.items() if similarity >= 0.8 for name in pair}
    kinds = ["original", "other_language", "near_miss", "personal_data", "look_alike"]
    alone = truth.filter(pl.col("kind").is_in(kinds), ~pl.col("id").is_in(twins))

    rejected = alone.filter(pl.col("verdict") != "kept")

    assert alone.height > 1400
    assert rejected.filter(~pl.col("stage").is_in(["text_quality", "english"]))["id"].to_list() == []
    assert rejected.height <= 0.03 * alone.height


def test_the_corpus_keeps_its_rows_as_they_were(corpus: Path, root: Path, truth: pl.DataFrame) -> None:
    folder = root / "sample_data" / "corpus"
    kept = {row["id"]: row for row in rows_in(corpus, "kept")}
    for name in ("en-0004.parquet", "multi-0001.parquet"):
        for row in pq.read_table(folder / name).to_pylist():
            assert row["id"] not in kept or kept[row["id"]] == row
    for line in (folder / "en-0002.jsonl").read_bytes().splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        assert row.get("id") not in kept or kept[row["id"]] == row
    assert truth.filter(pl.col("verdict") == "kept").height == len(kept)
