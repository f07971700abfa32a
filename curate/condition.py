"""The nodes of a parsed condition, each of which gives a mask of a table's rows.

A comparison with a missing cell is false. Whole numbers compare exactly at any size, and text
compares with dates and times by its meaning.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.errors import RequestError

Bools = npt.NDArray[np.bool_]
Literal = str | int | float | bool

COMPARE = {"==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
MIRROR = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""the same comparison with its sides exchanged"""
_SCALAR = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Node(ABC):
    """One node of a condition."""

    @abstractmethod
    def mask(self, table: pa.Table) -> Bools:
        """True for the rows that meet it."""


@dataclass(frozen=True)
class Both(Node):
    """`and`."""

    parts: tuple[Node, ...]

    def mask(self, table: pa.Table) -> Bools:
        return np.asarray(np.logical_and.reduce([part.mask(table) for part in self.parts]), dtype=bool)


@dataclass(frozen=True)
class Either(Node):
    """`or`."""

    parts: tuple[Node, ...]

    def mask(self, table: pa.Table) -> Bools:
        return np.asarray(np.logical_or.reduce([part.mask(table) for part in self.parts]), dtype=bool)


@dataclass(frozen=True)
class Not(Node):
    """`not`."""

    part: Node

    def mask(self, table: pa.Table) -> Bools:
        return ~self.part.mask(table)


@dataclass(frozen=True)
class IsNull(Node):
    """`is null`."""

    column: str

    def mask(self, table: pa.Table) -> Bools:
        return _bools(pc.is_null(table.column(self.column)))


@dataclass(frozen=True)
class IsTrue(Node):
    """A column of true and false by itself."""

    column: str

    def mask(self, table: pa.Table) -> Bools:
        cells = _cells(table, self.column)
        if not pa.types.is_boolean(cells.type):
            raise RequestError(
                f"`{self.column}` is {_called(cells.type)}, neither true nor false", hint="compare it, or ask `is not null`"
            )
        return _bools(cells)


@dataclass(frozen=True)
class Compare(Node):
    """A column against a literal."""

    column: str
    word: str
    literal: Literal

    def mask(self, table: pa.Table) -> Bools:
        cells = _comparable(_cells(table, self.column), self.literal)
        if pa.types.is_null(cells.type):
            return np.zeros(len(table), bool)
        bound = _scalar(self.literal, cells.type, self.column)
        if bound is None:  # a whole number outside the column's range: one answer for every cell
            answer = _SCALAR[self.word](0, self.literal)
            return np.asarray(_bools(pc.is_valid(cells)) & answer)
        return _bools(COMPARE[self.word](cells, bound))


@dataclass(frozen=True)
class ComparePair(Node):
    """A column against another column."""

    column: str
    word: str
    other: str

    def mask(self, table: pa.Table) -> Bools:
        left, right = _cells(table, self.column), _cells(table, self.other)
        if pa.types.is_null(left.type) or pa.types.is_null(right.type):
            return np.zeros(len(table), bool)
        if left.type != right.type and _is_number(left.type) and _is_number(right.type):
            left, right = left.cast(pa.float64(), safe=False), right.cast(pa.float64(), safe=False)
        try:
            return _bools(COMPARE[self.word](left, right))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as err:
            raise RequestError(
                f"`{self.column}` is {_called(left.type)} and `{self.other}` is {_called(right.type)}: they do not compare"
            ) from err


@dataclass(frozen=True)
class OneOf(Node):
    """A column among literals."""

    column: str
    literals: tuple[Literal, ...]

    def mask(self, table: pa.Table) -> Bools:
        cells = _cells(table, self.column)
        if pa.types.is_null(cells.type):
            return np.zeros(len(table), bool)
        fractions = any(isinstance(value, float) and not value.is_integer() for value in self.literals)
        if pa.types.is_decimal(cells.type) or (fractions and pa.types.is_integer(cells.type)):
            cells = cells.cast(pa.float64(), safe=False)
        found = [_scalar(value, cells.type, self.column) for value in self.literals]
        known = pa.array([value.as_py() if value is not None else None for value in found], cells.type).drop_null()
        return _bools(pc.is_in(cells, value_set=known))


def _cells(table: pa.Table, column: str) -> pa.ChunkedArray:
    """A column in the type that comparisons know: categories as their values, text as large text."""
    cells = table.column(column)
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if pa.types.is_string(cells.type) or pa.types.is_string_view(cells.type):
        cells = cells.cast(pa.large_string())
    return cells


def _comparable(cells: pa.ChunkedArray, literal: Literal) -> pa.ChunkedArray:
    """Whole-number columns stay whole against whole numbers, so that ids beyond 2^53 compare exactly."""
    fraction = isinstance(literal, float) and not literal.is_integer()
    if pa.types.is_decimal(cells.type) or (fraction and pa.types.is_integer(cells.type)):
        return cells.cast(pa.float64(), safe=False)
    return cells


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _scalar(literal: Literal, kind: pa.DataType, column: str) -> pa.Scalar | None:
    """The literal in a column's type; None for a whole number that the type cannot hold."""
    fits = {
        bool: pa.types.is_boolean(kind),
        int: _is_number(kind),
        float: _is_number(kind),
        str: bool(pa.types.is_large_string(kind) or pa.types.is_temporal(kind)),
    }[type(literal)]
    if not fits:
        raise RequestError(f"`{column}` is {_called(kind)} and does not compare with {_written(literal)}")
    if pa.types.is_temporal(kind):
        return _moment(str(literal), kind, column)
    if pa.types.is_integer(kind):
        try:
            return pa.scalar(int(literal), kind)
        except (OverflowError, pa.ArrowInvalid):
            return None
    if _is_number(kind):
        return pa.scalar(float(literal), pa.float64()).cast(kind, safe=False)
    return pa.scalar(literal, kind)


def _moment(text: str, kind: pa.DataType, column: str) -> pa.Scalar:
    for ending in ("", "Z", "T00:00:00Z"):
        try:
            return pa.scalar(text + ending).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    raise RequestError(
        f'`{column}` is {kind}, and "{text}" is not such a moment', hint='write "2024-01-31" or "2024-01-31T12:00:00Z"'
    )


def _called(kind: pa.DataType) -> str:
    return "text" if pa.types.is_large_string(kind) else str(kind)


def _written(literal: Literal) -> str:
    return f'the text "{literal}"' if isinstance(literal, str) else str(literal).lower()


def _bools(answer: pa.ChunkedArray | pa.Array) -> Bools:
    filled = pc.fill_null(answer, False)
    return np.asarray(
        filled.to_numpy() if isinstance(filled, pa.ChunkedArray) else filled.to_numpy(zero_copy_only=False), dtype=bool
    )
