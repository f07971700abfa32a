"""JSON lines: one object a line, and columns whose types lose nothing of what was written.

Each line is read by `jsonline`; an integer that the parser rounded, and a value in a column of
several kinds, is taken once more from its line, digit by digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

from curate.errors import InputError, InvariantError
from curate.source.chunk import CHUNK_CELLS, CHUNK_ROWS, RAW_BYTES, Chunk, Counter, Piece, Quarantined, skipped_chunk
from curate.source.infer import Inference, Number, as_type
from curate.source.jsonline import exact, fitting, has_spaced_colon, parse_lines
from curate.source.lattice import is_text
from curate.source.lines import Block, blocks_of
from curate.source.options import ReadOptions
from curate.source.schema import conform, join, must_reread
from curate.source.stream import cut_short

MAX_COLUMNS = 4096
_LONG_DIGITS = re.compile(rb"[0-9]{19}")


def read(piece: Piece, options: ReadOptions, schema: pa.Schema | None, counter: Counter) -> Iterator[Chunk]:
    """The chunks of a piece; with a schema each has exactly it, without one each has what was seen so far."""
    reader = _Reader(piece, options, schema)
    for item in blocks_of(piece, options, counter):
        if isinstance(item, Block):
            yield from reader.block(item)
        else:
            lost = Quarantined(reader.records, reader.lines + 1, item.offset, item.reason, item.raw)
            reader.records, reader.lines = reader.records + 1, reader.lines + 1
            yield skipped_chunk(reader.schema_so_far(), lost)


class _Reader:
    def __init__(self, piece: Piece, options: ReadOptions, schema: pa.Schema | None) -> None:
        self.piece, self.options, self.final = piece, options, schema
        self.union: pa.Schema | None = None
        self.records = 0
        self.lines = 0

    def schema_so_far(self) -> pa.Schema:
        known = self.union if self.final is None else self.final
        return pa.schema([]) if known is None else known

    def block(self, block: Block) -> Iterator[Chunk]:
        lines = block.lines()
        offsets: list[int] | None = None
        spaced = has_spaced_colon(block.data)
        for start in range(0, len(lines), CHUNK_ROWS):
            some = lines[start : start + CHUNK_ROWS]
            rows, kept, lost, blank = parse_lines(some, spaced, self.options.row_bytes)
            if lost and offsets is None:
                offsets = list(accumulate((len(line) + 1 for line in lines), initial=block.offset))
                self._refuse_cut(block, lines, start, lost)
            yield from self._chunks(some, rows, kept, lost, blank, offsets, start)

    def _refuse_cut(self, block: Block, lines: list[bytes], start: int, lost: dict[int, str]) -> None:
        """A last line that opens an object, does not close it and has no line break: somebody stopped writing."""
        last = len(lines) - 1 - start
        if last in lost and not block.data.endswith(b"\n") and self.piece.file.name not in self.options.allow_truncated:
            line = lines[-1].strip()
            if line.startswith(b"{") and not line.endswith(b"}"):
                raise cut_short(self.piece.file, block.offset + len(block.data))

    def _chunks(
        self, lines: list[bytes], rows: list[Any], kept: list[int], lost: dict[int, str], blank: list[int],
        offsets: list[int] | None, start: int,
    ) -> Iterator[Chunk]:  # fmt: skip
        """Chunks of these lines, cut so that rows times columns stay bounded."""
        names = self._columns(rows)
        step = max(256, CHUNK_CELLS // max(len(names), 1))
        cuts = [kept[at] for at in range(step, len(kept), step)] + [len(lines)]
        skip, first, done = set(blank), 0, 0
        raw = min(self.options.row_bytes, RAW_BYTES)
        for cut in cuts:
            inside = min(step, len(rows) - done)
            mine, at = rows[done : done + inside], kept[done : done + inside]
            done += inside
            numbers = range(first, cut)
            position = {}
            if lost or blank:
                records = [i for i in numbers if i not in skip]
                position = {line: self.records + n for n, line in enumerate(records)}
                positions = np.array([position[i] for i in at], dtype=np.int64)
                total = len(records)
            else:
                total = len(mine)
                positions = np.arange(self.records, self.records + total, dtype=np.int64)
            gone = tuple(
                Quarantined(position[i], self.lines + i - first + 1, (offsets or [])[start + i], reason, lines[i][:raw])
                for i, reason in lost.items()
                if first <= i < cut
            )
            batch, casts = self._batch(mine, lambda n, at=at: lines[at[n]])  # type: ignore[misc]
            yield Chunk(batch, positions, gone, total, cut - first, casts)
            self.records, self.lines, first = self.records + total, self.lines + cut - first, cut

    def _columns(self, rows: list[Any]) -> dict[str, None]:
        names = dict.fromkeys(self.union.names if self.union else ())
        names |= dict.fromkeys(chain.from_iterable(rows))
        if len(names) > MAX_COLUMNS:
            raise InputError(
                f"the objects have more than {MAX_COLUMNS} different keys",
                place=self.piece.file.name,
                hint="keys that are data belong in a list of pairs; convert the file first",
            )
        return names

    def _batch(self, rows: list[dict[str, Any]], line: Callable[[int], bytes]) -> tuple[pa.RecordBatch, tuple[str, ...]]:
        """Rows as Arrow columns, in the final schema or in the widened union."""
        names = dict.fromkeys(chain.from_iterable(rows))
        columns = {name: _values(rows, name) for name in names}
        found = {name: _infer(name, values) for name, values in columns.items()}
        if any(inference.huge for _, inference in found.values()) and _restore_huge(rows, line):
            columns = {name: _values(rows, name) for name in names}
            found = {name: _infer(name, values) for name, values in columns.items()}
        natural = pa.schema([field for field, _ in found.values()])
        if self.final is None:
            self.union = join(self.union, natural)
        target = self.schema_so_far()
        seen: dict[int, Any] = {}
        arrays, fields, casts = [], [], []
        for name in names:
            index = target.get_field_index(name)
            if index < 0:
                raise InvariantError(f"the column `{name}` of `{self.piece.file.name}` is not in the schema that was decided")
            field, wanted = found[name][0], target.field(index)
            as_text = found[name][1].mixed or must_reread([pa.schema([field])], pa.schema([wanted]))
            if as_text:
                arrays.append(_texts(columns[name], wanted, name, line, seen))
                casts.append(f"`{name}`: values of several kinds are kept as text in `{self.piece.file.name}`")
            else:
                arrays.append(_array(columns[name], field, wanted.type, self.piece.file.name))
            fields.append(wanted)
        if not arrays:
            batch = pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
        else:
            batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
        partition = self.piece.file.partition if self.final is not None else ()
        return conform(batch, target, partition), tuple(casts)


def _restore_huge(rows: list[dict[str, Any]], line: Callable[[int], bytes]) -> bool:
    """Read the rows again that hold 19 digits or more in a row, keeping integers that the parser rounded."""
    changed = False
    for index in range(len(rows)):
        raw = line(index)
        if _LONG_DIGITS.search(raw):
            rows[index], changed = exact(raw, fitting), True
    return changed


def _values(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row.get(name) for row in rows]


def _infer(name: str, values: list[Any]) -> tuple[pa.Field, Inference]:
    inference = Inference()
    return inference.field(name, values), inference


def _array(values: list[Any], field: pa.Field, kind: pa.DataType, file: str) -> pa.Array:
    try:
        array = pa.array(values, field.type)
        return array if field.type.equals(kind) else array.cast(kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as err:
        raise InputError(f"the column `{field.name}` cannot be read as {kind}: {str(err).splitlines()[0]}", place=file) from err


def _texts(values: list[Any], wanted: pa.Field, name: str, line: Callable[[int], bytes], seen: dict[int, Any]) -> pa.Array:
    """The column from the lines themselves, so that numbers that become text keep their digits."""
    out: list[Any] = []
    for index, value in enumerate(values):
        if value is None or (type(value) is str and is_text(wanted.type)):
            out.append(value)
            continue
        if index not in seen:
            seen[index] = exact(line(index), Number)
        out.append(as_type(seen[index].get(name), wanted.type))
    return pa.array(out, wanted.type)
