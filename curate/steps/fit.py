"""Fit a check on a sample of the rows alive: sampled by row id, so any split gives the same sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.check import FitCheck
from curate.dataset import Part, Rows
from curate.errors import InvariantError
from curate.hashing import key_of, mix64
from curate.meter import Meter
from curate.steps.base import Job, StoredTask, publish, read_part
from curate.steps.rows import row_ids, used_tables, visible_rows, with_used
from curate.verdicts import Fates


@dataclass(frozen=True)
class Sample(StoredTask):
    """The rows of one part that fall in the sample: those whose mixed row id is below `ceiling`."""

    part: Part
    stage: int
    fates: str
    ceiling: int
    used: tuple[str, ...] = ()
    """where the columns of earlier stages are stored that the stage uses"""

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        fates = Fates.from_table(job.store.read(self.fates))
        mask = fates.readable if job.audit else fates.alive
        pieces, tables = [], used_tables(job, stage.uses, self.used)
        for batch in read_part(job, self.part, stage.reads, meter, stage.name):
            ids = row_ids(self.part, batch.positions)
            chosen = mask[batch.positions] & (mix64(ids, job.seed) <= np.uint64(self.ceiling))
            if stage.condition is not None:
                chosen &= stage.condition.mask(batch.table)
            chosen &= visible_rows(stage, batch.table)
            shown = batch.table.select(list(stage.needs)).filter(pa.array(chosen))
            shown = with_used(stage.uses, tables, shown, batch.positions[chosen])
            pieces.append(shown.append_column("row", pa.array(ids[chosen])))
        fields = [*(job.schema.field(name) for name in stage.needs), *((used.name, used.type) for used in stage.uses)]
        empty = pa.schema([*fields, ("row", pa.uint64())]).empty_table()
        publish(job, self.key, [pa.concat_tables(pieces) if pieces else empty], meter, stage.name)


@dataclass(frozen=True)
class Fit(StoredTask):
    """The fitted state of a stage, from the samples of all parts."""

    stage: int
    samples: tuple[str, ...]

    def run(self, job: Job) -> None:
        stage, meter = job.stages[self.stage], Meter()
        assert isinstance(stage.check, FitCheck)
        with meter.seconds("read", stage.name):
            sample = pa.concat_tables([job.store.read(key) for key in self.samples])
            ids = sample.column("row").to_numpy()
            order = np.argsort(mix64(ids, job.seed), kind="stable")[: stage.check.fit_rows]
            sample = sample.take(pa.array(np.sort(order)))
        with meter.seconds("score", stage.name):
            rows = Rows(sample.drop_columns(["row"]), sample.column("row").to_numpy(), job.roles, job.seed)
            state = stage.check.fit(rows)
            evidence = stage.check.evidence(state)
        meter.add(stage.name, rows_fitted=len(rows))
        publish(job, self.key, [state_table(stage.name, state)], meter, stage.name, fitted=len(rows), evidence=evidence)


def make_samples(
    job: Job, stage: int, parts: Mapping[Part, tuple[str, str]], alive: int, columns: Sequence[Sequence[str]]
) -> list[Sample]:
    """One task a part, given its fates' key and alive digest, and where the columns of its earlier stages are stored.

    A little more than `fit_rows` rows in all.
    """
    check = job.stages[stage].check
    assert isinstance(check, FitCheck)
    wanted = check.fit_rows + 6 * check.fit_rows**0.5 + 10  # six deviations more than enough, so that `fit` gets all it may
    share = min(1.0, wanted / max(alive, 1))
    ceiling = min(2**64 - 1, int(share * 2**64))
    base = [
        check.identity(),
        job.stages[stage].when,
        job.seed,
        job.audit,
        ceiling,
        [list(pair) for pair in job.roles],
        list(job.stages[stage].reads),
    ]
    samples = []
    for (part, (fates, seen)), stored in zip(parts.items(), columns, strict=True):
        used = tuple(stored[one.stage] for one in job.stages[stage].uses)
        own = [part.key, part.first_row, "all" if job.audit else seen, list(used)]
        samples.append(Sample(key_of(["sample", *own, *base]), part, stage, fates, ceiling, used))
    return samples


def make_fit(job: Job, stage: int, samples: list[Sample]) -> Fit:
    """The one task that fits a stage."""
    keys = tuple(sample.key for sample in samples)
    return Fit(key_of(["fit", job.stages[stage].check.identity(), job.seed, list(keys)]), stage, keys)


def state_table(name: str, state: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """A state as one row: per array its flat values and its shape. No objects, so nothing is ever unpickled."""
    fields: dict[str, pa.Array] = {}
    for key, array in state.items():
        array = np.asarray(array)
        if array.dtype.hasobject:
            raise InvariantError(f"`{name}` fitted an array of objects in `{key}`; a state holds numbers, flags or strings")
        texts = array.dtype.kind == "U"
        flat = pa.array(array.ravel().tolist(), pa.string()) if texts else pa.array(np.ascontiguousarray(array).ravel())
        fields[key] = pa.LargeListArray.from_arrays(pa.array([0, len(flat)], pa.int64()), flat)
        fields[f"{key}.shape"] = pa.array([list(array.shape)], pa.list_(pa.int64()))
    return pa.table(fields)


def read_state(job: Job, key: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a stored state."""
    table = job.store.read(key)
    names = [name for name in table.column_names if not name.endswith(".shape")]
    return {
        name: _array(table.column(name).combine_chunks().flatten(), table.column(f"{name}.shape")[0].as_py()) for name in names
    }


def _array(flat: pa.Array, shape: list[int]) -> npt.NDArray[Any]:
    texts = pa.types.is_string(flat.type)
    return (np.array(flat.to_pylist(), dtype=np.str_) if texts else np.asarray(flat.to_numpy(zero_copy_only=False))).reshape(
        shape
    )
