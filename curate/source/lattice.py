"""The rules by which two types meet: always in one that holds every value of both exactly.

Equal types stay as they are. Different ones meet in the narrowest type that loses nothing, and
where there is none (an integer of 64 bits and a float, a number and a word) in text. What has
no common form is a `ClashError`.

Types read from JSON and CSV carry a remark in their field's metadata (`curate.fits`) on what
the values seen would also fit: integers that are exact as `double` or are valid `uint64`, an
always empty object that is a `struct`, and `text` where becoming a string means reading the
original text again.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

FITS = b"curate.fits"
MAX_FIELDS = 1024
"""an object with more different keys than this is data, not a struct: it is kept as JSON text"""
_DIGITS = {
    pa.int8(): 3,
    pa.int16(): 5,
    pa.int32(): 10,
    pa.int64(): 19,
    pa.uint8(): 3,
    pa.uint16(): 5,
    pa.uint32(): 10,
    pa.uint64(): 20,
}
_UNITS = ("s", "ms", "us", "ns")


class ClashError(Exception):
    """Two types have no common form; the path of field names where they met."""

    def __init__(self, left: pa.DataType, right: pa.DataType) -> None:
        self.left, self.right = left, right
        super().__init__(f"{left} and {right}")


def join_fields(a: pa.Field, b: pa.Field) -> pa.Field:
    """The narrowest field that holds the values of both exactly; raises `ClashError` where none does."""
    if a.equals(b, check_metadata=True):
        return a
    nullable = a.nullable or b.nullable
    if pa.types.is_null(a.type) or pa.types.is_null(b.type):
        kept = b if pa.types.is_null(a.type) else a
        return kept.with_nullable(True)
    both = remarks(a) & remarks(b)
    nested = _join_nested(a, b)
    kind = nested or _join_scalars(a, b)
    if kind is None and _can_be_text(a) and _can_be_text(b):
        kind = pa.large_string() if pa.large_string() in (a.type, b.type) else pa.string()
    if kind is None:
        raise ClashError(a.type, b.type)
    metadata = {k: v for k, v in (a.metadata or {}).items() if k != FITS} or None
    joined = pa.field(a.name, kind, nullable, metadata)
    if nested is not None:
        both = remarks(a) | remarks(b)
    elif pa.types.is_floating(kind):
        both = {"text"} & (remarks(a) | remarks(b))
    return remark(joined, both)


def remarks(field: pa.Field) -> set[str]:
    """What the values of a field read from text would also fit."""
    return set(((field.metadata or {}).get(FITS) or b"").decode().split())


def remark(field: pa.Field, words: Iterable[str]) -> pa.Field:
    """The field with these remarks and no others."""
    rest = {k: v for k, v in (field.metadata or {}).items() if k != FITS}
    said = " ".join(sorted(words)).encode()
    if said:
        return field.with_metadata({**rest, FITS: said})
    return field.with_metadata(rest) if rest else field.remove_metadata()


def is_text(kind: pa.DataType) -> bool:
    """True for the three string types."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """True for lists of any layout, maps not included."""
    t = pa.types
    return bool(
        t.is_list(kind)
        or t.is_large_list(kind)
        or t.is_fixed_size_list(kind)
        or t.is_list_view(kind)
        or t.is_large_list_view(kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind))


def _is_scalar(kind: pa.DataType) -> bool:
    """Types whose values have one exact written form."""
    t = pa.types
    return bool(
        t.is_boolean(kind) or t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_temporal(kind)
    ) and not (t.is_duration(kind) or t.is_interval(kind))


def _can_be_text(field: pa.Field) -> bool:
    return is_text(field.type) or _is_scalar(field.type) or "text" in remarks(field)


def _join_nested(a: pa.Field, b: pa.Field) -> pa.DataType | None:
    left, right = a.type, b.type
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        return _join_structs(a, b)
    if is_text(left) and "struct" in remarks(a) and pa.types.is_struct(right):
        return right
    if is_text(right) and "struct" in remarks(b) and pa.types.is_struct(left):
        return left
    if is_list(left) and is_list(right):
        child = join_fields(left.value_field, right.value_field)
        if left.id == right.id and not pa.types.is_fixed_size_list(left):
            return type_like(left, child)
        if pa.types.is_fixed_size_list(left) and pa.types.is_fixed_size_list(right) and left.list_size == right.list_size:
            return pa.list_(child, left.list_size)
        return pa.large_list(child)
    if pa.types.is_map(left) and pa.types.is_map(right):
        return pa.map_(join_fields(left.key_field, right.key_field).type, join_fields(left.item_field, right.item_field))
    return None


def type_like(kind: pa.DataType, child: pa.Field) -> pa.DataType:
    """A list type of the same layout over another child."""
    make = {
        pa.list_(pa.null()).id: pa.list_,
        pa.large_list(pa.null()).id: pa.large_list,
        pa.list_view(pa.null()).id: pa.list_view,
    }
    return make.get(kind.id, pa.large_list)(child)


def _join_structs(a: pa.Field, b: pa.Field) -> pa.DataType | None:
    left, right = a.type, b.type
    names = [f.name for f in left], [f.name for f in right]
    if any(len(set(each)) < len(each) for each in names):
        raise ClashError(left, right)
    fields = {f.name: f if f.name in names[1] else f.with_nullable(True) for f in left}
    for field in right:
        known = fields.get(field.name)
        fields[field.name] = field.with_nullable(True) if known is None else join_fields(known, field)
    if len(fields) > MAX_FIELDS and "text" in remarks(a) & remarks(b):
        return None
    return pa.struct(list(fields.values()))


def _join_scalars(a: pa.Field, b: pa.Field) -> pa.DataType | None:
    left, right = a.type, b.type
    t = pa.types
    if t.is_dictionary(left) or t.is_dictionary(right):
        plain = [pa.field(f.name, f.type.value_type if t.is_dictionary(f.type) else f.type, metadata=f.metadata) for f in (a, b)]
        return join_fields(*plain).type if not left.equals(right) else left
    if left.equals(right):
        return left
    if is_text(left) and is_text(right):
        return pa.large_string()
    if _is_binary(left) and _is_binary(right):
        return pa.large_binary()
    if t.is_integer(left) and t.is_integer(right):
        return _join_integers(a, b)
    if t.is_floating(left) and t.is_floating(right):
        return max(left, right, key=lambda kind: kind.bit_width)
    if t.is_decimal(left) or t.is_decimal(right):
        return _join_decimals(left, right)
    for whole, other in ((a, right), (b, left)):
        if t.is_integer(whole.type) and t.is_floating(other):
            return pa.float64() if whole.type.bit_width <= 32 or "double" in remarks(whole) else None
    return _join_times(left, right)


def _join_integers(a: pa.Field, b: pa.Field) -> pa.DataType | None:
    left, right = sorted((a, b), key=lambda f: pa.types.is_signed_integer(f.type))
    if pa.types.is_signed_integer(left.type) == pa.types.is_signed_integer(right.type):
        return max(left.type, right.type, key=lambda kind: kind.bit_width)
    if left.type.bit_width < 64:  # unsigned of w bits fits a signed integer of 2w bits
        bits = max(right.type.bit_width, 2 * left.type.bit_width)
        return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]
    return pa.uint64() if "uint64" in remarks(right) else None


def _join_decimals(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    shapes = []
    for kind in (left, right):
        if pa.types.is_decimal(kind):
            shapes.append((kind.precision - kind.scale, kind.scale))
        elif kind in _DIGITS:
            shapes.append((_DIGITS[kind], 0))
        else:
            return None
    scale = max(shape[1] for shape in shapes)
    precision = max(shape[0] for shape in shapes) + scale
    if precision > 76:
        return None
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _join_times(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    t = pa.types
    if t.is_date(left) and t.is_date(right):
        return pa.date64()
    for same, make in ((t.is_timestamp, pa.timestamp), (t.is_duration, pa.duration)):
        if same(left) and same(right):
            unit = max(left.unit, right.unit, key=_UNITS.index)
            if make is pa.duration:
                return pa.duration(unit)
            if left.tz == right.tz:
                return pa.timestamp(unit, left.tz)
            raise ClashError(left, right)
    if t.is_time(left) and t.is_time(right):
        unit = max(left.unit, right.unit, key=_UNITS.index)
        return pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
    if t.is_temporal(left) and t.is_temporal(right):
        raise ClashError(left, right)
    return None


def plain(field: pa.Field) -> pa.Field:
    """The field without remarks, at every depth."""
    field, kind = remark(field, ()), field.type
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([plain(child) for child in kind]))
    if pa.types.is_fixed_size_list(kind):
        return field.with_type(pa.list_(plain(kind.value_field), kind.list_size))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return field.with_type(type_like(kind, plain(kind.value_field)))
    return field
