"""Which of several alike rows stays: one vocabulary for exact, near and reference duplicates.

| written                           | the row that stays                                           |
|-----------------------------------|--------------------------------------------------------------|
| `first`                           | the one with the smallest row id                             |
| `longest`                         | the one with most characters in the compared columns         |
| `{newest: COLUMN}`                | the one with the latest date, time or ISO 8601 text          |
| `{highest: COLUMN}`               | the one with the greatest value                              |
| `{lowest: COLUMN}`                | the one with the smallest value                              |
| `{order: [A, B, …], of: COLUMN}`  | the one whose value stands first in the list                 |
| a list of these                   | the first that tells two rows apart decides                  |

A row without the value (null, NaN, not in the list) comes after all rows that have one, and
whatever is still tied is decided by the smaller row id. So the choice depends on the rows
alone, never on their order in a file, on workers or on shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.dataclasses import dataclass as validated
from pydantic_core import PydanticCustomError

from curate.cells import is_comparable
from curate.dataset import Rows
from curate.errors import RequestError, did_you_mean

_form = validated(frozen=True, config=ConfigDict(extra="forbid"))

EXPECTED = (
    "expected first, longest, {newest: COLUMN}, {highest: COLUMN}, {lowest: COLUMN}, "
    "{order: [VALUE, ...], of: COLUMN}, or a list of these"
)


@_form
class Newest:
    """The latest date, time or ISO 8601 text of a column."""

    newest: str
    """the column"""


@_form
class Highest:
    """The greatest value of a column."""

    highest: str
    """the column"""


@_form
class Lowest:
    """The smallest value of a column."""

    lowest: str
    """the column"""


@_form
class Order:
    """The value that stands first in a list, such as sources by trust."""

    order: Annotated[tuple[str, ...], Field(min_length=1)]
    """the values, best first, as they are written"""
    of: str
    """the column"""


Choice = Literal["first", "longest"] | Newest | Highest | Lowest | Order


def _explained(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError as err:
        raise PydanticCustomError("prefer", EXPECTED) from err


Prefer = Annotated[Choice | Annotated[tuple[Choice, ...], Field(min_length=1)], WrapValidator(_explained)]


def columns_needed(prefer: Prefer, schema: pa.Schema, place: str = "prefer") -> tuple[str, ...]:
    """The columns a preference reads.

    Raises `RequestError` with the nearest name for a column that is not there, and for one whose
    cells have no order (lists, structs, maps).
    """
    columns = tuple(dict.fromkeys(_column(choice) for choice in _choices(prefer) if not isinstance(choice, str)))
    for column in columns:
        if column not in schema.names:
            raise RequestError(
                f"`prefer` names the column `{column}`, which the data does not have",
                place=place,
                hint=did_you_mean(column, schema.names),
            )
        kind = schema.field(column).type
        if not is_comparable(kind):
            raise RequestError(f"`prefer` names the column `{column}`, whose type {kind} has no order", place=place)
    return columns


def preference_columns(rows: Rows, prefer: Prefer, compared: Sequence[str]) -> dict[str, pa.Array]:
    """What `best_first` needs to know of each row: `prefer_0`, `prefer_1`, …, null where a row has no value.

    `compared` are the columns whose characters `longest` counts. `first` needs none.
    """
    return {name: _value(rows, choice, compared) for name, choice in _named(prefer)}


def best_first(table: pa.Table, prefer: Prefer) -> npt.NDArray[np.int64]:
    """The places of a table's rows from the most to the least preferred.

    The table has `row` (row ids) and what `preference_columns` made.
    """
    import polars as pl

    row = table.column("row").to_numpy()
    named = _named(prefer)
    if not named:
        return np.argsort(row, kind="stable")
    frame = pl.DataFrame([pl.Series(name, table.column(name)) for name, _ in named] + [pl.Series("row", row)])
    falling = [not (isinstance(choice, Lowest | Order)) for _, choice in named]
    order = frame.select(pl.arg_sort_by(frame.columns, descending=[*falling, False], nulls_last=True))
    return order.to_series().to_numpy().astype(np.int64)


def _choices(prefer: Prefer) -> tuple[Choice, ...]:
    return prefer if isinstance(prefer, tuple) else (prefer,)


def _named(prefer: Prefer) -> list[tuple[str, Choice]]:
    """The choices that read something; `first` and what stands behind it say no more than the row id."""
    choices: list[Choice] = []
    for choice in _choices(prefer):
        if choice == "first":
            break
        choices.append(choice)
    return [(f"prefer_{index}", choice) for index, choice in enumerate(choices)]


def _column(choice: Newest | Highest | Lowest | Order) -> str:
    match choice:
        case Newest():
            return choice.newest
        case Highest():
            return choice.highest
        case Lowest():
            return choice.lowest
        case Order():
            return choice.of


def _value(rows: Rows, choice: Choice, compared: Sequence[str]) -> pa.Array:
    if isinstance(choice, str):
        counts = [pc.fill_null(pc.utf8_length(rows.text(column)), 0) for column in compared]
        total = np.sum([count.to_numpy(zero_copy_only=False) for count in counts], axis=0, dtype=np.int64)
        return pa.array(total, pa.int64())
    if isinstance(choice, Order):
        return pc.index_in(rows.text(choice.of), value_set=pa.array(choice.order, pa.large_string()))
    values = rows.table.column(_column(choice)).combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_nan(values), None, values)
    return values.cast(_sortable(values.type))


def _sortable(kind: pa.DataType) -> pa.DataType:
    """The type itself, or the nearest one that can be both picked by pyarrow and sorted by polars."""
    if pa.types.is_decimal256(kind):
        return pa.float64()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind) else kind
