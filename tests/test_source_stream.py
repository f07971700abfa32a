from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.errors import InputError
from curate.source import Chunk, Counter, ReadOptions, discover, ingest, pieces

LINES = [f'{{"n": {n}, "text": "line {n} {n * 7919 % 1000}"}}\n'.encode() for n in range(20000)]
DATA = b"".join(LINES)


def packed(data: bytes, suffix: str) -> bytes:
    return gzip.compress(data, mtime=0) if suffix == ".gz" else zstandard.compress(data)


def read(path: Path, options: ReadOptions | None = None, counter: Counter | None = None) -> list[Chunk]:
    options = options or ReadOptions()
    (file,) = discover(path, options)
    return [chunk for piece in pieces(file, options) for chunk in ingest(piece, options, None, counter)]


def numbers(chunks: list[Chunk]) -> list[int]:
    return [n for chunk in chunks for n in chunk.rows.column("n").to_pylist()]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_many_members_and_frames_are_one_stream(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(
        packed(b"".join(LINES[:700]) + b'{"n": ', suffix) + packed(b"", suffix) + packed(b"-1}\n" + b"".join(LINES[700:]), suffix)
    )
    costs = Counter()

    chunks = read(path, counter=costs)

    assert numbers(chunks) == [*range(700), -1, *range(700, 20000)]
    assert costs.bytes_read == path.stat().st_size
    assert costs.read_s > 0
    assert costs.decode_s > 0


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.3, 0.7, 0.99, -1, -4])
def test_a_stream_cut_anywhere_is_an_error_unless_allowed_by_name(tmp_path: Path, suffix: str, share: float) -> None:
    whole = packed(DATA, suffix)
    cut = int(len(whole) * share) if share >= 0 else len(whole) + int(share)
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(whole[:cut])

    with pytest.raises(InputError, match=r"a\.jsonl\S+ is cut short"):
        read(path)
    costs = Counter()
    chunks = read(path, ReadOptions(allow_truncated=(path.name,)), costs)

    assert numbers(chunks) == list(range(len(numbers(chunks))))
    lost = [q for chunk in chunks for q in chunk.quarantined]
    assert len(lost) <= 1
    assert all("cut short" in q.reason and DATA[q.offset :].startswith(q.raw) for q in lost)
    assert costs.truncated == {path.name}
    assert len(numbers(chunks)) > 0 or share < 0.5


def test_half_a_second_member_is_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    first, second = packed(b"".join(LINES[:10]), ".gz"), packed(b"".join(LINES[10:20]), ".gz")
    path.write_bytes(first + second[: len(second) // 2])

    with pytest.raises(InputError, match="cut short"):
        read(path)
    assert numbers(read(path, ReadOptions(allow_truncated=(path.name,))))[:10] == list(range(10))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_flipped_bit_or_rubbish_behind_the_end_is_an_error(tmp_path: Path, suffix: str) -> None:
    whole = bytearray(packed(DATA, suffix) if suffix == ".gz" else zstandard.ZstdCompressor(write_checksum=True).compress(DATA))
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(bytes(whole) + b"rubbish, not a member")
    with pytest.raises(InputError, match=r"damaged|cut short"):
        read(path)

    whole[len(whole) // 2] ^= 16
    path.write_bytes(bytes(whole))

    with pytest.raises(InputError, match="damaged") as caught:
        read(path)
    assert path.name in str(caught.value)


def test_padding_and_skippable_frames_are_no_rubbish(tmp_path: Path) -> None:
    gz, zst = tmp_path / "a.jsonl.gz", tmp_path / "a.jsonl.zst"
    gz.write_bytes(packed(DATA, ".gz") + b"\0" * 1000)
    zst.write_bytes(b"\x50\x2a\x4d\x18\x04\0\0\0note" + packed(DATA, ".zst") + b"\x5f\x2a\x4d\x18\x00\0\0\0")

    assert numbers(read(gz)) == numbers(read(zst)) == list(range(20000))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.jsonl", packed(DATA, ".gz"), "holds gzip data where none was expected"),
        ("a.jsonl", packed(DATA, ".zst"), "holds zstd data"),
        ("a.jsonl.gz", DATA, "holds plain data where gzip was expected"),
        ("a.jsonl.zst", packed(DATA, ".gz"), "holds gzip data where zstd"),
    ],
)
def test_a_file_is_what_its_name_says(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)

    with pytest.raises(InputError, match=said):
        read(tmp_path / name)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_decompression_bomb_is_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(packed(b" " * (64 << 20) + b"\n" + DATA, suffix))
    monkeypatch.setattr("curate.source.stream.BOMB_FROM", 1 << 20)

    with pytest.raises(InputError, match="looks like a decompression bomb"):
        read(path, ReadOptions(max_expansion=100))
    assert numbers(read(path, ReadOptions(max_expansion=100_000)))[-1] == 19999


@settings(max_examples=60)
@given(
    parts=st.lists(st.binary(max_size=200), min_size=1, max_size=4),
    size=st.integers(1, 64),
    out=st.integers(1, 64),
    zst=st.booleans(),
)
def test_decompression_does_not_depend_on_block_sizes(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], size: int, out: int, zst: bool
) -> None:
    from curate.source.stream import ByteStream

    suffix = ".zst" if zst else ".gz"
    path = tmp_path_factory.getbasetemp() / f"any.jsonl{suffix}"
    path.write_bytes(b"".join(packed(part, suffix) for part in parts))
    (file,) = discover(path, ReadOptions())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("curate.source.stream.READ_BYTES", size)
        patch.setattr("curate.source.stream.OUT_BYTES", out)
        patch.setattr("curate.source.stream.ZSTD_FEED", out)
        stream = ByteStream(file, ReadOptions(), Counter())
        decoded = b"".join(stream)

    assert decoded == b"".join(parts)
    assert not stream.truncated


def test_zlib_itself_reports_the_bounds_we_rely_on() -> None:
    stream = zlib.decompressobj(31)

    first = stream.decompress(gzip.compress(b"x" * 1000), 100)

    assert (len(first), stream.eof) == (100, False)
