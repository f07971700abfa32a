"""Bad files, from real processes with a memory limit: the right data, quarantined rows or exit 4; nothing else."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from process import run_many
from runs import assert_accounted, quarantined, rows_in, verdicts

from curate import api
from curate.errors import InputError, RequestError

TEXT = {"name": "test", "roles": {"text": "text"}, "stages": ["missing"], "quarantine_limit": 1.0}


def examine(columns: list[str]) -> dict[str, Any]:
    return {"name": "test", "stages": [{"missing": {"of": columns}}], "quarantine_limit": 1.0}


def assert_answered(answer: Mapping[str, Any], source: Path) -> None:
    """Done, or an input error that names the file and says why; never anything else."""
    assert answer["code"] in (0, 4), answer
    if answer["code"] == 4:
        assert answer["message"]
        assert source.name in answer["message"] + answer["place"], answer


# ---- files that others found to break readers -------------------------------------------------


def test_damaged_and_odd_columnar_files_give_what_pyarrow_reads_or_exit_4(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "bad_columnar"
    with (folder / "manifest.csv").open() as file:
        manifest = {row["file"]: row for row in csv.DictReader(file)}
    jobs, sources = [], {}
    for number, name in enumerate(sorted(manifest)):
        kind = ".arrow" if name.startswith("arrow") else ".parquet"
        sources[name] = tmp_path / f"{number:03}{kind}"
        sources[name].symlink_to(folder / name)
        pipeline = examine(_columns(sources[name]))
        jobs.append({"name": name, "pipeline": pipeline, "source": str(sources[name]), "out": str(tmp_path / f"out{number:03}")})

    answers = run_many(jobs, tmp_path)

    read = 0
    for job in jobs:
        answer, entry = answers[job["name"]], manifest[job["name"]]
        assert_answered(answer, Path(job["source"]))
        if answer["code"] == 0:
            read += 1
            assert entry["pyarrow_26"] == "reads", job["name"]
            expected = pq.ParquetFile(job["source"]).read()
            kept = pa.concat_tables(pq.ParquetFile(path).read() for path in sorted(Path(job["out"], "kept").iterdir()))
            assert kept.schema.equals(expected.schema, check_metadata=True), job["name"]
            assert repr(kept.to_pylist()) == repr(expected.to_pylist()), job["name"]
        elif entry["pyarrow_26"] == "reads" and entry["expected"] == "accept_or_clear_error":
            assert "CRC checksum" in answer["message"], job["name"]
    assert read >= 30


def _columns(path: Path) -> list[str]:
    """The file's columns where it says so, else some name: what cannot be opened fails before any name matters."""
    try:
        return list(dict.fromkeys(pq.ParquetFile(path).schema_arrow.names)) or ["x"]
    except Exception:
        return ["x"]


def test_every_bad_json_file_is_read_or_quarantined_or_exits_4(shared: Path, tmp_path: Path) -> None:
    """Each file twice: as it is, and among good lines both as a line and as a value of a row."""
    folder = shared / "data" / "bad_json"
    with (folder / "manifest.csv").open() as file:
        manifest = list(csv.DictReader(file))
    jobs = []
    for entry in manifest:
        raw = (folder / "files" / entry["file"]).read_bytes()
        among = b'{"a":1}\n' + raw + b'\n{"a":1,"b":' + raw.replace(b"\n", b" ") + b'}\n{"a":2}\n'
        for form, content in {"alone": raw, "among": among}.items():
            name = f"{form}-{entry['file']}"
            path = tmp_path / Path(name).with_suffix(".jsonl").name
            path.write_bytes(content)
            jobs.append({"name": name, "pipeline": examine(["a"]), "source": str(path), "out": str(tmp_path / f"out-{name}")})

    answers = run_many(jobs, tmp_path)

    for job in jobs:
        if job["name"].startswith("alone") and answers[job["name"]]["code"] == 2:
            assert "names the column `a`" in answers[job["name"]]["message"]  # an object without `a`: read, and our request wrong
        else:
            assert_answered(answers[job["name"]], Path(job["source"]))
    for entry in manifest:
        raw = (folder / "files" / entry["file"]).read_bytes()
        lines = len([line for line in raw.split(b"\n") if line.strip()])
        rows = answers[f"among-{entry['file']}"]["rows"]
        assert rows["input"] == 3 + lines, entry["file"]
        kept = rows_in(tmp_path / f"out-among-{entry['file']}", "kept")
        assert [row["a"] for row in kept if row["a"] is not None][-1] == 2
        if entry["expected"] == "accept":
            assert rows["kept"] >= 3, entry["file"]
        if entry["expected"] == "reject" and lines == 1:
            assert rows["quarantined"] >= 1, entry["file"]


def test_every_bad_csv_file_is_parsed_as_its_neighbour_says_or_exits_4(shared: Path, tmp_path: Path) -> None:
    files = sorted((shared / "data" / "bad_csv" / "files").glob("*.csv"))
    jobs = []
    for path in files:
        header = next(csv.reader(line for line in io.StringIO(path.read_text(errors="replace")) if line.strip()))
        jobs.append({"name": path.name, "pipeline": examine(header[:1]), "source": str(path), "out": str(tmp_path / path.stem)})

    answers = run_many(jobs, tmp_path)

    for job, path in zip(jobs, files, strict=True):
        assert_answered(answers[path.name], path)
        expected = path.with_suffix(".expected.json")
        if expected.exists():
            rows = rows_in(Path(job["out"]), "kept")
            cells = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in rows]
            assert cells == json.loads(expected.read_text().replace("\\r\\n", "\\n"))  # the files came with plain line feeds


def test_naughty_strings_come_back_unchanged_as_text_id_label_group_column_and_name(shared: Path, tmp_path: Path) -> None:
    strings = pq.read_table(shared / "data" / "naughty_strings" / "naughty_strings.parquet").column(0).to_pylist()
    unique = list(dict.fromkeys(strings))
    table = pa.table({"id": unique, "text": unique, "label": unique[::-1], "group": unique})
    roles = {"id": "id", "text": "text", "label": "label", "group": ["group"]}
    run = api.run({"name": "naughty", "roles": roles, "stages": ["missing", "exact_dup"]}, source=table, out=tmp_path / "values")
    wide = pa.table({name: [f"{at} cells", None] for at, name in enumerate(unique)})
    named = api.run(examine(unique), source=wide, out=tmp_path / "names")

    assert_accounted(run.path, table.to_pylist())
    assert verdicts(run.path)["id"].to_list() == unique
    assert rows_in(named.path, "kept") == wide.to_pylist()
    for at, name in enumerate(unique[:60]):
        try:
            api.run({"name": name, "stages": [{"missing": {"of": ["a"]}}]}, source=pa.table({"a": [1]}), out=tmp_path / f"n{at}")
        except RequestError as err:
            assert "`name`" in err.message  # noqa: PT017
        assert not (tmp_path / f"n{at}" / "kept").exists() or len(rows_in(tmp_path / f"n{at}", "kept")) == 1


# ---- damage of our own making -----------------------------------------------------------------


def test_a_flipped_bit_in_a_checksummed_parquet_is_never_read_as_data(tmp_path: Path) -> None:
    table = pa.table({"id": range(4000), "text": [f"text number {at * 7919 % 1000} here" for at in range(4000)]})
    pq.write_table(table, tmp_path / "whole.parquet", write_page_checksum=True, row_group_size=1000, compression="none")
    whole = (tmp_path / "whole.parquet").read_bytes()
    jobs = []
    for number in range(60):
        damaged = bytearray(whole)
        at = 4 + number * (len(whole) - 12) // 60
        damaged[at] ^= 1 << number % 8
        path = tmp_path / f"flip{number}.parquet"
        path.write_bytes(damaged)
        jobs.append({"name": path.name, "pipeline": TEXT, "source": str(path), "out": str(tmp_path / f"out{number}")})

    answers = run_many(jobs, tmp_path)

    refused = 0
    for job in jobs:
        answer = answers[job["name"]]
        assert answer["code"] in (0, 2, 4), answer  # a flip in the footer may rename a column: that is a wrong request
        refused += answer["code"] == 4
        if answer["code"] == 0:
            kept = pa.concat_tables(pq.ParquetFile(path).read() for path in sorted(Path(job["out"], "kept").iterdir()))
            assert kept.to_pylist() == table.to_pylist(), job["name"]
    assert refused >= 50


def _with_bad_text(path: Path) -> list[dict[str, Any] | None]:
    """A parquet file with two cells of text that are not UTF-8: one in a column that is read, one in another."""
    texts = [b"good", b"bad \xff\xfe", b"fine", b"good", b"well"]
    others = [b"x", b"y", b"z \xc3", b"x", b"y"]
    arrays = [pa.array(cells, pa.binary()).view(pa.string()) for cells in (texts, others)]
    pq.write_table(pa.table([pa.array(range(5)), *arrays], names=["id", "text", "other"]), path)
    good = [{"id": at, "text": texts[at].decode(), "other": others[at].decode()} for at in (0, 3, 4)]
    return [good[0], None, None, good[1], good[2]]


def test_invalid_utf8_in_parquet_is_quarantined_with_the_whole_row_as_evidence(tmp_path: Path) -> None:
    rows = _with_bad_text(tmp_path / "data.parquet")

    run = api.run({**TEXT, "stages": ["missing", "exact_dup"]}, source=tmp_path / "data.parquet", out=tmp_path / "out")

    assert_accounted(run.path, rows)
    records = quarantined(run.path)
    assert [(record["source_row"], record["reason"]) for record in records] == [
        (1, "column `text` is not valid UTF-8"),
        (2, "column `other` is not valid UTF-8"),
    ]
    for record, text, other in zip(records, (b"bad \xff\xfe", b"fine"), (b"y", b"z \xc3"), strict=True):
        assert (record["raw_format"], record["raw_truncated"]) == ("arrow-stream", False)
        row = pa.ipc.open_stream(base64.b64decode(record["raw"])).read_all()
        assert row.column("id").to_pylist() == [record["source_row"]]
        assert [row.column(name).cast(pa.binary())[0].as_py() for name in ("text", "other")] == [text, other]
    assert pl.read_parquet(tmp_path / "out" / "kept").height == 2


def test_invalid_utf8_inside_lists_structs_maps_and_dictionaries_is_quarantined_too(tmp_path: Path) -> None:
    text = pa.array([b"a", b"\xff", None, b"c"], pa.binary()).view(pa.string())
    columns = {
        "list": pa.ListArray.from_arrays([0, 1, 2, 3, 4], text),
        "struct": pa.StructArray.from_arrays([text], names=["x"]),
        "map": pa.MapArray.from_arrays([0, 1, 2, 3, 4], pa.array(list("wxyz")), text),
        "dictionary": text.dictionary_encode(),
    }
    for name, column in columns.items():
        pq.write_table(pa.table({"text": list("wxyz"), "odd": column}), tmp_path / f"{name}.parquet")

        run = api.run(TEXT, source=tmp_path / f"{name}.parquet", out=tmp_path / name)

        assert [(record["source_row"], record["reason"]) for record in quarantined(run.path)] == [
            (1, "column `odd` is not valid UTF-8")
        ]
        assert pl.read_parquet(run.kept)["text"].to_list() == ["w", "y", "z"]


def test_invalid_utf8_in_memory_is_quarantined_the_same_way(tmp_path: Path) -> None:
    rows = _with_bad_text(tmp_path / "data.parquet")
    table = pq.ParquetFile(tmp_path / "data.parquet").read()

    run = api.run(TEXT, source=iter([table]), out=tmp_path / "out")

    assert_accounted(run.path, rows)
    for record in quarantined(run.path):
        assert (record["raw_format"], record["line"]) == ("arrow-stream", None)
        assert pa.ipc.open_stream(base64.b64decode(record["raw"])).read_all().column("id").to_pylist() == [record["source_row"]]


def test_two_columns_of_one_name_are_an_input_error_wherever_they_come_from(tmp_path: Path) -> None:
    twins = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(twins, tmp_path / "data.parquet")
    (tmp_path / "data.csv").write_text("text,text\na,b\n")

    for source in (tmp_path / "data.parquet", tmp_path / "data.csv", twins):
        with pytest.raises(InputError, match="two columns are called `text`"):
            api.run(TEXT, source=source, out=tmp_path / "out")


@pytest.mark.parametrize("when", ["missing", "write"])
@pytest.mark.parametrize("change", ["grows", "is rewritten"])
def test_a_file_that_changes_during_the_run_is_an_error_not_a_mixture(tmp_path: Path, change: str, when: str) -> None:
    path = tmp_path / "data.parquet"
    rows = 1000
    table = pa.table({"text": [f"text {at}" for at in range(rows)]})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    other = path.read_bytes().replace(b"text 1", b"text 2")

    class Changes:
        """Listens to the run and changes the file between two of its steps."""

        def start(self, step: str, total: int, unit: str) -> None:
            if step != when:
                return
            if change == "grows":
                pq.write_table(pa.concat_tables([table, table]), path)
            else:
                path.write_bytes(other)

        def advance(self, amount: int = 1) -> None: ...

        def finish(self) -> None: ...

    with pytest.raises(InputError, match="changed while it was being read"):
        api.run(TEXT, source=path, out=tmp_path / "out", progress=Changes())
    assert not (tmp_path / "out" / "manifest.json").exists()
