"""Bytes into whole lines: blocks that end at a line break, and the lines too long to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from curate.source.chunk import CHUNK_BYTES, RAW_BYTES, Counter, Piece
from curate.source.options import ReadOptions
from curate.source.stream import ByteStream

BOM = b"\xef\xbb\xbf"
CUT = "the file is cut short inside this row"

Placed = Iterable[tuple[int, bytes]]
"""runs of bytes, each with its offset in the decoded file"""


@dataclass(frozen=True)
class Block:
    """Whole lines; only a file's very last one may lack its line break. `offset` is where they begin in the file."""

    data: bytes
    offset: int

    def lines(self) -> list[bytes]:
        """The physical lines without their line feeds."""
        lines = self.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        return lines


@dataclass(frozen=True)
class Skipped:
    """One line that is not held: its first 64 KiB, its place and why."""

    raw: bytes
    offset: int
    reason: str


def blocks_of(piece: Piece, options: ReadOptions, counter: Counter, block_bytes: int = CHUNK_BYTES) -> Iterator[Block | Skipped]:
    """The lines that start inside a piece, in order; together the pieces of a file give every line once."""
    whole = piece.start == 0 and piece.stop >= piece.file.size
    stream = ByteStream(piece.file, options, counter, start=max(piece.start - 1, 0))
    placed: Placed = _placed(stream) if whole else _owned(stream, piece.start, piece.stop)
    if piece.start == 0:
        placed = _without_bom(placed)
    return split(placed, options.row_bytes, block_bytes, lambda: stream.truncated)


def split(placed: Placed, row_bytes: int, block_bytes: int, is_cut: Callable[[], bool]) -> Iterator[Block | Skipped]:
    """Blocks of about `block_bytes`; a line that outgrows `row_bytes` is passed over without holding it.

    `is_cut` is asked at the end: true makes the last line, if it has no line break, a `Skipped`.
    """
    too_long = f"the row is longer than {row_bytes} bytes"
    buffer, offset, whole = bytearray(), 0, 0  # `whole`: bytes of `buffer` up to its last line break
    skipping: Skipped | None = None
    for at, run in placed:
        data = run
        if skipping:
            found = data.find(b"\n")
            if found < 0:
                continue
            yield skipping
            skipping, data, at = None, data[found + 1 :], at + found + 1
        if not buffer:
            offset = at
        last = data.rfind(b"\n")
        whole = len(buffer) + last + 1 if last >= 0 else whole
        buffer += data
        if len(buffer) < block_bytes:
            continue
        if whole:
            yield Block(_front(buffer, whole), offset)
            del buffer[:whole]
            offset, whole = offset + whole, 0
        if len(buffer) > row_bytes:
            skipping = Skipped(_front(buffer, min(row_bytes, RAW_BYTES)), offset, too_long)
            buffer.clear()
    if skipping:
        yield skipping
    if is_cut():
        if whole:
            yield Block(_front(buffer, whole), offset)
        if len(buffer) > whole:
            yield Skipped(bytes(buffer[whole : whole + RAW_BYTES]), offset + whole, CUT)
    elif buffer:
        yield Block(bytes(buffer), offset)


def _front(buffer: bytearray, size: int) -> bytes:
    with memoryview(buffer) as view:
        return bytes(view[:size])


def _placed(stream: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    at = 0
    for block in stream:
        yield at, block
        at += len(block)


def _owned(stream: Iterable[bytes], start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """The bytes of the lines that start in `[start, stop)`, out of a stream that begins one byte before `start`.

    The byte before tells whether a line starts at `start` itself; the last line is followed
    beyond `stop` to its end.
    """
    at, inside = max(start - 1, 0), start == 0
    for block in stream:
        first = 0
        if not inside:
            first = block.find(b"\n") + 1
            inside = first > 0
            if at + (first or len(block)) >= stop:
                return
            if not inside:
                at += len(block)
                continue
        end = block.find(b"\n", max(stop - 1 - at, first)) + 1
        if end or first < len(block):
            yield at + first, block[first : end or None]
        if end:
            return
        at += len(block)


def _without_bom(placed: Placed) -> Iterator[tuple[int, bytes]]:
    """A byte order mark at the very start is no part of the first line."""
    head, rest = b"", iter(placed)
    for _, block in rest:
        head += block
        if len(head) >= len(BOM):
            break
    mark = len(BOM) if head.startswith(BOM) else 0
    if len(head) > mark:
        yield mark, head[mark:]
    yield from rest
