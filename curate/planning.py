"""`curate plan`: what a run would do, said before it does anything."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curate.check import GroupCheck
from curate.errors import InputError, RequestError
from curate.intake import in_place
from curate.pipeline import Pipeline
from curate.plan import PARENT_BYTES, WORKER_BYTES, describe, fit_workers, passes, resolve, runs_here, shard_count
from curate.source import parquet
from curate.source.discover import SourceFile, discover
from curate.source.ingest import ingest, pieces
from curate.source.schema import unify, with_partitions
from curate.steps.base import PlannedStage

SAMPLED_FILES = 20
"""at most so many files that must be decoded are looked into for their columns"""

KEY_BYTES = 24
"""a key of a row takes so much on disk, with its share of the links"""
JOINING_BYTES = 26
"""what a row takes in memory while linked rows are joined into groups: its group, its number and its batch"""


@dataclass(frozen=True)
class Plan:
    """What a run would read, score, keep in memory and write; `rows` is None where only decoding can tell."""

    name: str
    files: tuple[SourceFile, ...]
    schema: pa.Schema
    casts: tuple[str, ...]
    rows: int | None
    decoded_bytes: int
    stages: tuple[PlannedStage, ...]
    workers: int
    memory: int

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, as `curate plan --json` prints it."""
        work = passes(self.stages)
        return {
            "name": self.name,
            "files": len(self.files),
            "source_bytes": sum(file.size for file in self.files),
            "rows": self.rows,
            "columns": {field.name: str(field.type) for field in self.schema},
            "casts": list(self.casts),
            "stages": describe(self.stages),
            "passes": [[self.stages[index].name for index in one.stages] for one in work],
            "shards": shard_count(self.stages, self._rows()),
            "workers": self.workers,
            "memory": {"budget_bytes": self.memory, "needed_bytes": PARENT_BYTES + self.workers * WORKER_BYTES + self._joining()},
            "disk": self.disk(),
            "groups": self.groups(),
        }

    def disk(self) -> dict[str, int]:
        """Upper estimates in bytes: the private store, and the files of the run (twice while they replace older ones)."""
        decoded = sum(file.size for file in self.files if not in_place(file))
        rows = self._rows()
        grouping = sum(need["disk_bytes"] for need in self.groups().values())
        store = 2 * decoded + grouping + rows * (64 + 9 * sum(len(stage.columns) for stage in self.stages))
        return {"store_bytes": store, "output_bytes": self.decoded_bytes + rows * 64}

    def groups(self) -> dict[str, dict[str, int]]:
        """Of each stage that compares rows, upper estimates in bytes.

        `disk_bytes`: 16 a key and row, as many again for half of the keys, which others share, and where pairs are verified
        sets of 8 a shingle, about 1.4 times the text. `memory_bytes`: what joins the rows into groups, in one process.
        """
        rows = self._rows()
        needs = {}
        for stage in self.stages:
            if isinstance(stage.check, GroupCheck):
                keys = rows * stage.check.keys_per_row() * KEY_BYTES
                sets = self.decoded_bytes * 3 // 2 if stage.check.verifies else 0
                joining = rows * JOINING_BYTES if stage.check.verifies else 0
                needs[stage.name] = {"disk_bytes": keys + sets, "memory_bytes": joining}
        return needs

    def _rows(self) -> int:
        """The rows, guessed from the bytes where only decoding can tell."""
        return self.rows if self.rows is not None else self.decoded_bytes // 1000

    def _joining(self) -> int:
        return max((need["memory_bytes"] for need in self.groups().values()), default=0)


def plan(
    pipeline: Pipeline, source: str | Sequence[str] | None = None, *, memory: int | None = None, workers: int | None = None
) -> Plan:
    """Find the files, learn their columns from metadata or from their first rows, and resolve every stage.

    Raises what `run` would raise before it scores anything: `RequestError` for a stage that does
    not fit the data, `InputError` for a file that cannot be opened.
    """
    named = pipeline.source if source is None else source
    if named is None:
        raise RequestError("nothing to plan: neither the pipeline nor the call names a source", hint="give --source")
    able, budget = fit_workers(workers, memory)
    files = discover(named, pipeline.read, digests=False)
    able = 1 if runs_here(workers, sum(file.size for file in files)) else able
    layouts = {file.name: parquet.layout(file.path, file.name) for file in files if in_place(file)}
    looked = list(itertools.islice((file for file in files if not in_place(file)), SAMPLED_FILES))
    schemas = [(file.name, layouts[file.name].schema) for file in files if in_place(file)]
    schemas += [(file.name, schema) for file in looked if (schema := _first_schema(file, pipeline)) is not None]
    if not schemas:
        raise InputError("the source holds no rows and no columns", place=files[0].name, hint="every file of it is empty")
    schema, casts = unify(schemas)
    schema = with_partitions(schema, files)
    counts = [part for layout in layouts.values() for part in layout.parts]
    rows = sum(rows for _, rows, _, _ in counts) if len(layouts) == len(files) else None
    expansion = {"gzip": 4, "zstd": 4, "none": 1}
    decoded = sum(size for *_, size in counts) + sum(
        file.size * expansion[file.compression] for file in files if not in_place(file)
    )
    return Plan(pipeline.name, files, schema, casts, rows, decoded, resolve(pipeline, schema), able, budget)


def _first_schema(file: SourceFile, pipeline: Pipeline) -> pa.Schema | None:
    """The columns of a file's first rows; None for an empty file."""
    for piece in pieces(file, pipeline.read):
        for chunk in ingest(piece, pipeline.read, None):
            schema: pa.Schema = chunk.rows.schema
            return schema
    return None
