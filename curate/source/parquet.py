"""Local Parquet, read where it lies: row groups become parts, parts are streamed in batches.

Pages are decoded a batch at a time through a buffered stream, so memory does not grow with the
row group. Page checksums are verified wherever the file has them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from curate.errors import InputError
from curate.meter import Meter, TimedFile
from curate.source.expansion import decoded_bytes, safe_rows

PART_BYTES = 32 << 20
"""row groups are gathered into parts of at least this size, decoded as the file's metadata says"""
BATCH_BYTES = 8 << 20
"""about how much of a part is decoded at a time"""
LEAST_BYTES = BATCH_BYTES >> 4
"""batches that must be small are gathered up to `BATCH_BYTES`, unless they have this size already"""
_ERRORS = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)


@dataclass(frozen=True)
class Layout:
    """How a Parquet file is cut: per part its row groups, its rows, and the rows decoded at a time."""

    schema: pa.Schema
    parts: tuple[tuple[tuple[int, ...], int, int, int], ...]
    """(row groups, rows, rows a batch, decoded bytes as the metadata says) of each part"""


def layout(path: str, name: str) -> Layout:
    """Cut a file into parts by its metadata alone; the cut depends on the file and nothing else.

    Raises `InputError` naming the file where it is no readable Parquet file.
    """
    try:
        with pq.ParquetFile(path) as file:
            groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
            sizes = [(group.num_rows, decoded_bytes(group, file.schema)) for group in groups]
            schema = _schema(file)
    except _ERRORS as err:
        raise InputError(f"not a readable Parquet file: {_first_line(err)}", place=name, hint=_HINT) from err
    if any(rows < 0 for rows, _ in sizes):
        raise InputError("the file's metadata counts a negative number of rows", place=name, hint=_HINT)
    return Layout(schema, tuple(_parts(sizes)))


def read(
    path: str,
    name: str,
    row_groups: Sequence[int],
    rows: int,
    batch_rows: int,
    columns: Sequence[str] | None,
    meter: Meter,
    step: str,
) -> Iterator[pa.RecordBatch]:
    """The rows of one part, in order, `columns` of them (all for None).

    Raises `InputError` naming the file, the row group and the row where bytes cannot be decoded,
    or where the file holds fewer or more rows than its metadata promised.
    """
    seen = 0
    where = f"{name}, row groups {row_groups[0]} to {row_groups[-1]}" if row_groups else name
    try:
        with TimedFile(path, meter, step) as raw, _open(raw) as file:
            batches = _batches(path, file, row_groups, batch_rows, columns)
            while True:
                with meter.seconds("decode", step):
                    batch = next(batches, None)
                if batch is None:
                    break
                seen += batch.num_rows
                if seen > rows:
                    raise InputError(f"the file promises {rows} rows and holds more", place=where, hint=_HINT)
                yield batch
    except _ERRORS as err:
        hint = _MEMORY_HINT if isinstance(err, MemoryError) else _HINT
        raise InputError(f"cannot decode after row {seen}: {_first_line(err)}", place=where, hint=hint) from err
    if seen != rows:
        raise InputError(f"the file promises {rows} rows and holds {seen}", place=where, hint=_HINT)


_HINT = "the file is damaged, cut short or not Parquet: restore it, or leave it out of the source"

_MEMORY_HINT = "a page of the file needs more memory than there is: write it again with smaller pages, or leave it out if damaged"


def _open(raw: TimedFile) -> pq.ParquetFile:
    return pq.ParquetFile(raw, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True)


def _batches(
    path: str, file: pq.ParquetFile, row_groups: Sequence[int], batch_rows: int, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Batches of `batch_rows` rows, or of fewer where these would decode to too much."""
    wanted = None if columns is None else list(columns)
    safe = safe_rows(path, file, row_groups, columns)
    small = file.iter_batches(min(batch_rows, safe or batch_rows), row_groups=list(row_groups), columns=wanted)
    if safe is None or safe >= batch_rows or any(pa.types.is_dictionary(field.type) for field in file.schema_arrow):
        yield from small
        return
    held: list[pa.RecordBatch] = []
    for batch in small:
        if not held and batch.nbytes >= LEAST_BYTES:
            yield batch
            continue
        held.append(batch)
        if sum(one.num_rows for one in held) >= batch_rows or sum(one.nbytes for one in held) >= BATCH_BYTES:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _schema(file: pq.ParquetFile) -> pa.Schema:
    """The file's columns, with all its metadata: pyarrow shows only what the writer repeated in its own schema."""
    found = {key: value for key, value in (file.metadata.metadata or {}).items() if key != b"ARROW:schema"}
    schema: pa.Schema = file.schema_arrow
    return schema.with_metadata({**found, **(schema.metadata or {})} or None)


def _parts(sizes: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, ...], int, int, int]]:
    groups: list[int] = []
    rows = size = 0
    for index, (group_rows, group_bytes) in enumerate(sizes):
        groups.append(index)
        rows, size = rows + group_rows, size + max(group_bytes, 0)
        if size >= PART_BYTES or index == len(sizes) - 1:
            yield tuple(groups), rows, _batch_rows(rows, size), size
            groups, rows, size = [], 0, 0
    if not sizes:
        yield (), 0, _batch_rows(0, 0), 0


def _batch_rows(rows: int, size: int) -> int:
    per_row = max(size // max(rows, 1), 1)
    return max(16, min(65_536, BATCH_BYTES // per_row))


def _first_line(err: BaseException) -> str:
    return (str(err).strip() or type(err).__name__).splitlines()[0][:300]


@functools.lru_cache(maxsize=64)
def names(path: str, name: str, key: str) -> frozenset[str]:
    """The names of a file's top-level columns; `key` tells a file from what stood under its path before."""
    return frozenset(layout(path, name).schema.names)
