"""A segment of the index of accepted rows: one file with the records of its rows and three key files over them.

The sections of the file, each at a multiple of 64 bytes:

| section    | holds                                                                                               |
|------------|-----------------------------------------------------------------------------------------------------|
| `records`  | a record a row, in the order of addition: head, id, source, zeros up to 8 bytes, shingles           |
| `ends`     | where each record begins and, last, where the last one ends, 8 bytes each                           |
| `keys`     | band keys, as a key file (`keyfile.py`) whose places are row numbers; `contents`, `ids` (hashed) too |
| `*_fences` | the fences of each key file                                                                         |

A head is 48 bytes, little-endian: digest of the rest of the head, the id and the source; digest of the shingles; source
row; content hash; number of shingles; bytes of the id (-1: null); bytes of the source; zero. So whatever is read is
verified, and what is not read costs nothing. Lengths and the digests of the fences are in `index.json`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from curate.errors import RequestError
from curate.keyfile import FENCE, File, Int64s, Keys, KeyWriter, U32s, U64s, damaged, merge
from curate.store import flush

KEY_FILES = ("keys", "contents", "ids")
MOST_ROWS = 2**32 - 1
SORTED_AT_ONCE = 1 << 22
"""pairs of a key and a row that are sorted in memory, 250 MB; more are sorted run by run on disk and merged"""
COPIED_AT_ONCE = 1 << 23
"""bytes"""
_HEAD, _SIGNED = struct.Struct("<QQQQIiII"), 8
_REST = struct.Struct("<QQQIiII")
_SPAN = struct.Struct("<QQ")
_NULL = -1


class Record(NamedTuple):
    """A row as it was added; shingles as raw bytes, empty where they were not asked for."""

    id: str | None
    source: str
    source_row: int
    content: int
    shingles: bytes


@dataclass(frozen=True)
class Segment:
    """A segment that is open for reading; `dead` are the rows that were deleted, ascending."""

    file: File
    facts: Mapping[str, Any]
    keys: Mapping[str, Keys]
    dead: U64s

    @property
    def rows(self) -> int:
        """Rows in the file, deleted ones too."""
        return int(self.facts["rows"])

    def records(self, rows: U64s, *, with_shingles: bool) -> list[Record]:
        """Some rows, each verified. Raises `InputError` where one is not as it was written."""
        return [self._record(row, with_shingles) for row in rows.tolist()]

    def _record(self, row: int, with_shingles: bool) -> Record:
        first, size, _ = self.facts["sections"]["records"]
        begin, _, _ = self.facts["sections"]["ends"]
        start, stop = _SPAN.unpack(self.file.read(begin + 8 * row, _SPAN.size))
        if not start + _HEAD.size <= stop <= size:
            raise damaged(str(self.file.path))
        record = self.file.read(first + start, stop - start)
        digest, proof, source_row, content, count, id_size, source_size, _ = _HEAD.unpack_from(record)
        names = _HEAD.size + max(id_size, 0) + source_size
        words = names + -names % 8
        if words + 8 * count != len(record) or xxhash.xxh3_64_intdigest(record[_SIGNED:words]) != digest:
            raise damaged(str(self.file.path))
        shingles = record[words:] if with_shingles else b""
        if with_shingles and xxhash.xxh3_64_intdigest(shingles) != proof:
            raise damaged(str(self.file.path))
        cut = _HEAD.size + max(id_size, 0)
        own = None if id_size == _NULL else record[_HEAD.size : cut].decode()
        return Record(own, record[cut:names].decode(), source_row, content, shingles)

    def lengths(self) -> Int64s:
        """The bytes of every record, verified."""
        ends = np.frombuffer(section(self.file, self.facts, "ends"), "<u8")
        return ends[1:].astype(np.int64) - ends[:-1].astype(np.int64)


def open_segment(path: Path, facts: Mapping[str, Any], dead: U64s) -> Segment:
    """Open a segment. Raises `InputError` where its length or its fences are not as written, and `FileNotFoundError`."""
    file = File(path)
    if file.size != facts["bytes"]:
        raise damaged(str(path))
    keys = {}
    for name in KEY_FILES:
        start, _, count = facts["sections"][name]
        keys[name] = Keys(file, start, count, np.frombuffer(section(file, facts, f"{name}_fences"), FENCE))
    return Segment(file, facts, keys, dead)


def section(file: File, facts: Mapping[str, Any], name: str) -> bytes:
    """A whole section that has a digest, verified."""
    start, size, digest = facts["sections"][name]
    data = file.read(start, size)
    if xxhash.xxh3_128_hexdigest(data) != digest:
        raise damaged(str(file.path))
    return data


def write_segment(path: Path, tables: Iterable[pa.Table]) -> dict[str, Any]:
    """Write rows as a segment, flushed to the disk; gives its facts. Memory: a table, 8 bytes a row, and `SORTED_AT_ONCE`."""
    with path.open("wb") as file:
        out, lengths = _Sections(file), []
        runs = {name: _Runs(path.with_suffix(f".{name}")) for name in KEY_FILES}
        rows = 0
        for table in tables:
            if rows + table.num_rows > MOST_ROWS:
                raise RequestError(f"a batch of more than {MOST_ROWS:,} rows", hint="add it in several batches")
            batch = _Batch.of(table)
            packed, sizes = batch.pack()
            file.write(packed)
            lengths.append(sizes)
            places = np.arange(rows, rows + table.num_rows, dtype=np.uint32)
            runs["keys"].add(*batch.pairs(places))
            runs["contents"].add(batch.contents, places)
            runs["ids"].add(*batch.hashed_ids(places))
            rows += table.num_rows
        out.end("records", None)
        out.write("ends", _ends(lengths))
        for name in KEY_FILES:
            out.key_file(name, runs[name].write)
        return out.finish(rows)


def merge_segments(path: Path, segments: Sequence[Segment]) -> dict[str, Any]:
    """Write the live rows of several segments as one, in their order; memory as in `write_segment`.

    Records are copied as they are: one that is damaged stays one that is noticed when it is read.
    """
    with path.open("wb") as file:
        out, lengths = _Sections(file), []
        for segment in segments:
            sizes = segment.lengths()
            for start, stop in _live_runs(sizes, segment.dead):
                for piece in _pieces(segment, start, stop):
                    file.write(piece)
            lengths.append(np.delete(sizes, segment.dead.astype(np.int64)))
        out.end("records", None)
        out.write("ends", _ends(lengths))
        bases = np.cumsum([0, *(len(some) for some in lengths)]).tolist()
        changes = [_renumbering(segment.dead, base) for segment, base in zip(segments, bases[:-1], strict=True)]
        for name in KEY_FILES:
            files = [segment.keys[name] for segment in segments]
            out.key_file(name, lambda to, files=files: merge(files, changes, to))  # type: ignore[misc]
        return out.finish(bases[-1])


def _ends(lengths: Sequence[Int64s]) -> U64s:
    """Where each record begins, and where the last one ends."""
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths])).astype("<u8")


def _live_runs(sizes: Int64s, dead: U64s) -> Iterator[tuple[int, int]]:
    """Where live rows lie together: from the first byte of their records to the last."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    starts, stops = [0, *(dead + np.uint64(1)).tolist()], [*dead.tolist(), len(sizes)]
    for start, stop in zip(starts, stops, strict=True):
        if stop > start:
            yield int(ends[start]), int(ends[stop])


def _pieces(segment: Segment, start: int, stop: int) -> Iterator[bytes]:
    first, _, _ = segment.facts["sections"]["records"]
    for at in range(start, stop, COPIED_AT_ONCE):
        yield segment.file.read(first + at, min(stop - at, COPIED_AT_ONCE))


def _renumbering(dead: U64s, base: int) -> Callable[[U32s], tuple[npt.NDArray[np.bool_], U32s]]:
    def change(places: U32s) -> tuple[npt.NDArray[np.bool_], U32s]:
        stays = is_live(places.astype(np.uint64), dead)
        left = places[stays].astype(np.int64)
        return stays, (left + base - np.searchsorted(dead, left.astype(np.uint64))).astype(np.uint32)

    return change


def is_live(rows: U64s, dead: U64s) -> npt.NDArray[np.bool_]:
    """Which of some rows are not in the ascending list of dead ones."""
    if not len(dead):
        return np.ones(len(rows), bool)
    at = np.minimum(np.searchsorted(dead, rows), len(dead) - 1)
    return np.asarray(dead[at] != rows)


class _Sections:
    """The sections of a segment that is being written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._start = file, 0
        self._sections: dict[str, tuple[int, int, Any]] = {}

    def end(self, name: str, note: Any) -> None:
        """Name what was written since the last section; the next one begins at a multiple of 64 bytes."""
        stop = self._file.tell()
        self._sections[name] = (self._start, stop - self._start, note)
        self._file.write(b"\0" * (-stop % 64))
        self._start = stop + -stop % 64

    def write(self, name: str, array: npt.NDArray[Any]) -> None:
        """A section that is at hand, with its digest."""
        data = array.tobytes()
        self._file.write(data)
        self.end(name, xxhash.xxh3_128_hexdigest(data))

    def key_file(self, name: str, fill: Callable[[KeyWriter], None]) -> None:
        """A key file and its fences, with the digest of the latter."""
        writer = KeyWriter(self._file)
        fill(writer)
        fences = writer.finish()
        self.end(name, writer.count)
        self.write(f"{name}_fences", fences)

    def finish(self, rows: int) -> dict[str, Any]:
        flush(self._file)
        return {"rows": rows, "bytes": self._file.tell(), "sections": {name: list(at) for name, at in self._sections.items()}}


class _Runs:
    """Pairs of a key and a row, collected, and sorted in runs of a bounded size."""

    def __init__(self, aside: Path) -> None:
        self._aside = aside
        self._pending: list[tuple[U64s, U32s]] = []
        self._count = 0
        self._spilled: list[Path] = []
        self._fences: list[tuple[int, npt.NDArray[np.void]]] = []

    def add(self, keys: U64s, places: U32s) -> None:
        self._pending.append((keys, places))
        self._count += len(keys)
        if self._count >= SORTED_AT_ONCE:
            self._spill()

    def write(self, to: KeyWriter) -> None:
        """All pairs in the order of keys, then rows."""
        if not self._spilled:
            to.add(*self._sorted())
            return
        if self._count:
            self._spill()
        runs = [Keys(File(path), 0, *made) for path, made in zip(self._spilled, self._fences, strict=True)]
        merge(runs, [_as_they_are] * len(runs), to)
        for path in self._spilled:
            path.unlink()

    def _spill(self) -> None:
        path = self._aside.with_name(f"{self._aside.name}.{len(self._spilled)}")
        with path.open("wb") as file:
            writer = KeyWriter(file)
            writer.add(*self._sorted())
            fences = writer.finish()
        self._spilled.append(path)
        self._fences.append((writer.count, fences))

    def _sorted(self) -> tuple[U64s, U32s]:
        keys = np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in self._pending)])
        places = np.concatenate([np.empty(0, np.uint32), *(places for _, places in self._pending)])
        self._pending, self._count = [], 0
        order = np.argsort(keys, kind="stable")
        keys, places = keys[order], places[order]
        first = np.ones(len(keys), bool)
        first[1:] = (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])
        return keys[first], places[first]


def _as_they_are(places: U32s) -> tuple[npt.NDArray[np.bool_], U32s]:
    return np.ones(len(places), bool), places


@dataclass(frozen=True)
class _Batch:
    """A table of rows to add, as plain arrays."""

    ids: list[str | None]
    sources: list[str]
    source_rows: U64s
    contents: U64s
    keys: tuple[U64s, Int64s]
    shingles: tuple[U64s, Int64s]

    @staticmethod
    def of(table: pa.Table) -> _Batch:
        sources = table.column("source").cast(pa.large_string())
        return _Batch(
            table.column("id").cast(pa.large_string()).to_pylist(),
            pc.fill_null(sources, "").to_pylist(),
            _numbers(table.column("source_row")),
            _numbers(table.column("content")),
            _lists(table.column("keys")),
            _lists(table.column("shingles")),
        )

    def pairs(self, places: U32s) -> tuple[U64s, U32s]:
        keys, sizes = self.keys
        return keys, np.repeat(places, sizes)

    def hashed_ids(self, places: U32s) -> tuple[U64s, U32s]:
        """The hash and the row of every id that is not null."""
        known = np.array([text is not None for text in self.ids], bool)
        return np.array([hash_of(text) for text in self.ids if text is not None], np.uint64), places[known]

    def pack(self) -> tuple[bytes, Int64s]:
        """The records and their lengths in bytes."""
        parts: list[bytes | memoryview] = []
        lengths = np.empty(len(self.ids), np.int64)
        words, sizes = self.shingles
        data, ends = words.view(np.uint8).data, (8 * np.cumsum(sizes)).tolist()
        digest_of, start = xxhash.xxh3_64_intdigest, 0
        for row, (text, source, number, content, stop) in enumerate(
            zip(self.ids, self.sources, self.source_rows.tolist(), self.contents.tolist(), ends, strict=True)
        ):
            name, origin, shingles = (text or "").encode(), source.encode(), data[start:stop]
            head = _REST.pack(
                digest_of(shingles), number, content, len(shingles) // 8, _NULL if text is None else len(name), len(origin), 0
            )
            names = head + name + origin
            names += b"\0" * (-len(names) % 8)
            parts += (digest_of(names).to_bytes(8, "little"), names, shingles)
            lengths[row] = 8 + len(names) + len(shingles)
            start = stop
        return b"".join(parts), lengths


def hash_of(text: str) -> int:
    """What an id is looked up by."""
    return xxhash.xxh3_64_intdigest(text.encode())


def _numbers(column: pa.ChunkedArray) -> U64s:
    return np.asarray(column.cast(pa.uint64()).to_numpy(), np.uint64)


def _lists(column: pa.ChunkedArray) -> tuple[U64s, Int64s]:
    """The items of all lists, end to end, and the length of each; a null is an empty list."""
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    return np.ascontiguousarray(_numbers(pc.list_flatten(column))), sizes
