"""Rows against each other: match in shards, verify candidates on a second sparse read, settle.

A shard holds whole groups of equal keys, so a check that needs no verification settles shard by
shard. One that verifies gets its candidate pairs merged and cut into chunks; features are made
of the rows in pairs only, and one settle sees all proven pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from curate.check import GroupCheck
from curate.dataset import Part, Rows
from curate.hashing import key_of
from curate.meter import Meter
from curate.steps.base import Job, PlannedStage, StoredTask, publish, read_part
from curate.steps.rows import row_ids

CHUNK_PAIRS = 500_000
"""candidate pairs are verified in chunks of this many"""


def group_check(stage: PlannedStage) -> GroupCheck:
    """The check of a stage that is known to be a group stage."""
    assert isinstance(stage.check, GroupCheck), stage.name
    return stage.check


@dataclass(frozen=True)
class Match(StoredTask):
    """The pairs of one shard; for a check that does not verify, its settled columns at once, a segment a part."""

    stage: int
    shard: int
    keys: tuple[str, ...]
    starts: tuple[int, ...]

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        check = group_check(stage)
        with meter.seconds("read", stage.name):
            shard = pa.concat_tables([job.store.read(key, 1 + self.shard) for key in self.keys])
        with meter.seconds("score", stage.name):
            pairs = check.match(shard)
            result = [pairs] if check.verifies else by_part(settled(stage, check.settle(pairs, None)), self.starts)
        publish(job, self.key, result, meter, stage.name, pairs=pairs.num_rows, keys=shard.num_rows)


@dataclass(frozen=True)
class Candidates(StoredTask):
    """All candidate pairs of a stage, each once, in chunks; before them, a segment a part, the rows they name."""

    stage: int
    matches: tuple[str, ...]
    starts: tuple[int, ...]

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        with meter.seconds("read", stage.name):
            pairs = pa.concat_tables([job.store.read(key) for key in self.matches])
        with meter.seconds("score", stage.name):
            frame = pl.DataFrame(pl.from_arrow(pairs))
            carried = [name for name in frame.columns if name not in ("row", "other")]
            frame = frame.group_by("row", "other").agg(pl.col(carried).max()).sort("row", "other")
            pairs = frame.to_arrow()
            rows = np.unique(np.concatenate([pairs.column(side).to_numpy() for side in ("row", "other")]))
        chunks = [pairs.slice(start, CHUNK_PAIRS) for start in range(0, pairs.num_rows, CHUNK_PAIRS)]
        publish(
            job,
            self.key,
            [*by_part(pa.table({"row": rows}), self.starts), *chunks],
            meter,
            stage.name,
            chunks=len(chunks),
            candidates=pairs.num_rows,
            rows=len(rows),
        )


@dataclass(frozen=True)
class Features(StoredTask):
    """The features of the rows of one part that are in candidate pairs."""

    stage: int
    part: Part
    candidates: str

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        check = group_check(stage)
        rows = job.store.read(self.candidates, self.part.index).column("row").to_numpy()
        wanted = np.zeros(self.part.rows, bool)
        wanted[rows - np.uint64(self.part.first_row)] = True
        pieces = [
            _features(
                check,
                job,
                pa.table({name: pa.array([], job.schema.field(name).type) for name in stage.needs}),
                np.empty(0, np.uint64),
            )
        ]
        if wanted.any():
            for batch in read_part(job, self.part, stage.needs, meter, stage.name):
                mask = wanted[batch.positions]
                with meter.seconds("score", stage.name):
                    table = batch.table.select(list(stage.needs)).filter(pa.array(mask))
                    pieces.append(_features(check, job, table, row_ids(self.part, batch.positions[mask])))
        table = pa.concat_tables(pieces)
        light = [name for name in table.column_names if not _is_list(table.schema.field(name).type)]
        publish(job, self.key, [table.select(light), table], meter, stage.name, rows=table.num_rows)


@dataclass(frozen=True)
class Verify(StoredTask):
    """The proven pairs of one chunk of candidates."""

    stage: int
    candidates: str
    chunk: int
    features: tuple[str, ...]
    parts: tuple[tuple[int, int], ...]

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        with meter.seconds("read", stage.name):
            pairs = job.store.read(self.candidates, len(self.parts) + self.chunk)
            rows = np.unique(np.concatenate([pairs.column(side).to_numpy() for side in ("row", "other")]))
            features = self._features(job, rows)
        with meter.seconds("score", stage.name):
            proven = group_check(stage).verify(pairs, features)
        publish(job, self.key, [proven], meter, stage.name, proven=proven.num_rows)

    def _features(self, job: Job, rows: npt.NDArray[np.uint64]) -> pa.Table:
        tables = []
        for key, (first, stop) in zip(self.features, self.parts, strict=True):
            lo, hi = np.searchsorted(rows, [first, stop])
            if hi > lo:
                table = job.store.read(key, 1)
                tables.append(table.filter(pa.array(np.isin(table.column("row").to_numpy(), rows[lo:hi]))))
        return pa.concat_tables(tables) if tables else job.store.read(self.features[0], 1).slice(0, 0)


@dataclass(frozen=True)
class Settle(StoredTask):
    """The columns of every row that has something to say, from all proven pairs of a stage; a segment a part."""

    stage: int
    proven: tuple[str, ...]
    features: tuple[str, ...]
    starts: tuple[int, ...]

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        check = group_check(stage)
        with meter.seconds("read", stage.name):
            tables = [job.store.read(key) for key in self.proven]
            features = pa.concat_tables([job.store.read(key, 0) for key in self.features])
        with meter.seconds("score", stage.name):
            result = settled(stage, check.settle(pa.concat_tables(tables), features)) if tables else _nothing(stage)
        publish(job, self.key, by_part(result, self.starts), meter, stage.name)


def settled(stage: PlannedStage, columns: pa.Table) -> pa.Table:
    """A check's settled columns in declared order and type, by ascending row id."""
    schema = pa.schema([("row", pa.uint64()), *((column.name, column.type) for column in stage.columns)])
    return columns.select(schema.names).cast(schema).sort_by("row")


def by_part(table: pa.Table, starts: Sequence[int]) -> list[pa.Table]:
    """A table sorted by `row`, cut at the first rows of the parts."""
    bounds = [*np.searchsorted(table.column("row").to_numpy(), np.array(starts, np.uint64)), table.num_rows]
    return [table.slice(start, stop - start) for start, stop in itertools.pairwise(bounds)]


def make_matches(job: Job, stage: int, keys: Sequence[str], starts: Sequence[int]) -> list[Match]:
    """One task a shard; `starts` are the first rows of the parts, since pairs hold row ids."""
    identity = job.stages[stage].check.identity()
    return [
        Match(key_of(["match", identity, shard, job.shards, list(keys), list(starts)]), stage, shard, tuple(keys), tuple(starts))
        for shard in range(job.shards)
    ]


def make_candidates(stage: int, matches: Sequence[Match]) -> Candidates:
    """The one task that merges the pairs of all shards."""
    keys = tuple(task.key for task in matches)
    return Candidates(key_of(["candidates", list(keys)]), stage, keys, matches[0].starts)


def make_features(job: Job, stage: int, parts: Sequence[Part], candidates: str) -> list[Features]:
    """A task a part."""
    identity = job.stages[stage].check.identity()
    roles = [list(pair) for pair in job.roles]
    return [
        Features(key_of(["features", identity, roles, job.seed, part.key, part.first_row, candidates]), stage, part, candidates)
        for part in parts
    ]


def make_verifies(stage: int, candidates: str, chunks: int, features: Sequence[Features]) -> list[Verify]:
    """A task a chunk of candidates."""
    keys = tuple(task.key for task in features)
    spans = tuple((task.part.first_row, task.part.first_row + task.part.rows) for task in features)
    return [
        Verify(key_of(["verify", candidates, chunk, list(keys)]), stage, candidates, chunk, keys, spans)
        for chunk in range(chunks)
    ]


def make_settle(stage: int, verifies: Sequence[Verify], features: Sequence[Features]) -> Settle:
    """The one task that sees all proven pairs."""
    starts = tuple(task.part.first_row for task in features)
    proven, made = tuple(task.key for task in verifies), tuple(task.key for task in features)
    return Settle(key_of(["settle", list(proven), list(made)]), stage, proven, made, starts)


def _features(check: GroupCheck, job: Job, table: pa.Table, ids: npt.NDArray[np.uint64]) -> pa.Table:
    made = check.features(Rows(table, ids, job.roles, job.seed))
    index = made.column("row").to_numpy()
    return made.set_column(made.column_names.index("row"), "row", pa.array(ids[index], pa.uint64()))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _nothing(stage: PlannedStage) -> pa.Table:
    return pa.schema([("row", pa.uint64()), *((column.name, column.type) for column in stage.columns)]).empty_table()
