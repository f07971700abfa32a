"""A column as a statistic wants it: numbers, or categories, with missing cells apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.association import mid_ranks
from curate.dataset import Roles, Rows, is_single, shown
from curate.errors import RequestError, did_you_mean

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

MOST_CLASSES = 50
"""a number with more values than this names no classes"""


class Facet(NamedTuple):
    """A column of n rows: numbers (NaN where missing), or codes into the sorted names (-1 where missing)."""

    kind: Literal["number", "time", "category"]
    numbers: Floats
    codes: Int64s
    names: tuple[str, ...]

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Where there is no value."""
        return self.codes < 0 if self.kind == "category" else np.isnan(self.numbers)


def facet(column: pa.ChunkedArray | pa.Array) -> Facet:
    """A column of single values: numbers and times as numbers, all else by what is shown of it."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    t, kind = pa.types, column.type
    none = np.empty(0, np.int64)
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
        return Facet("number", _floats(column), none, ())
    if t.is_temporal(kind) and not t.is_interval(kind):
        width = pa.int64() if kind.bit_width == 64 else pa.int32()
        return Facet("time", _floats(column.view(width) if kind.bit_width in (32, 64) else column), none, ())
    coded = shown(column).dictionary_encode()
    names = np.array(coded.dictionary.to_pylist(), dtype=object)
    order = np.argsort(names.astype(np.str_), kind="stable") if len(names) else none
    turn = np.empty(len(names), np.int64)
    turn[order] = np.arange(len(names))
    codes = pc.fill_null(coded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return Facet("category", np.empty(0), np.append(turn, -1)[codes], tuple(names[order].tolist()))


def looked_at(given: Sequence[str], roles: Roles, schema: pa.Schema, without: Sequence[str | None]) -> tuple[str, ...]:
    """The columns a check of tables looks at: those given, else the features, label and groups, else all of single values.

    Text columns and those of `without` are left out. Raises `RequestError` for a name that is not there or has no single values.
    """
    for name in given:
        if name not in schema.names:
            raise RequestError(
                f"`of` names the column `{name}`, which the data does not have", hint=did_you_mean(name, schema.names)
            )
        if not is_single(schema.field(name).type):
            raise RequestError(f"`of` names the column `{name}` of type {schema.field(name).type}, which has no single values")
    own = (*roles.features, *((roles.label,) if roles.label else ()), *roles.group)
    names = tuple(given) or (own if roles.features else tuple(schema.names))
    left_out = {*roles.text, *without}
    single = (name for name in dict.fromkeys(names) if is_single(schema.field(name).type))
    return tuple(single) if given else tuple(name for name in single if name not in left_out)


def text_lengths(rows: Rows) -> Facet:
    """The characters of each row's text, as a facet."""
    return facet(pc.utf8_length(rows.whole_text()))


def ranks(values: Floats) -> Floats:
    """The rank of each value, ties with their mean, from 0 to 1 (0.5 for one value)."""
    return (mid_ranks(values) - 1) / (len(values) - 1) if len(values) > 1 else np.full(len(values), 0.5)


def classes_of(given: Facet, most: int, parts: int) -> tuple[Int64s, Floats | None]:
    """The class of each row, -1 where missing, and the numbers that the classes stand for, if any.

    Of a number with more than `most` values the part of equal size that it falls in, one of `parts`: no number stands for it.
    """
    if given.kind == "category":
        return given.codes, None
    known = ~given.missing
    codes = np.full(len(given.numbers), -1, np.int64)
    values, own = np.unique(given.numbers[known], return_inverse=True)
    few = len(values) <= most
    codes[known] = own if few else np.minimum(ranks(given.numbers[known]) * parts, parts - 1).astype(np.int64)
    return codes, values if few else None


def verdict(low: float, high: float, effect: float, names: tuple[str, str]) -> str:
    """The first name where the whole interval reaches the effect, the second where none of it does, else `unclear`."""
    return names[0] if low >= effect else names[1] if high < effect else "unclear"


def _floats(column: pa.Array) -> Floats:
    values = np.array(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
    return np.where(np.isinf(values), np.nan, values)
