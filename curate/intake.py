"""From a source to a data set: find the files, decode what must be decoded, lay the parts end to end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from curate.dataset import MEMORY_NAME, Dataset, Part
from curate.errors import InputError
from curate.hashing import key_of
from curate.meter import Meter
from curate.source import parquet
from curate.source.chunk import Quarantined
from curate.source.discover import SourceFile
from curate.source.ingest import Chunk, Counter, Piece, pieces
from curate.source.memory import batches_of
from curate.source.schema import must_reread, refuse_twins, unify, with_partitions
from curate.steps.base import Job, Task, bad_text
from curate.steps.ingest import SEGMENTS, make_ingest, schema_of, store_chunks

CHUNK_BYTES = 32 << 20
RunTasks = Callable[[str, Sequence[Task]], list[dict[str, Any]]]
LINE_FORMATS = ("jsonl", "csv")


@dataclass
class Intake:
    """A data set in the making: the parts of each file, and the facts the report wants."""

    dataset: Dataset
    bills: list[dict[str, Any]] = field(default_factory=list)
    keys: tuple[str, ...] = ()
    """artefacts that no task of a runner published"""


def intake(job: Job, files: Sequence[SourceFile], run: RunTasks) -> Intake:
    """The data set of some files. Raises `InputError` for unreadable files and for a source without rows or columns."""
    layouts = {file.name: parquet.layout(file.path, file.name) for file in files if in_place(file)}
    cut = {file.name: pieces(file, job.read) for file in files if not in_place(file)}
    flat = [piece for file in files for piece in cut.get(file.name, ())]
    facts = run("ingest", [make_ingest(job, piece, None) for piece in flat])
    schemas = [(file.name, layouts[file.name].schema) for file in files if in_place(file)]
    schemas += [(piece.file.name, schema_of(text)) for piece, fact in zip(flat, facts, strict=True) for text in _schemas(fact)]
    schema, casts = _union(files, schemas)
    if not schema.names:
        raise _no_columns([(piece.file.name, fact) for piece, fact in zip(flat, facts, strict=True)], files[0].name)
    keys, facts, more = _settle_types(job, flat, facts, schema, run)
    parts = list(_lay_out(files, layouts, dict(zip(flat, zip(keys, facts, strict=True), strict=True)), cut))
    return Intake(Dataset(tuple(parts), schema, tuple(dict.fromkeys((*casts, *more)))), [fact["bill"] for fact in facts])


def intake_memory(job: Job, data: object) -> Intake:
    """The data set of tables in memory: written to the store first, so a run on them is like any other."""
    meter, aside = Meter(), key_of(["memory", id(data)])
    store_chunks(job, aside, _memory_chunks(data), meter, Counter())
    receipt = job.store.receipt(aside)
    assert receipt is not None
    key = key_of(["memory", receipt["segments"]])
    job.store.rename(aside, key)
    facts = job.store.facts(key)
    if not facts["chunks"]:
        raise InputError(
            "the data has no rows and no columns", place=MEMORY_NAME, hint="give at least one table, even an empty one"
        )
    schema, casts = unify([(MEMORY_NAME, schema_of(text)) for text in _schemas(facts)])
    if not schema.names:
        raise _no_columns([(MEMORY_NAME, facts)], MEMORY_NAME)
    return Intake(Dataset(tuple(_number(_decoded(MEMORY_NAME, key, facts, ()))), schema, casts), [facts["bill"]], (key,))


def _no_columns(facts: Sequence[tuple[str, dict[str, Any]]], first: str) -> InputError:
    """The error for a source without a single column: empty, or with no row that can be read."""
    chunks = [(name, chunk) for name, fact in facts for chunk in fact["chunks"]]
    records, bad = sum(chunk["records"] for _, chunk in chunks), sum(chunk["bad"] for _, chunk in chunks)
    if bad and bad == records:
        reasons = list(dict.fromkeys(f"{name}: {reason}" for name, chunk in chunks for reason in chunk["reasons"]))[:3]
        said = f"none of the {records} rows can be read" if records > 1 else "the only row cannot be read"
        return InputError(f"{said}: " + "; ".join(reasons), place=first, hint="is the file what its name says it is?")
    if records:
        return InputError(f"the {records} rows of the source have no column", place=first, hint="every one of them is `{}`")
    return InputError("the source holds no rows and no columns", place=first, hint="every file of it is empty")


def in_place(file: SourceFile) -> bool:
    """Whether a file is read where it lies, at every pass, instead of being decoded into the store."""
    return file.format == "parquet" and not file.remote


def _schemas(fact: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(chunk["schema"] for chunk in fact["chunks"]))


def _union(files: Sequence[SourceFile], schemas: Sequence[tuple[str, pa.Schema]]) -> tuple[pa.Schema, tuple[str, ...]]:
    if not schemas:
        names = ", ".join(file.name for file in files[:3])
        raise InputError("the source holds no rows and no columns", place=names, hint="every file of it is empty")
    schema, casts = unify(schemas)
    return with_partitions(schema, files), casts


def _settle_types(
    job: Job, flat: Sequence[Piece], facts: list[dict[str, Any]], schema: pa.Schema, run: RunTasks
) -> tuple[list[str], list[dict[str, Any]], list[str]]:
    """Decode again, now with the union's types, the pieces of text formats that were read under other types."""
    tasks = [make_ingest(job, piece, None) for piece in flat]
    again = [
        at
        for at, piece in enumerate(flat)
        if piece.file.format in LINE_FORMATS and must_reread(map(schema_of, _schemas(facts[at])), schema)
    ]
    redone = [make_ingest(job, flat[at], schema) for at in again]
    for at, task, fact in zip(again, redone, run("ingest", redone), strict=True):
        tasks[at], facts[at] = task, fact
    casts = [cast for at in again for chunk in facts[at]["chunks"] for cast in chunk["casts"]]
    return [task.key for task in tasks], facts, casts


def _lay_out(
    files: Sequence[SourceFile],
    layouts: dict[str, parquet.Layout],
    decoded: dict[Piece, tuple[str, dict[str, Any]]],
    cut: dict[str, tuple[Piece, ...]],
) -> Iterator[Part]:
    """Number files, parts and rows in order."""
    return _number(itertools.chain.from_iterable(_parts_of(file, layouts, decoded, cut) for file in files))


def _parts_of(
    file: SourceFile,
    layouts: dict[str, parquet.Layout],
    decoded: dict[Piece, tuple[str, dict[str, Any]]],
    cut: dict[str, tuple[Piece, ...]],
) -> Iterator[Part]:
    if in_place(file):
        start = 0
        for groups, rows, batch_rows, size in layouts[file.name].parts:
            key = key_of(["parquet", file.digest, list(groups), batch_rows, [list(pair) for pair in file.partition]])
            yield Part(0, file.name, start, 0, rows, 0, key, file.path, True, groups, batch_rows, file.partition, size)
            start += rows
        return
    row = line = 0
    for piece in cut[file.name]:
        key, facts = decoded[piece]
        yield from _decoded(file.name, key, facts, file.partition, row, line)
        row += sum(chunk["records"] for chunk in facts["chunks"])
        line += sum(chunk["lines"] for chunk in facts["chunks"])


def _decoded(
    name: str, key: str, facts: dict[str, Any], partition: tuple[tuple[str, str], ...], row: int = 0, line: int = 0
) -> Iterator[Part]:
    start = row
    for index, chunk in enumerate(facts["chunks"]):
        at = f"{key}:{index * SEGMENTS}"
        yield Part(
            0,
            name,
            row,
            line,
            chunk["records"],
            0,
            key_of(["decoded", at, row - start]),
            at,
            False,
            (),
            1 << 16,
            partition,
            chunk["bytes"],
        )
        row, line = row + chunk["records"], line + chunk["lines"]


def _number(parts: Iterator[Part]) -> Iterator[Part]:
    first = 0
    for index, part in enumerate(parts):
        fields = {**vars(part), "index": index, "first_row": first}
        yield Part(**fields)
        first += part.rows


def _memory_chunks(data: object) -> Iterator[Chunk]:
    """Tables in memory as chunks of about `CHUNK_BYTES`; text that is not UTF-8 is set aside like anywhere else."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches_of(data):
        if pending and (batch.schema != pending[0].schema or size >= CHUNK_BYTES):
            yield _memory_chunk(pending)
            pending, size = [], 0
        pending.append(batch)
        size += batch.nbytes
    if pending:
        yield _memory_chunk(pending)


def _memory_chunk(batches: list[pa.RecordBatch]) -> Chunk:
    refuse_twins(MEMORY_NAME, batches[0].schema)
    table = pa.Table.from_batches(batches).combine_chunks()
    bad = bad_text(table)
    good = np.ones(table.num_rows, bool)
    good[list(bad)] = False
    quarantined = tuple(Quarantined(at, 0, 0, reason, _row_bytes(table, at)) for at, reason in sorted(bad.items()))
    rows = table.filter(pa.array(good)).combine_chunks() if bad else table
    batch = rows.to_batches()[0] if rows.num_rows else pa.RecordBatch.from_pylist([], rows.schema)
    return Chunk(batch, np.flatnonzero(good).astype(np.int64), quarantined, table.num_rows, 0, ())


def _row_bytes(table: pa.Table, at: int) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.slice(at, 1))
    return bytes(sink.getvalue().to_pybytes())
