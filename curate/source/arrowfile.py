"""Files that are already columns: Arrow IPC (file, stream, Feather 2), and Parquet from a remote store.

Nothing of such a file is trusted: every batch is validated in full, page checksums are
verified, and a stream must end with its end mark at the end of the file. There is no
quarantine here: a damaged batch has no rows to tell apart, so it is an error that names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curate.errors import InputError
from curate.source.chunk import CHUNK_BYTES, CHUNK_ROWS, Chunk, Counter, Piece
from curate.source.discover import SourceFile, open_raw
from curate.source.options import ReadOptions
from curate.source.schema import conform

FILE_MAGIC = b"ARROW1"
MARK = b"\xff\xff\xff\xff"
"""begins every message of a stream, except in those written before Arrow 0.15"""
_ERRORS = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, TypeError, KeyError, NotImplementedError)


def read(piece: Piece, options: ReadOptions, schema: pa.Schema | None, counter: Counter) -> Iterator[Chunk]:
    """The chunks of a file; with a schema each has exactly it, without one the file's own."""
    file = piece.file
    batches = _parquet(file) if file.format == "parquet" else _arrow(file, options, counter)
    first = 0
    counter.bytes_read += file.size
    while True:
        begun = perf_counter()
        batch = next(batches, None)
        counter.read_s += perf_counter() - begun
        if batch is None:
            return
        for rows in slices(batch):
            positions = np.arange(first, first + rows.num_rows, dtype=np.int64)
            first += rows.num_rows
            out = rows if schema is None else conform(rows, schema, file.partition)
            yield Chunk(out, positions, (), rows.num_rows, rows.num_rows)


def slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in runs of about 16 MiB; one empty run for an empty batch, so that its schema is seen."""
    size = max(batch.get_total_buffer_size(), 1)
    rows = max(1, min(CHUNK_ROWS, batch.num_rows * CHUNK_BYTES // size if size > CHUNK_BYTES else CHUNK_ROWS))
    for start in range(0, max(batch.num_rows, 1), rows):
        yield batch.slice(start, rows)


def checked(batch: pa.RecordBatch, name: str, number: int) -> pa.RecordBatch:
    """The batch, once every offset, length and character in it is proven valid."""
    try:
        batch.validate(full=True)
    except _ERRORS as err:
        raise _damaged(name, f"batch {number}", err) from err
    return batch


def _arrow(file: SourceFile, options: ReadOptions, counter: Counter) -> Iterator[pa.RecordBatch]:
    if file.size == 0:
        raise InputError("the file is empty: not even an Arrow header", place=file.name)
    try:
        source = pa.PythonFile(open_raw(file), mode="r") if file.remote else pa.memory_map(file.path)
        magic = source.read(len(FILE_MAGIC))
        source.seek(0)
    except _ERRORS as err:
        raise _damaged(file.name, "the start", err) from err
    with source:
        if magic == FILE_MAGIC:
            yield from _ipc_file(source, file)
        elif magic.startswith(b"FEA1"):
            raise InputError(
                "Feather version 1 is not read", place=file.name, hint="write it again as Feather 2, Arrow or Parquet"
            )
        else:
            yield from _ipc_stream(source, file, options, counter)


def _ipc_file(source: Any, file: SourceFile) -> Iterator[pa.RecordBatch]:
    try:
        reader = pa.ipc.open_file(source)
        count, schema = reader.num_record_batches, reader.schema
    except _ERRORS as err:
        raise _damaged(file.name, "the footer", err) from err
    if not count:
        yield schema.empty_table().to_batches()[0] if schema.empty_table().to_batches() else _no_rows(schema)
    for number in range(count):
        try:
            batch = reader.get_batch(number)
        except _ERRORS as err:
            raise _damaged(file.name, f"batch {number}", err) from err
        yield checked(batch, file.name, number)


def _ipc_stream(source: Any, file: SourceFile, options: ReadOptions, counter: Counter) -> Iterator[pa.RecordBatch]:
    try:
        reader = pa.ipc.open_stream(source)
        schema = reader.schema
    except _ERRORS as err:
        raise _damaged(file.name, "the header", err) from err
    number = 0
    allowed = file.name in options.allow_truncated
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            break
        except _ERRORS as err:
            if allowed and source.tell() >= file.size:
                break
            raise _damaged(file.name, f"batch {number}", err) from err
        yield checked(batch, file.name, number)
        number += 1
    if not number:
        yield _no_rows(schema)
    if _has_ended(source, file):
        return
    if not allowed:
        raise InputError(
            "the stream has no end mark at the end of the file: it is cut short, or more follows",
            place=f"{file.name}, after batch {number - 1}",
            hint=f"restore the file, or allow it by name: `read: {{allow_truncated: [{file.name}]}}`",
        )
    counter.truncated.add(file.name)


def _has_ended(source: Any, file: SourceFile) -> bool:
    """True where the reader stopped at the file's end, and the end is the end mark."""
    if source.tell() != file.size:
        return False
    source.seek(0)
    end = MARK + b"\0\0\0\0" if source.read(len(MARK)) == MARK else b"\0\0\0\0"
    source.seek(max(file.size - 8, 0))
    return bool(source.read(8).endswith(end))


def _parquet(file: SourceFile) -> Iterator[pa.RecordBatch]:
    """Parquet through a file handle; the local Parquet of a run is read in place elsewhere."""
    with open_raw(file) as raw:  # a Parquet reader closes no handle that it was given
        yield from _row_groups(raw, file)


def _row_groups(raw: BinaryIO, file: SourceFile) -> Iterator[pa.RecordBatch]:
    try:
        source = pq.ParquetFile(raw, page_checksum_verification=True)
        promised, schema = source.metadata.num_rows, source.schema_arrow
        decoded = sum(source.metadata.row_group(i).total_byte_size for i in range(source.metadata.num_row_groups))
        rows = max(1, min(8192, CHUNK_BYTES * max(promised, 1) // max(decoded, 1)))
        batches = source.iter_batches(batch_size=rows)
    except _ERRORS as err:
        raise _damaged(file.name, "the footer", err) from err
    number, seen = 0, 0
    with source:
        while True:
            try:
                batch = next(batches, None)
            except _ERRORS as err:
                raise _damaged(file.name, f"row {seen} or after it", err) from err
            if batch is None:
                break
            seen += batch.num_rows
            yield checked(batch, file.name, number)
            number += 1
    if seen != promised:
        raise InputError(f"{seen} rows were read where the footer promises {promised}", place=file.name)
    if not number:
        yield _no_rows(schema)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0).cast(field.type) for field in schema], schema=schema)


def _damaged(name: str, where: str, err: BaseException) -> InputError:
    said = str(err).splitlines()[0] if str(err) else type(err).__name__
    return InputError(f"damaged or not of its kind: {said}", place=f"{name}, {where}", hint="restore the file")
