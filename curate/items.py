"""The items of benchmark files: a name and a text each, read strictly, and what the files are known by."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from curate.dataset import Roles, Rows, as_text
from curate.errors import InputError, RequestError, did_you_mean
from curate.source import Chunk, ReadOptions, SourceFile, conform, discover, ingest, must_reread, pieces, unify


@dataclass(frozen=True)
class Items:
    """Benchmark items in the order of their files: what each is called, the file it is from, and its text (not null)."""

    names: tuple[str, ...]
    files: tuple[str, ...]
    texts: pa.LargeStringArray


def read_items(against: Sequence[str], text: Sequence[str], name: str | None) -> Items:
    """Every item that has a text; one without a name is called `row N`, counted from 0 in its file.

    Raises `RequestError` for a column that a file lacks and `InputError` for a file, or a record of it, that cannot be read:
    a benchmark that is read in part would let the rest through.
    """
    names: list[str] = []
    files: list[str] = []
    texts: list[pa.Array] = [pa.array([], pa.large_string())]
    for file in discover(list(against), ReadOptions(), digests=False):
        table = _read(file)
        _has_columns(file, table.schema, [*text, *([name] if name else [])])
        known = pa.nulls(table.num_rows, pa.large_string()) if name is None else as_text(table.column(name))
        whole = Rows(table, np.arange(table.num_rows, dtype=np.uint64), Roles(text=tuple(text))).whole_text()
        keep = whole.is_valid()
        names += [f"row {at}" if one is None else one for at, one in enumerate(known.to_pylist()) if keep[at].as_py()]
        files += [file.name] * int(keep.true_count)
        texts.append(whole.filter(keep))
    return Items(tuple(names), tuple(files), pa.concat_arrays(texts))


def identity(against: Sequence[str]) -> list[list[str]]:
    """Name and digest of every file; a local file is read again only when its size or time has changed."""
    found = []
    for file in discover(list(against), ReadOptions(), digests=False):
        digest = file.digest if file.remote else _digest(file.path, file.size, os.stat(file.path).st_mtime_ns)
        found.append([file.name, digest])
    return found


@functools.lru_cache(256)
def _digest(path: str, size: int, changed_ns: int) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _read(file: SourceFile) -> pa.Table:
    chunks = [chunk.rows for chunk in _chunks(file, None)]
    schemas = [rows.schema for rows in chunks]
    if not schemas:
        return pa.table({})
    final, _ = unify([(file.name, schema) for schema in schemas])
    if must_reread(schemas, final):
        chunks = [chunk.rows for chunk in _chunks(file, final)]
    return pa.Table.from_batches([conform(rows, final) for rows in chunks], final)


def _chunks(file: SourceFile, schema: pa.Schema | None) -> Iterator[Chunk]:
    for piece in pieces(file, ReadOptions()):
        for chunk in ingest(piece, ReadOptions(), schema):
            if chunk.quarantined:
                bad = chunk.quarantined[0]
                raise InputError(
                    f"an item of the benchmark cannot be read: {bad.reason}",
                    place=f"{file.name}, record {bad.position + 1}",
                    hint="repair the file: every item must be read, or it would not be looked for",
                )
            yield chunk


def _has_columns(file: SourceFile, schema: pa.Schema, columns: Sequence[str]) -> None:
    for column in columns:
        if column not in schema.names:
            raise RequestError(
                f"the benchmark `{file.name}` has no column `{column}`",
                place="against",
                hint=did_you_mean(column, schema.names),
            )
