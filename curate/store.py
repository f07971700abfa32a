"""The run's private store: results of tasks under content-addressed keys, published by rename.

An artefact is one file of *segments*, each a self-contained Arrow stream with its own digest,
and a receipt beside it that says where the segments lie, under a digest of its own. The receipt is
written last: what has a receipt is finished. A segment is checked against its digest whenever it is read; a damaged
artefact is forgotten and made anew. So nothing here is forced to the disk, as published files
are: what a power cut damages is noticed, and two flushes an artefact cost a run of small files
more than its work.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from curate.errors import TemporaryError
from curate.hashing import key_of

Receipt = dict[str, Any]
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PLAIN = pa.ipc.IpcWriteOptions()
_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


class DamagedError(TemporaryError):
    """A stored intermediate is not what was written; it was dropped and will be made again."""


class Store:
    """Artefacts below `root`; safe for several processes and threads, since a publish is one rename."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def has(self, key: str) -> bool:
        """Whether the artefact is finished and its file has the length it was published with."""
        receipt = self.receipt(key)
        if receipt is None:
            return False
        path = self._path(key)
        return path.exists() and path.stat().st_size == receipt["bytes"]

    def receipt(self, key: str) -> Receipt | None:
        """What was published under a key; None where nothing was, or where the receipt is not as it was written."""
        try:
            receipt = json.loads(self._path(key, ".json").read_bytes())
            seal = receipt.pop("seal")
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return dict(receipt) if seal == key_of(receipt) else None

    def facts(self, key: str) -> dict[str, Any]:
        """What the task said of its result; the artefact must exist."""
        receipt = self.receipt(key)
        if receipt is None:
            raise DamagedError(f"the stored result {key} has no receipt", hint="run the same command again")
        return dict(receipt["facts"])

    def read(self, key: str, segment: int = 0) -> pa.Table:
        """One segment, verified. Raises `DamagedError` after dropping an artefact that fails its digest."""
        receipt = self.receipt(key)
        if receipt is None or not 0 <= segment < len(receipt["segments"]):
            raise DamagedError(f"the stored result {key} is gone", hint="run the same command again")
        offset, length, digest = receipt["segments"][segment]
        try:
            with self._path(key).open("rb") as file:
                file.seek(offset)
                data = file.read(length)
        except FileNotFoundError:
            data = b""
        if len(data) != length or xxhash.xxh3_128_hexdigest(data) != digest:
            self.drop(key)
            raise DamagedError(f"the stored result {key} was damaged on disk", hint="run the same command again: it is made anew")
        return pa.ipc.open_stream(pa.py_buffer(data)).read_all()

    def rename(self, old: str, new: str) -> None:
        """Give a finished artefact the key its contents turned out to have."""
        self._path(new).parent.mkdir(parents=True, exist_ok=True)
        self._path(old).rename(self._path(new))
        self._path(old, ".json").rename(self._path(new, ".json"))

    def drop(self, key: str) -> None:
        for suffix in (".json", ".arrow"):
            self._path(key, suffix).unlink(missing_ok=True)

    @contextmanager
    def writer(self, key: str, *, compress: bool = False) -> Iterator[Writer]:
        """Write segments, then `finish`; without `finish` nothing is published."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.aside(f"{key}.arrow")
        with aside.open("wb") as file:
            writer = Writer(file, _LZ4 if compress else _PLAIN)
            yield writer
        if writer.facts is None:
            aside.unlink()
            return
        aside.rename(path)
        receipt = {"bytes": writer.offset, "segments": writer.segments, "facts": writer.facts}
        aside = self.aside(f"{key}.json")
        write_json(self._path(key, ".json"), {**receipt, "seal": key_of(receipt)}, aside, durable=False)

    def put(self, key: str, tables: Sequence[pa.Table], facts: dict[str, Any] | None = None) -> None:
        """Publish small tables, one a segment, as one artefact."""
        with self.writer(key) as writer:
            for table in tables:
                writer.add(table)
            writer.finish(facts or {})

    def keep_only(self, keys: set[str]) -> None:
        """Drop every other artefact: a nightly run in one folder would keep all nights for ever."""
        for path in (self.root / "store").glob("*/*"):
            if path.stem not in keys:
                path.unlink(missing_ok=True)

    def aside(self, name: str) -> Path:
        """A place for a file that is not finished; `clean` empties it."""
        folder = self.root / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{os.getpid()}-{threading.get_ident()}-{name}"

    def clean(self) -> None:
        """Drop what a killed run left half-written. Only the holder of the run's lock may call this."""
        shutil.rmtree(self.root / "tmp", ignore_errors=True)

    def _path(self, key: str, suffix: str = ".arrow") -> Path:
        return self.root / "store" / key[:2] / f"{key}{suffix}"


class Writer:
    """Adds segments to an artefact that is being written."""

    def __init__(self, file: Any, options: pa.ipc.IpcWriteOptions) -> None:
        self._file, self._options = file, options
        self.segments: list[tuple[int, int, str]] = []
        self.offset = 0
        self.facts: dict[str, Any] | None = None

    def add(self, table: pa.Table | pa.RecordBatch) -> int:
        """Append one table as a segment and return the segment's number."""
        sink = _Digested(self._file)
        with pa.ipc.new_stream(pa.PythonFile(sink, "w"), table.schema, options=self._options) as stream:
            stream.write(table)
        self.segments.append((self.offset, sink.size, sink.digest.hexdigest()))
        self.offset += sink.size
        return len(self.segments) - 1

    def finish(self, facts: dict[str, Any]) -> None:
        self.facts = facts


class _Digested:
    """A file that also digests what is written to it: large tables go through without a copy of them in memory."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.digest, self.size = xxhash.xxh3_128(), 0

    def write(self, data: Any) -> None:
        view = memoryview(data)
        self.digest.update(view)
        self._file.write(view)
        self.size += view.nbytes

    def flush(self) -> None:
        """What is buffered is written when the file is closed."""

    def close(self) -> None:
        """The file goes on with the next segment."""


def flush(file: Any) -> None:
    """Everything written so far is on the disk when this returns."""
    file.flush()
    os.fsync(file.fileno())


def write_json(path: Path, value: Any, aside: Path | None = None, *, durable: bool = True) -> None:
    """Publish a JSON document by writing it aside and renaming; `durable`: it is on the disk before it has its name."""
    aside = aside or path.with_name(f".{path.name}.tmp")
    with aside.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1, allow_nan=False)
        file.write("\n")
        if durable:
            flush(file)
    aside.rename(path)


def write_text(path: Path, text: str, aside: Path | None = None) -> None:
    """Publish a text in the same way."""
    aside = aside or path.with_name(f".{path.name}.tmp")
    with aside.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        flush(file)
    aside.rename(path)


def is_disk_full(err: BaseException) -> bool:
    """Whether an error, or what caused it, is the end of the disk, of a quota or of the file size that is allowed."""
    cause: BaseException | None = err
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in DISK_FULL:
            return True
        if "No space left on device" in str(cause):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
