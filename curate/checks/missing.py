"""Which cells hold nothing: null, empty, or nothing a reader could see."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from curate.cells import is_textual
from curate.check import Column, RowCheck, Scores, parameters
from curate.dataset import Names, Roles, Rows, as_text
from curate.errors import RequestError, did_you_mean
from curate.policy import IsTrue, Rule

VISIBLE = r"[^\s\x1c-\x1f\p{Default_Ignorable_Code_Point}]"
"""A character that shows: no whitespace (no-break and ideographic spaces are whitespace) and none
of the code points Unicode says to ignore when drawing (zero-width spaces and joiners, byte order
mark, soft hyphen, Hangul filler)."""


@parameters
class Missing(RowCheck):
    r"""Flags for cells that hold nothing, a set for each column, and one for rows without text.

    *Columns*: for each examined column `NAME_null`, and where it is text `NAME_empty` (no
    characters) and `NAME_blank` (some characters, none visible). At most one of the three is
    true. NaN in a column of floats counts as null. Where a column has the role `text`,
    `text_missing`: all the text columns of the row are null, empty or blank.

    *Missing*: never; these flags are what says so.

    *Cost*: one pass, no state; a visible text is left at its first visible character.

    *When it is wrong*: it knows emptiness, not meaning. `"N/A"`, `"-"`, `"null"` and `"\0"` are
    text to it, and 0 or 1900-01-01 are values. A row `{body: "TODO", label: null}` has
    `label_null` and is not `text_missing`.
    """

    of: Names = ()
    """the columns to examine; every column that has a role when not given"""

    name: ClassVar[str] = "missing"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True
    lets_threads_run: ClassVar[bool] = True

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The examined columns and the text columns."""
        return tuple(dict.fromkeys((*self._examined(roles, schema), *roles.text)))

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """One flag for each way a column can hold nothing."""
        found: list[Column] = []
        for name in self._examined(roles, schema):
            found.append(Column(f"{name}_null", "flag", f"`{name}` is null or NaN"))
            if is_textual(schema.field(name).type):
                found.append(Column(f"{name}_empty", "flag", f"`{name}` is a text of no characters"))
                found.append(Column(f"{name}_blank", "flag", f"`{name}` is a text without a visible character"))
        if roles.text:
            found.append(Column("text_missing", "flag", "every text column is null, empty or blank"))
        return tuple(found)

    def default_rules(self, roles: Roles, schema: pa.Schema) -> tuple[Rule, ...]:
        """Rows without text are rejected; other gaps are only reported."""
        return (IsTrue(is_true="text_missing"),) if roles.text else ()

    def score(self, rows: Rows) -> Scores:
        """Every flag of every row; none is ever null."""
        flags: dict[str, pa.Array] = {}
        for name in self._examined(rows.roles, rows.table.schema):
            column = rows.table.column(name)
            flags[f"{name}_null"] = _null(column)
            if is_textual(column.type):
                flags[f"{name}_empty"], flags[f"{name}_blank"] = _empty_and_blank(column)
        if rows.roles.text:
            nothing = pa.array([True] * len(rows), pa.bool_())
            for name in rows.roles.text:
                nothing = pc.and_(nothing, _nothing(rows.table.column(name)))
            flags["text_missing"] = nothing
        return flags

    def _examined(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        for name in self.of:
            if name not in schema.names:
                raise RequestError(
                    f"`missing`: `of` names the column `{name}`, which the data does not have",
                    hint=did_you_mean(name, schema.names),
                )
        chosen = self.of or tuple(dict.fromkeys(column for _, column in roles))
        if not chosen:
            raise RequestError(
                "`missing` has no column to examine: no column has a role, and `of` is not given",
                hint="add `of: [COLUMN]`; the columns are " + ", ".join(schema.names),
            )
        return chosen


def _null(column: pa.ChunkedArray) -> pa.Array:
    floats = pa.types.is_floating(column.type)
    return _whole(pc.is_null(column, nan_is_null=True) if floats else column.is_null())


def _empty_and_blank(column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    import polars as pl

    text = pl.Series(as_text(column))
    empty = (text == "").fill_null(False)
    blank = (~text.str.contains(VISIBLE)).fill_null(False) & ~empty
    return empty.to_arrow(), blank.to_arrow()


def _nothing(column: pa.ChunkedArray) -> pa.Array:
    null = _null(column)
    if not is_textual(column.type):
        return null
    empty, blank = _empty_and_blank(column)
    return pc.or_(null, pc.or_(empty, blank))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
