"""Any input that is not local Parquet, decoded once into chunks of rows.

`pieces` cuts files into units of reading; `ingest` reads one. Without a schema the types are
those of the values seen so far in the piece, so later chunks may be wider; `unify` over all
chunks' schemas gives the final one, and where `must_reread` says so, a second `ingest` with it
gives every value from its original text.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import pyarrow as pa

from curate.errors import InputError, InvariantError
from curate.source import arrowfile, csvfile, jsonl
from curate.source.chunk import Chunk, Counter, Piece, Quarantined
from curate.source.discover import SourceFile
from curate.source.options import ReadOptions

PIECE_BYTES = 256 << 20
"""a plain local JSONL file is cut into pieces of this size, which can be read side by side"""
_READERS = {"jsonl": jsonl.read, "csv": csvfile.read, "arrow": arrowfile.read, "parquet": arrowfile.read}

__all__ = ["PIECE_BYTES", "Chunk", "Counter", "Piece", "Quarantined", "ingest", "pieces"]


def pieces(file: SourceFile, options: ReadOptions) -> tuple[Piece, ...]:
    """The units in which a file is read; the cut depends on the file alone."""
    if file.format != "jsonl" or file.compression != "none" or file.remote:
        return (Piece(file, 0, file.size),)
    starts = range(0, max(file.size, 1), PIECE_BYTES)
    return tuple(Piece(file, start, min(start + PIECE_BYTES, file.size)) for start in starts)


def ingest(piece: Piece, options: ReadOptions, schema: pa.Schema | None, counter: Counter | None = None) -> Iterator[Chunk]:
    """The piece's records, in order: every one is a row of a chunk or one of its quarantined.

    With a `schema` every chunk has exactly it, hive columns included. A chunk holds about 16
    MiB of raw bytes. Nothing at all comes from a line file without bytes. Raises `InputError`
    for a file that is damaged, cut short, not what it is called, or has no readable header.
    """
    costs = counter or Counter()
    chunks = _READERS[piece.file.format](piece, options, schema, costs)
    while True:
        begun, reading = perf_counter(), costs.read_s
        try:
            chunk = next(chunks, None)
        except InputError as err:
            raise _placed(err, piece.file) from err.__cause__
        costs.decode_s += perf_counter() - begun - (costs.read_s - reading)
        if chunk is None:
            return
        if len(chunk.positions) != chunk.rows.num_rows or chunk.records != chunk.rows.num_rows + len(chunk.quarantined):
            raise InvariantError(f"a chunk of `{piece.file.name}` does not account for all of its records")
        yield chunk


def _placed(err: InputError, file: SourceFile) -> InputError:
    """Every error names its file."""
    if file.name in err.message or file.name in err.place:
        return err
    return InputError(err.message, place=f"{file.name}, {err.place}" if err.place else file.name, hint=err.hint)
