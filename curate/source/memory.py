"""Data that is already in memory, as record batches: frames, tables, readers, and iterators of them.

pandas and polars are never imported here: an object is known by the module it comes from, or
by the Arrow C stream it offers. Iterators are consumed once, in bounded runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from curate.errors import InputError, RequestError
from curate.source.arrowfile import checked, slices
from curate.source.infer import Inference, as_type

DICTS = 8192
"""so many dictionaries of an iterator become one batch"""


def is_data(source: object) -> bool:
    """True for what `batches_of` reads; false for paths and lists of paths."""
    if isinstance(source, str | bytes) or hasattr(source, "__fspath__"):
        return False
    if isinstance(source, list | tuple):
        return bool(source) and is_data(source[0])
    return isinstance(source, Mapping | Iterator) or _is_table(source) or hasattr(source, "__iter__")


def batches_of(data: Any) -> Iterator[pa.RecordBatch]:
    """The rows of an in-memory data set, in order, in batches of about 16 MiB.

    Takes pandas and polars frames (lazy ones are streamed), pyarrow tables, batches, readers
    and data sets, anything with `__arrow_c_stream__`, and iterables of these or of
    dictionaries. The first batch may be empty: it carries the schema.
    Raises `RequestError` for anything else, `InputError` where a batch is damaged.
    """
    for number, batch in enumerate(_batches(data)):
        checked(_bytes_for_text(batch), f"<{type(data).__name__}>", number)
        yield from slices(batch)


def _bytes_for_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its text columns as bytes: text that is not UTF-8 is no damage, such a row is quarantined."""
    kinds = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    try:
        columns = [column.view(kinds[column.type]) if column.type in kinds else column for column in batch.columns]
    except pa.ArrowInvalid:  # damaged offsets: `checked` says so
        return batch
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _batches(data: Any) -> Iterator[pa.RecordBatch]:
    if _is_table(data):
        yield from _table_batches(data)
        return
    if isinstance(data, Mapping) or isinstance(data, str | bytes) or not hasattr(data, "__iter__"):
        raise RequestError(
            f"a {type(data).__name__} is not data that can be read",
            place="source",
            hint="pass a path, a pandas, polars or pyarrow table, or an iterator of tables or dictionaries",
        )
    items = iter(data)
    first = next(items, None)
    if first is None:
        return
    items = chain([first], items)
    if isinstance(first, Mapping):
        yield from _dict_batches(items)
        return
    for item in items:
        if not _is_table(item):
            raise RequestError(f"an iterator of tables gave a {type(item).__name__}", place="source")
        yield from _table_batches(item)


def _is_table(value: object) -> bool:
    arrow = isinstance(value, pa.Table | pa.RecordBatch | pa.RecordBatchReader)
    return arrow or hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__") or _from(value) != ""


def _from(value: object) -> str:
    """Which library a frame is of, where that matters."""
    kind = type(value)
    home, name = kind.__module__.partition(".")[0], kind.__name__
    if home == "pandas" and name == "DataFrame":
        return "pandas"
    if home == "polars" and name in ("DataFrame", "LazyFrame"):
        return "polars"
    if kind.__module__.startswith("pyarrow") and hasattr(value, "to_batches") and hasattr(value, "schema"):
        return "dataset"
    return ""


def _table_batches(table: Any) -> Iterator[pa.RecordBatch]:
    home = _from(table)
    if isinstance(table, pa.RecordBatch):
        yield table
    elif isinstance(table, pa.RecordBatchReader):
        yield from _with_schema(table.schema, table)
    elif home == "pandas":
        yield from _with_schema(*_of_table(_from_pandas(table)))
    elif home == "polars" and type(table).__name__ == "LazyFrame":
        for frame in table.collect_batches(maintain_order=True):
            yield from _with_schema(*_of_table(_from_polars(frame)))
    elif home == "polars":
        yield from _with_schema(*_of_table(_from_polars(table)))
    elif home == "dataset" or isinstance(table, pa.Table):
        yield from _with_schema(table.schema, table.to_batches())
    elif hasattr(table, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(table)
        yield from _with_schema(reader.schema, reader)
    else:
        yield pa.record_batch(table)


def _from_polars(frame: Any) -> pa.Table:
    """Without views: Arrow cannot cast the views inside polars' categories."""
    import polars as pl

    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _of_table(table: pa.Table) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    return table.schema, table.to_batches()


def _with_schema(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; where there is none, one without rows that carries the schema."""
    empty = True
    for batch in batches:
        empty = False
        yield batch
    if empty:
        yield pa.RecordBatch.from_arrays([pa.nulls(0).cast(field.type) for field in schema], schema=schema)


def _from_pandas(frame: Any) -> pa.Table:
    """A pandas frame with its columns as they are; a plain range index is not a column."""
    names = list(frame.columns)
    odd = [name for name in names if not isinstance(name, str)]
    twice = [name for name in names if names.count(name) > 1]
    if odd or twice:
        what = f"the column name {odd[0]!r} is no string" if odd else f"two columns are called `{twice[0]}`"
        raise RequestError(what, place="source", hint="rename the frame's columns")
    try:
        return pa.Table.from_pandas(frame, preserve_index=None, nthreads=1)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as err:
        raise InputError(f"the pandas frame cannot be read: {str(err).splitlines()[0]}", place="source") from err


def _dict_batches(items: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    """Dictionaries by the rules of JSON lines: all keys count, and nothing is rounded."""
    while rows := list(islice(items, DICTS)):
        stranger = next((row for row in rows if not isinstance(row, Mapping)), None)
        if stranger is not None:
            raise RequestError(f"an iterator of dictionaries gave a {type(stranger).__name__}", place="source")
        names = dict.fromkeys(chain.from_iterable(rows))
        fields, arrays = [], []
        for name in names:
            field, array = _column(str(name), [row.get(name) for row in rows])
            fields.append(field)
            arrays.append(array)
        if not arrays:
            yield pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
            continue
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _column(name: str, values: list[Any]) -> tuple[pa.Field, pa.Array]:
    inference = Inference()
    field = inference.field(name, values)
    try:
        if not inference.mixed:
            return field, pa.array(values, field.type)
        if not set(map(type, values)) <= {type(None), bool, int, float, str, list, dict}:
            array = pa.array(values)  # dates, decimals, bytes, NumPy values: Arrow knows their types
            return pa.field(name, array.type), array
        return field, pa.array([as_type(value, field.type) for value in values], field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as err:
        raise InputError(f"the column `{name}` cannot be read: {str(err).splitlines()[0]}", place="source") from err
