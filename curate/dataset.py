"""A data set: ordered parts, the roles of its columns, and a row id for every row.

A *part* is the unit of work: a run of row groups of one Parquet file, read in place, or a
decoded piece of any other input, kept in the run's store. Row ids are unsigned 64-bit
positions given once, when the parts are laid end to end; after that they are only checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BeforeValidator

from curate.errors import RequestError, did_you_mean
from curate.parameters import parameters

MEMORY_NAME = "<memory>"
"""what data that came from no file is called in the ledger"""
OUTSIDE = 1 << 62
"""row ids from here on name rows from outside the input, stage by stage: `outside_row` makes them"""
OUTSIDE_ROWS = 1 << 44
"""as many rows from outside a stage may meet"""
RowIds = npt.NDArray[np.uint64]


def _names(value: Any) -> Any:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names, json_schema_input_type=str | tuple[str, ...])]


@parameters
class Roles:
    """Which column plays which part. A role that no column plays is left out."""

    id: str | None = None
    """the caller's own name for a row; findings carry it"""
    text: Names = ()
    """the columns that hold the text, one or several"""
    label: str | None = None
    """the class or value a model is to learn"""
    group: Names = ()
    """columns that name groups of people, sources or languages"""
    split: str | None = None
    """the column that says train, validation or test"""
    features: Names = ()
    """the columns a tabular model reads"""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """(role, column) pairs in a fixed order."""
        for role in ("id", "text", "label", "group", "split", "features"):
            for column in _names(getattr(self, role)):
                yield role, column

    def check_against(self, schema: pa.Schema) -> None:
        """Raise `RequestError` with the nearest column where a role names a column that is not there."""
        for role, column in self:
            if column not in schema.names:
                raise RequestError(
                    f"role `{role}` names the column `{column}`, which the data does not have",
                    place="roles",
                    hint=did_you_mean(column, schema.names),
                )
            kind = schema.field(column).type
            if role in ("id", "group", "split") and not is_single(kind):
                raise RequestError(
                    f"role `{role}` names the column `{column}` of type {kind}, whose cells are no single values",
                    place="roles",
                    hint="name a column of texts, numbers or dates",
                )
            if role == "text" and is_bytes(kind):
                raise RequestError(
                    f"role `text` names the column `{column}` of type {kind}: bytes are not text",
                    place="roles",
                    hint="decode the column first, or name another one",
                )


@dataclass(frozen=True)
class Part:
    """One unit of work and where its rows stand in the whole.

    `rows` counts every row of the part, unreadable ones too; row ids run from `first_row` to
    `first_row + rows - 1`; `first_source_row` and `first_line` say where the part begins in its own file.
    `location` is the source file for Parquet read in place, or a key of the store for a decoded part.
    """

    index: int
    source_file: str
    first_source_row: int
    first_line: int
    rows: int
    first_row: int
    key: str
    location: str
    in_place: bool
    row_groups: tuple[int, ...] = ()
    batch_rows: int = 8192
    partition: tuple[tuple[str, str], ...] = ()
    text_bytes: int = 0

    @property
    def name(self) -> str:
        """What the part's files are called in every folder of the run directory."""
        return f"part-{self.index:05d}"


@dataclass(frozen=True)
class Dataset:
    """Parts in order, their common schema, and the casts that the schema cost."""

    parts: tuple[Part, ...]
    schema: pa.Schema
    casts: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def part_of(self, row_id: int) -> Part:
        """The part that holds a row id; `RequestError` when the id is beyond the last row."""
        for part in self.parts:
            if part.first_row <= row_id < part.first_row + part.rows:
                return part
        raise RequestError(f"there is no row {row_id}: the run has {self.rows} rows, numbered from 0")


@dataclass(frozen=True)
class Rows:
    """What a check sees: the needed columns of some rows, and the ids of these rows.

    `table` has the columns the check asked for (`Check.needs`), `row_ids` one id a row. Unless
    the check sets `sees_nulls`, no needed cell is null.
    """

    table: pa.Table
    row_ids: RowIds
    roles: Roles
    seed: int = 0

    def __len__(self) -> int:
        return len(self.row_ids)

    def text(self, column: str) -> pa.LargeStringArray:
        """One column as contiguous UTF-8 text; numbers, dates and categories in their shortest written form."""
        return as_text(self.table.column(column))

    def whole_text(self) -> pa.LargeStringArray:
        """The text of each row: its text columns as lines below each other, nulls left out; null where all are null."""
        cells = [self.text(column) for column in self.roles.text]
        if len(cells) == 1:
            return cells[0]
        import polars as pl

        columns = [pl.Series(str(at), column) for at, column in enumerate(cells)]
        joined = pl.concat_str(columns, separator="\n", ignore_nulls=True)  # pyarrow's join loses rows that are all null
        nothing = pl.all_horizontal([column.is_null() for column in columns])
        texts = pl.select(pl.when(~nothing).then(joined)).to_series()
        return as_text(texts.to_arrow(compat_level=pl.CompatLevel.oldest()))

    def take(self, keep: npt.NDArray[np.bool_]) -> Rows:
        """The rows where `keep` is true."""
        return Rows(self.table.filter(pa.array(keep)), self.row_ids[keep], self.roles, self.seed)


def without_views(kind: pa.DataType) -> pa.DataType:
    """The same type with plain text and bytes where it has views, inside lists and structs too.

    Arrow's `take` and `filter` know no views; rows are worked on without them and written with them.
    """
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(without_views(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(without_views(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(without_views(kind.value_type)))
    return kind


def is_bytes(kind: pa.DataType) -> bool:
    """True for bytes of any layout."""
    t = pa.types
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind))


def is_single(kind: pa.DataType) -> bool:
    """True for types whose cells are one value: no list, struct, map, union or interval."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return not (pa.types.is_nested(kind) or pa.types.is_union(kind) or pa.types.is_interval(kind))


def shown(column: pa.ChunkedArray | pa.Array) -> pa.StringArray:
    """A column of single values as the ledger and the report show it: as text, and bytes that are no text as hex."""
    try:
        return as_text(column).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if cell is None else _decoded(cell) for cell in column.to_pylist()], pa.string())


def _decoded(cell: bytes) -> str:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return cell.hex()


def as_text(column: pa.ChunkedArray | pa.Array) -> pa.LargeStringArray:
    """Any scalar column as one contiguous `large_string` array, nulls kept."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
        column = column.cast(pa.large_string() if pa.types.is_string_view(column.type) else pa.large_binary())
    column = column.cast(pa.large_string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column
