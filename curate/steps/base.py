"""What every task knows of the run (`Job`), and how it reads its part of the data."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.check import Check, Column
from curate.dataset import Part, Roles
from curate.expression import Expression, parse
from curate.held import Held
from curate.meter import Meter
from curate.policy import Policy
from curate.source import parquet
from curate.source.options import ReadOptions
from curate.source.schema import conform
from curate.store import Store

Positions = npt.NDArray[np.int64]


class Used(NamedTuple):
    """A column of a stage: its name among the rows, the stage's index, the column's name there, and its type among the rows."""

    name: str
    stage: int
    column: str
    type: pa.DataType


@dataclass(frozen=True)
class PlannedStage:
    """A stage with everything resolved against the data: its columns, rules and needs."""

    index: int
    name: str
    check: Check
    policy: Policy
    when: str | None
    needs: tuple[str, ...]
    columns: tuple[Column, ...]
    uses: tuple[Used, ...] = ()
    """columns of earlier stages that are shown with the rows"""
    adds: tuple[Used, ...] = ()
    """columns of its own that kept rows get beside the input's"""

    @property
    def link(self) -> str | None:
        """The column that names a row's witness, if the check emits one."""
        return next((column.name for column in self.columns if column.kind == "link"), None)

    @functools.cached_property
    def condition(self) -> Expression | None:
        return None if self.when is None else parse(self.when)

    @property
    def reads(self) -> tuple[str, ...]:
        """The input columns that scoring the stage reads."""
        extra = () if self.condition is None else self.condition.columns
        return tuple(dict.fromkeys((*self.needs, *extra)))


@dataclass(frozen=True)
class Job:
    """The part of a run that its tasks share; small, and sent to every worker."""

    root: Path
    stages: tuple[PlannedStage, ...]
    roles: Roles
    schema: pa.Schema
    """what rows are worked on in: the input's schema without views"""
    kept: pa.Schema
    """what rows are written in: the input's schema"""
    seed: int
    audit: bool
    output: str
    shards: int
    read: ReadOptions
    held: Held | None = None
    """decoded parts, where they may stay in memory"""

    @property
    def store(self) -> Store:
        return Store(self.root)

    @property
    def added(self) -> tuple[Used, ...]:
        """The columns that kept rows get beside the input's."""
        return tuple(one for stage in self.stages for one in stage.adds)

    @functools.cached_property
    def texts(self) -> tuple[str, ...]:
        """The columns that decide whether a row is readable: every text column, whatever the stages read.

        A kept row must open in any reader, and some refuse a file for one byte of bad text.
        """
        return tuple(field.name for field in self.schema if holds_text(field.type))


class Task(Protocol):
    """One unit of work; `key` names its result in the store."""

    @property
    def key(self) -> str: ...

    def is_done(self, job: Job) -> bool: ...

    def run(self, job: Job) -> None: ...


@dataclass(frozen=True)
class StoredTask:
    """A task whose whole result is the artefact under its key."""

    key: str

    def is_done(self, job: Job) -> bool:
        return job.store.has(self.key)


@dataclass(frozen=True)
class Batch:
    """Some rows of a part: their cells and where they stand in the part."""

    table: pa.Table
    positions: Positions


def read_part(job: Job, part: Part, columns: Sequence[str] | None, meter: Meter, step: str) -> Iterator[Batch]:
    """The readable rows of a part in batches, in order, in the data set's schema.

    `columns` are the ones wanted, all for None. Rows of a decoded part that could not be
    decoded are not among them; the bytes of Parquet read in place are judged by `unreadable`.
    """
    names = job.schema.names if columns is None else [name for name in job.schema.names if name in set(columns)]
    schema = pa.schema([job.schema.field(name) for name in names], metadata=job.schema.metadata)
    if part.in_place:
        yield from _read_in_place(job.held, part, schema, meter, step)
        return
    key, segment = part.location.split(":")
    with meter.seconds("read", step):
        table = job.store.read(key, int(segment))
        positions = job.store.read(key, int(segment) + 1).column("position").to_numpy()
        meter.add(step, bytes_read=table.nbytes)
    for start in range(0, table.num_rows, part.batch_rows):
        with meter.seconds("decode", step):
            piece = table.slice(start, part.batch_rows).combine_chunks()
            conformed = [_conform(batch, schema, part) for batch in piece.to_batches()]
        yield Batch(pa.Table.from_batches(conformed), positions[start : start + piece.num_rows])


def _read_in_place(held: Held | None, part: Part, schema: pa.Schema, meter: Meter, step: str) -> Iterator[Batch]:
    own = parquet.names(part.location, part.source_file, part.key)
    wanted = [name for name in schema.names if name in own]
    at = 0

    def read(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        return parquet.read(part.location, part.source_file, part.row_groups, part.rows, part.batch_rows, columns, meter, step)

    for batch in read(wanted) if held is None else held.read(part.key, wanted, read):
        with meter.seconds("decode", step):
            conformed = _conform(batch, schema, part)
        yield Batch(pa.Table.from_batches([conformed]), np.arange(at, at + batch.num_rows, dtype=np.int64))
        at += batch.num_rows


def _conform(batch: pa.RecordBatch, schema: pa.Schema, part: Part) -> pa.RecordBatch:
    wanted = set(schema.names)
    return conform(batch.select([name for name in batch.schema.names if name in wanted]), schema, part.partition)


def bad_text(table: pa.Table) -> dict[int, str]:
    """Rows (by index) that hold text which is not UTF-8, with the reason; almost always none.

    Text inside lists, structs and maps counts too: Arrow lets any bytes through as text, other readers do not.
    """
    found: dict[int, str] = {}
    for name in table.column_names:
        column = table.column(name)
        if not holds_text(column.type):
            continue
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not _is_valid(column):
            for index in range(len(column)):
                if not _is_valid(column.take([index])):
                    found.setdefault(index, f"column `{name}` is not valid UTF-8")
    return found


def holds_text(kind: pa.DataType) -> bool:
    """Whether a column's cells are text, or have text inside."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    if pa.types.is_nested(kind):
        return any(holds_text(kind.field(at).type) for at in range(kind.num_fields))
    return is_text(kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column's cells are UTF-8 text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_valid(column: pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def publish(job: Job, key: str, tables: Iterable[pa.Table], meter: Meter, step: str, **facts: Any) -> None:
    """Publish a task's result with its facts and its bill."""
    with meter.seconds("write", step), job.store.writer(key) as writer:
        for table in tables:
            writer.add(table)
        meter.add(step, bytes_written=writer.offset)
        writer.finish({**facts, "bill": meter.total(step)})
