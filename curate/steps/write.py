"""Write one part's files: kept, rejected, quarantined, verdicts, scores; and count what was written."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.cells import without_unused
from curate.dataset import MEMORY_NAME, OUTSIDE, Part, shown
from curate.errors import InvariantError
from curate.hashing import identity_sum, key_of
from curate.meter import Meter
from curate.sink import Sink, json_lines, open_sink
from curate.steps.base import Batch, Job, StoredTask, publish, read_part
from curate.steps.count import count_groups, count_links, count_stages, judged_columns
from curate.steps.group import by_part
from curate.steps.outside import NAMED
from curate.steps.rows import row_ids, used_tables, with_used
from curate.steps.sample import SHOWN, rows_to_show, to_show
from curate.steps.unreadable import unreadable
from curate.verdicts import ALIVE, QUARANTINED, REASONS, Fates, Names, Verdicts

SHOWN_SEGMENT = 2
"""the segment of a written part's result that holds the rows the report shows"""
RAW_BYTES = 64 << 10
"""at most this much of an unreadable row is kept as evidence"""


@dataclass(frozen=True)
class Witnesses(StoredTask):
    """The rows that are somebody's witness, each once; a segment a part, and one for those from outside."""

    fates: tuple[str, ...]
    starts: tuple[int, ...]

    def run(self, job: Job) -> None:
        meter = Meter()
        found = [np.unique(job.store.read(key).column("witness").to_numpy()) for key in self.fates]
        rows = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
        table = pa.table({"row": rows[rows >= 0].astype(np.uint64)})
        publish(job, self.key, by_part(table, [*self.starts, OUTSIDE]), meter, "write")


@dataclass(frozen=True)
class Ids(StoredTask):
    """The caller's id of each row of one part that is somebody's witness."""

    part: Part
    witnesses: str

    def run(self, job: Job) -> None:
        meter, column = Meter(), job.roles.id
        assert column is not None
        rows = job.store.read(self.witnesses, self.part.index).column("row").to_numpy()
        wanted = np.zeros(self.part.rows, bool)
        wanted[rows - np.uint64(self.part.first_row)] = True
        ids: list[pa.Array] = []
        if wanted.any():
            for batch in read_part(job, self.part, [column], meter, "write"):
                ids.append(id_text(batch.table.column(column)).filter(pa.array(wanted[batch.positions])))
        table = pa.table({"row": rows, "id": pa.chunked_array(ids, pa.string())})
        publish(job, self.key, [table], meter, "write")


@dataclass(frozen=True)
class WitnessIds(StoredTask):
    """The ids of all witnesses, and the places of those from outside, by ascending row."""

    ids: tuple[str, ...]
    outside: tuple[str, ...]

    def run(self, job: Job) -> None:
        schema = pa.schema(list(NAMED)[:3])
        own = [job.store.read(key) for key in self.ids]
        tables = [table.append_column("source", pa.nulls(table.num_rows, pa.string())) for table in own]
        tables += [job.store.read(key).select(schema.names) for key in self.outside]
        publish(job, self.key, [pa.concat_tables([schema.empty_table(), *tables]).sort_by("row")], Meter(), "write")


@dataclass(frozen=True)
class Write(StoredTask):
    """All files of one part, below `folder`. Facts: counts, identities and sizes of what was written."""

    part: Part
    folder: str
    fates: str
    columns: tuple[str, ...]
    witness_ids: str | None
    choose: str

    def is_done(self, job: Job) -> bool:
        if not job.store.has(self.key):
            return False
        sizes: Mapping[str, int] = job.store.facts(self.key)["sizes"]
        return all(_size(Path(self.folder) / name) == size for name, size in sizes.items())

    def run(self, job: Job) -> None:
        meter = Meter()
        fates = Fates.from_table(job.store.read(self.fates))
        all_ids = np.arange(self.part.first_row, self.part.first_row + self.part.rows, dtype=np.uint64)
        verdicts = Verdicts(all_ids, fates, self.part.first_row, stage_names(job))
        witnesses = self._witnesses(job, fates)
        written, ids, sizes, groups, seen = self._write_rows(job, verdicts, witnesses, meter)
        with meter.seconds("write", "write"):
            ledger = verdicts.to_table(self.part.source_file, self.part.first_source_row, ids, witnesses)
            sizes |= self._write_one(job, "verdicts", ledger)
            scores = scores_table(job, self.part, self.columns)
            sizes |= self._write_one(job, "scores", scores)
        if written != verdicts.identities():
            raise InvariantError("the rows written are not the rows of the ledger; nothing was published", place=self.part.name)
        with meter.seconds("score", "write"):
            columns = [job.store.read(key) for key in self.columns]
            counted = count_stages(job, fates, columns)
        meter.add("write", rows=self.part.rows, bytes_written=sum(sizes.values()))
        facts = {"sizes": sizes, "identities": written, "counts": verdicts.counts(), "stages": counted}
        publish(job, self.key, [groups, count_links(job, columns), seen], meter, "write", **facts)

    def _write_rows(
        self, job: Job, verdicts: Verdicts, witnesses: tuple[pa.Array, pa.Array], meter: Meter
    ) -> tuple[dict[str, int], pa.Array, dict[str, int], pa.Table, pa.Table]:
        """Stream the part's rows into kept/ and rejected/; identities are taken from what is handed to the writers."""
        fates, name = verdicts.fates, self.part.name
        written = {"kept": 0, "rejected": 0, "quarantined": 0}
        reasons = pa.table([*verdicts.reason_columns().values(), verdicts.witness_rows(), *witnesses], schema=REASONS)
        quarantined: list[dict[str, Any]] = []
        pieces: list[pa.Array] = []
        groups: list[pa.Table] = []
        judged = judged_columns(job.roles, job.schema)
        added = used_tables(job, job.added, [self.columns[one.stage] for one in job.added])
        wanted, seen = rows_to_show(job, self.choose, self.part), [SHOWN.empty_table()]
        places: list[npt.NDArray[np.int64]] = []
        with (
            self._sink(job, "kept", job.output, kept_schema(job)) as kept,
            self._sink(job, "rejected", "parquet", rejected_schema(job.kept)) as rejected,
        ):
            for batch in read_part(job, self.part, None, meter, "write"):
                with meter.seconds("write", "write"):
                    stage = fates.stage[batch.positions]
                    row = row_ids(self.part, batch.positions)
                    _write_kept(kept, _with_added(job, added, batch), stage == ALIVE, kept_schema(job))
                    written["kept"] += identity_sum(row[stage == ALIVE])
                    _write_rejected(rejected, batch, stage >= 0, reasons, job.kept)
                    written["rejected"] += identity_sum(row[stage >= 0])
                    quarantined += _bad_rows(self.part, batch, stage == QUARANTINED)
                    groups.append(count_groups({name: batch.table.column(name) for name in judged}, stage))
                    names = id_text(batch.table.column(job.roles.id)) if job.roles.id else pa.nulls(len(row), pa.string())
                    pieces.append(names)
                    places.append(batch.positions)
                    seen.append(to_show(job, batch, row, names, wanted[batch.positions]))
            sizes = {f"kept/{name}.{job.output}": kept.close(), f"rejected/{name}.parquet": rejected.close()}
        ids = _scatter(pieces, places, self.part.rows)
        records = quarantine_records(self.part, unreadable(job, self.part), quarantined)
        written["quarantined"] = identity_sum(np.array([record["row_id"] for record in records], np.uint64))
        if records:
            sizes |= self._write_quarantined(job, records)
        grouped = pa.concat_tables(groups) if groups else count_groups({}, np.empty(0, np.int16))
        return {verdict: total % 2**64 for verdict, total in written.items()}, ids, sizes, grouped, pa.concat_tables(seen)

    def _sink(self, job: Job, folder: str, form: str, schema: pa.Schema) -> AbstractContextManager[Sink]:
        aside = job.store.aside(f"{self.key}-{folder}")
        return open_sink(form, Path(self.folder) / folder, self.part.name, schema, aside)

    def _write_one(self, job: Job, folder: str, table: pa.Table) -> dict[str, int]:
        with self._sink(job, folder, "parquet", table.schema) as sink:
            for start in range(0, max(table.num_rows, 1), LEDGER_ROWS):
                sink.write(table.slice(start, LEDGER_ROWS))
            return {f"{folder}/{self.part.name}.parquet": sink.close()}

    def _write_quarantined(self, job: Job, records: Sequence[dict[str, Any]]) -> dict[str, int]:
        path = Path(self.folder) / "quarantined" / f"{self.part.name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = job.store.aside(f"{self.key}-quarantined")
        aside.write_bytes(json_lines(records))
        aside.rename(path)
        return {f"quarantined/{path.name}": path.stat().st_size}

    def _witnesses(self, job: Job, fates: Fates) -> tuple[pa.Array, pa.Array]:
        """Of each row's witness the caller's id, null for none or where the data has no ids; and its place if that is outside."""
        if self.witness_ids is None:
            return pa.nulls(self.part.rows, pa.string()), pa.nulls(self.part.rows, pa.string())
        known = job.store.read(self.witness_ids)
        rows = known.column("row").to_numpy().astype(np.int64)
        at = np.searchsorted(rows, fates.witness)
        at = np.minimum(at, max(len(rows) - 1, 0))
        hit = (fates.witness >= 0) & (rows[at] == fates.witness) if len(rows) else np.zeros(self.part.rows, bool)
        known = known.combine_chunks().take(pa.array(at, mask=~hit))
        return known.column("id").combine_chunks(), known.column("source").combine_chunks()


LEDGER_ROWS = 1 << 16


def make_witnesses(parts: Sequence[Part], fates: Sequence[str]) -> Witnesses:
    """The task that collects witnesses, given the final fates of the parts."""
    starts = tuple(part.first_row for part in parts)
    return Witnesses(key_of(["witnesses", list(fates), list(starts)]), tuple(fates), starts)


def make_ids(job: Job, parts: Sequence[Part], witnesses: Witnesses) -> list[Ids]:
    """A task a part."""
    return [Ids(key_of(["ids", part.key, part.first_row, job.roles.id, witnesses.key]), part, witnesses.key) for part in parts]


def make_witness_ids(ids: Sequence[Ids], outside: Sequence[str]) -> WitnessIds:
    """The task that joins the ids of all parts and of what is `outside`."""
    keys = tuple(task.key for task in ids)
    return WitnessIds(key_of(["witness ids", list(keys), list(outside)]), keys, tuple(outside))


def make_write(
    job: Job, part: Part, folder: Path, fates: str, columns: Sequence[str], witness_ids: str | None, choose: str
) -> Write:
    """The task that writes a part's files below `folder`, which is no part of its key."""
    place = [part.index, part.source_file, part.first_source_row, part.first_row, part.key, list(part.partition)]
    names = [[stage.name, stage.check.name] for stage in job.stages]
    key = key_of(
        [
            "write, labels counted",
            place,
            str(job.kept),
            job.output,
            fates,
            list(columns),
            witness_ids,
            choose,
            names,
            [[one.name, one.column, str(one.type)] for one in job.added],
            [list(pair) for pair in job.roles],
        ]
    )
    return Write(key, part, str(folder), fates, tuple(columns), witness_ids, choose)


def stage_names(job: Job) -> Names:
    """What the ledger calls stages, checks and rules."""
    rules = tuple(tuple((rule.column, rule.word) for rule in stage.policy.rules) for stage in job.stages)
    return Names(tuple(stage.name for stage in job.stages), tuple(stage.check.name for stage in job.stages), rules)


def kept_schema(job: Job) -> pa.Schema:
    """The input's columns, then those that stages add."""
    return pa.schema([*job.kept, *(pa.field(one.name, one.type) for one in job.added)], metadata=job.kept.metadata)


def rejected_schema(schema: pa.Schema) -> pa.Schema:
    """The input's columns, then the reasons."""
    return pa.schema([*schema, *REASONS], metadata=schema.metadata)


def scores_table(job: Job, part: Part, columns: Sequence[str]) -> pa.Table:
    """Every scalar column of every stage, one row a row; null where the cell is missing or was not asked for."""
    arrays: dict[str, pa.Array] = {"row_id": pa.array(np.arange(part.first_row, part.first_row + part.rows, dtype=np.uint64))}
    for stage, key in zip(job.stages, columns, strict=True):
        table = job.store.read(key)
        index = np.full(part.rows, -1, np.int64)
        index[table.column("position").to_numpy()] = np.arange(table.num_rows)
        at = pa.array(index, mask=index < 0)
        for column in stage.columns:
            if column.kind != "vector":
                cells = table.column(column.name).combine_chunks().take(at)
                arrays[f"{stage.name}.{column.name}"] = _inside(cells) if column.kind == "link" else cells
    return pa.table(arrays)


def id_text(column: pa.ChunkedArray) -> pa.Array:
    """The id column as strings; ids are shown as the caller wrote them."""
    return shown(column)


def _with_added(job: Job, added: Sequence[pa.Table], batch: Batch) -> Batch:
    return Batch(with_used(job.added, added, batch.table, batch.positions), batch.positions)


def _write_kept(sink: Sink, batch: Batch, mask: npt.NDArray[np.bool_], schema: pa.Schema) -> None:
    sink.write((batch.table if mask.all() else without_unused(batch.table.filter(pa.array(mask)))).cast(schema))


def _write_rejected(sink: Sink, batch: Batch, mask: npt.NDArray[np.bool_], reasons: pa.Table, schema: pa.Schema) -> None:
    if mask.any():
        rows = without_unused(batch.table.filter(pa.array(mask))).cast(schema)
        why = reasons.take(pa.array(batch.positions[mask]))
        sink.write(pa.table([*rows.columns, *why.columns], schema=rejected_schema(schema)))


def _bad_rows(part: Part, batch: Batch, mask: npt.NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Unreadable rows of Parquet read in place: each as a one-row Arrow stream, so nothing of it is lost."""
    out = []
    for index in np.flatnonzero(mask):
        sink = pa.BufferOutputStream()
        row = pa.Table.from_batches(without_unused(batch.table.slice(int(index), 1)).combine_chunks().to_batches())
        with pa.ipc.new_stream(sink, row.schema) as stream:
            stream.write_table(row)
        out.append({"position": int(batch.positions[index]), "raw": sink.getvalue().to_pybytes(), "raw_format": "arrow-stream"})
    return out


def quarantine_records(part: Part, table: pa.Table, in_place: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """The lines of `quarantined/`: place, reason and raw bytes of each unreadable row of a part."""
    raw_of = {record["position"]: record["raw"] for record in in_place}
    records = []
    for row in table.to_pylist():
        raw = raw_of.get(row["position"], row["raw"] or b"")
        is_table = row["position"] in raw_of or part.source_file == MEMORY_NAME
        records.append(
            {
                "row_id": part.first_row + row["position"],
                "source_file": part.source_file,
                "source_row": part.first_source_row + row["position"],
                "line": None if row["line"] is None or is_table else part.first_line + row["line"],
                "offset": row["offset"],
                "reason": row["reason"],
                "raw": base64.b64encode(raw[:RAW_BYTES]).decode(),
                "raw_format": "arrow-stream" if is_table else "bytes",
                "raw_truncated": len(raw) >= RAW_BYTES,  # readers cut at just this length
            }
        )
    return records


def _inside(links: pa.Array) -> pa.Array:
    """Links to rows of the input; null for one to a row from outside, which the ledger names by its place."""
    return pa.compute.if_else(pa.compute.less(links, OUTSIDE), links, None)


def _scatter(pieces: list[pa.Array], places: list[npt.NDArray[np.int64]], rows: int) -> pa.Array:
    if not pieces:
        return pa.nulls(rows, pa.string())
    index = np.full(rows, -1, np.int64)
    index[np.concatenate(places)] = np.arange(sum(len(piece) for piece in pieces))
    return pa.concat_arrays(pieces).take(pa.array(index, mask=index < 0))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1
