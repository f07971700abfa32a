from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from curate.errors import InputError
from curate.source import Chunk, Piece, ReadOptions, discover, ingest, pieces
from curate.source import arrowfile as arrowfile_module

TABLE = pa.table(
    {
        "n": pa.array([1, None, 3, 4, 5, 6], pa.int16()),
        "when": pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 6, pa.timestamp("us", "Europe/Berlin")),
        "price": pa.array([Decimal("1.10")] * 6, pa.decimal128(9, 2)),
        "kind": pa.array(["a", "b", None, "a", "b", "a"]).dictionary_encode(),
        "deep": pa.array([[{"x": 1}], [], None, [{"x": None}], [], []]),
        "text": pa.array(["é"] * 6, pa.large_string()),
    }
)


def read(path: Path | str, options: ReadOptions | None = None, schema: pa.Schema | None = None) -> list[Chunk]:
    options = options or ReadOptions()
    return [
        chunk for file in discover(path, options) for piece in pieces(file, options) for chunk in ingest(piece, options, schema)
    ]


def stream_bytes(table: pa.Table, rows: int = 2) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return bytes(sink.getvalue())


def write_file(path: Path, table: pa.Table, rows: int = 2) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


def write_stream(path: Path, table: pa.Table) -> None:
    path.write_bytes(stream_bytes(table))


def write_feather(path: Path, table: pa.Table) -> None:
    feather.write_feather(table, str(path), compression="zstd")


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.arrow", write_file), ("a.arrows", write_stream), ("a.feather", write_feather), ("b.arrow", write_stream)],
)
def test_types_of_untouched_columns_survive(tmp_path: Path, name: str, write: Any) -> None:
    path = tmp_path / name
    write(path, TABLE)

    chunks = read(path)

    assert pa.Table.from_batches([chunk.rows for chunk in chunks]).equals(TABLE)
    assert chunks[0].rows.schema == TABLE.schema
    assert sum(chunk.records for chunk in chunks) == 6


def test_a_file_without_rows_still_has_columns(tmp_path: Path) -> None:
    for name, write in (("a.arrow", write_file), ("a.arrows", write_stream), ("a.feather", write_feather)):
        write(tmp_path / name, TABLE.slice(0, 0))

        chunks = read(tmp_path / name)

        assert sum(chunk.records for chunk in chunks) == 0
        assert chunks[0].rows.schema == TABLE.schema


@pytest.mark.parametrize("cut", [-1, -8, -9, -200, 600, 40, 3])
def test_a_stream_cut_anywhere_is_an_error(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.arrows"
    path.write_bytes(stream_bytes(TABLE)[:cut])

    with pytest.raises(InputError) as caught:
        read(path)
    assert "a.arrows" in str(caught.value)


def test_the_batches_before_an_allowed_cut_are_used(tmp_path: Path) -> None:
    path = tmp_path / "a.arrows"
    path.write_bytes(stream_bytes(TABLE)[:-100])

    chunks = read(path, ReadOptions(allow_truncated=(path.name,)))

    assert [n for chunk in chunks for n in chunk.rows.column("n").to_pylist()] == [1, None, 3, 4]


def test_a_second_stream_behind_the_first_is_not_overlooked(tmp_path: Path) -> None:
    path = tmp_path / "a.arrows"
    path.write_bytes(stream_bytes(TABLE) * 2)

    with pytest.raises(InputError, match="or more follows"):
        read(path)


@pytest.mark.parametrize("data", [b"", b"FEA1....", b"ARROW1\0\0", b"PAR1", b"hello, world"])
def test_what_is_no_arrow_is_an_error_that_names_the_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes(data)

    with pytest.raises(InputError) as caught:
        read(path)
    assert "a.arrow" in str(caught.value)


def test_a_batch_that_is_not_valid_is_an_error(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    write_file(tmp_path / "a.arrow", pa.table({"ok": ["x"], "bad": broken}))

    with pytest.raises(InputError, match="batch 0"):
        read(tmp_path / "a.arrow")


def test_a_large_batch_is_cut_into_bounded_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrowfile_module, "CHUNK_BYTES", 1000)
    write_file(tmp_path / "a.arrow", pa.table({"n": range(1000)}), rows=1000)

    chunks = read(tmp_path / "a.arrow")

    assert [p for chunk in chunks for p in chunk.positions.tolist()] == list(range(1000))
    assert max(chunk.rows.num_rows for chunk in chunks) == 125


def test_a_wider_schema_and_partitions_are_brought_in(tmp_path: Path) -> None:
    folder = tmp_path / "lang=en"
    folder.mkdir()
    write_file(folder / "a.arrow", pa.table({"n": pa.array([1, 2], pa.int8())}))
    schema = pa.schema([("lang", pa.string()), ("n", pa.int64()), ("more", pa.list_(pa.string()))])

    (chunk,) = read(tmp_path, schema=schema)

    assert chunk.rows.schema == schema
    assert chunk.rows.to_pylist() == [{"lang": "en", "n": n, "more": None} for n in (1, 2)]


def test_parquet_from_a_remote_store_is_read_and_checked(tmp_path: Path) -> None:
    import fsspec

    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink, write_page_checksum=True, compression="none", use_dictionary=False)
    whole = bytearray(sink.getvalue())
    store = fsspec.filesystem("memory")
    store.pipe("/remote_parquet/a.parquet", bytes(whole))
    whole[whole.index(b"\2\0\0\0\xc3\xa9" * 6) + 5] ^= 1  # a letter in a page: still valid UTF-8
    store.pipe("/remote_parquet/b.parquet", bytes(whole))
    store.pipe("/remote_parquet/c.parquet", bytes(whole[:100]))

    chunks = read("memory://remote_parquet/a.parquet")

    assert pa.Table.from_batches([chunk.rows for chunk in chunks]).equals(TABLE)
    for name in ("b.parquet", "c.parquet"):
        with pytest.raises(InputError, match="damaged") as caught:
            read(f"memory://remote_parquet/{name}")
        assert name in str(caught.value)


FUZZ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from pathlib import Path
from curate.errors import InputError
from curate.source import ReadOptions, discover, ingest, pieces
for path in sorted(Path(sys.argv[1]).iterdir()):
    options = ReadOptions(format="arrow")
    (file,) = discover(path, options)
    try:
        rows = sum(chunk.records for piece in pieces(file, options) for chunk in ingest(piece, options, None))
        print("read", rows, path.name)
    except InputError as err:
        assert path.name in str(err), err
        print("refused", path.name)
"""


def test_fuzzed_files_never_crash_hang_or_eat_memory(shared: Path, root: Path) -> None:
    folder = shared / "data" / "bad_columnar" / "arrow_fuzz"

    done = subprocess.run(
        [sys.executable, "-c", FUZZ, str(folder)], cwd=root, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == len(list(folder.iterdir()))


def test_a_piece_is_the_whole_file(tmp_path: Path) -> None:
    write_file(tmp_path / "a.arrow", TABLE)
    (file,) = discover(tmp_path, ReadOptions())

    assert pieces(file, ReadOptions()) == (Piece(file, 0, file.size),)
