"""From columns to fates, part by part, without the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from curate.dataset import Part
from curate.hashing import key_of
from curate.meter import Meter
from curate.policy import as_floats
from curate.steps.base import Job, StoredTask, publish
from curate.steps.count import count_remarks
from curate.steps.group import group_check
from curate.steps.rows import columns_schema, judge_rows, mask_digest
from curate.verdicts import Fates


@dataclass(frozen=True)
class Spread(StoredTask):
    """A group stage's columns of one part: settled where a pair spoke, `unsettled` elsewhere, missing without a key.

    Facts: how many rows the check remarked on, by word and by category.
    """

    stage: int
    part: Part
    keys: str
    settled: tuple[str, ...]
    categories: tuple[tuple[str, str, str], ...] = ()
    """categories of earlier stages: what the report calls each, its column, and where that is stored"""

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        asked = job.store.read(self.keys)
        positions, keyed = asked.column("position").to_numpy(), asked.column("keyed").to_numpy()
        with meter.seconds("read", stage.name):
            settled = pa.concat_tables([job.store.read(key, self.part.index) for key in self.settled])
        at = settled.column("row").to_numpy().astype(np.int64) - self.part.first_row
        index = np.full(self.part.rows, -1, np.int64)
        index[at] = np.arange(len(at))
        chosen = index[positions]
        unsettled = group_check(stage).unsettled()
        columns: dict[str, pa.Array] = {"position": pa.array(positions)}
        for column in stage.columns:
            told = settled.column(column.name).combine_chunks().take(pa.array(chosen, mask=chosen < 0))
            default = pa.scalar(unsettled[column.name], column.type)
            silent = pa.compute.if_else(pa.array(keyed), default, pa.scalar(None, column.type))
            columns[column.name] = pa.compute.if_else(pa.array(chosen >= 0), told, silent)
        table = pa.table(columns).cast(columns_schema(stage))
        remarks = count_remarks(asked, self._categories(job))
        publish(job, self.key, [table], meter, stage.name, asked=len(positions), remarks=remarks)

    def _categories(self, job: Job) -> dict[str, pa.Table]:
        """Of each category the word of each row."""
        return {
            name: job.store.read(key).select(["position", column]).rename_columns(["position", "word"])
            for name, column, key in self.categories
        }


@dataclass(frozen=True)
class Judge(StoredTask):
    """The fates of one part after a stage. Facts: `alive`, a digest of the rows still alive."""

    stage: int
    before: str
    columns: str
    limits: tuple[float, ...]

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        fates = Fates.from_table(job.store.read(self.before))
        judge_rows(fates, stage, job.store.read(self.columns), self.limits)
        publish(
            job,
            self.key,
            [fates.to_table()],
            meter,
            stage.name,
            alive=mask_digest(fates.alive),
            alive_rows=int(fates.alive.sum()),
        )


def make_spreads(
    job: Job, stage: int, keys: Mapping[Part, str], settled: Sequence[str], before: Sequence[Sequence[str]]
) -> list[Spread]:
    """A task a part, given the keys of its rows, where settled columns are stored, and those of the stages `before`, by part."""
    identity = job.stages[stage].check.identity()
    spreads = []
    for (part, key), columns in zip(keys.items(), before, strict=True):
        categories = tuple(
            (f"{one.name}.{column.name}", column.name, stored)
            for one, stored in zip(job.stages, columns, strict=False)
            for column in one.columns
            if column.kind == "category"
        )
        named = key_of(["spread", identity, key, part.first_row, part.rows, list(settled), [list(one) for one in categories]])
        spreads.append(Spread(named, stage, part, key, tuple(settled), categories))
    return spreads


def make_judge(job: Job, stage: int, before: str, columns: str, limits: tuple[float, ...]) -> Judge:
    """The task that lets a stage's policy decide about one part."""
    policy = job.stages[stage].policy
    rules = [repr(rule) for rule in policy.rules]
    return Judge(
        key_of(["judge", stage, before, columns, rules, policy.on_missing, list(limits)]), stage, before, columns, limits
    )


def resolve_limits(job: Job, stage: int, columns: Sequence[str]) -> tuple[float, ...]:
    """The limit of each rule of a stage, from its columns over all parts where a rule needs them all."""
    limits = []
    for rule in job.stages[stage].policy.rules:
        values = None
        if rule.needs_all_rows:
            cells = [as_floats(job.store.read(key).column(rule.column)) for key in columns]
            values = np.concatenate(cells) if cells else np.empty(0)
        limits.append(rule.limit(values))
    return tuple(limits)
