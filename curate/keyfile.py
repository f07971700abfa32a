"""Sorted 64-bit keys on disk, each with the place of the row that has it: searched, never read whole.

A key file is a run of blocks of 512 keys and their 512 places (6 KiB; the last one is padded). Its *fences*, the first key
and the digest of every block, are 16 bytes a block and held in memory, so a search reads the few blocks that may hold a
key, and each block is checked against its digest whenever it is read. Everything is little-endian and unsigned.

Keys of several files are merged by ranges of keys, in memory that does not depend on their number: hashes spread evenly,
and where one key has very many rows, its rows are what must fit.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import xxhash

from curate.errors import InputError

U64s = npt.NDArray[np.uint64]
U32s = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]

BLOCK_KEYS = 512
BLOCK = np.dtype([("keys", "<u8", BLOCK_KEYS), ("places", "<u4", BLOCK_KEYS)])
FENCE = np.dtype([("first", "<u8"), ("digest", "<u8")])
SEARCHED_AT_ONCE = 8_192
"""keys; they may lie in as many blocks, 50 MB"""
MERGED_AT_ONCE = 2_000_000
"""pairs of a key and a place; 24 bytes each and as much again to sort them"""
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)


class KeyWriter:
    """Writes pairs that come in the order of their keys."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._keys, self._places = np.empty(0, np.uint64), np.empty(0, np.uint32)
        self._fences: list[npt.NDArray[np.void]] = []
        self.count = 0

    def add(self, keys: U64s, places: U32s) -> None:
        """Append pairs; those that fill no block wait for the next ones."""
        self._keys, self._places = np.concatenate([self._keys, keys]), np.concatenate([self._places, places])
        whole = len(self._keys) // BLOCK_KEYS
        self._write(whole, whole * BLOCK_KEYS)

    def finish(self) -> npt.NDArray[np.void]:
        """Write what is left, and get the fences."""
        left = len(self._keys)
        if left:
            empty = BLOCK_KEYS - left
            self._keys = np.concatenate([self._keys, np.full(empty, _LAST)])
            self._places = np.concatenate([self._places, np.zeros(empty, np.uint32)])
            self._write(1, left)
        return np.concatenate([np.empty(0, FENCE), *self._fences])

    def _write(self, blocks: int, count: int) -> None:
        taken, made = blocks * BLOCK_KEYS, np.empty(blocks, BLOCK)
        made["keys"] = self._keys[:taken].reshape(blocks, BLOCK_KEYS)
        made["places"] = self._places[:taken].reshape(blocks, BLOCK_KEYS)
        self._keys, self._places = self._keys[taken:], self._places[taken:]
        fences = np.empty(blocks, FENCE)
        fences["first"], fences["digest"] = made["keys"][:, 0], digests(made)
        self._file.write(made.view(np.uint8).data)
        self._fences.append(fences)
        self.count += count


class File:
    """A file that is open for reading pieces of it, and is closed when nothing uses it any more.

    Not a memory map: the system maps what surrounds a piece as well (measured: 1 GB for 1,000 keys of a 2 GB index), all of
    which counts as this process's memory, and kills the process where a disk fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._handle)
        self.size = os.fstat(self._handle).st_size

    def read(self, start: int, size: int) -> bytes:
        """Exactly so many bytes. Raises `InputError` where the file is shorter."""
        data = os.pread(self._handle, size, start)
        while len(data) < size:
            more = os.pread(self._handle, size - len(data), start + len(data))
            if not more:
                raise damaged(str(self.path))
            data += more
        return data


class Keys:
    """A key file to search, which begins somewhere in a file: the number of its pairs and its fences."""

    def __init__(self, file: File, start: int, count: int, fences: npt.NDArray[np.void]) -> None:
        self._file, self._start, self.count = file, start, count
        self._first, self._digests = np.ascontiguousarray(fences["first"]), np.ascontiguousarray(fences["digest"])

    def search(self, wanted: U64s, most: int | None = None) -> tuple[U64s, U32s]:
        """The pairs of these keys, in order; `wanted` ascends, each once. `most`: the first so many pairs a key."""
        found = [
            self._search(wanted[start : start + SEARCHED_AT_ONCE], most) for start in range(0, len(wanted), SEARCHED_AT_ONCE)
        ]
        keys = np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in found)])
        return keys, np.concatenate([np.empty(0, np.uint32), *(places for _, places in found)])

    def between(self, low: np.uint64, high: np.uint64 | None) -> tuple[U64s, U32s]:
        """The pairs from one key on up to, not including, another; None is the end."""
        first, last = self._span(np.array([low], np.uint64))[0][0], len(self._first) - 1
        if high is not None:
            last = min(last, int(np.searchsorted(self._first, high, "left")) - 1)
        keys, places = self._read(np.arange(first, last + 1))
        start = np.searchsorted(keys, low, "left")
        stop = len(keys) if high is None else np.searchsorted(keys, high, "left")
        return keys[start:stop], places[start:stop]

    def cuts(self) -> U64s:
        """The first key of every block."""
        return self._first

    def _search(self, wanted: U64s, most: int | None) -> tuple[U64s, U32s]:
        if not self.count:
            return np.empty(0, np.uint64), np.empty(0, np.uint32)
        first, last = self._span(wanted)
        if most is not None:
            last = np.minimum(last, first + 1 + most // BLOCK_KEYS)
        keys, places = self._read(_touched(first, last))
        low, high = np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")
        if most is not None:
            high = np.minimum(high, low + most)
        sizes = high - low
        taken = np.repeat(low - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        return np.repeat(wanted, sizes), places[taken]

    def _span(self, wanted: U64s) -> tuple[Int64s, Int64s]:
        """The first and the last block that may hold each key."""
        first = np.maximum(np.searchsorted(self._first, wanted, "left") - 1, 0)
        return first, np.maximum(np.searchsorted(self._first, wanted, "right") - 1, 0)

    def _read(self, numbers: Int64s) -> tuple[U64s, U32s]:
        """The pairs of some blocks, in order, each block verified; neighbours are read at once."""
        edges = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
        starts, sizes = numbers[edges].tolist(), np.diff(edges, append=len(numbers)).tolist()
        at, size = self._start, BLOCK.itemsize
        data = b"".join([self._file.read(at + start * size, blocks * size) for start, blocks in zip(starts, sizes, strict=True)])
        blocks = np.frombuffer(data, BLOCK)
        if not np.array_equal(digests(blocks), self._digests[numbers]):
            raise damaged(str(self._file.path))
        keys, places = blocks["keys"].reshape(-1), blocks["places"].reshape(-1)
        padding = len(self._first) * BLOCK_KEYS - self.count
        stop = len(keys) - padding if len(numbers) and numbers[-1] == len(self._first) - 1 else len(keys)
        return keys[:stop], places[:stop]


def merge(files: Sequence[Keys], renumber: Sequence[Callable[[U32s], tuple[npt.NDArray[np.bool_], U32s]]], to: KeyWriter) -> None:
    """Write the pairs of all files in the order of their keys, and for equal keys of the files.

    `renumber` says of a file's places which stay and what they are from now on.
    """
    for low, high in _ranges(files):
        parts = [
            _renumbered(*file.between(low, high), change) for file, change in zip(files, renumber, strict=True) if file.count
        ]
        keys = np.concatenate([keys for keys, _ in parts])
        order = np.argsort(keys, kind="stable")
        to.add(keys[order], np.concatenate([places for _, places in parts])[order])


def _renumbered(keys: U64s, places: U32s, change: Callable[[U32s], tuple[npt.NDArray[np.bool_], U32s]]) -> tuple[U64s, U32s]:
    stays, places = change(places)
    return keys[stays], places


def _ranges(files: Sequence[Keys]) -> Iterator[tuple[np.uint64, np.uint64 | None]]:
    """Ranges of keys that together hold everything, each about as much as is merged at once."""
    cuts = np.sort(np.concatenate([np.empty(0, np.uint64), *(file.cuts() for file in files)]))
    cuts = np.unique(cuts[:: MERGED_AT_ONCE // BLOCK_KEYS])
    for at, low in enumerate(cuts):
        yield low, (cuts[at + 1] if at + 1 < len(cuts) else None)


def digests(blocks: npt.NDArray[np.void]) -> U64s:
    """The 64-bit digest of every block."""
    data, size = np.ascontiguousarray(blocks).view(np.uint8).data, BLOCK.itemsize
    of = xxhash.xxh3_64_intdigest
    return np.array([of(data[at : at + size]) for at in range(0, len(data), size)], np.uint64)


def _touched(first: Int64s, last: Int64s) -> Int64s:
    """The numbers of all blocks from a first to a last one, each once; both ascend."""
    low = first[0]
    edges = np.zeros(last[-1] - low + 2, np.int64)
    np.add.at(edges, first - low, 1)
    np.subtract.at(edges, last - low + 1, 1)
    return np.asarray(np.flatnonzero(np.cumsum(edges[:-1])) + low, np.int64)


def damaged(name: str) -> InputError:
    """What to say of an index file whose bytes are not those that were written."""
    return InputError(
        "the index is damaged: a file of it is not as it was written",
        place=name,
        hint="put the folder back from a copy, or delete it and build the index anew",
    )
