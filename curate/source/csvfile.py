"""CSV and TSV with a header row, read strictly.

Records are found by counting quotes (RFC 4180), each is decoded and parsed by itself, and a
column gets a number type only when every cell can be written back exactly as it stood. A quote
that is never closed costs its own line and nothing behind it.

Blank lines are no rows. An empty cell is null in a number column and "" in a text column.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from math import isfinite
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curate.errors import InputError
from curate.source.chunk import (
    CHUNK_BYTES,
    CHUNK_CELLS,
    CHUNK_ROWS,
    RAW_BYTES,
    Chunk,
    Counter,
    Piece,
    Quarantined,
    empty_batch,
    skipped_chunk,
)
from curate.source.infer import EXACT
from curate.source.lattice import is_text, remark
from curate.source.lines import Skipped, blocks_of
from curate.source.options import ReadOptions
from curate.source.schema import conform, join

OPEN_RECORD_BYTES = CHUNK_BYTES
"""a quoted cell may run over many lines, but its record is given up at this size"""
_PROBE = 16


class _Records:
    """Records in a row: their bytes, and the number of the physical line (of those at hand) each begins with.

    `faults` tells why a record is no row; `cells` holds those of records whose end could only
    be found by parsing them.
    """

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.starts: list[int] = []
        self.faults: dict[int, str] = {}
        self.cells: dict[int, list[str]] = {}

    def add(self, data: bytes, start: int, fault: str = "", cells: list[str] | None = None) -> None:
        if fault:
            self.faults[len(self.data)] = fault
        elif cells is not None:
            self.cells[len(self.data)] = cells
        self.data.append(data)
        self.starts.append(start)


def read(piece: Piece, options: ReadOptions, schema: pa.Schema | None, counter: Counter) -> Iterator[Chunk]:
    """The chunks of a file; with a schema each has exactly it, without one each has what was seen so far."""
    reader = _Reader(piece, options, schema)
    carry: list[bytes] = []
    carry_at = 0
    for item in blocks_of(piece, options, counter):
        if isinstance(item, Skipped):
            yield from reader.lines(carry, carry_at, final=True)
            carry = []
            yield reader.skipped(item)
            continue
        carry_at = carry_at if carry else item.offset
        lines = carry + item.lines()
        yield from reader.lines(lines, carry_at, final=False)
        carry, carry_at = reader.carry, reader.carry_at
    yield from reader.lines(carry, carry_at, final=True)


class _Reader:
    def __init__(self, piece: Piece, options: ReadOptions, schema: pa.Schema | None) -> None:
        self.piece, self.final, self.row_bytes = piece, schema, options.row_bytes
        tab = piece.file.name.lower().split("/")[-1].split(".tsv")[1:]
        self.delimiter = options.delimiter or ("\t" if tab else ",")
        self.blank = b" \t\r\v\f".replace(self.delimiter.encode(), b"")
        self.names: list[str] | None = None
        self.union: pa.Schema | None = None
        self.records, self.done_lines = 0, 0
        self.carry: list[bytes] = []
        self.carry_at = 0
        self.base, self.offsets = 0, [0]

    def lines(self, lines: list[bytes], offset: int, final: bool) -> Iterator[Chunk]:
        """Chunks of the records in these lines; an open record at the end stays in `carry` unless `final`."""
        self.carry, self.carry_at = [], offset
        self.offsets = list(accumulate((len(line) + 1 for line in lines), initial=offset))
        self.base = self.done_lines
        odd = [line.count(b'"') & 1 for line in lines]
        blank, limit = self.blank, max(256, min(CHUNK_ROWS, CHUNK_CELLS // max(len(self.names or ()), 1)))
        records, first, at = _Records(), 0, 0
        while at < len(lines):
            line = lines[at]
            if odd[at]:
                after = self._open(records, lines, odd, at, final)
                if after == at:
                    self.carry, self.carry_at = lines[at:], self.offsets[at]
                    break
                at = after
            else:
                if line and (line[0] not in blank or line.strip(blank)):
                    records.add(line.removesuffix(b"\r"), at)
                at += 1
            if len(records.data) >= limit or self.offsets[at] - self.offsets[first] >= CHUNK_BYTES:
                yield self._chunk(records, at - first)
                records, first = _Records(), at
        if at > first:
            yield self._chunk(records, at - first)

    def _open(self, records: _Records, lines: list[bytes], odd: list[int], at: int, final: bool) -> int:
        """Add the record whose quoted cell is open at the end of line `at`; the next record's line, or `at` to wait for more."""
        close = next((i for i in range(at + 1, len(lines)) if odd[i]), len(lines))
        size = self.offsets[min(close + 1, len(lines))] - self.offsets[at]
        too_long = size > min(self.row_bytes, OPEN_RECORD_BYTES)
        if close == len(lines) and not final and not too_long:
            return at
        if close == len(lines) or too_long:
            records.add(lines[at], at, "a quote is opened and never closed")
            return at + 1
        data = b"\n".join(lines[at : close + 1]).removesuffix(b"\r")
        cells, fault = self._parsed(data)
        if fault and not fault.startswith("invalid UTF-8"):
            records.add(lines[at], at, f"a quote is not closed as it should be: {fault}")
            return at + 1
        records.add(data, at, fault, cells)
        return close + 1

    def _parsed(self, data: bytes) -> tuple[list[str] | None, str]:
        """A record's cells, or why there are none."""
        try:
            return self._cells([data.decode()])[0], ""
        except UnicodeDecodeError as err:
            return None, f"invalid UTF-8 at byte {err.start} of the row"
        except csv.Error as err:
            return None, str(err)

    def _cells(self, texts: list[str]) -> list[list[str]]:
        with _long_cells(max(map(len, texts), default=0)):
            return list(csv.reader(texts, delimiter=self.delimiter, strict=True))

    def _chunk(self, records: _Records, lines: int) -> Chunk:
        skip = 0
        if self.names is None and records.data:
            self.names, skip = self._header(records), 1
        rows, bad = self._rows(records, skip)
        total = len(records.data) - skip
        first, self.records, self.done_lines = self.records, self.records + total, self.done_lines + lines
        cap = min(self.row_bytes, RAW_BYTES)
        lost = tuple(
            Quarantined(first + i - skip, self.base + start + 1, self.offsets[start], fault, records.data[i][:cap])
            for i, fault in bad.items()
            for start in (records.starts[i],)
        )
        positions = np.arange(first, first + total, dtype=np.int64)
        if bad:
            positions = np.delete(positions, [i - skip for i in bad])
        return Chunk(self._batch(rows), positions, lost, total, lines)

    def _header(self, records: _Records) -> list[str]:
        data, place = records.data[0], f"{self.piece.file.name}, line {self.base + records.starts[0] + 1}"
        names, fault = self._parsed(data)
        fault = records.faults.get(0, fault)
        if fault or names is None:
            hint = "the first row must name the columns"
            raise InputError(f"the header row cannot be read: {fault}", place=place, hint=hint)
        if len(data) > self.row_bytes:
            raise InputError(f"the header row is longer than {self.row_bytes} bytes", place=place)
        if not all(name.strip() for name in names):
            raise InputError(
                f"column {[bool(n.strip()) for n in names].index(False) + 1} of the header row has no name", place=place,
                hint="the first row must name the columns",
            )  # fmt: skip
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"two columns are called `{twice}`", place=place, hint="rename one of them")
        return names

    def _rows(self, records: _Records, skip: int) -> tuple[list[list[str]], dict[int, str]]:
        """The cells of the readable records, and why the others are none; `skip` is 1 where the first is the header."""
        width = len(self.names or ())
        quick = self._quick_rows(records)
        if quick is not None and set(map(len, quick)) <= {width}:
            return quick[skip:], {}
        rows: list[list[str]] = []
        bad: dict[int, str] = {}
        for index in range(skip, len(records.data)):
            data, fault, cells = records.data[index], records.faults.get(index, ""), records.cells.get(index)
            if len(data) > self.row_bytes:
                fault = f"the row is longer than {self.row_bytes} bytes"
            elif cells is None and not fault:
                cells, fault = self._parsed(data)
            if not fault and cells is not None and len(cells) != width:
                fault = f"{len(cells)} cells where the header has {width}"
            if fault or cells is None:
                bad[index] = fault
            else:
                rows.append(cells)
        return rows, bad

    def _quick_rows(self, records: _Records) -> list[list[str]] | None:
        """The cells of all records, parsed together; None where one of them is not plainly right."""
        if records.faults or max(map(len, records.data), default=0) > self.row_bytes:
            return None
        known = records.cells
        unparsed = [data for i, data in enumerate(records.data) if i not in known] if known else records.data
        try:
            rows = self._cells([data.decode() for data in unparsed])
        except (UnicodeDecodeError, csv.Error):
            return None
        if len(rows) != len(unparsed):
            return None
        rest = iter(rows)
        return [known[i] if i in known else next(rest) for i in range(len(records.data))] if known else rows

    def _batch(self, rows: list[list[str]]) -> pa.RecordBatch:
        if self.names is None:
            return empty_batch(pa.schema([]) if self.final is None else self.final)
        columns = [list(map(itemgetter(i), rows)) for i in range(len(self.names))]
        if self.final is None:
            natural = pa.schema([natural_field(name, cells) for name, cells in zip(self.names, columns, strict=True)])
            self.union = join(self.union, natural)
        target = self.union if self.final is None else self.final
        assert target is not None
        fields = [target.field(name) for name in self.names]
        arrays = [
            typed(cells, field, f"{self.piece.file.name}, lines up to {self.done_lines}")
            for field, cells in zip(fields, columns, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
        return conform(batch, target, self.piece.file.partition if self.final is not None else ())

    def skipped(self, item: Skipped) -> Chunk:
        if self.names is None:
            raise InputError(f"the header row cannot be read: {item.reason}", place=self.piece.file.name)
        lost = Quarantined(self.records, self.done_lines + 1, item.offset, item.reason, item.raw)
        self.records, self.done_lines = self.records + 1, self.done_lines + 1
        target = self.union if self.final is None else self.final
        return skipped_chunk(pa.schema([pa.field(n, pa.null()) for n in self.names]) if target is None else target, lost)


def natural_field(name: str, cells: Sequence[str]) -> pa.Field:
    """The narrowest type from which every cell can be written back exactly; null when all are empty."""
    probe = [cell for cell in cells[:_PROBE] if cell]
    if all(map(_is_numeral, probe)):
        filled = [cell for cell in cells if cell]
        if not filled:
            return remark(pa.field(name, pa.null()), ["text"])
        whole = _canonical_ints(pa.array(filled, pa.string()))
        if whole is not None:
            low, high = pc.min_max(whole).as_py().values()
            fits = ["double"] * (-EXACT <= low and high <= EXACT) + ["uint64"] * (low >= 0)
            return remark(pa.field(name, pa.int64()), ["text", *fits])
        if all(map(_is_double, filled)):
            return remark(pa.field(name, pa.float64()), ["text"])
    return pa.field(name, pa.string())


def typed(cells: Sequence[str], field: pa.Field, place: str) -> pa.Array:
    """The cells as a column of a type that `natural_field` or a union of such types allows."""
    if is_text(field.type):
        return pa.array(cells, field.type)
    filled = pa.array([cell or None for cell in cells], pa.string())
    try:
        if pa.types.is_null(field.type):
            return filled.cast(pa.null()) if filled.null_count < len(filled) else pa.nulls(len(filled))
        plain = pa.float64() if pa.types.is_floating(field.type) else pa.int64()
        return filled.cast(plain).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as err:
        raise InputError(
            f"the column `{field.name}` cannot be read as {field.type}: {str(err).splitlines()[0]}", place=place
        ) from err


def _canonical_ints(cells: pa.Array) -> pa.Array | None:
    try:
        whole = cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return whole if whole.cast(pa.string()).equals(cells) else None


def _is_numeral(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_double(cell: str) -> bool:
    """True for cells that a double writes back as they stand, and for integers that it holds exactly."""
    try:
        value = float(cell)
    except ValueError:
        return False
    if repr(value) == cell:
        return isfinite(value)
    return abs(value) <= EXACT and value.is_integer() and str(int(value)) == cell


@contextmanager
def _long_cells(size: int) -> Iterator[None]:
    """Lift the csv module's limit on cells (128 KiB by default) for as long as it is needed."""
    before = csv.field_size_limit()
    if size <= before:
        yield
        return
    csv.field_size_limit(size)
    try:
        yield
    finally:
        csv.field_size_limit(before)
