"""What a run leaves behind is the contract other tools are built on: schemas, bytes, names and readers."""

from __future__ import annotations

import base64
import csv
import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pq
import pytest
import zstandard
from runs import assert_accounted, data_files, quarantined, rows_in, scores, verdicts

from curate import api
from curate.errors import RequestError

ROWS = 12
TEXTS = ["first text", "", "second text", None, "first text", "third text"] * 2
KEPT = [at for at in (0, 2, 5)]
"""what `missing` and `exact_dup` keep of TEXTS"""
PIPELINE = {"name": "test", "roles": {"id": "id", "text": "text"}, "stages": ["missing", "exact_dup"], "quarantine_limit": 1.0}
DOCUMENTS = {"manifest.json", "report.json", "samples.json", "report.html", "events.jsonl"}


def _column(kind: pa.DataType, *values: Any) -> pa.Array:
    return pa.array([None if at % 5 == 4 else values[at % len(values)] for at in range(ROWS)], kind)


def every_type() -> pa.Table:
    """A column of every type that Parquet keeps, with nulls, extremes and metadata."""
    day, moment = datetime.date(1999, 12, 31), datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999)
    struct = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.list_(pa.string()))])
    deep = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.float64())))]))
    columns = {
        "id": pa.array([f"r{at}" for at in range(ROWS)]),
        "text": pa.array(TEXTS),
        "large_string": _column(pa.large_string(), "a", ""),
        "binary": _column(pa.binary(), b"\xff\x00", b""),
        "large_binary": _column(pa.large_binary(), b"x"),
        "fixed_binary": _column(pa.binary(3), b"abc"),
        "decimal": _column(pa.decimal128(20, 4), decimal.Decimal("1.2345"), decimal.Decimal("-0.0001")),
        "decimal256": _column(pa.decimal256(50, 5), decimal.Decimal("123456789012345678901234567890.12345")),
        "timestamp": _column(pa.timestamp("us"), moment),
        "timestamp_tz": _column(pa.timestamp("ms", "Europe/Berlin"), datetime.datetime(2024, 2, 29)),
        "timestamp_ns": _column(pa.timestamp("ns", "UTC"), 1, 2**62 + 1),
        "date": _column(pa.date32(), day),
        "time32": _column(pa.time32("ms"), 1),
        "time64": _column(pa.time64("ns"), 86_399_999_999_000),
        "duration": _column(pa.duration("us"), -5, 7),
        "dictionary": _column(pa.string(), "red", "green").dictionary_encode(),
        "bool": _column(pa.bool_(), True, False),
        "uint64": _column(pa.uint64(), 2**64 - 1, 0),
        "int8": _column(pa.int8(), -128, 127),
        "half": pa.array(np.array([1.5, -0.0] * (ROWS // 2), np.float16)),
        "float": _column(pa.float32(), 1.5, float("inf")),
        "double": _column(pa.float64(), -0.0, 5e-324),
        "list": _column(pa.list_(pa.int32()), [1, None], []),
        "large_list": _column(pa.large_list(pa.string()), ["a", None]),
        "fixed_list": _column(pa.list_(pa.float32(), 2), [1.0, 2.0]),
        "struct": _column(struct, {"a": 1, "b": ["x"]}, {"a": None, "b": None}),
        "map": _column(pa.map_(pa.string(), pa.int64()), [("k", 1)], []),
        "deep": _column(deep, [{"m": [("q", [1.0, None])]}]),
        "null": pa.nulls(ROWS),
    }
    fields = [
        pa.field(name, array.type, metadata={"unit": "kg"} if name == "double" else None) for name, array in columns.items()
    ]
    metadata = {b"huggingface": b'{"info": {}}', b"own": "ünï".encode()}
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields, metadata=metadata))


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, Path]:
    """The table as Parquet gives it back, and a run over it."""
    folder = tmp_path_factory.mktemp("typed")
    pq.write_table(every_type(), folder / "data.parquet", row_group_size=5)
    run = api.run(PIPELINE, source=folder / "data.parquet", out=folder / "out")
    return pq.ParquetFile(folder / "data.parquet").read(), run.path


def _files(run: Path, folder: str) -> list[Path]:
    return sorted((run / folder).iterdir())


def _tables(run: Path, folder: str) -> pa.Table:
    return pa.concat_tables(pq.ParquetFile(path).read() for path in _files(run, folder))


# ---- kept -------------------------------------------------------------------------------------


def test_kept_has_the_inputs_schema_and_exactly_the_kept_rows_in_order(typed: tuple[pa.Table, Path]) -> None:
    table, run = typed

    kept = _tables(run, "kept")

    assert kept.schema.equals(table.schema, check_metadata=True)
    assert kept.to_pylist() == table.take(KEPT).to_pylist()
    assert verdicts(run).filter(pl.col("verdict") == "kept")["row_id"].to_list() == KEPT


@pytest.mark.parametrize("form", ["memory", "arrow"])
def test_types_survive_from_memory_and_arrow_files_too(tmp_path: Path, form: str) -> None:
    table = every_type()
    source: Any = table
    if form == "arrow":
        source = tmp_path / "data.arrow"
        with pa.ipc.new_file(str(source), table.schema) as writer:
            writer.write(table)

    kept = _tables(api.run(PIPELINE, source=source, out=tmp_path / "out").path, "kept")

    assert kept.schema.equals(table.schema, check_metadata=False)
    assert kept.schema.metadata == table.schema.metadata
    assert kept.to_pylist() == table.take(KEPT).to_pylist()


def test_metadata_that_stands_in_the_file_alone_is_kept(tmp_path: Path) -> None:
    with pq.ParquetWriter(tmp_path / "data.parquet", pa.schema([("text", pa.string())])) as writer:
        writer.write_table(pa.table({"text": ["a"]}))
        writer.add_key_value_metadata({"crs": "EPSG:5070"})

    run = api.run({**PIPELINE, "roles": {"text": "text"}}, source=tmp_path / "data.parquet", out=tmp_path / "out")

    assert _tables(run.path, "kept").schema.metadata == {b"crs": b"EPSG:5070"}


def test_kept_opens_as_a_data_set_in_the_usual_readers(typed: tuple[pa.Table, Path]) -> None:
    pandas = pytest.importorskip("pandas")
    table, run = typed
    simple = [name for name in table.column_names if name not in ("duration", "map", "deep", "half", "decimal256", "null")]
    ids = table.take(KEPT).column("id").to_pylist()

    assert pa_dataset.dataset(run / "kept").to_table().to_pylist() == table.take(KEPT).to_pylist()
    assert pq.read_table(run / "kept").column("id").to_pylist() == ids
    assert pandas.read_parquet(run / "kept")["id"].tolist() == ids
    assert pl.read_parquet(run / "kept", columns=simple)["id"].to_list() == ids
    assert pl.scan_parquet(run / "kept").select("id").collect()["id"].to_list() == ids


def test_kept_opens_in_duckdb(typed: tuple[pa.Table, Path]) -> None:
    duckdb = pytest.importorskip("duckdb")
    table, run = typed

    found = duckdb.sql(f"select id, uint64, struct.b, list from read_parquet('{run}/kept/*') order by id").fetchall()

    assert found == [
        (row["id"], row["uint64"], (row["struct"] or {}).get("b"), row["list"]) for row in table.take(KEPT).to_pylist()
    ]


def test_kept_opens_in_hugging_face_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    run = api.run(PIPELINE, source=pa.table({"id": [f"r{at}" for at in range(ROWS)], "text": TEXTS}), out=tmp_path / "out")

    found = datasets.load_dataset(str(run.kept), split="train", cache_dir=str(tmp_path / "cache"))

    assert found["id"] == [f"r{at}" for at in KEPT]


def test_data_folders_hold_data_files_alone_and_documents_stand_beside_them(typed: tuple[pa.Table, Path]) -> None:
    _, run = typed

    assert {path.name for path in run.iterdir()} == DOCUMENTS | {
        "kept", "rejected", "quarantined", "verdicts", "scores", ".curate"
    }  # fmt: skip
    for folder in ("kept", "rejected", "verdicts", "scores"):
        assert [path.name for path in _files(run, folder)] == ["part-00000.parquet"]
    assert _files(run, "quarantined") == []


# ---- other formats ----------------------------------------------------------------------------

PLAIN = pa.table(
    {
        "id": [f"r{at}" for at in range(ROWS)],
        "text": [text and f'{text}, "quoted"\nüñí' for text in TEXTS],
        "number": pa.array([None if at % 5 == 4 else at * 10**15 for at in range(ROWS)], pa.int64()),
        "share": pa.array([at / 7 for at in range(ROWS)], pa.float64()),
    }
)


@pytest.mark.parametrize("form", ["jsonl", "jsonl.zst"])
def test_kept_as_json_lines_says_the_same_and_is_read_back_equal(tmp_path: Path, form: str) -> None:
    table = PLAIN.append_column("tags", pa.array([["a", None], []] * (ROWS // 2)))

    first = api.run({**PIPELINE, "output": {"format": form}}, source=table, out=tmp_path / "out")
    [path] = _files(first.path, "kept")
    raw = path.read_bytes() if form == "jsonl" else zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    again = api.run(PIPELINE, source=first.kept, out=tmp_path / "again")

    assert [json.loads(line) for line in raw.splitlines()] == table.take(KEPT).to_pylist()
    assert _tables(again.path, "kept").to_pylist() == table.take(KEPT).to_pylist()
    assert _tables(first.path, "rejected").num_rows == ROWS - len(KEPT)
    assert api.why(first.path, "r5")["row"] == table.take([5]).to_pylist()[0]


def test_kept_as_csv_says_the_same_and_is_read_back_equal(tmp_path: Path) -> None:
    first = api.run({**PIPELINE, "output": {"format": "csv"}}, source=PLAIN, out=tmp_path / "out")
    [path] = _files(first.path, "kept")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    again = api.run(PIPELINE, source=first.kept, out=tmp_path / "again")

    assert [row["text"] for row in rows] == PLAIN.take(KEPT).column("text").to_pylist()
    assert _tables(again.path, "kept").to_pylist() == PLAIN.take(KEPT).to_pylist()


def test_values_json_does_not_know_are_written_as_text(typed: tuple[pa.Table, Path], tmp_path: Path) -> None:
    table, _ = typed

    run = api.run({**PIPELINE, "output": {"format": "jsonl"}}, source=table, out=tmp_path / "out")
    first = json.loads(_files(run.path, "kept")[0].read_bytes().splitlines()[0])

    assert first["decimal"] == "1.2345"
    assert first["date"] == "1999-12-31"
    assert first["timestamp"] == "2024-02-29T23:59:59.999999"
    assert base64.b64decode(first["binary"]) == b"\xff\x00"
    assert first["uint64"] == 2**64 - 1
    assert first["struct"] == {"a": 1, "b": ["x"]}


# ---- the ledger ---------------------------------------------------------------------------------


def test_rejected_is_the_input_and_nine_columns_of_reasons(typed: tuple[pa.Table, Path]) -> None:
    table, run = typed

    rejected = _tables(run, "rejected")

    reasons = {
        "curate_stage": pa.string(), "curate_check": pa.string(), "curate_column": pa.string(), "curate_rule": pa.string(),
        "curate_value": pa.float64(), "curate_limit": pa.float64(), "curate_witness_row": pa.uint64(),
        "curate_witness_id": pa.string(),
        "curate_witness_source": pa.string(),
    }  # fmt: skip
    assert rejected.schema.equals(
        pa.schema([*table.schema, *reasons.items()], metadata=table.schema.metadata), check_metadata=True
    )
    gone = [at for at in range(ROWS) if at not in KEPT]
    assert rejected.select(table.column_names).to_pylist() == table.take(gone).to_pylist()
    copy = rejected.select(list(reasons)).to_pylist()[gone.index(4)]
    assert copy == {
        "curate_stage": "exact_dup", "curate_check": "exact_dup", "curate_column": "is_copy", "curate_rule": "is_true",
        "curate_value": 1.0, "curate_limit": 1.0, "curate_witness_row": 0, "curate_witness_id": "r0",
        "curate_witness_source": None,
    } | {key: copy[key] for key in ("curate_value", "curate_limit")}  # fmt: skip


def test_verdicts_and_scores_have_one_row_an_input_row_in_the_agreed_columns(typed: tuple[pa.Table, Path]) -> None:
    _, run = typed
    text, number = pa.string(), pa.uint64()

    ledger, columns = _tables(run, "verdicts"), _tables(run, "scores")

    assert list(zip(ledger.schema.names, ledger.schema.types, strict=True)) == [
        ("row_id", number), ("source_file", text), ("source_row", number), ("id", text), ("verdict", text), ("stage", text),
        ("check", text), ("column", text), ("rule", text), ("value", pa.float64()), ("limit", pa.float64()),
        ("witness_row", number), ("witness_id", text), ("witness_source", text),
    ]  # fmt: skip
    assert ledger.column("row_id").to_pylist() == list(range(ROWS)) == columns.column("row_id").to_pylist()
    assert ledger.column("source_row").to_pylist() == list(range(ROWS))
    assert set(ledger.column("source_file").to_pylist()) == {"data.parquet"}
    assert columns.schema.field("row_id").type == number
    assert {name.split(".", 1)[0] for name in columns.column_names} == {"row_id", "missing", "exact_dup"}
    assert columns.column("missing.text_missing").to_pylist() == [not text for text in TEXTS]


def test_quarantined_records_say_where_and_why_and_hold_the_bytes(tmp_path: Path) -> None:
    bad = b'{"id": "r1", "text": \xff}'
    (tmp_path / "data.jsonl").write_bytes(b'\n{"id":"r0","text":"a"}\n' + bad + b'\n{"id":"r2","text":"b"}\n')

    run = api.run(PIPELINE, source=tmp_path / "data.jsonl", out=tmp_path / "out")

    assert_accounted(run.path, [{"id": "r0", "text": "a"}, None, {"id": "r2", "text": "b"}])
    [record] = quarantined(run.path)
    assert record["reason"]
    assert {key: record[key] for key in record if key not in ("reason", "raw")} == {
        "row_id": 1, "source_file": "data.jsonl", "source_row": 1, "line": 3, "offset": 24,
        "raw_format": "bytes", "raw_truncated": False,
    }  # fmt: skip
    assert base64.b64decode(record["raw"]) == bad


@pytest.mark.parametrize("role", ["id", "text", "label", "group", "split", "features"])
def test_a_role_on_a_column_of_any_type_is_served_or_refused(typed: tuple[pa.Table, Path], tmp_path: Path, role: str) -> None:
    table = pq.ParquetFile(typed[1].parent / "data.parquet").read()
    far = pa.array([10**7] * ROWS, pa.date32()), pa.array([2**53] * ROWS, pa.timestamp("ms"))
    table = table.append_column("far_date", far[0]).append_column("far_time", far[1])
    pq.write_table(table, tmp_path / "data.parquet")

    for number, name in enumerate(table.column_names):
        pipeline = {**PIPELINE, "roles": {role: name}, "stages": [{"missing": {"of": ["id"]}}]}
        try:
            run = api.run(pipeline, source=tmp_path / "data.parquet", out=tmp_path / f"out{number}")
        except RequestError as err:
            refused = str(err)
        else:
            refused = ""
        if refused:
            assert f"`{name}`" in refused
            continue
        assert run.report["rows"]["kept"] == ROWS or role == "text"
        assert api.why(run.path, 0)["row"]["far_date"].startswith("29349-")


def test_moments_that_python_cannot_hold_are_written_as_json_text(tmp_path: Path) -> None:
    table = pa.table({"date": pa.array([10**7], pa.date32()), "time": pa.array([1], pa.time64("ns"))})

    run = api.run(
        {"name": "t", "stages": [{"missing": {"of": "date"}}], "output": {"format": "jsonl"}}, source=table, out=tmp_path / "o"
    )

    assert json.loads(_files(run.path, "kept")[0].read_bytes()) == {"date": "29349-01-26", "time": "00:00:00.000000001"}


def test_two_stages_of_one_check_keep_their_own_names_in_scores(tmp_path: Path) -> None:
    stages = [{"missing": {}, "as": "first"}, {"missing": {"of": ["id"]}, "as": "second"}]

    run = api.run({**PIPELINE, "stages": stages}, source=PLAIN, out=tmp_path / "out")

    assert {"first.text_null", "second.id_null"} <= set(scores(run.path).columns)
    assert set(verdicts(run.path)["stage"].drop_nulls()) == {"first"}
    assert set(verdicts(run.path)["check"].drop_nulls()) == {"missing"}


def test_a_run_that_keeps_or_rejects_nothing_still_has_every_folder_with_a_schema(tmp_path: Path) -> None:
    nothing = api.run(PIPELINE, source=pa.table({"id": ["a"], "text": [""]}), out=tmp_path / "nothing")
    everything = api.run(PIPELINE, source=pa.table({"id": ["a"], "text": ["x"]}), out=tmp_path / "everything")
    empty = api.run(PIPELINE, source=PLAIN.slice(0, 0), out=tmp_path / "empty")

    assert pl.read_parquet(nothing.kept).columns == ["id", "text"]
    assert pl.read_parquet(nothing.kept).height == 0
    assert len(pl.read_parquet(everything.path / "rejected").columns) == 11
    for folder in ("kept", "rejected", "verdicts", "scores"):
        assert pl.read_parquet(empty.path / folder).height == 0


@pytest.mark.slow
def test_the_number_of_workers_changes_no_byte(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for at in range(4):
        texts = [f"text number {row * 7919 % 900} of a file with some more words" for row in range(800)]
        pq.write_table(pa.table({"id": [f"{at}-{row}" for row in range(800)], "text": texts}), tmp_path / "in" / f"{at}.parquet")
    pipeline = {**PIPELINE, "stages": ["missing", "exact_dup", "near_dup"]}

    alone = api.run(pipeline, source=tmp_path / "in", out=tmp_path / "one")
    many = api.run(pipeline, source=tmp_path / "in", out=tmp_path / "two", workers=2)

    assert data_files(alone.path) == data_files(many.path)
    assert len(rows_in(alone.path, "kept")) == 800
