"""The decoded bytes of one file, in bounded blocks, and the proof that the file was whole.

Decompression is our own loop over zlib and zstandard, because the ready-made readers end
quietly where a file was cut: here every member and frame must reach its own end, its
checksum included, and nothing but zero padding may follow.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from time import perf_counter
from typing import BinaryIO

import zstandard

from curate.errors import InputError
from curate.source.chunk import Counter
from curate.source.discover import SourceFile, open_raw
from curate.source.options import ReadOptions

READ_BYTES = 1 << 20
OUT_BYTES = 4 << 20
ZSTD_FEED = 8 << 10  # one call may not expand more than this times 32,768: 256 MiB
BOMB_FROM = 1 << 30
MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


class ByteStream:
    """Iterate for the decoded bytes; afterwards `truncated` says whether an allowed cut was met.

    Raises `InputError` for a corrupt stream, a cut that is not allowed by name, content that
    is not what the extension says, and an expansion beyond `max_expansion`.
    """

    def __init__(self, file: SourceFile, options: ReadOptions, counter: Counter, start: int = 0) -> None:
        self.file, self.options, self.counter, self.start = file, options, counter, start
        self.truncated = False
        self.decoded = start
        self._fed = 0

    def __iter__(self) -> Iterator[bytes]:
        with open_raw(self.file) as raw:
            if self.start:
                raw.seek(self.start)
            blocks = self._decompressed(self._raw_blocks(raw)) if self.file.compression != "none" else self._raw_blocks(raw)
            while True:
                begun = perf_counter()
                block = next(blocks, None)
                self.counter.read_s += perf_counter() - begun
                if block is None:
                    return
                self.decoded += len(block)
                self._refuse_bomb()
                yield block

    def _raw_blocks(self, raw: BinaryIO) -> Iterator[bytes]:
        first = self.start == 0
        while True:
            try:
                block = raw.read(READ_BYTES)
            except (OSError, ValueError) as err:
                raise InputError(f"`{self.file.name}` cannot be read: {err}", place=self.file.path) from err
            if first:
                self._check_magic(block)
                first = False
            if not block:
                return
            self.counter.bytes_read += len(block)
            yield block

    def _check_magic(self, head: bytes) -> None:
        wanted = self.file.compression
        # a zstd file may begin with a skippable frame: 0x184D2A50 to 0x184D2A5F
        found = next((kind for kind, magic in MAGIC.items() if head.startswith(magic)), "none")
        if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
            found = "zstd"
        if found != wanted and (head or wanted != "none"):
            if not head or (wanted != "none" and MAGIC[wanted].startswith(head)):
                return  # cut inside the magic number: the decoder says so
            is_what = "plain" if found == "none" else found
            hint = "rename the file by what it holds" if found != "none" else "the file is damaged or has the wrong name"
            raise InputError(
                f"`{self.file.name}` holds {is_what} data where {wanted} was expected", place=self.file.path, hint=hint
            )

    def _decompressed(self, raw: Iterator[bytes]) -> Iterator[bytes]:
        try:
            whole = yield from self._gunzip(raw) if self.file.compression == "gzip" else self._unzstd(raw)
        except (zlib.error, zstandard.ZstdError, MemoryError) as err:
            raise InputError(
                f"`{self.file.name}` is damaged: {err}",
                place=f"after {self.decoded} decoded bytes",
                hint="nothing of a damaged stream is trusted; restore the file",
            ) from err
        if whole:
            return
        if self.file.name not in self.options.allow_truncated:
            raise cut_short(self.file, self.decoded)
        self.truncated = True
        self.counter.truncated.add(self.file.name)

    def _gunzip(self, raw: Iterator[bytes]) -> Generator[bytes, None, bool]:
        """Members one after the other; true when the last one reached its end."""
        member, begun, ended = zlib.decompressobj(31), False, False
        for block in raw:
            data = block
            while data:
                if ended and not begun:
                    data = data.lstrip(b"\0")  # padding between and after members
                    if not data:
                        break
                begun, before = True, len(data)
                out = member.decompress(data, OUT_BYTES)
                data = member.unused_data if member.eof else member.unconsumed_tail
                self._fed += before - len(data)
                if out:
                    yield out
                while not member.eof and not data and len(out) == OUT_BYTES:
                    out = member.decompress(b"", OUT_BYTES)
                    if out:
                        yield out
                if member.eof:
                    data = member.unused_data
                    member, begun, ended = zlib.decompressobj(31), False, True
        return ended and not begun

    def _unzstd(self, raw: Iterator[bytes]) -> Generator[bytes, None, bool]:
        """Frames one after the other; true when the last one reached its end."""
        decoder = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        frame, begun, ended = decoder.decompressobj(), False, False
        for block in raw:
            for at in range(0, len(block), ZSTD_FEED):
                data = block[at : at + ZSTD_FEED]
                while data:
                    begun, before = True, len(data)
                    out = frame.decompress(data)
                    data = frame.unused_data if frame.eof else b""
                    self._fed += before - len(data)
                    for first in range(0, len(out), OUT_BYTES):
                        yield out[first : first + OUT_BYTES]
                    if frame.eof:
                        frame, begun, ended = decoder.decompressobj(), False, True
        return ended and not begun

    def _refuse_bomb(self) -> None:
        if self.file.compression == "none" or self.decoded <= BOMB_FROM:
            return
        if self.decoded > self.options.max_expansion * max(self._fed, 1):
            raise InputError(
                f"`{self.file.name}` looks like a decompression bomb: {self._fed} bytes became {self.decoded}",
                place=self.file.path,
                hint=f"if the file is right, raise `read: {{max_expansion: {self.options.max_expansion}}}`",
            )


def cut_short(file: SourceFile, decoded: int) -> InputError:
    """The error for a file that ends before its own end."""
    return InputError(
        f"`{file.name}` is cut short",
        place=f"after {decoded} decoded bytes",
        hint=f"restore the file, or allow it by name: `read: {{allow_truncated: [{file.name}]}}`",
    )
