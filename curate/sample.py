"""The first rows of a source and what they say of each column: all that a guess may look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from curate.cells import is_textual
from curate.dataset import as_text
from curate.errors import InputError
from curate.intake import in_place
from curate.meter import Meter
from curate.source import parquet
from curate.source.discover import SourceFile, discover
from curate.source.ingest import ingest, pieces
from curate.source.options import ReadOptions
from curate.source.schema import unify, with_partitions

ROWS = 10_000
FILES = 20
"""at most so many files are opened, evenly spaced over the source"""
_JUDGED = 2_000
"""cells of a column that are read for the words in them"""
_STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
_UNSPACED = "[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
_ADDRESS = r"^[a-zA-Z][a-zA-Z0-9+.-]*://\S+$"


@dataclass(frozen=True)
class Look:
    """One column of the sample. Means are over the cells that hold something; both are 0 for what is not text."""

    name: str
    type: pa.DataType
    cells: int
    """cells that are neither null nor empty"""
    distinct: int
    values: frozenset[str]
    """the distinct values, where there are at most 20"""
    mean_chars: float = 0.0
    mean_words: float = 0.0
    addresses: float = 0.0
    """the share of cells that are URLs"""
    unlike_pages: float = 0.0
    """the share of cells that no rule made for English web pages fits: fewer than 50 words, or hardly an English one"""

    @property
    def textual(self) -> bool:
        return is_textual(self.type)


@dataclass(frozen=True)
class Sample:
    """The columns of a source, looked at in `rows` rows of the first parts of some of its files."""

    files: tuple[SourceFile, ...]
    rows: int
    columns: tuple[Look, ...]

    def column(self, name: str) -> Look | None:
        """The column of that name."""
        return next((look for look in self.columns if look.name == name), None)


def first_rows(source: str | Sequence[str], read: ReadOptions) -> Sample:
    """Look into a source. Raises `InputError` where it cannot be opened, has no column, or is a JSON array."""
    files = discover(source, read, digests=False)
    looked = [files[index] for index in sorted({round(step) for step in np.linspace(0, len(files) - 1, FILES)})]
    share = max(ROWS // len(looked), 100)
    tables = [(file, _table(file, read, share)) for file in looked]
    schemas = [(file.name, table.schema) for file, table in tables if table.num_columns]
    if not schemas:
        raise InputError("the source holds no rows and no columns", place=files[0].name, hint="every file looked into is empty")
    schema = with_partitions(unify(schemas)[0], files)
    columns = tuple(_look(field, [_cells(field.name, file, table) for file, table in tables]) for field in schema)
    return Sample(files, sum(table.num_rows for _, table in tables), columns)


def _table(file: SourceFile, read: ReadOptions, rows: int) -> pa.Table:
    """The first rows of a file; its columns without rows where it has none."""
    if in_place(file):
        return _parquet(file, rows)
    for piece in pieces(file, read):
        for chunk in ingest(piece, read, None):
            bad = chunk.quarantined
            if file.format == "jsonl" and bad and bad[0].raw.lstrip().startswith(b"[") and len(bad) > chunk.rows.num_rows:
                raise InputError(
                    "this is one JSON array, and what is read is JSON lines: one object a line",
                    place=file.name,
                    hint=f"write it as lines, such as with: jq -c '.[]' {file.name} > rows.jsonl",
                )
            if bad and not chunk.rows.num_rows:
                raise InputError(
                    f"none of the first {len(bad)} rows can be read: {bad[0].reason}",
                    place=f"{file.name}, line {bad[0].line}",
                    hint="is the file what its name says it is?",
                )
            return pa.Table.from_batches([chunk.rows]).slice(0, rows)
    return pa.table({})


def _parquet(file: SourceFile, rows: int) -> pa.Table:
    layout = parquet.layout(file.path, file.name)
    for groups, total, batch_rows, _ in layout.parts:
        if total:
            simple = [field.name for field in layout.schema if _is_simple(field.type)]
            parts = parquet.read(file.path, file.name, groups, total, min(batch_rows, rows), simple, Meter(), "sample")
            batches = list(_until(parts, rows))
            sampled = pa.Table.from_batches(batches)
            return _with_all(sampled, layout.schema)
    return pa.Table.from_batches([], layout.schema)


def _until(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= batch.num_rows
        if rows <= 0:
            return


def _with_all(sampled: pa.Table, schema: pa.Schema) -> pa.Table:
    """The sample with the columns that are not looked into, as nulls."""
    columns = [
        sampled.column(field.name) if field.name in sampled.column_names else pa.nulls(sampled.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema([pa.field(field.name, field.type) for field in schema]))


def _is_simple(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(is_textual(kind) or numeric or (pa.types.is_temporal(kind) and not pa.types.is_duration(kind)))


def _cells(name: str, file: SourceFile, table: pa.Table) -> pl.Series:
    """The cells of one column in one file as text, without nulls and empty ones."""
    given = dict(file.partition)
    if name not in table.column_names:
        return pl.Series([given[name]] * table.num_rows if name in given else [], dtype=pl.String)
    column = table.column(name)
    if not _is_simple(column.type):
        return pl.Series([], dtype=pl.String)
    text = pl.Series(as_text(column)).drop_nulls()
    return text.filter(text.str.strip_chars() != "")


def _look(field: pa.Field, parts: list[pl.Series]) -> Look:
    cells = pl.concat(parts)
    distinct = cells.n_unique() if len(cells) else 0
    values = frozenset(cells.unique().to_list()) if distinct <= 20 else frozenset[str]()
    look = Look(field.name, field.type, len(cells), distinct, values)
    if not look.textual or not len(cells):
        return look
    chars = cells.str.len_chars()
    words = cells.str.count_matches(r"\S+") + cells.str.count_matches(_UNSPACED) // 2
    mean_chars, mean_words = (float(np.mean(numbers.to_numpy())) for numbers in (chars, words))
    addresses = float(np.mean(cells.str.contains(_ADDRESS).to_numpy()))
    unlike = float(np.mean(_unlike_pages(cells.head(_JUDGED)).to_numpy()))
    return Look(field.name, field.type, len(cells), distinct, values, mean_chars, mean_words, addresses, unlike)


def _unlike_pages(cells: pl.Series) -> pl.Series:
    """What falls to the two rules of Gopher that short texts and other languages break: 50 words, two stop words."""
    found = pl.sum_horizontal(cells.str.contains(rf"\b{word}\b").cast(pl.Int8).alias(word) for word in _STOP_WORDS)
    return (cells.str.count_matches(r"\S+") < 50) | (pl.select(found).to_series() < 2)
