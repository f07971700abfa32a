"""One schema for all files, by rules that lose nothing, and batches brought into it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from curate.errors import InputError, InvariantError
from curate.source.discover import SourceFile
from curate.source.lattice import ClashError, is_list, is_text, join_fields, plain, remarks

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_PANDAS = b"pandas"


def unify(schemas: Sequence[tuple[str, pa.Schema]]) -> tuple[pa.Schema, tuple[str, ...]]:
    """The schema that every file fits without loss, and in words what that costs.

    Columns stand in the order first seen; a column that some file lacks is nullable. The
    metadata is the first file's, pandas' own part of it only where all files agree.
    Raises `InputError` naming two files, the column and both types where there is no common form.
    """
    if not schemas:
        raise InvariantError("no schema to unify")
    union: dict[str, pa.Field] = {}
    origin: dict[str, str] = {}
    last: pa.Schema | None = None
    for name, schema in schemas:
        if last is not None and schema.equals(last, check_metadata=True):
            continue
        refuse_twins(name, schema)
        for field in schema:
            if field.name not in union:
                union[field.name] = field if last is None else field.with_nullable(True)
                origin[field.name] = name
                continue
            union[field.name] = _joined_or_error(union[field.name], field, origin[field.name], name)
        for lacking in union.keys() - set(schema.names):
            union[lacking] = union[lacking].with_nullable(True)
        last = schema
    fields = [plain(field) for field in union.values()]
    merged = pa.schema(fields, metadata=_metadata(schemas, fields))
    return merged, _casts(schemas, merged)


def join(left: pa.Schema | None, right: pa.Schema) -> pa.Schema:
    """The union of two schemas of one file, remarks kept; columns in the order first seen."""
    if left is None or left.equals(right, check_metadata=True):
        return right
    fields = {field.name: field for field in left}
    for field in right:
        known = fields.get(field.name)
        fields[field.name] = join_fields(known, field) if known is not None else field
    return pa.schema(list(fields.values()))


def with_partitions(schema: pa.Schema, files: Iterable[SourceFile]) -> pa.Schema:
    """The schema plus a column for each hive key that is no column of the files themselves.

    The type is `int64` where every value of the key is a canonical integer, else `string`.
    """
    values: dict[str, set[str]] = {}
    for file in files:
        for key, value in file.partition:
            values.setdefault(key, set()).add(value)
    for key, seen in values.items():
        if key not in schema.names:
            whole = all(_is_canonical_int(value) for value in seen - {HIVE_NULL}) and seen != {HIVE_NULL}
            schema = schema.append(pa.field(key, pa.int64() if whole else pa.string()))
    return schema


def must_reread(seen: Iterable[pa.Schema], final: pa.Schema) -> bool:
    """True when batches of these schemas cannot be conformed: some column becomes text, and its original text is gone."""
    return any(f.name in final.names and _loses_text(f, final.field(f.name)) for schema in seen for f in schema)


def conform(batch: pa.RecordBatch, schema: pa.Schema, partition: Sequence[tuple[str, str]] = ()) -> pa.RecordBatch:
    """The same rows in exactly this schema: columns cast without loss, filled with null, in its order.

    A hive key becomes a column unless the file has the column itself. Raises `InputError` where
    a value does not survive its cast (a time out of range, say).
    """
    unknown = set(batch.schema.names) - set(schema.names)
    if unknown:
        raise InvariantError(f"the column `{min(unknown)}` is not in the schema that was decided")
    given = dict(partition)
    columns = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index >= 0:
            columns.append(_cast(batch.column(index), field))
        elif field.name in given:
            columns.append(_constant(given[field.name], field, batch.num_rows))
        else:
            columns.append(pa.nulls(batch.num_rows).cast(field.type))
    if not columns:
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _joined_or_error(known: pa.Field, field: pa.Field, first: str, second: str) -> pa.Field:
    try:
        return join_fields(known, field)
    except ClashError as clash:
        inner = "" if clash.left.equals(known.type) else f", inside it {clash.left} against {clash.right}"
        raise InputError(
            f"the column `{field.name}` is {plain(known).type} in `{first}` and {plain(field).type} in `{second}`{inner}: "
            "there is no type that holds both without loss",
            place=second,
            hint="convert one of the files, or run them as two data sets",
        ) from clash


def refuse_twins(name: str, schema: pa.Schema) -> None:
    """Raise `InputError` where two columns of a file have one name."""
    if len(set(schema.names)) < len(schema.names):
        twin = next(column for column in schema.names if schema.names.count(column) > 1)
        raise InputError(f"two columns are called `{twin}`", place=name, hint="rename one of them")


def _metadata(schemas: Sequence[tuple[str, pa.Schema]], fields: list[pa.Field]) -> dict[bytes, bytes] | None:
    first = dict(schemas[0][1].metadata or {})
    alike = all(
        schema.equals(schemas[0][1]) and (schema.metadata or {}).get(_PANDAS) == first.get(_PANDAS) for _, schema in schemas
    )
    if _PANDAS in first and not (alike and pa.schema(fields).equals(schemas[0][1])):
        del first[_PANDAS]
    return first or None


def _casts(schemas: Sequence[tuple[str, pa.Schema]], merged: pa.Schema) -> tuple[str, ...]:
    """One sentence a column and kind of change; many files of one change are counted, not listed."""
    changed: dict[tuple[str, str], dict[str, None]] = {}
    columns: dict[str, set[str]] = {}
    for name, schema in schemas:
        columns.setdefault(name, set()).update(schema.names)
        for field in schema:
            now = merged.field(field.name).type
            if not (field.type.equals(now) or pa.types.is_null(field.type) or (is_text(field.type) and is_text(now))):
                changed.setdefault((field.name, f"{plain(field).type} is read as {now}"), {})[name] = None
    for column in merged.names:
        for name, present in columns.items():
            if column not in present:
                changed.setdefault((column, "not there, filled with null"), {})[name] = None
    return tuple(
        f"`{column}`: {what} in `{next(iter(names))}`" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for (column, what), names in changed.items()
    )


def _loses_text(seen: pa.Field, final: pa.Field) -> bool:
    if is_text(final.type):
        return not is_text(seen.type) and "text" in remarks(seen)
    if is_text(seen.type):
        return "struct" in remarks(seen)
    if pa.types.is_struct(seen.type) and pa.types.is_struct(final.type):
        return any(_loses_text(child, final.type.field(child.name)) for child in seen.type)
    if is_list(seen.type) and is_list(final.type):
        return _loses_text(seen.type.value_field, final.type.value_field)
    return False


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type.equals(field.type, check_metadata=True):
        return column
    try:
        cast = column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as err:
        raise InputError(f"the column `{field.name}` cannot be read as {field.type}: {str(err).splitlines()[0]}") from err
    return cast


def _constant(value: str, field: pa.Field, rows: int) -> pa.Array:
    if value == HIVE_NULL:
        return pa.nulls(rows).cast(field.type)
    return pa.repeat(pa.scalar(value), rows).cast(field.type)


def _is_canonical_int(value: str) -> bool:
    digits = value.removeprefix("-")
    short = len(digits) <= 19 and digits.isascii() and digits.isdigit() and value != "-0"
    return short and str(int(digits)) == digits and -(2**63) <= int(value) < 2**63
