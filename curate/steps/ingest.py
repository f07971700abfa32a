"""Decode one piece of input that is not local Parquet into the store, once.

Every chunk becomes three segments: the rows, their positions, and the records that could not be
read. The receipt says how many records and lines each chunk covered, which is all the plan needs
to lay the parts end to end.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curate.hashing import key_of
from curate.meter import Meter
from curate.source.ingest import Chunk, Counter, Piece, ingest
from curate.steps.base import Job, StoredTask
from curate.steps.unreadable import UNREADABLE

STEP = "ingest"
SEGMENTS = 3
"""segments a chunk"""


@dataclass(frozen=True)
class Ingest(StoredTask):
    """All chunks of one piece. Facts: per chunk its records, lines, casts, size and schema."""

    piece: Piece
    schema: pa.Schema | None

    def run(self, job: Job) -> None:
        meter, counter = Meter(), Counter()
        chunks = ingest(self.piece, job.read, self.schema, counter)
        store_chunks(job, self.key, chunks, meter, counter)


def make_ingest(job: Job, piece: Piece, schema: pa.Schema | None) -> Ingest:
    """The task that decodes a piece: under types it finds itself, or under a schema already decided."""
    file = piece.file
    what = [
        file.digest,
        file.name,
        file.format,
        file.compression,
        [list(pair) for pair in file.partition],
        piece.start,
        piece.stop,
    ]
    form = None if schema is None else schema_text(schema)
    return Ingest(key_of(["ingest", 1, what, repr(job.read), form]), piece, schema)


def store_chunks(job: Job, key: str, chunks: Iterable[Chunk], meter: Meter, counter: Counter) -> None:
    """Publish chunks, as they come, as one artefact."""
    facts: list[dict[str, Any]] = []
    records = lines = 0
    with job.store.writer(key, compress=True) as writer:
        for chunk in chunks:
            with meter.seconds("write", STEP):
                writer.add(chunk.rows)
                writer.add(pa.table({"position": chunk.positions - records}))
                writer.add(_unreadable(chunk, records, lines))
            facts.append(
                {
                    "records": chunk.records,
                    "rows": chunk.rows.num_rows,
                    "lines": chunk.lines,
                    "casts": list(chunk.casts),
                    "schema": schema_text(chunk.rows.schema),
                    "bytes": chunk.rows.nbytes,
                    "reasons": [bad.reason for bad in chunk.quarantined[:3]],
                    "bad": len(chunk.quarantined),
                }
            )
            records, lines = records + chunk.records, lines + chunk.lines
        meter.add(STEP, bytes_read=counter.bytes_read, read_s=counter.read_s, decode_s=counter.decode_s)
        meter.add(STEP, bytes_written=writer.offset, rows=sum(fact["records"] for fact in facts))
        writer.finish({"chunks": facts, "bill": meter.total(STEP)})


def schema_text(schema: pa.Schema) -> str:
    """A schema as text for a receipt."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_of(text: str) -> pa.Schema:
    """The schema that `schema_text` wrote."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _unreadable(chunk: Chunk, records: int, lines: int) -> pa.Table:
    """The quarantined records of a chunk; positions and lines count from the chunk's start."""
    bad = chunk.quarantined
    return pa.table(
        {
            "position": pa.array([one.position - records for one in bad], pa.int64()),
            "line": pa.array([one.line - lines for one in bad], pa.int64()),
            "offset": pa.array([one.offset for one in bad], pa.int64()),
            "reason": pa.array([one.reason for one in bad], pa.string()),
            "raw": pa.array([one.raw for one in bad], pa.binary()),
        },
        schema=UNREADABLE,
    )
