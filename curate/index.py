"""The index of accepted rows that near_dup keeps from run to run: what a new batch is compared with, at a cost near the batch's.

    INDEX/
      index.json        format, identity, batches, segments with their sizes and digests; written last
      segments/*.rows   rows in the order of addition (see `segment.py`)
      segments/*.dead   the numbers of the deleted rows of a segment: ascending, 8 bytes each
      lock  aside/      the writer, and what it has not finished

Everything is written aside, flushed and renamed, and `index.json` last: after a kill at any moment the index is the old or
the new one, and the next writer removes what was left. Readers hold no lock: they open the segments that one `index.json` names,
and those stay readable when a writer drops them. No file is ever written twice under one name with other contents.

A batch is a segment. Four neighbours of a size class (powers of four) are merged into one as soon as they are there, so an
index of N batches has about 3 log4(N) segments to search, and a row is rewritten about log4(N) times.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from curate.errors import BusyError, RequestError, TemporaryError
from curate.hashing import key_of
from curate.keyfile import U32s, U64s
from curate.segment import Record, Segment, hash_of, is_live, merge_segments, write_segment
from curate.snapshot import FORMAT, as_stored, files_of, open_snapshot, read_document
from curate.store import flush, write_json

MERGED_AT = 4
"""neighbouring segments of one size class, itself a power of this many rows"""


class Index:
    """The rows accepted so far, numbered in the order of addition; a deleted one keeps its number until segments are merged.

    A number is good until the next `add`, `delete` or `compact` of this object. What other processes write is not seen: `state`
    names what is. To be opened in each process; that takes milliseconds.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any] | None) -> None:
        self.folder = folder
        self._identity = None if identity is None else as_stored(identity)
        self._at = open_snapshot(self.folder, self._identity)

    @staticmethod
    def open(folder: Path, identity: Mapping[str, Any] | None) -> Index:
        """The index in a folder, an empty one where there is none; nothing is made on disk before `add`.

        `identity`: whatever decides keys and shingles, as plain JSON; None takes what is stored. Raises `RequestError` where
        the stored identity differs, the format is another one, or the folder holds something else, and `InputError` where
        the index is damaged.
        """
        return Index(folder, identity)

    @property
    def rows(self) -> int:
        """Rows that are not deleted."""
        return sum(segment.rows - len(segment.dead) for segment in self._at.segments)

    @property
    def state(self) -> str:
        """A digest of what this object shows: equal for equal contents in equal segments; empty where nothing is stored."""
        return self._at.state

    def facts(self) -> dict[str, Any]:
        """Rows, deleted rows still on disk, batches, segments, bytes and identity."""
        segments, document = self._at.segments, self._at.document
        return {
            "rows": self.rows,
            "deleted_rows": sum(len(segment.dead) for segment in segments),
            "batches": len(document["batches"]),
            "segments": len(segments),
            "bytes": sum(segment.facts["bytes"] for segment in segments),
            "identity": document["identity"],
        }

    def lookup(self, keys: U64s, limit: int | None = None) -> pa.Table:
        """The entries that have any of these band keys: `key` and `entry` (uint64), by key, then by entry.

        `keys` ascends, each once. `limit`: the first so many entries a key, for keys that very many rows share.
        *Cost*: in each segment a search of the fences and at most a block of 6 KiB a key.
        """
        found = [
            self._of_segment(segment, base, keys, limit)
            for segment, base in zip(self._at.segments, self._at.bases[:-1].tolist(), strict=True)
        ]
        key = np.concatenate([np.empty(0, np.uint64), *(some for some, _ in found)])
        entry = np.concatenate([np.empty(0, np.uint64), *(some for _, some in found)])
        order = np.argsort(key, kind="stable")
        key, entry = key[order], entry[order]
        if limit is not None:
            rank = np.arange(len(key)) - np.searchsorted(key, key, "left")
            key, entry = key[rank < limit], entry[rank < limit]
        return pa.table({"key": key, "entry": entry})

    def read(self, entries: U64s) -> pa.Table:
        """Rows as they were added, ascending by `entry`, each once; numbers that are no live row's are left out.

        Columns `entry`, `id` (null where there was none), `source`, `source_row`, `content`, `shingles`. *Cost*: the records of
        these rows and no others; all are in memory, so ask for as many as fit.
        """
        return self._records(entries, with_shingles=True)

    def find(self, contents: U64s) -> pa.Table:
        """The rows that have one of these content hashes, ascending by `entry`: as `read`, without their shingles."""
        wanted = np.unique(contents)
        entries = [
            _live_places(segment, segment.keys["contents"].search(wanted)[1]) + np.uint64(base)
            for segment, base in zip(self._at.segments, self._at.bases[:-1].tolist(), strict=True)
        ]
        return self._records(np.concatenate([np.empty(0, np.uint64), *entries]), with_shingles=False)

    def add(self, name: str, entries: Iterable[pa.Table], *, after: str | None = None) -> bool:
        """Append a batch; False, and nothing is changed, where one of this name (its digest) was added at any time before.

        *Shapes*: columns `id`, `source`, `source_row`, `content`, `keys` and `shingles` (lists of uint64, shingles ascending).
        *Memory*: one table, 24 bytes a row, and 250 MB of keys; more keys are sorted on disk. *Raises* `BusyError` when
        another writer is at work, and `TemporaryError` when the index is not in the state `after`: the batch was compared
        with less than all.
        """
        with self._writing():
            if name in self._at.document["batches"]:
                return False
            if after is not None and after != self.state:
                raise TemporaryError(
                    "the index changed while the batch was compared with it",
                    place=str(self.folder),
                    hint="run the same command again",
                )
            stem = key_of(["batch", name])
            facts = write_segment(self._aside(f"{stem}.rows"), entries)
            self._publish([*self._at.document["segments"], *self._finished(stem, facts)], name)
            while (start := _crowd([segment.rows for segment in self._at.segments])) is not None:
                self._merge(start)
            return True

    def delete(self, ids: Iterable[str]) -> int:
        """Let no row with one of these ids be seen any more; gives how many there were. `compact` takes them off the disk."""
        if not (self.folder / "index.json").exists():
            return 0
        wanted = set(ids)
        hashes = np.unique(np.array([hash_of(text) for text in wanted], np.uint64))
        with self._writing():
            entries, deleted = [], 0
            for segment, entry in zip(self._at.segments, self._at.document["segments"], strict=True):
                rows = np.unique(_live_places(segment, segment.keys["ids"].search(hashes)[1]))
                named = [record.id in wanted for record in segment.records(rows, with_shingles=False)]
                rows = rows[np.array(named, bool)]
                deleted += len(rows)
                entries.append({**entry, "dead": self._buried(segment, rows)} if len(rows) else entry)
            if deleted:
                self._publish(entries)
            return deleted

    def compact(self) -> None:
        """Write all rows that are not deleted into one segment, in their order. Needs as much free disk as they take."""
        if not (self.folder / "index.json").exists():
            return
        with self._writing():
            if len(self._at.segments) > 1 or any(len(segment.dead) for segment in self._at.segments):
                self._merge(0)

    def _of_segment(self, segment: Segment, base: int, keys: U64s, limit: int | None) -> tuple[U64s, U64s]:
        key, places = segment.keys["keys"].search(keys, None if limit is None else limit + len(segment.dead))
        live = is_live(places.astype(np.uint64), segment.dead)
        return key[live], places[live].astype(np.uint64) + np.uint64(base)

    def _records(self, entries: U64s, *, with_shingles: bool) -> pa.Table:
        bases = self._at.bases
        entries = np.unique(entries).astype(np.uint64)
        cuts = np.searchsorted(entries, bases.astype(np.uint64))
        numbers, records = [np.empty(0, np.uint64)], list[Record]()
        for segment, base, start, stop in zip(self._at.segments, bases[:-1].tolist(), cuts[:-1], cuts[1:], strict=True):
            rows = entries[start:stop] - np.uint64(base)
            rows = rows[is_live(rows, segment.dead)]
            numbers.append(rows + np.uint64(base))
            records += segment.records(rows, with_shingles=with_shingles)
        columns = {
            "entry": pa.array(np.concatenate(numbers)),
            "id": pa.array([record.id for record in records], pa.large_string()),
            "source": pa.array([record.source for record in records], pa.large_string()),
            "source_row": pa.array([record.source_row for record in records], pa.uint64()),
            "content": pa.array([record.content for record in records], pa.uint64()),
        }
        if with_shingles:
            offsets = np.cumsum([0, *(len(record.shingles) // 8 for record in records)])
            values = np.frombuffer(b"".join(record.shingles for record in records), "<u8")
            columns["shingles"] = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values, pa.uint64()))
        return pa.table(columns)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the index for one writer, see what the last one left, and remove what a killed one did."""
        (self.folder / "segments").mkdir(parents=True, exist_ok=True)
        (self.folder / "aside").mkdir(exist_ok=True)
        with (self.folder / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as err:
                lock.seek(0)
                raise BusyError(
                    f"another run (process {lock.read().strip() or 'unknown'}) is writing this index",
                    place=str(self.folder),
                    hint="wait for it, and run the same command again",
                ) from err
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            if read_document(self.folder, self._identity)[1] != self.state:
                self._at = open_snapshot(self.folder, self._identity)
            self._tidy()
            yield

    def _tidy(self) -> None:
        """Remove files that `index.json` does not name."""
        named = {name for entry in self._at.document["segments"] for name in files_of(entry)}
        for path in [*(self.folder / "aside").iterdir(), *(self.folder / "segments").iterdir()]:
            if path.parent.name == "aside" or path.name not in named:
                path.unlink()

    def _aside(self, name: str) -> Path:
        return self.folder / "aside" / name

    def _finished(self, stem: str, facts: dict[str, Any]) -> list[dict[str, Any]]:
        """Give a written segment its name; none at all for one without rows."""
        if not facts["rows"]:
            return []
        self._rename(f"{stem}.rows")
        return [{"name": stem, **facts, "dead": None}]

    def _rename(self, name: str) -> None:
        os.replace(self._aside(name), self.folder / "segments" / name)
        _sync(self.folder / "segments")

    def _buried(self, segment: Segment, rows: U64s) -> dict[str, Any]:
        """Publish the dead rows of a segment, with those that died before."""
        data = np.union1d(segment.dead, rows).astype("<u8").tobytes()
        digest = xxhash.xxh3_128_hexdigest(data)
        name = f"{segment.file.path.stem}-{digest[:16]}.dead"
        with self._aside(name).open("wb") as file:
            file.write(data)
            flush(file)
        self._rename(name)
        return {"name": name, "digest": digest}

    def _merge(self, start: int) -> None:
        """Make one segment of all from one on."""
        kept, merged = self._at.document["segments"][:start], self._at.document["segments"][start:]
        stem = key_of(["merged", [files_of(entry) for entry in merged]])
        facts = merge_segments(self._aside(f"{stem}.rows"), self._at.segments[start:])
        self._publish([*kept, *self._finished(stem, facts)])

    def _publish(self, segments: Sequence[Mapping[str, Any]], batch: str | None = None) -> None:
        """Write `index.json`, the moment at which the index is the new one, and show that."""
        document = {
            "format": FORMAT,
            "identity": self._at.document["identity"] if self._identity is None else self._identity,
            "batches": [*self._at.document["batches"], *([] if batch is None else [batch])],
            "segments": list(segments),
        }
        write_json(self.folder / "index.json", {**document, "seal": key_of(document)}, self._aside("index.json"))
        _sync(self.folder)
        self._at = open_snapshot(self.folder, self._identity)
        self._tidy()


def index(folder: str | Path, delete: str | Path | None = None, compact: bool = False) -> dict[str, Any]:
    """What an index holds, after ids were deleted (`delete`: a file, an id a line) and it was compacted, where asked.

    Raises `RequestError` where there is no index or no such file, `InputError`, `BusyError`.
    """
    opened = Index.open(Path(folder), None)
    deleted = 0 if delete is None else opened.delete(_ids(Path(delete)))
    if compact:
        opened.compact()
    return {"path": str(folder), "deleted": deleted, **opened.facts()}


def _ids(path: Path) -> list[str]:
    """The lines of a file; lines that are empty name no row."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as err:
        raise RequestError("there is no such file of ids", place=str(path), hint="give a file with an id a line") from err
    except UnicodeDecodeError as err:
        raise RequestError("the file of ids is not UTF-8", place=str(path), hint="give a text file with an id a line") from err
    return [line for line in (line.removesuffix("\r") for line in text.split("\n")) if line]


def _live_places(segment: Segment, places: U32s) -> U64s:
    rows = places.astype(np.uint64)
    return rows[is_live(rows, segment.dead)]


def _crowd(sizes: Sequence[int]) -> int | None:
    """From which segment on all should be one: four of a size class, or smaller ones before a larger; None when it is well."""
    classes = [(max(size, 1).bit_length() - 1) // (MERGED_AT.bit_length() - 1) for size in sizes]
    start = len(classes) - 1
    while start > 0 and classes[start - 1] < classes[-1]:
        start -= 1
    if start < len(classes) - 1:
        return start
    alike = MERGED_AT if len(classes) >= MERGED_AT and len(set(classes[-MERGED_AT:])) == 1 else 0
    return len(classes) - alike if alike else None


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
