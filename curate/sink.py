"""Writers of data files: written aside, flushed, and renamed when complete.

Nothing appears under its final name before it is whole, and no marker or hidden file is left in
a folder of data.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import decimal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from curate.cells import python_values
from curate.dataset import is_bytes
from curate.errors import RequestError
from curate.store import flush

Format = Literal["parquet", "jsonl", "jsonl.zst", "csv"]
ROW_GROUP_BYTES = 32 << 20
"""a row group is closed when it holds this much, decoded"""


class Sink(Protocol):
    """Takes tables of one schema, then `close` publishes the file."""

    def write(self, table: pa.Table) -> None: ...

    def close(self) -> int:
        """Publish the file and return its size in bytes."""
        ...

    def abandon(self) -> None:
        """Let go of a file that will not be published; nothing after `close`."""
        ...


@contextlib.contextmanager
def open_sink(form: str, folder: Path, name: str, schema: pa.Schema, aside: Path) -> Iterator[Sink]:
    """A writer for `folder/name.EXT` that works on `aside`; only `close` publishes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.{form}"
    sink: Sink
    if form == "parquet":
        sink = _ParquetSink(path, schema, aside)
    elif form == "csv":
        sink = _CsvSink(path, schema, aside)
    else:
        sink = _JsonlSink(path, aside, compress=form.endswith(".zst"))
    try:
        yield sink
    finally:
        sink.abandon()


def check_writable(form: str, schema: pa.Schema) -> None:
    """Raise `RequestError` where a column's type has no place in the output format."""
    for field in schema:
        nested = pa.types.is_nested(field.type)
        odd = pa.types.is_union(field.type) or pa.types.is_run_end_encoded(field.type) or pa.types.is_interval(field.type)
        if odd or (form == "csv" and (nested or is_bytes(field.type))):
            raise RequestError(
                f"column `{field.name}` of type {field.type} cannot be written as {form}",
                place="output",
                hint="choose `output: {format: jsonl}`" if not odd else "leave the column out of the input or cast it first",
            )


class _ParquetSink:
    """Zstandard pages with checksums; row groups depend on the rows alone."""

    def __init__(self, path: Path, schema: pa.Schema, aside: Path) -> None:
        self._path, self._aside = path, aside
        self._file = aside.open("wb")
        self._writer = pq.ParquetWriter(
            self._file,
            schema,
            compression="zstd",
            compression_level=1,
            write_page_checksum=True,
            store_schema=True,
            use_compliant_nested_type=False,  # the names inside lists stay the input's
        )
        self._pending: list[pa.Table] = []
        self._size = 0

    def write(self, table: pa.Table) -> None:
        if table.num_rows:
            self._pending.append(table)
            self._size += table.nbytes
        if self._size >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> int:
        self._flush()
        self._writer.close()
        return _publish(self._file, self._aside, self._path)

    def abandon(self) -> None:
        _abandon(self._file, self._writer)

    def _flush(self) -> None:
        if self._pending:
            table = pa.concat_tables(self._pending)
            self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
            self._pending, self._size = [], 0


class _CsvSink:
    """Comma-separated, quoted where needed; a null is an empty cell and an empty text is `""`."""

    def __init__(self, path: Path, schema: pa.Schema, aside: Path) -> None:
        self._path, self._aside = path, aside
        self._file = aside.open("wb")
        self._writer = pa_csv.CSVWriter(self._file, schema)

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def close(self) -> int:
        self._writer.close()
        return _publish(self._file, self._aside, self._path)

    def abandon(self) -> None:
        _abandon(self._file, self._writer)


class _JsonlSink:
    """One JSON object a line; dates in ISO 8601, decimals as text, bytes as base64, NaN and infinities as null."""

    def __init__(self, path: Path, aside: Path, compress: bool) -> None:
        self._path, self._aside = path, aside
        self._file: Any = aside.open("wb")
        self._out: Any = self._file
        if compress:
            import zstandard

            self._out = zstandard.ZstdCompressor().stream_writer(self._file, closefd=False)

    def write(self, table: pa.Table) -> None:
        cells = [python_values(table.column(index), name) for index, name in enumerate(table.column_names)]
        self._out.write(json_lines(dict(zip(table.column_names, row, strict=True)) for row in zip(*cells, strict=True)))

    def close(self) -> int:
        if self._out is not self._file:
            self._out.close()
        return _publish(self._file, self._aside, self._path)

    def abandon(self) -> None:
        _abandon(self._file)


def json_lines(rows: Iterable[dict[str, Any]]) -> bytes:
    """Rows as JSON lines."""
    option = orjson.OPT_APPEND_NEWLINE | orjson.OPT_PASSTHROUGH_DATETIME
    return b"".join(orjson.dumps(row, default=_plain, option=option) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return str(value)


def _abandon(file: Any, *writers: Any) -> None:
    for one in (*writers, file) if not file.closed else ():
        with contextlib.suppress(Exception):  # the disk may be full: the reason why it is abandoned
            one.close()


def _publish(file: Any, aside: Path, path: Path) -> int:
    flush(file)
    file.close()
    size = aside.stat().st_size
    aside.rename(path)
    return size
