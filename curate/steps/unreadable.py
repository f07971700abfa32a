"""Rows that could not be read: where they are listed, for decoded parts and for Parquet in place."""

from __future__ import annotations

import pyarrow as pa

from curate.dataset import Part
from curate.hashing import key_of
from curate.meter import Meter
from curate.steps.base import Job

UNREADABLE = pa.schema(
    [("position", pa.int64()), ("line", pa.int64()), ("offset", pa.int64()), ("reason", pa.string()), ("raw", pa.binary())]
)


def unreadable_key(job: Job, part: Part) -> str:
    """Where the rows of a part that could not be read are listed, for Parquet read in place."""
    return key_of(["unreadable", part.key, list(job.texts)])


def unreadable(job: Job, part: Part) -> pa.Table:
    """The quarantined rows of a part (`UNREADABLE`); for Parquet in place, after its first scan."""
    if part.in_place:
        return job.store.read(unreadable_key(job, part))
    key, segment = part.location.split(":")
    return job.store.read(key, int(segment) + 2)


def publish_unreadable(job: Job, part: Part, bad: dict[int, str], meter: Meter, step: str) -> None:
    """List the rows (position: reason) of Parquet in place that hold bad text; `write` adds their bytes."""
    table = pa.table(
        {
            "position": sorted(bad),
            "line": pa.nulls(len(bad), pa.int64()),
            "offset": pa.nulls(len(bad), pa.int64()),
            "reason": [bad[at] for at in sorted(bad)],
            "raw": pa.nulls(len(bad), pa.binary()),
        },
        schema=UNREADABLE,
    )
    with meter.seconds("write", step):
        job.store.put(unreadable_key(job, part), [table], {"unreadable": len(bad)})
