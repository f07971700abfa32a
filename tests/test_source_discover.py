from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from curate.errors import InputError, RequestError
from curate.source import Counter, ReadOptions, discover, ingest, pieces
from curate.source import ingest as ingest_function
from curate.source.discover import partition_of
from curate.source.ingest import PIECE_BYTES


def tree(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b'{"a": 1}\n')


def names_of(source: object, options: ReadOptions | None = None, base: Path | None = None) -> list[str]:
    return [file.name for file in discover(source, options or ReadOptions(), base)]  # type: ignore[arg-type]


def test_one_file_is_called_by_its_base_name(tmp_path: Path) -> None:
    tree(tmp_path, "deep/a.jsonl")

    (file,) = discover(tmp_path / "deep" / "a.jsonl", ReadOptions())

    assert (file.name, file.format, file.compression, file.size, file.remote) == ("a.jsonl", "jsonl", "none", 9, False)
    assert file.digest == hashlib.sha256(b'{"a": 1}\n').hexdigest()


@pytest.mark.parametrize(
    ("name", "kind", "compression"),
    [
        ("a.parquet", "parquet", "none"), ("a.ndjson", "jsonl", "none"), ("A.JSONL.GZ", "jsonl", "gzip"),
        ("a.json.gz", "jsonl", "gzip"), ("a.jsonl.zst", "jsonl", "zstd"), ("a.csv", "csv", "none"), ("a.tsv.gz", "csv", "gzip"),
        ("a.csv.zst", "csv", "zstd"), ("a.arrow", "arrow", "none"), ("a.feather", "arrow", "none"), ("a.json", "jsonl", "none"),
    ],
)  # fmt: skip
def test_format_and_compression_go_by_the_extension(tmp_path: Path, name: str, kind: str, compression: str) -> None:
    tree(tmp_path, name)

    (file,) = discover(tmp_path / name, ReadOptions())

    assert (file.format, file.compression) == (kind, compression)


def test_a_folder_gives_its_files_sorted_and_skips_hidden_and_companion_files(tmp_path: Path) -> None:
    tree(
        tmp_path,
        "b.jsonl",
        "a/z.jsonl",
        "a/b.csv",
        ".hidden.jsonl",
        "_SUCCESS",
        "_tmp/x.jsonl",
        "README.md",
        "LICENSE",
        "info.json",
    )

    assert names_of(tmp_path) == ["a/b.csv", "a/z.jsonl", "b.jsonl"]


def test_json_files_are_lines_where_a_folder_has_nothing_else(tmp_path: Path) -> None:
    tree(tmp_path, "a.json", "b.json", "notes.txt")

    assert names_of(tmp_path) == ["a.json", "b.json"]


def test_a_file_of_unknown_kind_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    tree(tmp_path, "a.jsonl", "b.jsonl.bz2", "c.xyz")

    with pytest.raises(RequestError, match=r"b\.jsonl\.bz2. and 1 more"):
        discover(tmp_path, ReadOptions())


def test_an_explicit_format_picks_the_files_of_a_folder(tmp_path: Path) -> None:
    tree(tmp_path, "a.jsonl", "b.dat", "c.parquet", "README.md")

    files = discover(tmp_path, ReadOptions(format="jsonl"))
    (named,) = discover(tmp_path / "b.dat", ReadOptions(format="csv"))

    assert [(file.name, file.format) for file in files] == [("a.jsonl", "jsonl"), ("b.dat", "jsonl")]
    assert named.format == "csv"


def test_globs_are_named_from_their_fixed_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "d/a/1.jsonl", "d/a/2.csv", "d/b/c/3.jsonl", "d/_x/4.jsonl", "d/[odd].jsonl")
    monkeypatch.chdir(tmp_path)

    assert names_of("d/a/*.jsonl") == ["1.jsonl"]
    assert names_of(str(tmp_path / "d" / "**" / "*.jsonl")) == ["[odd].jsonl", "a/1.jsonl", "b/c/3.jsonl"]
    assert names_of("d/?/*") == ["a/1.jsonl", "a/2.csv"]
    assert names_of("d/[odd].jsonl") == ["[odd].jsonl"]
    assert names_of("a/*", base=tmp_path / "d") == ["1.jsonl", "2.csv"]


def test_hive_folders_become_partitions(tmp_path: Path) -> None:
    tree(tmp_path, "lang=en/year=2024/a.jsonl", "lang=d%20e/year=__HIVE_DEFAULT_PARTITION__/a.jsonl")

    files = discover(tmp_path, ReadOptions())

    assert [file.partition for file in files] == [
        (("lang", "d e"), ("year", "__HIVE_DEFAULT_PARTITION__")),
        (("lang", "en"), ("year", "2024")),
    ]
    assert partition_of("a=b.jsonl") == ()


def test_what_is_not_there_is_an_input_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    for source in ("nowhere.jsonl", "empty", "empty/*.jsonl", "nowhere/*.jsonl"):
        with pytest.raises(InputError, match=source.replace("*", r"\*")):
            discover(source, ReadOptions(), tmp_path)


def test_a_list_keeps_its_order_and_names_stay_apart(tmp_path: Path) -> None:
    tree(tmp_path, "b/1.jsonl", "a/1.jsonl", "a/2.jsonl", "c/a/1.jsonl")

    assert names_of(["b", "a"], base=tmp_path) == ["b/1.jsonl", "a/1.jsonl", "a/2.jsonl"]
    with pytest.raises(RequestError, match=r"both be called .a/1\.jsonl"):
        discover(["a", "c/a"], ReadOptions(), tmp_path)
    with pytest.raises(RequestError, match="empty list"):
        discover([], ReadOptions(), tmp_path)


def test_linked_folders_are_followed_once(tmp_path: Path) -> None:
    tree(tmp_path, "data/a.jsonl", "elsewhere/b.jsonl")
    os.symlink(tmp_path / "elsewhere", tmp_path / "data" / "link")
    os.symlink(tmp_path / "data", tmp_path / "elsewhere" / "loop")

    assert names_of(tmp_path / "data") == ["a.jsonl", "link/b.jsonl"]


def test_only_listed_kinds_of_address_are_opened(tmp_path: Path) -> None:
    tree(tmp_path, "a.jsonl")

    for address in ("ftp://host/a.jsonl", "simplecache://x", "reference://x"):
        with pytest.raises(RequestError, match="is not a kind of address"):
            discover(address, ReadOptions())
    with pytest.raises(RequestError, match="chained"):
        discover("simplecache::memory://a.jsonl", ReadOptions())
    assert names_of(f"file://{tmp_path}/a.jsonl") == ["a.jsonl"]


def test_remote_files_folders_and_globs(tmp_path: Path) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    for name in ("x=1/a.jsonl", "x=2/b.jsonl", "x=2/_skip.jsonl", "README.md"):
        store.pipe(f"/found/{name}", b'\xef\xbb\xbf{"a": 1}\nbad\n')

    folder = discover("memory://found", ReadOptions())
    (one,) = discover("memory://found/x=1/a.jsonl", ReadOptions())

    assert [(file.name, file.remote, file.size) for file in folder] == [("x=1/a.jsonl", True, 16), ("x=2/b.jsonl", True, 16)]
    assert [file.partition for file in folder] == [(("x", "1"),), (("x", "2"),)]
    assert names_of("memory://found/*/*.jsonl") == ["x=1/a.jsonl", "x=2/b.jsonl"]
    assert (one.name, len(one.digest)) == ("a.jsonl", 64)
    assert one.digest == folder[0].digest != folder[1].digest
    (chunk,) = [c for piece in pieces(one, ReadOptions()) for c in ingest(piece, ReadOptions(), None)]
    assert (chunk.rows.to_pylist(), chunk.quarantined[0].raw) == ([{"a": 1}], b"bad")
    with pytest.raises(InputError, match="there is no"):
        discover("memory://found/nothing", ReadOptions())


def test_options_are_checked() -> None:
    for bad in ({"delimiter": "ab"}, {"delimiter": '"'}, {"row_bytes": 0}, {"format": "xml"}, {"rowbytes": 1}):
        with pytest.raises(ValidationError):
            ReadOptions(**bad)
    assert ReadOptions(allow_truncated="a.gz").allow_truncated == ("a.gz",)  # type: ignore[arg-type]


def test_only_plain_local_lines_are_cut_into_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as handle:
        handle.truncate(PIECE_BYTES * 2 + 1)
    (file,) = discover(path, ReadOptions())

    assert [(piece.start, piece.stop) for piece in pieces(file, ReadOptions())] == [
        (0, PIECE_BYTES), (PIECE_BYTES, 2 * PIECE_BYTES), (2 * PIECE_BYTES, 2 * PIECE_BYTES + 1),
    ]  # fmt: skip


def test_a_file_that_vanishes_is_an_input_error(tmp_path: Path) -> None:
    tree(tmp_path, "a.jsonl", "b.csv", "c.arrow")
    files = discover(tmp_path, ReadOptions())
    for file in files:
        os.remove(file.path)

        with pytest.raises(InputError, match=file.name):
            list(ingest_function(pieces(file, ReadOptions())[0], ReadOptions(), None, Counter()))
