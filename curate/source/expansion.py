"""How many rows of a Parquet file can be decoded at a time: what its metadata does not say.

A dictionary page holds a value once and its rows refer to it, so 200 kB of file can decode to
2 GB while the metadata says 213 kB. The longest value of each dictionary is looked up, which
costs one dictionary page a row group, and only where the product could exceed the bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SAFE_BYTES = 32 << 20
"""what one batch of one column may decode to"""
BLIND_ROWS = 16
"""rows decoded at a time where a value's length cannot be known beforehand"""
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_DICTIONARY = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}


def decoded_bytes(group: Any, schema: Any) -> int:
    """At least what a row group decodes to; text that stands in a dictionary counts once."""
    size = 0
    for index in range(group.num_columns):
        chunk = group.column(index)
        size += max(chunk.total_uncompressed_size, chunk.num_values * _width(chunk, schema.column(index)))
    return int(max(size, group.total_byte_size, 0))


def safe_rows(path: str, file: pq.ParquetFile, row_groups: Sequence[int], columns: Sequence[str] | None) -> int | None:
    """The most rows of these row groups and columns that can be decoded at a time; None for any number.

    Raises what pyarrow raises for a damaged dictionary.
    """
    longest = 0
    for row_group in row_groups:
        doubtful = list(_doubtful(file.metadata.row_group(row_group), columns))
        if not doubtful:
            continue
        known = _dictionaries(path, row_group, [chunk.path_in_schema for chunk in doubtful])
        for chunk in doubtful:
            rows = file.metadata.row_group(row_group).num_rows
            width = known.get(chunk.path_in_schema)
            if width is None:
                width = min(chunk.total_uncompressed_size, SAFE_BYTES // BLIND_ROWS)
            if width * rows > SAFE_BYTES:
                longest = max(longest, width)
    return max(1, SAFE_BYTES // longest) if longest else None


def _doubtful(group: Any, columns: Sequence[str] | None) -> Iterator[Any]:
    """Column chunks of texts or bytes whose decoded size the metadata leaves open, and may exceed the bound."""
    for index in range(group.num_columns):
        chunk = group.column(index)
        encodings = set(chunk.encodings)
        wanted = columns is None or any(
            chunk.path_in_schema == name or chunk.path_in_schema.startswith(f"{name}.") for name in columns
        )
        shared = encodings & _DICTIONARY or "DELTA_BYTE_ARRAY" in encodings
        if (
            wanted
            and shared
            and chunk.physical_type == "BYTE_ARRAY"
            and chunk.num_values * chunk.total_uncompressed_size > SAFE_BYTES
        ):
            yield chunk


def _dictionaries(path: str, row_group: int, columns: Sequence[str]) -> dict[str, int]:
    """The length in bytes of the longest value of each column's dictionary, for the columns pyarrow can show it of."""
    options = {"buffer_size": 1 << 20, "pre_buffer": False, "page_checksum_verification": True}  # a buffer: not the whole column
    with pq.ParquetFile(path, read_dictionary=list(columns), **options) as file:
        group = file.metadata.row_group(row_group)
        plain = {
            group.column(i).path_in_schema for i in range(group.num_columns) if not set(group.column(i).encodings) & _DICTIONARY
        }
        top = [name for name in columns if name not in plain and name in file.schema_arrow.names]
        top = [name for name in top if pa.types.is_dictionary(file.schema_arrow.field(name).type)]
        batch = next(file.iter_batches(1, row_groups=[row_group], columns=top), None) if top else None
        if batch is None:
            return {}
        values = {name: batch.column(name).dictionary for name in top if name in batch.schema.names}
        return {name: int(pc.max(pc.binary_length(_bytes(array))).as_py() or 1) for name, array in values.items()}


def _bytes(values: pa.Array) -> pa.Array:
    return values.cast(pa.large_binary()) if not pa.types.is_large_binary(values.type) else values


def _width(chunk: Any, column: Any) -> int:
    return int(column.length) if chunk.physical_type == "FIXED_LEN_BYTE_ARRAY" else WIDTHS.get(chunk.physical_type, 0)
