"""The small records that travel between the readers: pieces of files in, chunks of rows out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.source.discover import SourceFile

CHUNK_BYTES = 16 << 20
"""about so many raw bytes become one chunk: a constant, so that no machine cuts differently"""
CHUNK_ROWS = 1 << 17
"""a chunk has at most so many records, however short they are"""
CHUNK_CELLS = 1 << 24
"""rows times columns of one chunk: bounds the memory that very wide, sparse rows take"""
RAW_BYTES = 64 << 10
"""at most so many bytes of an unreadable record are kept"""


@dataclass(frozen=True)
class Piece:
    """A unit of reading: the records that start in the bytes `start` to `stop` of a file."""

    file: SourceFile
    start: int
    stop: int


@dataclass(frozen=True)
class Quarantined:
    """One record that could not be read.

    `position` is its index among the piece's records, `line` its physical line in the piece,
    from 1; `offset` counts bytes of the decoded file. `raw` is capped at 64 KiB.
    """

    position: int
    line: int
    offset: int
    reason: str
    raw: bytes


@dataclass(frozen=True)
class Chunk:
    """Rows read together. `records` = rows + quarantined; sums over a piece's chunks give its totals.

    `positions[i]` is the index, among the piece's records, of row i of `rows`; `lines` is how
    many physical lines the chunk covered, blank ones too.
    """

    rows: pa.RecordBatch
    positions: npt.NDArray[np.int64]
    quarantined: tuple[Quarantined, ...]
    records: int
    lines: int
    casts: tuple[str, ...] = ()


@dataclass
class Counter:
    """What reading cost so far: bytes from the disk or network, seconds to fetch and decompress, seconds to parse."""

    bytes_read: int = 0
    read_s: float = 0.0
    decode_s: float = 0.0
    truncated: set[str] = field(default_factory=set)
    """files that ended too early and were allowed to"""


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """No rows of a schema."""
    return pa.RecordBatch.from_arrays([pa.nulls(0).cast(f.type) for f in schema], schema=schema)


def skipped_chunk(schema: pa.Schema, lost: Quarantined, lines: int = 1) -> Chunk:
    """A chunk that holds nothing but one unreadable record."""
    return Chunk(empty_batch(schema), np.empty(0, np.int64), (lost,), 1, lines)
