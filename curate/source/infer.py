"""Types for values that come without: a lattice in which nothing is ever rounded.

null < bool, int64, uint64, double, string, list<T>, struct<...>. Integers and floats meet in
`double` only when every integer is exact there; anything else that differs meets in a string
that holds the JSON text of what is not a string.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import orjson
import pyarrow as pa

from curate.source.lattice import MAX_FIELDS, is_list, is_text, remark

MAX_NESTING = 32
"""values nested deeper than this are kept as JSON text"""
EXACT = 2**53
HUGE = 2.0**63
_LEAF = {bool: pa.bool_(), str: pa.string()}


class Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


class Huge(Number):
    """A JSON number beyond 64 bits, or beyond what a double can hold."""

    __slots__ = ()


class Inference:
    """Infers fields; `huge` and `mixed` say afterwards what was met on the way.

    `huge`: a float of 2^63 or more, which may be an integer that the parser rounded;
    `mixed`: some value has to become text.
    """

    def __init__(self) -> None:
        self.huge = False
        self.mixed = False

    def field(self, name: str, values: Sequence[Any], depth: int = 0) -> pa.Field:
        """The field that holds these values; None stands for null."""
        kinds = set(map(type, values))
        kinds.discard(type(None))
        if not kinds:
            return pa.field(name, pa.null())
        if len(kinds) == 1:
            kind = next(iter(kinds))
            if kind in _LEAF:
                return pa.field(name, _LEAF[kind])
            if kind is list or kind is dict:
                return self._nested(name, [v for v in values if v is not None], kind, depth)
        if kinds <= {int, float}:
            return self._number(name, values, kinds)
        return self._text(name)

    def _text(self, name: str) -> pa.Field:
        self.mixed = True
        return pa.field(name, pa.string())

    def _number(self, name: str, values: Sequence[Any], kinds: set[type]) -> pa.Field:
        if float in kinds:
            self.huge |= any(type(v) is float and not -HUGE < v < HUGE for v in values)
        if int not in kinds:
            return remark(pa.field(name, pa.float64()), ["text"])
        whole = [v for v in values if type(v) is int]
        low, high = min(whole), max(whole)
        exact = -EXACT <= low and high <= EXACT
        if float in kinds:
            return remark(pa.field(name, pa.float64()), ["text"]) if exact else self._text(name)
        if high < 2**63 and low >= -(2**63):
            return remark(pa.field(name, pa.int64()), ["double"] * exact + ["uint64"] * (low >= 0))
        return pa.field(name, pa.uint64()) if 0 <= low and high < 2**64 else self._text(name)

    def _nested(self, name: str, values: list[Any], kind: type, depth: int) -> pa.Field:
        if depth >= MAX_NESTING:
            return self._text(name)
        if kind is list:
            child = self.field("item", list(chain.from_iterable(values)), depth + 1)
            return remark(pa.field(name, pa.list_(child)), ["text"])
        keys = dict.fromkeys(chain.from_iterable(values))
        if not keys:
            return remark(self._text(name), ["struct"])
        if len(keys) > MAX_FIELDS:
            return self._text(name)
        children = [self.field(key, [v[key] for v in values if key in v], depth + 1) for key in keys]
        return remark(pa.field(name, pa.struct(children)), ["text"])


def as_type(value: Any, kind: pa.DataType) -> Any:
    """A value brought into a type: where the type is text, what is not a string becomes its JSON text."""
    if value is None:
        return None
    if is_text(kind):
        return value if type(value) is str else json_text(value)
    if isinstance(value, Number):
        if pa.types.is_integer(kind):
            return int(value)
        return float(value) if pa.types.is_floating(kind) else str(value)
    if isinstance(value, list) and is_list(kind):
        return [as_type(item, kind.value_type) for item in value]
    if isinstance(value, dict) and pa.types.is_struct(kind):
        return {field.name: as_type(value.get(field.name), field.type) for field in kind}
    return value


def json_text(value: Any) -> str:
    """Compact JSON; numbers read as `Number` keep every digit they were written with."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{json_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    if type(value) is int:
        return str(value)
    return orjson.dumps(value).decode()
