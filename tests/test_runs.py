"""Whole runs, case by case: conditions, shares, empty inputs, mixed formats, faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import (
    assert_accounted,
    by_id,
    data_files,
    document,
    flag,
    numbered,
    numbers,
    pipeline,
    run_all,
    scores,
    verdicts,
    write_jsonl,
    write_parquet,
)
from toy_checks import LOG, Amount, Centre, Length, Lottery, SameValue, Twice, calls

from curate import api
from curate.errors import InputError, InvariantError, RequestError
from curate.pipeline import Stage
from curate.steps import write as write_module
from curate.steps.base import Batch, read_part


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one row group, many batches, several shards."""
    monkeypatch.setattr("curate.source.parquet.PART_BYTES", 1)
    monkeypatch.setattr("curate.source.parquet.BATCH_BYTES", 16)
    monkeypatch.setattr("curate.plan.SHARD_KEYS", 16)


def test_a_fit_check_learns_from_the_same_sample_however_the_data_is_cut(room: Path, small_parts: None) -> None:
    table = numbered(150)
    write_parquet(room / "few.parquet", table, 100)
    write_parquet(room / "many.parquet", table, 7)
    stages = ["missing", flag(Centre(), above=0.3, of="distance")]

    runs = dict(run_all(stages, {name: room / f"{name}.parquet" for name in ("few", "many")}, room / "out"))

    seen = {name: scores(run.path)["centre.seen"].to_list() for name, run in runs.items()}
    assert seen["few"] == seen["many"]
    assert runs["few"].report["stages"]["centre"]["detail"]["names"] == ["é", "", "long name"]
    assert seen["few"].count(True) == Centre.fit_rows == runs["few"].report["stages"]["centre"]["detail"]["fitted_rows"]
    assert by_id(runs["few"].path) == by_id(runs["many"].path)


def test_a_fit_check_learns_only_from_rows_that_are_alive_and_meet_its_condition(room: Path) -> None:
    table = numbered(40, [float(at) for at in range(40)])
    stages = [flag(Amount(), above=29.0, of="amount"), Stage(Centre(), reject=[], when="value >= 10")]

    api.run(pipeline(*stages), table, room / "out")

    seen = scores(room / "out").filter(pl.col("centre.seen"))["row_id"].to_list()
    assert seen == list(range(10, 30))


def test_a_check_reads_the_columns_of_earlier_stages(room: Path, small_parts: None) -> None:
    table = numbered(60)
    write_parquet(room / "many.parquet", table, 7)
    stages = [Stage(Amount(), reject=[{"above": 0.9, "of": "amount"}], when="value > 0.1"), Stage(Twice(), reject=[])]

    runs = dict(run_all(stages, {"few": table, "many": room / "many.parquet"}, room / "out"))

    values = table.column("value").to_pylist()
    asked = [value if value is not None and 0.1 < value else None for value in values]
    most = max(value for value in asked if value is not None and value <= 0.9)
    expected = [None if value is None or value > 0.9 else 2 * value - most for value in asked]
    for run in runs.values():
        assert scores(run.path)["twice.twice"].to_list() == expected


def test_a_check_whose_earlier_stage_is_not_there_says_so(room: Path) -> None:
    with pytest.raises(RequestError, match="reads what `amount` says"):
        api.run(pipeline(Twice(), Amount()), numbered(5), room / "out")


def test_when_leaves_rows_unasked(room: Path) -> None:
    table = numbered(30, [float(at) for at in range(30)])

    run = api.run(pipeline(Stage(Length(most=0), when="value < 5")), table, room / "out")

    stage = run.report["stages"]["length"]
    texts = table.column("text").to_pylist()
    assert stage["asked"] == 5
    assert rejected_rows(run.path) == [at for at in range(5) if texts[at] is not None]
    assert scores(run.path)["length.characters"].is_not_null().to_list() == [at < 5 and texts[at] is not None for at in range(30)]


def test_until_runs_the_first_stages_only(room: Path) -> None:
    stages = ["missing", "exact_dup", Amount()]

    part = api.run(pipeline(*stages), numbered(50), room / "part", until="exact_dup")
    alone = api.run(pipeline(*stages[:2]), numbered(50), room / "alone")
    whole = api.run(pipeline(*stages), numbered(50), room / "part")

    assert part.report["stages"] == alone.report["stages"]
    assert list(whole.report["stages"]) == ["missing", "exact_dup", "amount"]
    with pytest.raises(RequestError, match="exact_dub"):
        api.run(pipeline(*stages), numbered(50), room / "part", until="exact_dub")


def test_worst_fraction_in_the_middle_counts_the_rows_it_was_asked_about(room: Path, small_parts: None) -> None:
    write_parquet(room / "in.parquet", numbered(100, [float(at) for at in range(100)]), 9)
    middle = flag(Amount(), name="middle", worst_fraction=0.1, of="amount")
    stages = [
        flag(Amount(), name="first", above=79.0, of="amount"),
        middle,
        Stage(Amount(), name="last", reject=[{"below": 5.0, "of": "amount"}]),
    ]

    run = api.run(pipeline(*stages), room / "in.parquet", room / "out")

    out = verdicts(run.path)
    assert out.filter(pl.col("stage") == "middle")["row_id"].to_list() == list(range(72, 80))
    assert out.filter(pl.col("stage") == "last")["row_id"].to_list() == list(range(5))
    assert out.filter(pl.col("stage") == "middle")["limit"].unique().to_list() == [71.0]
    assert run.report["stages"]["middle"]["reasons"][0]["limit"] == 71.0


def test_a_worst_fraction_that_all_values_fit_into_rejects_them_all(room: Path) -> None:
    values = [1.0, None, None, None, 3.0, None, None, None, None, None]
    table = numbered(10, values)

    run = api.run(pipeline(flag(Amount(), worst_fraction=0.5, of="amount")), table, room / "out")

    assert rejected_rows(run.path) == [0, 4]
    assert api.why(run.path, 4)["verdict"] == "rejected"


def rejected_rows(run: Path) -> list[int]:
    return verdicts(run).filter(pl.col("verdict") == "rejected")["row_id"].to_list()


@pytest.mark.parametrize("mode", ["staged", "audit"])
def test_stages_after_one_that_dropped_everything_are_not_evaluated(room: Path, mode: str, small_parts: None) -> None:
    write_parquet(room / "in.parquet", numbered(30, [1.0] * 30), 10)
    everything = flag(Amount(), above=0.0, of="amount")
    after = [
        "missing",
        "exact_dup",
        "near_dup",
        flag(Centre(), above=0.1, of="distance"),
        flag(Amount(), name="worst", worst_fraction=0.5, of="amount"),
    ]

    run = api.run(pipeline(everything, *after, mode=mode), room / "in.parquet", room / "out")

    states = {name: stage["status"] for name, stage in run.report["stages"].items()}
    assert run.report["rows"]["kept"] == 0
    assert_accounted(run.path, pq.read_table(room / "in.parquet").to_pylist())
    assert pq.read_table(run.kept).schema.names == ["id", "text", "value"]
    if mode == "staged":
        assert states == {"amount": "evaluated"} | dict.fromkeys(list(states)[1:], "not evaluated")


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("form", ["parquet", "memory", "jsonl"])
def test_no_row_and_one_row_are_data_sets_too(room: Path, rows: int, form: str) -> None:
    table = numbered(rows)
    stages = ["missing", "exact_dup", "near_dup", flag(Centre(), above=0.1, of="distance"), SameValue(), Lottery()]
    source: Any = table
    if form == "parquet":
        source = write_parquet(room / "in.parquet", table)
    if form == "jsonl":
        source = write_jsonl(room / "in.jsonl", table.to_pylist())
    if form == "jsonl" and not rows:
        with pytest.raises(InputError, match="no rows and no columns"):
            api.run(pipeline(*stages), source, room / "out")
        return

    run = api.run(pipeline(*stages), source, room / "out")

    assert_accounted(run.path, table.to_pylist())
    assert pq.read_table(run.kept).num_rows == rows


def test_tables_in_memory_are_curated_like_files(room: Path) -> None:
    table = numbered(45)
    rows = table.to_pylist()
    forms = {
        "file": write_parquet(room / "in.parquet", table),
        "arrow": table,
        "batches": table.to_reader(max_chunksize=7),
        "pandas": pd.DataFrame(rows),
        "polars": pl.DataFrame(rows, schema={"id": pl.String, "text": pl.String, "value": pl.Float64}),
        "lazy": pl.DataFrame(rows, schema={"id": pl.String, "text": pl.String, "value": pl.Float64}).lazy(),
        "dicts": (dict(row) for row in rows),
        "tables": iter([table.slice(0, 20), table.slice(20)]),
    }
    stages = ["missing", "exact_dup", flag(Centre(), above=0.3, of="distance")]

    runs = dict(run_all(stages, forms, room / "out"))

    expected = by_id(runs["file"].path)
    assert {name: by_id(run.path) == expected for name, run in runs.items()} == dict.fromkeys(forms, True)
    assert_accounted(runs["arrow"].path, rows)


def test_formats_schemas_partitions_and_empty_files_come_together(room: Path) -> None:
    here = room / "in"
    write_parquet(here / "year=2023" / "a.parquet", numbered(20))
    write_parquet(here / "year=2024" / "b.parquet", numbered(0))
    more = [{"id": f"j{at}", "text": "j text", "value": at, "extra": [at]} for at in range(3)]
    write_jsonl(here / "year=2024" / "c.jsonl", more)
    write_jsonl(here / "year=2024" / "d.jsonl", [])
    (here / "year=2025").mkdir()
    (here / "year=2025" / "e.csv").write_text("id,text,value\nc1,csv text,0.5\nc2,,\n")

    run = api.run(pipeline("exact_dup", Stage(Amount(), when="year == 2023")), here, room / "out")

    expected = [{**row, "year": 2023, "extra": None} for row in numbered(20).to_pylist()]
    expected += [{**row, "value": float(row["value"]), "year": 2024} for row in more]
    expected += [
        {"id": "c1", "text": "csv text", "value": 0.5, "year": 2025, "extra": None},
        {"id": "c2", "text": "", "value": None, "year": 2025, "extra": None},
    ]
    names = pq.read_table(run.kept).schema.names
    assert_accounted(run.path, [{name: row[name] for name in names} for row in expected])
    assert set(run.report["sources"]) >= {"year=2023/a.parquet", "year=2024/c.jsonl", "year=2025/e.csv"}


def test_bad_text_in_parquet_is_quarantined_whatever_the_stages_read(room: Path) -> None:
    texts = pa.array([b"fine", b"b\xffd", None, b"also fine"], pa.binary()).view(pa.string())
    table = pa.table(
        {
            "id": pa.array(["a", "b", "c", "d"]),
            "text": pa.array(["1", "2", "3", "4"]),
            "note": texts,
            "value": [0.1, 0.2, 0.3, 0.4],
        }
    )
    source = write_parquet(room / "in.parquet", table)

    for name, stage in (("numbers", Amount()), ("texts", "exact_dup"), ("fit", flag(Centre(), above=9.0, of="distance"))):
        run = api.run(pipeline(stage), source, room / name)

        good = table.filter(pa.array([True, False, True, True])).to_pylist()
        assert_accounted(run.path, [good[0], None, *good[1:]])


def test_too_many_unreadable_rows_stop_the_run_before_anything_is_published(room: Path) -> None:
    source = write_jsonl(room / "in.jsonl", [*numbered(9).to_pylist(), b"{"])

    with pytest.raises(InputError, match=r"1 of 10 rows .*in\.jsonl, line 10"):
        api.run(pipeline("missing", quarantine_limit=0.05), source, room / "out")

    assert not (room / "out" / "kept").exists()
    assert api.run(pipeline("missing", quarantine_limit=0.1), source, room / "out").report["rows"]["quarantined"] == 1


def test_a_check_may_read_no_column_at_all(room: Path, small_parts: None) -> None:
    table = pa.table({"n": list(range(50))})
    write_parquet(room / "in.parquet", table, 20)
    write_jsonl(room / "in.jsonl", table.to_pylist())
    stages = [flag(Lottery(), above=0.5, of="ticket")]

    runs = [api.run(pipeline(*stages, roles={}), room / f"in.{form}", room / form) for form in ("parquet", "jsonl")]

    assert rejected_rows(runs[0].path) == rejected_rows(runs[1].path) != []
    for run in runs:
        assert_accounted(run.path, table.to_pylist())


def test_a_file_that_was_written_anew_is_read_anew(room: Path) -> None:
    table = numbered(5)
    source = write_parquet(room / "in.parquet", table)
    api.run(pipeline("missing"), source, room / "out")

    wider = table.append_column("more", pa.array(list("abcde")))
    write_parquet(source, wider)
    run = api.run(pipeline("missing"), source, room / "out")

    assert_accounted(run.path, wider.to_pylist())


def test_the_seed_moves_what_is_random(room: Path) -> None:
    stages = [flag(Lottery(), above=0.5, of="ticket")]

    outs = [api.run(pipeline(*stages, seed=seed), numbered(60), room / str(seed)).path for seed in (1, 2)]

    assert rejected_rows(outs[0]) != rejected_rows(outs[1])


def test_infinite_and_huge_numbers_stay_out_of_the_json(room: Path) -> None:
    values = [float("inf"), -float("inf"), 1.7e308, 1.7e308, float("nan"), 1.0]
    stages = [flag(Amount(), worst_fraction=0.2, of="amount"), flag(Amount(), name="again", above=0.5, of="amount")]

    run = api.run(pipeline(*stages), numbered(6, values), room / "out")

    cells = run.report["stages"]["amount"]["scores"]["amount"]
    assert (cells["count"], cells["missing"], cells["min"], cells["max"], cells["mean"]) == (5, 1, 1.0, 1.7e308, None)
    assert document(run.path, "manifest.json")["status"] == "complete"


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
@pytest.mark.parametrize("module", ["scan", "write"])
@pytest.mark.parametrize("fault", ["lose", "double"])
def test_a_reader_that_loses_or_doubles_a_row_is_caught_before_anything_is_published(
    room: Path, form: str, module: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = numbered(20)
    source: Path = room / f"in.{form}"
    write_parquet(source, table) if form == "parquet" else write_jsonl(source, table.to_pylist())
    before = data_files(api.run(pipeline("missing"), source, room / "out").path)

    def broken(*args: Any) -> Iterator[Batch]:
        for batch in read_part(*args):
            rows = [*range(13), *range(14, 20)] if fault == "lose" else [*range(20), 19]
            yield Batch(batch.table.take(rows), batch.positions[rows])

    monkeypatch.setattr(f"curate.steps.{module}.read_part", broken)
    with pytest.raises(InvariantError):
        api.run(pipeline("missing", Length(most=5)), source, room / "out")

    assert data_files(room / "out") == before
    assert document(room / "out", "manifest.json")["status"] == "complete"


def test_a_row_written_to_the_wrong_side_is_caught_although_the_counts_agree(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = write_module.row_ids

    def shifted(part: Any, positions: Any) -> Any:
        return real(part, positions) if len(positions) < 20 else real(part, np.roll(positions, 1))

    monkeypatch.setattr(write_module, "row_ids", shifted)
    with pytest.raises(InvariantError, match="not the rows of the ledger"):
        api.run(pipeline(Length(most=21)), numbered(20), room / "out")

    assert not (room / "out" / "kept").exists()


def test_data_in_memory_is_curated_once(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOG, str(room / "log"))
    first = api.run(pipeline("missing", Amount()), numbered(20), room / "out")
    scored = calls(room / "log")
    again = api.run(pipeline("missing", Amount()), numbered(20), room / "out")

    assert calls(room / "log") == scored
    assert numbers(again.path) == numbers(first.path)
    assert again.report["costs"]["tasks_reused"] == again.report["costs"]["tasks"]
