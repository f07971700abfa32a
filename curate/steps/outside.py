"""Rows from outside the input that a group check compares with: of other files, and of an index of rows accepted before.

They can be a witness and never be rejected. Inside a run they are numbered on from the input's last row; in
the ledger a witness from outside is named by its id and its place, and has no row number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.check import GroupCheck
from curate.dataset import OUTSIDE, OUTSIDE_ROWS, Part, Rows
from curate.hashing import key_of
from curate.index import Index
from curate.meter import Meter
from curate.steps.base import Job, PlannedStage, StoredTask, bad_text, publish, read_part
from curate.steps.rows import row_ids, shown_rows
from curate.steps.scan import split_by_key
from curate.verdicts import ALIVE, Fates

NAMED = pa.schema([("row", pa.uint64()), ("id", pa.string()), ("source", pa.string()), ("text", pa.string())])
"""What is known of a row from outside that is a witness; `source` is its place."""


@dataclass(frozen=True)
class Outside:
    """What one stage compares with from outside: parts numbered on from the input's, and an index in the state it was found."""

    parts: tuple[Part, ...] = ()
    index: str | None = None
    state: str = ""


@dataclass(frozen=True)
class OutsideKeys(StoredTask):
    """The keys of all rows of one part from outside, in the segments that the input's parts have theirs in."""

    stage: int
    part: Part

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        check = _group_check(stage)
        shards: list[list[pa.Table]] = [[] for _ in range(job.shards)]
        for batch in read_part(job, self.part, stage.needs, meter, stage.name):
            with meter.seconds("score", stage.name):
                good = np.ones(batch.table.num_rows, np.bool_)
                good[list(bad_text(batch.table))] = False
                ids = row_ids(self.part, batch.positions[good])
                rows, _ = shown_rows(stage, batch.table.filter(pa.array(good)), ids, job)
                for shard, piece in zip(shards, split_by_key(_with_ids(check.keys(rows), rows), job.shards), strict=True):
                    shard.append(piece)
        empty = _with_ids(check.keys(_no_rows(job, stage)), _no_rows(job, stage))
        tables = [pa.concat_tables([empty, *pieces]) for pieces in shards]
        publish(job, self.key, [pa.table({}), *tables], meter, stage.name, keys=sum(table.num_rows for table in tables))


@dataclass(frozen=True)
class IndexKeys(StoredTask):
    """The rows of an index that have a key in common with the input, numbered from `first_row` on in the index's order.

    Segment 0 holds their entries; then, a segment a shard, their keys.
    """

    stage: int
    outside: Outside
    keys: tuple[str, ...]
    first_row: int

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        check = _group_check(stage)
        index = open_index(check, self.outside)
        found = []
        for shard in range(job.shards):
            with meter.seconds("read", stage.name):
                own = [job.store.read(key, 1 + shard).column("key").to_numpy() for key in self.keys]
            with meter.seconds("score", stage.name):
                found.append(index.lookup(np.unique(np.concatenate(own)), check.most_of_a_key()))
        entries = np.unique(np.concatenate([table.column("entry").to_numpy() for table in found]))
        tables = [
            pa.table({"row": np.searchsorted(entries, table.column("entry").to_numpy()).astype(np.uint64), "key": table["key"]})
            for table in found
        ]
        tables = [
            table.set_column(0, "row", pa.compute.add(table["row"], pa.scalar(self.first_row, pa.uint64()))) for table in tables
        ]
        publish(job, self.key, [pa.table({"entry": entries}), *tables], meter, stage.name, entries=len(entries))


@dataclass(frozen=True)
class IndexFeatures(StoredTask):
    """What each linked row of an index is called, in `NAMED`; then the features of these rows, a segment a batch."""

    stage: int
    outside: Outside
    keys: str
    groups: str
    segment: int
    first_row: int
    input_rows: int
    batches: int

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        check = _group_check(stage)
        index = open_index(check, self.outside)
        linked = job.store.read(self.groups, self.segment)
        row, batch = linked.column("row").to_numpy(), linked.column("batch").to_numpy()
        entry = job.store.read(self.keys, 0).column("entry").to_numpy()[row - np.uint64(self.first_row)]
        blank = outside_column(_with_ids(check.features(_no_rows(job, stage)), _no_rows(job, stage)), True)
        with meter.seconds("read", stage.name):
            pieces = [
                self._features(index, entry[batch == number], row[batch == number], blank.schema)
                for number in range(self.batches)
            ]
        named = pa.concat_tables([NAMED.empty_table(), *(self._named(known) for known, _ in pieces)]).sort_by("row")
        publish(job, self.key, [named, *(table for _, table in pieces)], meter, stage.name, rows=len(row))

    def _named(self, known: pa.Table) -> pa.Table:
        rows = known["row"].to_numpy() + np.uint64(outside_row(self.stage, 0) - self.input_rows)
        return pa.table([pa.array(rows), known["id"], known["source"], pa.nulls(len(rows), pa.string())], names=NAMED.names).cast(
            NAMED
        )

    def _features(
        self, index: Index, entry: npt.NDArray[np.uint64], row: npt.NDArray[np.uint64], schema: pa.Schema
    ) -> tuple[pa.Table, pa.Table]:
        read, colon = index.read(entry), pa.scalar(":", pa.large_string())
        places = pa.compute.binary_join_element_wise(read["source"], read["source_row"].cast(pa.large_string()), colon)
        known = {
            "row": pa.array(row),
            "id": read["id"],
            "source": places,
            "content": read["content"],
            "shingles": read["shingles"],
            "outside": pa.repeat(True, len(row)),
        }
        columns = [known[name] if name in known else pa.nulls(len(row), schema.field(name).type) for name in schema.names]
        return pa.table(known), pa.table(columns, names=schema.names).cast(schema)


@dataclass(frozen=True)
class Named(StoredTask):
    """The id, the place and the text of the rows of one part from outside that are somebody's witness, in `NAMED`."""

    stage: int
    part: Part
    witnesses: str
    segment: int
    input_rows: int

    def run(self, job: Job) -> None:
        meter, pieces = Meter(), [NAMED.empty_table()]
        first = outside_row(self.stage, self.part.first_row - self.input_rows)
        rows = job.store.read(self.witnesses, self.segment).column("row").to_numpy().astype(np.int64) - first
        wanted = np.zeros(self.part.rows, np.bool_)
        wanted[rows[(rows >= 0) & (rows < self.part.rows)]] = True
        columns = [*job.roles.text, *([job.roles.id] if job.roles.id else [])]
        if wanted.any():
            from curate.steps.write import id_text

            for batch in read_part(job, self.part, columns, meter, "write"):
                mask = wanted[batch.positions]
                table, at = batch.table.filter(pa.array(mask)), batch.positions[mask]
                ids = at.astype(np.uint64) + np.uint64(first)
                names = id_text(table.column(job.roles.id)) if job.roles.id else pa.nulls(len(at), pa.string())
                places = [f"{self.part.source_file}:{self.part.first_source_row + one}" for one in at.tolist()]
                text = (
                    Rows(table, ids, job.roles).whole_text().cast(pa.string())
                    if job.roles.text
                    else pa.nulls(len(at), pa.string())
                )
                pieces.append(pa.table([pa.array(ids), names, pa.array(places, pa.string()), text], schema=NAMED))
        publish(job, self.key, [pa.concat_tables(pieces)], meter, "write")


@dataclass(frozen=True)
class Accepted(StoredTask):
    """The kept rows of one part as an index wants them."""

    stage: int
    part: Part
    fates: str

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        check = _group_check(stage)
        alive = Fates.from_table(job.store.read(self.fates)).stage == ALIVE
        with job.store.writer(self.key) as writer:
            for batch in read_part(job, self.part, stage.needs, meter, stage.name):
                mask = alive[batch.positions]
                with meter.seconds("score", stage.name):
                    at = batch.positions[mask]
                    rows, _ = shown_rows(stage, batch.table.filter(pa.array(mask)), row_ids(self.part, at), job)
                    made = check.entries(rows)
                    place = (rows.row_ids - np.uint64(self.part.first_row) + np.uint64(self.part.first_source_row))[
                        made["row"].to_numpy()
                    ]
                    made = made.drop_columns(["row"]).append_column("source_row", pa.array(place))
                    made = made.append_column(
                        "source", pa.repeat(pa.scalar(self.part.source_file, pa.large_string()), len(place))
                    )
                if made.num_rows:
                    writer.add(made)
            writer.finish({"segments": len(writer.segments), "bill": meter.total(stage.name)})


def open_index(check: GroupCheck, outside: Outside) -> Index:
    """The index of a stage, as it was when the run first looked. Raises `TemporaryError` where it has changed since."""
    from curate.errors import TemporaryError

    assert outside.index is not None
    index = Index.open(Path(outside.index), check.index_identity())
    if index.state != outside.state:
        raise TemporaryError("the index changed while it was being read", place=outside.index, hint="run the same command again")
    return index


def accept(job: Job, stage: int, outside: Outside, name: str, made: Sequence[Accepted]) -> None:
    """Add the kept rows of a run to the index of a stage; those that it has already are left out."""
    check = _group_check(job.stages[stage])
    index = open_index(check, outside)
    index.add(name, _new_entries(job, index, made), after=outside.state)


def _new_entries(job: Job, index: Index, made: Sequence[Accepted]) -> Iterator[pa.Table]:
    for task in made:
        for segment in range(job.store.facts(task.key)["segments"]):
            table = job.store.read(task.key, segment)
            known = index.find(np.unique(table.column("content").to_numpy()))
            have = set(zip(known["content"].to_pylist(), known["id"].to_pylist(), strict=True))
            own = zip(table["content"].to_pylist(), table["id"].to_pylist(), strict=True)
            yield table.filter(pa.array([one not in have for one in own], pa.bool_()))


def outside_row(stage: int, number: int) -> int:
    """The row id by which a run knows a row from outside, counted from 0 within the stage that compares with it."""
    return OUTSIDE + stage * OUTSIDE_ROWS + number


def outside_column(features: pa.Table, outside: bool) -> pa.Table:
    """Features with a flag that says whether the rows are from outside."""
    return features.append_column("outside", pa.repeat(outside, features.num_rows))


def make_outside_keys(job: Job, stage: int, outside: Outside) -> list[OutsideKeys]:
    """A task a part."""
    identity, roles = job.stages[stage].check.identity(), [list(pair) for pair in job.roles]
    return [
        OutsideKeys(key_of(["outside keys", identity, roles, part.key, part.first_row, job.shards]), stage, part)
        for part in outside.parts
    ]


def make_index_keys(job: Job, stage: int, outside: Outside, keys: Sequence[str], first_row: int) -> IndexKeys:
    """The one task that looks all keys of a stage up."""
    what = ["index keys", job.stages[stage].check.identity(), outside.state, list(keys), first_row, job.shards]
    return IndexKeys(key_of(what), stage, outside, tuple(keys), first_row)


def make_index_features(stage: int, keys: IndexKeys, groups: str, segment: int, input_rows: int, batches: int) -> IndexFeatures:
    """The one task that reads the sets of linked rows."""
    key = key_of(["index features", keys.key, groups])
    return IndexFeatures(key, stage, keys.outside, keys.key, groups, segment, keys.first_row, input_rows, batches)


def make_named(job: Job, stage: int, outside: Outside, witnesses: str, segment: int, input_rows: int) -> list[Named]:
    """A task a part."""
    roles = [list(pair) for pair in job.roles]
    return [
        Named(key_of(["named", stage, roles, part.key, part.first_row, witnesses]), stage, part, witnesses, segment, input_rows)
        for part in outside.parts
    ]


def make_accepted(job: Job, stage: int, parts: Sequence[Part], fates: Sequence[str]) -> list[Accepted]:
    """A task a part."""
    identity, roles = job.stages[stage].check.identity(), [list(pair) for pair in job.roles]
    return [
        Accepted(key_of(["accepted", identity, roles, part.key, part.first_row, part.source_file, fate]), stage, part, fate)
        for part, fate in zip(parts, fates, strict=True)
    ]


def _group_check(stage: PlannedStage) -> GroupCheck:
    assert isinstance(stage.check, GroupCheck), stage.name
    return stage.check


def _with_ids(table: pa.Table, rows: Rows) -> pa.Table:
    ids = rows.row_ids[table.column("row").to_numpy().astype(np.int64)]
    return table.set_column(table.column_names.index("row"), "row", pa.array(ids, pa.uint64()))


def _no_rows(job: Job, stage: PlannedStage) -> Rows:
    schema = pa.schema([job.schema.field(name) for name in stage.needs])
    return Rows(schema.empty_table(), np.empty(0, np.uint64), job.roles, job.seed)
