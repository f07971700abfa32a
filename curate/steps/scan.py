"""One pass over a part: a run of row and fit checks, then perhaps the keys of a group check.

Columns are stored before anything is decided, under keys that do not know the policy of their
own stage: a changed limit finds them and scores nothing. Where everything a pass would compute
is stored already, the data is not read at all.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.check import GroupCheck
from curate.dataset import Part, Rows
from curate.errors import InvariantError
from curate.hashing import key_of
from curate.meter import Meter
from curate.steps.base import Batch, Job, PlannedStage, Positions, StoredTask, bad_text, publish, read_part
from curate.steps.rows import columns_schema, judge_rows, mask_digest, row_ids, score_rows, shown_rows, used_tables, with_used
from curate.steps.unreadable import publish_unreadable, unreadable, unreadable_key
from curate.verdicts import QUARANTINED, Fates


def columns_key(job: Job, part: Part, stage: PlannedStage, seen: str, state: str, used: tuple[str, ...] = ()) -> str:
    """Where a stage's columns of a part are stored: check, parameters, data, and the rows seen."""
    types = {name: str(job.schema.field(name).type) for name in stage.reads}
    roles = [list(pair) for pair in job.roles]
    return key_of(
        [
            "columns",
            stage.check.identity(),
            types,
            roles,
            stage.when,
            job.seed,
            part.key,
            part.first_row,
            list(job.texts),
            seen,
            state,
            [[one.name, key] for one, key in zip(stage.uses, used, strict=True)],
        ]
    )


@dataclass(frozen=True)
class Scan(StoredTask):
    """Score `stages` (indexes, in order) on one part; the last may be a group check, which gets keys only.

    Result: the fates after the row stages. Facts: `alive`, a digest of the rows still alive;
    `columns`, the key of each row stage's columns; `keys`, that of the group check's keys.
    """

    part: Part
    stages: tuple[int, ...]
    fates_before: str | None
    seen: str
    limits: tuple[tuple[float, ...], ...]
    states: tuple[str, ...]
    used: tuple[str, ...] = ()
    """where the columns of earlier stages are stored that the first stage uses"""

    def is_done(self, job: Job) -> bool:
        """Whether the fates are stored, and everything published before them: later tasks read that too."""
        if not super().is_done(job):
            return False
        return all(job.store.has(key) for key in job.store.facts(self.key)["published"])

    def run(self, job: Job) -> None:
        _Pass(self, job).run()


def make_scan(
    job: Job,
    part: Part,
    stages: tuple[int, ...],
    before: str | None,
    seen: str,
    states: Mapping[int, str],
    columns: Sequence[str] = (),
) -> Scan:
    """The task that scans `part`.

    `seen` is a digest of the rows alive before it, `states` the keys of fitted states, `columns` where the columns of
    earlier stages are stored.
    """
    row_stages = [job.stages[index] for index in stages if not isinstance(job.stages[index].check, GroupCheck)]
    limits = tuple(
        () if stage.policy.needs_all_rows else tuple(rule.limit(None) for rule in stage.policy.rules) for stage in row_stages
    )
    fitted = tuple(states.get(index, "") for index in stages)
    used = tuple(columns[one.stage] for one in job.stages[stages[0]].uses) if stages else ()
    policies = [[[repr(rule) for rule in stage.policy.rules], stage.policy.on_missing] for stage in row_stages]
    identities = [[job.stages[index].check.identity(), job.stages[index].when] for index in stages]
    # The names of stages are not part of the key: they appear in no stored column.
    roles = [list(pair) for pair in job.roles]
    work = [identities, policies, list(fitted), list(used), list(stages), roles, job.seed, job.audit, job.shards]
    key = key_of(["scan", part.key, part.first_row, part.rows, before, seen, *work, list(job.texts), str(job.schema)])
    return Scan(key, part, stages, before, seen, limits, fitted, used)


@dataclass
class _Pass:
    """The state of one scan while it runs."""

    task: Scan
    job: Job
    meter: Meter = field(default_factory=Meter)
    scored: dict[int, list[pa.Table]] = field(default_factory=dict)
    stored: list[pa.Table | None] = field(default_factory=list)
    """each row stage's columns, where they are in the store already"""

    def run(self) -> None:
        task, job = self.task, self.job
        stages = [job.stages[index] for index in task.stages]
        self.step = stages[0].name if stages else "read"
        self.group = stages.pop() if stages and isinstance(stages[-1].check, GroupCheck) else None
        self.row_stages = stages
        self.column_keys = self._column_keys()
        self._fates = self._fates_before()
        known = self._fates is not None
        self.stored = [job.store.read(key) if known and job.store.has(key) else None for key in self.column_keys]
        replays = known and all(table is not None for table in self.stored)
        keys = _Keys(self) if self.group else None
        if replays:
            self._replay()
        if not replays or (keys and not job.store.has(keys.key())):
            self._read(keys, score=not replays)
        self._publish_columns()
        alive = self.fates.alive
        facts: dict[str, Any] = {"alive": mask_digest(alive), "alive_rows": int(alive.sum()), "columns": list(self.column_keys)}
        facts["unreadable"] = int((~self.fates.readable).sum())
        facts["published"] = list(self.column_keys)
        if keys:
            facts["keys"] = keys.publish()
            facts["published"].append(facts["keys"])
        if task.part.in_place:
            facts["published"].append(unreadable_key(job, task.part))
        publish(job, task.key, [self.fates.to_table()], self.meter, self.step, **facts)

    @property
    def fates(self) -> Fates:
        """The part's fates so far; known once the part was looked at."""
        assert self._fates is not None
        return self._fates

    def _column_keys(self) -> list[str]:
        """Each stage saw what the stages before it in this pass left alive, so their keys and rules chain."""
        keys, seen = [], "all" if self.job.audit else self.task.seen
        for at, stage in enumerate(self.row_stages):
            key = columns_key(self.job, self.task.part, stage, seen, self.task.states[at], self.task.used if at == 0 else ())
            keys.append(key)
            if not self.job.audit:
                seen = key_of([seen, key, [repr(rule) for rule in stage.policy.rules], stage.policy.on_missing])
        return keys

    def _fates_before(self) -> Fates | None:
        task, job = self.task, self.job
        if task.fates_before is not None:
            return Fates.from_table(job.store.read(task.fates_before))
        if task.part.in_place and not job.store.has(unreadable_key(job, task.part)):
            return None
        return Fates.fresh(task.part.rows, unreadable(job, task.part).column("position").to_numpy())

    def _replay(self) -> None:
        """Decide again from stored columns, without the data."""
        for at, (stage, columns) in enumerate(zip(self.row_stages, self.stored, strict=True)):
            assert columns is not None
            self._decide(stage, at, columns)

    def _read(self, keys: _Keys | None, score: bool) -> None:
        """Stream the part: set bad text aside, score the stages a batch at a time, make keys of what is left."""
        job, part = self.job, self.task.part
        first_look = self._fates is None
        bad: dict[int, str] = {}
        if first_look:
            self._fates = Fates.fresh(part.rows, np.empty(0, np.int64))
        columns = [*self._reads(), *(job.texts if first_look else ())]
        rows = 0
        for batch in read_part(job, part, columns, self.meter, self.step):
            rows += len(batch.positions)
            if first_look:
                found = bad_text(batch.table)
                bad |= {int(batch.positions[index]): reason for index, reason in found.items()}
                self.fates.stage[batch.positions[list(found)]] = QUARANTINED
            if score:
                self._score(batch)
            if keys:
                keys.add(batch)
        self.meter.add(self.step, rows=rows)
        expected = part.rows if part.in_place else int(self.fates.readable.sum())
        if rows != expected:
            raise InvariantError(f"{expected} rows were to be scored and {rows} were read", place=part.source_file)
        if first_look and part.in_place:
            publish_unreadable(job, part, bad, self.meter, self.step)

    def _reads(self) -> list[str]:
        stages = [*self.row_stages, *([self.group] if self.group else [])]
        return list(dict.fromkeys(name for stage in stages for name in stage.reads))

    def _score(self, batch: Batch) -> None:
        for at, stage in enumerate(self.row_stages):
            if (stored := self.stored[at]) is not None:
                self._decide(stage, at, _rows_of(stored, batch))
                continue
            table, positions = self.asked(stage, batch)
            with self.meter.seconds("score", stage.name):
                table = with_used(stage.uses, self._used if at == 0 else (), table, positions)
                scores = score_rows(stage, table, row_ids(self.task.part, positions), self.job, self._states[at])
            columns = pa.table({"position": positions, **scores})
            self.scored.setdefault(at, []).append(columns)
            self.meter.add(stage.name, rows_scored=len(positions))
            self._decide(stage, at, columns)

    def asked(self, stage: PlannedStage, batch: Batch) -> tuple[pa.Table, Positions]:
        """The rows of a batch that a stage is asked about: alive (readable in audit mode) and under its condition."""
        mask = (self.fates.readable if self.job.audit else self.fates.alive)[batch.positions]
        table = batch.table.select(list(stage.reads))
        if stage.condition is not None:
            mask = mask & stage.condition.mask(table)
        if mask.all():
            return table, batch.positions
        return table.filter(pa.array(mask)), batch.positions[mask]

    @functools.cached_property
    def _states(self) -> list[Mapping[str, npt.NDArray[Any]] | None]:
        """What each stage fitted, read when the first batch is scored."""
        from curate.steps.fit import read_state

        return [read_state(self.job, key) if key else None for key in self.task.states]

    @functools.cached_property
    def _used(self) -> list[pa.Table]:
        """What the first stage uses of earlier ones."""
        return used_tables(self.job, self.row_stages[0].uses, self.task.used)

    def _decide(self, stage: PlannedStage, at: int, columns: pa.Table) -> None:
        """Apply the stage's policy, unless its limit needs all rows: then `judge` does, when they are known."""
        if stage.policy.needs_all_rows:
            return
        judge_rows(self.fates, stage, columns, self.task.limits[at])

    def _publish_columns(self) -> None:
        for at, (stage, key) in enumerate(zip(self.row_stages, self.column_keys, strict=True)):
            if self.stored[at] is not None:
                continue
            schema = columns_schema(stage)
            table = pa.concat_tables(self.scored[at]).cast(schema) if at in self.scored else schema.empty_table()
            with self.meter.seconds("write", stage.name):
                self.job.store.put(key, [table])


@dataclass
class _Keys:
    """Collects the keys of a group check in shards, and publishes them."""

    scan: _Pass

    def __post_init__(self) -> None:
        assert self.scan.group is not None
        self.stage = self.scan.group
        self.check = self.stage.check
        self.shards: list[list[pa.Table]] = [[] for _ in range(self.scan.job.shards)]
        self.asked: list[pa.Table] = []
        self.made = False

    def key(self) -> str:
        """Known once the fates are: the keys depend on the rows asked, whatever decided about the others."""
        scan = self.scan
        mask = scan.fates.readable if scan.job.audit else scan.fates.alive
        return key_of(["keys", columns_key(scan.job, scan.task.part, self.stage, mask_digest(mask), ""), scan.job.shards])

    def add(self, batch: Batch) -> None:
        assert isinstance(self.check, GroupCheck)
        self.made = True
        scan = self.scan
        table, positions = scan.asked(self.stage, batch)
        with scan.meter.seconds("score", self.stage.name):
            shown, visible = shown_rows(self.stage, table, row_ids(scan.task.part, positions), scan.job)
            keys, remarks = self.check.keyed(shown)
            index = keys.column("row").to_numpy()
            keyed = np.zeros(len(positions), bool)
            keyed[np.flatnonzero(visible)[index]] = True
            keys = keys.set_column(keys.column_names.index("row"), "row", pa.array(shown.row_ids[index]))
            at = pa.array(np.maximum(np.cumsum(visible) - 1, 0), mask=~visible)
            said = remarks if visible.all() else {name: words.take(at) for name, words in remarks.items()}
            self.asked.append(pa.table({"position": positions, "keyed": keyed, **said}))
            for shard, piece in enumerate(split_by_key(keys, scan.job.shards)):
                if piece.num_rows:
                    self.shards[shard].append(piece)
        scan.meter.add(self.stage.name, rows_scored=len(positions))

    def publish(self) -> str:
        """Segment 0: the rows asked, whether they had a key, and remarks on them; then one segment a shard."""
        scan, key = self.scan, self.key()
        if not self.made and scan.job.store.has(key):
            return key
        empty = self._empty()
        asked = (
            pa.concat_tables(self.asked)
            if self.asked
            else pa.table({"position": pa.array([], pa.int64()), "keyed": pa.array([], pa.bool_())})
        )
        tables = [asked, *(pa.concat_tables(pieces) if pieces else empty for pieces in self.shards)]
        with scan.meter.seconds("write", self.stage.name):
            scan.job.store.put(key, tables, {"rows": asked.num_rows, "keys": sum(table.num_rows for table in tables[1:])})
        return key

    def _empty(self) -> pa.Table:
        assert isinstance(self.check, GroupCheck)
        job = self.scan.job
        schema = pa.schema([job.schema.field(name) for name in self.stage.needs])
        keys = self.check.keys(Rows(schema.empty_table(), np.empty(0, np.uint64), job.roles, job.seed))
        return keys.set_column(keys.column_names.index("row"), "row", pa.array([], pa.uint64()))


def _rows_of(columns: pa.Table, batch: Batch) -> pa.Table:
    """The rows of stored columns that belong to a batch; both are in the order of positions."""
    positions = columns.column("position").to_numpy()
    start, stop = np.searchsorted(positions, [batch.positions[0], batch.positions[-1] + 1]) if len(batch.positions) else (0, 0)
    return columns.slice(int(start), int(stop - start))


def split_by_key(keys: pa.Table, shards: int) -> Iterator[pa.Table]:
    """The rows of `keys` cut by the top bits of `key`: all rows of one key fall in one shard."""
    if shards == 1:
        yield keys
        return
    shard = keys.column("key").to_numpy() >> np.uint64(64 - (shards - 1).bit_length())
    order = np.argsort(shard, kind="stable")
    bounds = np.searchsorted(shard[order], np.arange(shards + 1))
    keys = keys.take(pa.array(order))
    for start, stop in itertools.pairwise(bounds):
        yield keys.slice(start, stop - start)
