"""Rows against each other: match in shards, verify candidates on a second sparse read, settle.

A shard holds whole groups of equal keys, so a check that needs no verification settles shard by
shard. For one that verifies, rows that share a key are linked; rows that hang together by links,
however far, make a group; whole groups are gathered into batches, features are made of the linked
rows only, and each batch is verified and settled by itself. Only a bit and a number a row are
held for all rows at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.check import GroupCheck
from curate.dataset import Part, Rows
from curate.hashing import key_of
from curate.meter import Meter, give_memory_back
from curate.steps.base import Job, PlannedStage, StoredTask, publish, read_part
from curate.steps.outside import outside_column, outside_row
from curate.steps.rows import row_ids

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BATCH_BYTES = 16 << 20
"""rows that hang together are compared in batches of about this much text, at most `MOST_BATCHES` of them"""
MOST_BATCHES = 256
GIANT = 4_000_000
"""links of a batch so large that it needs the memory which allocators keep for later"""


def group_check(stage: PlannedStage) -> GroupCheck:
    """The check of a stage that is known to be a group stage."""
    assert isinstance(stage.check, GroupCheck), stage.name
    return stage.check


@dataclass(frozen=True)
class Match(StoredTask):
    """The links of one shard; for a check that does not verify, its settled columns at once, a segment a part."""

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
            result = [pairs] if check.verifies else by_part(settled(stage, check.settle(pairs)), self.starts)
        publish(job, self.key, result, meter, stage.name, pairs=pairs.num_rows, keys=shard.num_rows)


@dataclass(frozen=True)
class Groups(StoredTask):
    """Which linked rows hang together, gathered in batches.

    A segment a part, with the batch of each linked row; then, shard by shard, a segment a batch with its links.
    """

    stage: int
    matches: tuple[str, ...]
    parts: tuple[tuple[int, int, int], ...]
    """first row, rows and bytes of text of each part"""

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        parent, linked = self._joined(job, stage.name, meter)
        with meter.seconds("score", stage.name):
            rows = np.flatnonzero(linked)
            batch, batches = _batches(parent, rows, self._weights(rows))
        facts = {"batches": batches, "rows": len(rows)}
        publish(job, self.key, self._segments(job, rows, batch, batches, parent), meter, stage.name, **facts)

    def _joined(self, job: Job, step: str, meter: Meter) -> tuple[Int64s, Bools]:
        from curate.kernels.links import join_rows

        total = max((first + rows for first, rows, _ in self.parts), default=0)
        parent, linked = np.arange(total), np.zeros(total, np.bool_)
        for key in self.matches:
            with meter.seconds("read", step):
                links = job.store.read(key)
            with meter.seconds("score", step):
                row = links.column("row").to_numpy()
                join_rows(links.column("key").to_numpy(), row, parent)
                linked[row] = True
        return parent, linked

    def _weights(self, rows: Int64s) -> npt.NDArray[np.float64]:
        """About how many bytes of text each row holds."""
        first, counts, sizes = np.array(self.parts, np.float64).T
        part = np.searchsorted(first, rows, side="right") - 1
        return np.asarray((sizes / np.maximum(counts, 1))[part] + 64)

    def _segments(self, job: Job, rows: Int64s, batch: Int64s, batches: int, parent: Int64s) -> Iterator[pa.Table]:
        yield from by_part(pa.table({"row": rows.astype(np.uint64), "batch": batch}), [first for first, *_ in self.parts])
        of_row = parent  # its work is done, and it is as long as it must be
        of_row[rows] = batch
        for key in self.matches:
            links = job.store.read(key)
            where = of_row[links.column("row").to_numpy()]
            order = np.argsort(where, kind="stable")
            bounds = np.searchsorted(where[order], np.arange(batches + 1))
            links = links.take(pa.array(order))
            yield from (links.slice(start, stop - start) for start, stop in itertools.pairwise(bounds))


@dataclass(frozen=True)
class Features(StoredTask):
    """The features of the linked rows of one part, a segment a batch; before them an empty one (see `IndexFeatures`)."""

    stage: int
    part: Part
    groups: str
    batches: int
    outside: bool = False

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        check = group_check(stage)
        linked = job.store.read(self.groups, self.part.index)
        at = (linked.column("row").to_numpy() - np.uint64(self.part.first_row)).astype(np.int64)
        wanted, batch = np.zeros(self.part.rows, np.bool_), np.zeros(self.part.rows, np.int64)
        wanted[at], batch[at] = True, linked.column("batch").to_numpy()
        pieces: list[list[pa.Table]] = [[_no_features(check, job, stage)] for _ in range(self.batches)]
        if wanted.any():
            for rows in read_part(job, self.part, stage.needs, meter, stage.name):
                mask = wanted[rows.positions]
                with meter.seconds("score", stage.name):
                    table = rows.table.select(list(stage.needs)).filter(pa.array(mask))
                    made = _features(check, job, table, row_ids(self.part, rows.positions[mask]))
                    for number, piece in _split(made, batch[rows.positions[mask]]):
                        pieces[number].append(piece)
        tables = (outside_column(pa.concat_tables(piece), self.outside) for piece in pieces)
        publish(job, self.key, itertools.chain([pa.table({})], tables), meter, stage.name, rows=len(at))


@dataclass(frozen=True)
class Verify(StoredTask):
    """The settled columns of one batch of whole groups, a segment a part. Facts: the proven pairs and the check's counts."""

    stage: int
    batch: int
    batches: int
    groups: str
    features: tuple[str, ...]
    shards: int
    segments: int
    starts: tuple[int, ...]
    """first row of each part of the input, and the number of its rows: what is from outside has no columns"""

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        check = group_check(stage)
        with meter.seconds("read", stage.name):
            first = self.segments + self.batch
            links = [job.store.read(self.groups, first + shard * self.batches) for shard in range(self.shards)]
            if sum(table.num_rows for table in links) > GIANT:
                give_memory_back()
            features = pa.concat_tables([job.store.read(key, 1 + self.batch) for key in self.features])
        with meter.seconds("score", stage.name):
            pairs, counts = check.verify(pa.concat_tables(links), features)
            columns = by_part(self._links_named(stage, settled(stage, check.settle(pairs))), self.starts)[:-1]
        publish(job, self.key, columns, meter, stage.name, proven=pairs.num_rows, counts=dict(counts))

    def _links_named(self, stage: PlannedStage, columns: pa.Table) -> pa.Table:
        """The columns with links to rows from outside as everybody else knows them."""
        for at, column in enumerate(columns.column_names):
            if column == stage.link:
                links = columns.column(at)
                far = pa.compute.greater_equal(links, self.starts[-1])
                named = pa.compute.add(links, pa.scalar(outside_row(self.stage, 0) - self.starts[-1], pa.uint64()))
                columns = columns.set_column(at, column, pa.compute.if_else(far, named, links))
        return columns


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


def make_groups(stage: int, matches: Sequence[Match], spans: Sequence[tuple[int, int, int]]) -> Groups:
    """The one task that sees all links; `spans` are the first row, rows and bytes of each part, in order."""
    keys = tuple(task.key for task in matches)
    return Groups(key_of(["groups", list(keys), [list(span) for span in spans]]), stage, keys, tuple(spans))


def make_features(
    job: Job, stage: int, parts: Sequence[Part], groups: str, batches: int, outside: bool = False
) -> list[Features]:
    """A task a part."""
    identity = job.stages[stage].check.identity()
    roles = [list(pair) for pair in job.roles]
    return [
        Features(
            key_of(["features", identity, roles, job.seed, part.key, part.first_row, groups]),
            stage,
            part,
            groups,
            batches,
            outside,
        )
        for part in parts
    ]


def make_verifies(stage: int, groups: Groups, batches: int, features: Sequence[str], starts: Sequence[int]) -> list[Verify]:
    """A task a batch; `starts` are the first rows of the input's parts, and the number of its rows."""
    shape = (len(groups.matches), len(groups.parts), tuple(starts))
    return [
        Verify(key_of(["verify", groups.key, batch, list(features)]), stage, batch, batches, groups.key, tuple(features), *shape)
        for batch in range(batches)
    ]


def _batches(parent: Int64s, rows: Int64s, weights: npt.NDArray[np.float64]) -> tuple[Int64s, int]:
    """For each linked row its batch; whole groups in the order of their first rows, cut where a batch is full."""
    from curate.kernels.links import roots

    if not len(rows):
        return np.zeros(0, np.int64), 1
    _, group = np.unique(roots(parent, rows), return_inverse=True)
    weight = np.bincount(group, weights)
    full = max(float(BATCH_BYTES), weight.sum() / MOST_BATCHES)
    number = ((np.cumsum(weight) - weight) // full).astype(np.int64)
    _, number = np.unique(number, return_inverse=True)  # a group heavier than a batch leaves none empty
    return number[group], int(number[-1]) + 1


def _split(table: pa.Table, numbers: Int64s) -> Iterator[tuple[int, pa.Table]]:
    order = np.argsort(numbers, kind="stable")
    sorted_numbers = numbers[order]
    table = table.take(pa.array(order))
    starts = np.flatnonzero(np.diff(sorted_numbers, prepend=-1))
    for start, stop in itertools.pairwise([*starts.tolist(), len(order)]):
        yield int(sorted_numbers[start]), table.slice(start, stop - start)


def _no_features(check: GroupCheck, job: Job, stage: PlannedStage) -> pa.Table:
    table = pa.table({name: pa.array([], job.schema.field(name).type) for name in stage.needs})
    return _features(check, job, table, np.empty(0, np.uint64))


def _features(check: GroupCheck, job: Job, table: pa.Table, ids: npt.NDArray[np.uint64]) -> pa.Table:
    made = check.features(Rows(table, ids, job.roles, job.seed))
    index = made.column("row").to_numpy()
    return made.set_column(made.column_names.index("row"), "row", pa.array(ids[index], pa.uint64()))
