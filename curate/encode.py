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
from curate.facets import facet

Floats = npt.NDArray[np.float64]
U64s = npt.NDArray[np.uint64]

MOST_CATEGORIES = 200
"""the most frequent values of a category have a code of their own; all others share one"""


@dataclass(frozen=True)
class Encoded:
    """A table as numbers: n x columns, missing as NaN; and which columns are categories, as codes by how frequent they are."""

    values: Floats
    categories: npt.NDArray[np.bool_]

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
    return Encoded(values, np.array(categories, np.bool_))


def _numbers(column: pa.ChunkedArray) -> tuple[Floats, bool]:
    """A column as numbers, and whether they are codes of categories."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    found = facet(column)
    if found.kind != "category":
        return found.numbers, False
    counts = np.bincount(found.codes[found.codes >= 0], minlength=len(found.names))
    by_count = np.argsort(-counts, kind="stable")  # the names are sorted, so ties are in their order
    code = np.empty(len(counts) + 1)
    code[by_count] = np.minimum(np.arange(len(counts)), MOST_CATEGORIES)
    code[-1] = np.nan
    return code[found.codes], True


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
