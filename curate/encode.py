"""Tables as numbers for models: categories as codes, dates as seconds, the rest as it is; and a key for what a row holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from curate.dataset import as_text

Floats = npt.NDArray[np.float64]
U64s = npt.NDArray[np.uint64]

MOST_CATEGORIES = 200
"""the most frequent values of a category have a code of their own; all others share one"""


@dataclass(frozen=True)
class Encoded:
    """A table as numbers: n x columns, missing as NaN; which columns are categories, and the names."""

    values: Floats
    categories: npt.NDArray[np.bool_]
    names: tuple[str, ...]

    def dense(self) -> Floats:
        """For models that know neither missing cells nor categories: medians and flags for gaps, a column a common category."""
        columns = []
        for at in range(self.values.shape[1]):
            cells = self.values[:, at]
            gaps = np.isnan(cells)
            if self.categories[at]:
                codes = np.unique(cells[~gaps])
                columns += [(cells == code).astype(np.float64) for code in codes]
            else:
                columns.append(np.where(gaps, np.median(cells[~gaps]) if (~gaps).any() else 0.0, cells))
            if gaps.any():
                columns.append(gaps.astype(np.float64))
        return np.column_stack(columns) if columns else np.zeros((len(self.values), 0))


def is_vector(kind: pa.DataType) -> bool:
    """Whether cells are lists of numbers."""
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(lists and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)))


def matrix(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.float32] | None:
    """A column of lists of numbers as n x d; None where the lengths differ or a number is missing."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(array):
        return np.zeros((0, 0), np.float32)
    flat = array.flatten()
    width = len(flat) // len(array)
    even = pc.all(pc.equal(pc.list_value_length(array), width)).as_py()
    if array.null_count or flat.null_count or not even:
        return None
    return np.asarray(flat.to_numpy(zero_copy_only=False), np.float32).reshape(len(array), width)


def encode(table: pa.Table, names: tuple[str, ...]) -> Encoded:
    """The named columns as numbers, in order; codes of categories depend on how often each occurs, not on the order of rows."""
    columns, categories = [], []
    for name in names:
        cells, category = _numbers(table.column(name))
        columns.append(cells)
        categories.append(category)
    values = np.column_stack(columns) if columns else np.zeros((table.num_rows, 0))
    return Encoded(values, np.array(categories, np.bool_), names)


def _numbers(column: pa.ChunkedArray) -> tuple[Floats, bool]:
    kind = column.type
    if pa.types.is_boolean(kind):
        return _floats(column.cast(pa.int8())), False
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _floats(column.cast(pa.float64(), safe=False)), False
    if pa.types.is_temporal(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        return _floats(column.cast(whole).cast(pa.float64(), safe=False)), False
    return _codes(as_text(column)), True


def _floats(column: pa.ChunkedArray) -> Floats:
    cells = np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)
    return np.where(np.isfinite(cells), cells, np.nan)


def _codes(text: pa.LargeStringArray) -> Floats:
    """0 for the most frequent value, and so on; one code for all beyond `MOST_CATEGORIES`; NaN for nulls."""
    counted = text.drop_null().value_counts()
    values, counts = counted.field("values"), counted.field("counts").to_numpy()
    order = sorted(range(len(counts)), key=lambda at: (-int(counts[at]), str(values[at])))
    ranked = values.take(pa.array(order[:MOST_CATEGORIES], pa.int64()))
    found = pc.index_in(text, value_set=ranked).cast(pa.float64()).fill_null(float(len(ranked)))
    codes = np.array(found.to_numpy(zero_copy_only=False), np.float64)
    codes[np.asarray(text.is_null())] = np.nan
    return codes


def content_keys(columns: list[Any], seed: int) -> U64s:
    """64 bits of what each row holds in these columns: the same for equal rows, wherever they stand."""
    cells = [_bytes(column) for column in columns]
    if not cells:
        return np.zeros(0, np.uint64)
    digests = (xxhash.xxh3_64_intdigest(b"\x1f".join(row), seed % 2**64) for row in zip(*cells, strict=True))
    return np.fromiter(digests, np.uint64, len(cells[0]))


def _bytes(column: pa.ChunkedArray) -> list[bytes]:
    if is_vector(column.type):
        return [b"" if cell is None else np.asarray(cell, np.float64).tobytes() for cell in column.to_pylist()]
    text = as_text(column).fill_null("\0")
    return list(text.cast(pa.large_binary()).to_pylist())
