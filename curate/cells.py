"""What a cell says: which cells are text, when two cells are equal, when one is empty.

Two texts are the same words when they agree after *folding*: NFC, then full case folding, then
NFC again (folding can undo a composition, as for U+01F0). The first NFC makes the result the
same for all canonically equivalent spellings; folding a folded text changes nothing.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.dataset import as_text
from curate.errors import RequestError


def fold(text: str) -> str:
    """A text without its case and spelling variants: NFC(casefold(NFC(text)))."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def normalise_text(text: str) -> str:
    """A folded text whose runs of whitespace are one space, and none at its ends.

    Whitespace is what `str.split` takes for it: the no-break and ideographic spaces too, but not
    the zero-width ones, which Unicode counts as format characters.
    """
    return " ".join(fold(text).split())


def is_textual(kind: pa.DataType) -> bool:
    """True for strings of any layout, dictionary-coded ones too."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_comparable(kind: pa.DataType) -> bool:
    """True for the types whose cells `canonical` can write as bytes: every scalar, no list, struct or map."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return not (pa.types.is_nested(kind) or pa.types.is_union(kind) or kind == pa.month_day_nano_interval())


def canonical(column: pa.ChunkedArray | pa.Array) -> pa.LargeBinaryArray:
    """A column as bytes that are equal exactly when the cells are equal by value; nulls stay null.

    Text is its UTF-8, as it is. 0.0 and -0.0 are one value, every NaN is one value (and not null),
    a time is its count of units since 1970. Bytes are comparable inside one column only.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_floating(kind):
        values = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 + 0.0 is 0.0
        column = pc.if_else(pc.is_nan(values), np.nan, values)
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary(kind):
        return _contiguous(column.cast(pa.large_binary()))
    elif pa.types.is_large_binary(kind):
        return _contiguous(column)
    return as_text(column).cast(pa.large_binary())


def python_values(column: pa.ChunkedArray | pa.Array, name: str) -> list[Any]:
    """The cells as Python values, and where Python has no such moment (the year 12000, a nanosecond), as text.

    Raises `RequestError` where one stands inside a list, a struct or a map.
    """
    if column.type == pa.time64("ns"):  # Python's time would drop the nanoseconds
        return list(column.cast(pa.string()).to_pylist())
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError) as err:
        if pa.types.is_nested(column.type):
            raise RequestError(
                f"column `{name}` holds a value that cannot be written as text: {err}",
                hint="keep the rows as Parquet: `output: {format: parquet}`",
            ) from err
        return list(column.cast(pa.string()).to_pylist())


def without_unused(table: pa.Table) -> pa.Table:
    """The table with dictionaries that hold only values its rows use."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            chunks = [_compact(chunk) for chunk in table.column(at).chunks]
            table = table.set_column(at, field, pa.chunked_array(chunks, field.type))
    return table


def _compact(column: pa.DictionaryArray) -> pa.DictionaryArray:
    used = pc.unique(column.indices.drop_null()).sort()
    indices = pc.index_in(column.indices, used).cast(column.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary.take(used), ordered=column.type.ordered)


def lengths(cells: pa.LargeBinaryArray | pa.LargeStringArray) -> npt.NDArray[np.int64]:
    """The bytes in each cell, -1 where the cell is null."""
    offsets = np.frombuffer(cells.buffers()[1] or bytes(8), np.int64)[cells.offset : cells.offset + len(cells) + 1]
    sizes = np.diff(offsets) if len(cells) else np.empty(0, np.int64)
    return np.where(cells.is_valid().to_numpy(zero_copy_only=False), sizes, -1) if cells.null_count else sizes


def _contiguous(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
