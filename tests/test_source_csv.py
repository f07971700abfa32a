from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.errors import InputError, RequestError
from curate.source import Chunk, ReadOptions, csvfile, discover, ingest, must_reread, pieces, unify
from curate.source import lines as lines_module


def chunks_of(path: Path, options: ReadOptions | None = None, schema: pa.Schema | None = None) -> list[Chunk]:
    options = options or ReadOptions()
    (file,) = discover(path, options)
    return [chunk for piece in pieces(file, options) for chunk in ingest(piece, options, schema)]


def written(folder: Path, data: bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def rows_of(chunks: list[Chunk]) -> list[dict[str, Any]]:
    return [row for chunk in chunks for row in chunk.rows.to_pylist()]


def lost_of(chunks: list[Chunk]) -> list[tuple[int, int, int, bytes]]:
    return [(q.position, q.line, q.offset, q.raw) for chunk in chunks for q in chunk.quarantined]


def test_the_expected_parse_of_awkward_files(shared: Path) -> None:
    folder = shared / "data" / "bad_csv" / "files"
    for expected in sorted(folder.glob("*.expected.json")):
        rows = rows_of(chunks_of(folder / expected.name.replace(".expected.json", ".csv")))

        shown = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
        wanted = json.loads(expected.read_text(encoding="utf-8").replace("\\r\\n", "\\n"))  # the copies were made without CR
        assert shown == wanted, expected.name


def test_fuzzed_files_are_read_or_refused_by_name(shared: Path) -> None:
    for path in sorted((shared / "data" / "bad_csv" / "files").glob("fuzz_*.csv")):
        try:
            chunks = chunks_of(path)
        except InputError as err:
            assert path.name in str(err)  # noqa: PT017
        else:
            assert sum(chunk.records for chunk in chunks) == len(rows_of(chunks)) + len(lost_of(chunks))


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "-2", "0"], pa.int64(), [1, -2, 0]),
        (["1", "", "3"], pa.int64(), [1, None, 3]),
        (["01", "2"], pa.string(), ["01", "2"]),
        (["+1", "2"], pa.string(), ["+1", "2"]),
        (["-0", "2"], pa.string(), ["-0", "2"]),
        ([" 1", "2"], pa.string(), [" 1", "2"]),
        (["9223372036854775807"], pa.int64(), [2**63 - 1]),
        (["9223372036854775808", ""], pa.string(), ["9223372036854775808", ""]),
        (["0.5", "1", ""], pa.float64(), [0.5, 1.0, None]),
        (["1.50", "1"], pa.string(), ["1.50", "1"]),
        (["0.5", "9007199254740993"], pa.string(), ["0.5", "9007199254740993"]),
        (["1e5"], pa.string(), ["1e5"]),
        (["1e+22", "0.1"], pa.float64(), [1e22, 0.1]),
        (["nan", "1.5"], pa.string(), ["nan", "1.5"]),
        (["inf"], pa.string(), ["inf"]),
        (["1_000"], pa.string(), ["1_000"]),
        (["true", "no"], pa.string(), ["true", "no"]),
        (["x", ""], pa.string(), ["x", ""]),
        (["", ""], pa.null(), [None, None]),
    ],
)
def test_a_column_is_numbers_only_when_every_cell_can_be_written_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: list[str], kind: pa.DataType, values: list[Any]
) -> None:
    path = written(tmp_path, ("n,x\n" + "".join(f"k,{cell}\n" for cell in cells)).encode())
    (together,) = chunks_of(path)
    monkeypatch.setattr(csvfile, "CHUNK_BYTES", 1)

    apart = chunks_of(path)
    schema, _ = unify([("a.csv", chunk.rows.schema) for chunk in apart])

    assert together.rows.schema.field("x").type == kind
    assert together.rows.column("x").to_pylist() == values
    assert len(apart) >= len(cells)
    assert schema.field("x").type == kind
    assert [row["x"] for row in rows_of(chunks_of(path, schema=schema))] == values


def test_empty_cells_seen_before_the_text_ask_for_a_second_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csvfile, "CHUNK_BYTES", 1)
    seen = [chunk.rows.schema for chunk in chunks_of(written(tmp_path, b"n,x\n1,\n2,a\n"))]
    numbers = [chunk.rows.schema for chunk in chunks_of(written(tmp_path, b"n,x\n1,\n2,7\n"))]

    assert must_reread(seen, unify([("a.csv", schema) for schema in seen])[0])
    assert not must_reread(numbers, unify([("a.csv", schema) for schema in numbers])[0])


def test_a_ragged_row_is_quarantined(tmp_path: Path) -> None:
    (chunk,) = chunks_of(written(tmp_path, b"a,b\n1,2\n3\n\n4,5,6\n7,8\n"))

    assert chunk.rows.to_pylist() == [{"a": 1, "b": 2}, {"a": 7, "b": 8}]
    assert chunk.positions.tolist() == [0, 3]
    assert [(q.position, q.line, q.offset, q.reason) for q in chunk.quarantined] == [
        (1, 3, 8, "1 cells where the header has 2"),
        (2, 5, 11, "3 cells where the header has 2"),
    ]
    assert (chunk.records, chunk.lines) == (4, 6)


def test_invalid_utf8_costs_its_own_row(tmp_path: Path) -> None:
    (chunk,) = chunks_of(written(tmp_path, b'a,b\n1,x\n2,\xff\n3,"p\nq\xff"\n4,y\n'))

    assert [row["a"] for row in chunk.rows.to_pylist()] == [1, 4]
    assert [(q.line, q.offset, q.reason) for q in chunk.quarantined] == [
        (3, 8, "invalid UTF-8 at byte 2 of the row"),
        (4, 12, "invalid UTF-8 at byte 6 of the row"),
    ]
    assert (chunk.records, chunk.lines) == (4, 6)


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_quote_that_is_never_closed_costs_its_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(csvfile, "CHUNK_BYTES", size)
    lines = ["a,b", '1,"x', "2,y", '3,"p\nq"', "4,z", '5,"open', "6,w"]
    chunks = chunks_of(written(tmp_path, "\n".join(lines).encode() + b"\n"))

    rows = rows_of(chunks)

    assert [(row["a"], row["b"]) for row in rows] == [(2, "y"), (3, "p\nq"), (4, "z"), (6, "w")]
    assert [(line, raw) for _, line, _, raw in lost_of(chunks)] == [(2, b'1,"x'), (7, b'5,"open')]
    assert sum(chunk.lines for chunk in chunks) == 8


def test_records_that_cross_blocks_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = "a,b\r\n" + "".join(f'{n},"line one\r\nline ""two"" of {n}"\r\n' for n in range(50))
    path = written(tmp_path, data.encode())
    monkeypatch.setattr("curate.source.stream.READ_BYTES", 7)
    monkeypatch.setattr(lines_module.blocks_of, "__defaults__", (16,))

    chunks = chunks_of(path)

    assert rows_of(chunks) == [{"a": n, "b": f'line one\r\nline "two" of {n}'} for n in range(50)]
    assert sum(chunk.lines for chunk in chunks) == 101
    assert [p for chunk in chunks for p in chunk.positions.tolist()] == list(range(50))


def test_cells_may_be_longer_than_the_csv_module_likes(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    path = written(tmp_path, b"a,b\n1," + b"x" * 300_000 + b'\n2,"' + b"y\n" * 300_000 + b'"\n')

    rows = rows_of(chunks_of(path))

    assert [len(row["b"]) for row in rows] == [300_000, 600_000]
    assert csv.field_size_limit() == limit


def test_a_row_over_the_cap_is_quarantined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, b"a,b\n1,x\n2," + b"x" * 500 + b"\n3,y\n")
    whole = chunks_of(path, ReadOptions(row_bytes=100))
    monkeypatch.setattr("curate.source.stream.READ_BYTES", 50)
    monkeypatch.setattr(lines_module.blocks_of, "__defaults__", (20,))

    bits = chunks_of(path, ReadOptions(row_bytes=100))

    for chunks in (whole, bits):
        assert [row["a"] for row in rows_of(chunks)] == [1, 3]
        assert [lost[:3] for lost in lost_of(chunks)] == [(1, 3, 8)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a,a\n1,2\n", "two columns are called `a`"),
        (b"a,\n1,2\n", "column 2 of the header row has no name"),
        (b"a,b\xff\n1,2\n", "the header row cannot be read: invalid UTF-8"),
        (b'a,"b\n1,2\n', "the header row cannot be read"),
        (b"PAR1\0\0a\rb\r", "the header row cannot be read"),
    ],
)
def test_a_header_that_names_no_columns_is_an_error(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        chunks_of(written(tmp_path, data))
    assert "a.csv" in str(caught.value)


def test_a_header_alone_still_names_its_columns(tmp_path: Path) -> None:
    (chunk,) = chunks_of(written(tmp_path, b"\xef\xbb\xbfa,b\r\n"))

    assert (chunk.rows.schema.names, chunk.rows.num_rows, chunk.records, chunk.lines) == (["a", "b"], 0, 0, 1)
    assert chunks_of(written(tmp_path, b"")) == []


def test_tabs_and_other_delimiters(tmp_path: Path) -> None:
    tabs = chunks_of(written(tmp_path, b"a\tb\n1,5\tx\n\t\n", "a.tsv"))
    other = chunks_of(written(tmp_path, b"a;b\n1,5;x\n"), ReadOptions(delimiter=";"))
    packed = chunks_of(written(tmp_path, gzip.compress(b"a\tb\n1\t2\n"), "b.tsv.gz"))

    assert rows_of(tabs) == [{"a": "1,5", "b": "x"}, {"a": "", "b": ""}]
    assert rows_of(other) == [{"a": "1,5", "b": "x"}]
    assert rows_of(packed) == [{"a": 1, "b": 2}]


def test_a_compressed_columnar_file_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="not a kind of file"):
        discover(written(tmp_path, b"", "a.arrow.gz"), ReadOptions())


CELLS = st.text(alphabet=st.sampled_from('ab,"\n\r 01.é'), max_size=6)


@settings(max_examples=150)
@given(rows=st.lists(st.tuples(CELLS, CELLS), max_size=8), block=st.integers(1, 60), ending=st.sampled_from(["\n", "\r\n"]))
def test_what_a_csv_writer_writes_comes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], block: int, ending: str
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=ending, quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "b"])
    writer.writerows(rows)
    path = written(tmp_path_factory.getbasetemp(), text.getvalue().encode())
    schema = pa.schema([("a", pa.string()), ("b", pa.large_string())])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("curate.source.stream.READ_BYTES", block)
        patch.setattr(lines_module.blocks_of, "__defaults__", (block,))
        chunks = chunks_of(path, schema=schema)

    assert [(row["a"], row["b"]) for row in rows_of(chunks)] == rows
    assert lost_of(chunks) == []


@settings(max_examples=200)
@given(data=st.binary(max_size=60) | st.text(alphabet='a,"\n', max_size=40).map(str.encode), block=st.integers(1, 30))
def test_any_bytes_are_accounted_for_whatever_the_blocks(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, block: int
) -> None:
    path = written(tmp_path_factory.getbasetemp(), b"a,b\n" + data)
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])

    def outcome(size: int) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("curate.source.stream.READ_BYTES", size)
            patch.setattr(lines_module.blocks_of, "__defaults__", (size,))
            chunks = chunks_of(path, schema=schema)
        records, lines = sum(chunk.records for chunk in chunks), sum(chunk.lines for chunk in chunks)
        base, positions, lost = 0, [], []
        for chunk in chunks:
            positions += chunk.positions.tolist()
            lost += [(q.position, q.line, q.offset, q.reason, q.raw) for q in chunk.quarantined]
            base += chunk.records
        assert sorted(positions + [entry[0] for entry in lost]) == list(range(records))
        return rows_of(chunks), lost, records, lines

    assert outcome(block) == outcome(1 << 20)
