"""Which files a source means: one file, a folder, a glob, hive partitions, a remote address.

In a folder, names that begin with `.` or `_` are skipped, as every reader of such folders does,
and so are companions that are never rows (`.md`, `.txt`, checksums, licences, ...). `.json`
files count as companions where the folder has other data, and as JSON lines where it has none.
Any other file is an error that names it: nothing is passed over in silence. With an explicit
`read: {format: ...}` a folder gives its files of that format and those of unknown extension.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

from curate.errors import InputError, RequestError
from curate.source.options import ReadOptions

SCHEMES = ("abfs", "abfss", "az", "file", "gcs", "gs", "hf", "http", "https", "memory", "s3")
FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv",
    ".arrow": "arrow", ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
COMPANIONS = {
    ".md", ".rst", ".txt", ".crc", ".yaml", ".yml", ".toml", ".html", ".pdf", ".md5", ".sha1", ".sha256", ".sha512",
    ".lock", ".bib", ".py", ".sh", ".log",
}  # fmt: skip
COMPANION_NAMES = {"license", "licence", "readme", "citation", "checksums", "md5sums", "sha256sums", "copying", "notice"}


@dataclass(frozen=True)
class SourceFile:
    """One input file. `name` is the same on every machine: it goes into ledgers; `path` is where it lies here."""

    path: str
    name: str
    format: str
    compression: str
    size: int
    digest: str
    remote: bool
    partition: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Found:
    path: str
    name: str
    listed: bool
    """found by listing a folder, so that companions may be passed over"""
    fs: Any = None


def discover(
    source: str | os.PathLike[str] | Sequence[Any], options: ReadOptions, base: Path | None = None, *, digests: bool = True
) -> tuple[SourceFile, ...]:
    """The files of a source, sorted by name; of a list of sources, in the list's order.

    Local files are read once for their digests, several at a time; `digests` false leaves the
    digests empty and reads nothing. Relative paths are resolved against `base`, the current folder when left out.
    Raises `InputError` for a path that is not there or holds no data, `RequestError` for an
    address or a file of a kind that is not read.
    """
    entries = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not entries:
        raise RequestError("the source is an empty list", place="source", hint="name a file, a folder or a glob")
    files: list[SourceFile] = []
    for entry in entries:
        found = _find(os.fspath(entry), base or Path.cwd(), several=len(entries) > 1)
        files += _readable(found, options, os.fspath(entry), digests)
    twice = [name for name, times in Tally(file.name for file in files).items() if times > 1]
    if twice:
        raise RequestError(
            f"two files of the source would both be called `{twice[0]}`",
            place="source",
            hint="name the folder above them, or a glob that covers both",
        )
    return tuple(files)


def format_of(name: str) -> str:
    """What a file is by its name: a format, or `json`, `companion` or `unknown`."""
    return _kind(name, ReadOptions())[0]


def partition_of(name: str) -> tuple[tuple[str, str], ...]:
    """The `key=value` folders of a file's name, decoded."""
    steps = (step.split("=", 1) for step in name.split("/")[:-1] if "=" in step)
    return tuple((unquote(step[0]), unquote(step[1])) for step in steps if step[0])


def open_raw(file: SourceFile) -> BinaryIO:
    """The file's bytes as they are stored; `InputError` when they cannot be opened."""
    try:
        if not file.remote:
            return open(file.path, "rb", buffering=0)
        fs, path = _filesystem(file.path)
        return cast("BinaryIO", fs.open(path, "rb"))
    except OSError as err:
        raise InputError(f"`{file.name}` cannot be opened: {err}", place=file.path) from err


def _find(source: str, base: Path, several: bool) -> list[_Found]:
    scheme = urlsplit(source).scheme if "://" in source else ""
    if "::" in source and scheme:
        raise RequestError(f"chained addresses are not read: `{source}`", place="source")
    if scheme and scheme not in SCHEMES:
        raise RequestError(
            f"`{scheme}://` is not a kind of address that is read", place="source", hint="use one of: " + ", ".join(SCHEMES)
        )
    if scheme == "file":
        return _find_local(unquote(urlsplit(source).path), base, several)
    return _find_remote(source, several) if scheme else _find_local(source, base, several)


def _find_local(source: str, base: Path, several: bool) -> list[_Found]:
    source = os.path.expanduser(source)
    path = base / source
    if path.is_file():
        return [_Found(str(path), path.name, listed=False)]
    if path.is_dir():
        prefix = f"{path.resolve().name}/" if several else ""
        return [_Found(str(path / rel), prefix + rel, listed=True) for rel in _walk(path)]
    if _is_glob(source):
        root, pattern = _glob_root(source)
        folder = base / root
        hits = [p for p in folder.glob(pattern) if p.is_file()] if folder.is_dir() else []
        rels = [p.relative_to(folder).as_posix() for p in hits]
        return [_Found(str(folder / rel), rel, listed=True) for rel in rels if not _hidden(rel)]
    raise InputError(f"there is no `{source}`", place=str(path), hint="check the path; it is relative to the current folder")


def _walk(folder: Path) -> Iterable[str]:
    seen: set[str] = set()  # linked folders are followed, each once
    for here, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in names:
            if not name.startswith((".", "_")):
                yield (Path(here) / name).relative_to(folder).as_posix()


def _find_remote(source: str, several: bool) -> list[_Found]:
    fs, path = _filesystem(source)
    try:
        if _is_glob(source) and not source.startswith("http"):
            root, _ = _glob_root(path)
            hits = fs.glob(path)
            listed = True
        elif fs.isdir(path) and not fs.isfile(path):
            root, hits, listed = path.rstrip("/"), fs.find(path), True
        elif fs.exists(path):
            name = unquote(urlsplit(path).path if source.startswith("http") else path).rstrip("/").split("/")[-1]
            return [_Found(fs.unstrip_protocol(path), name, listed=False, fs=fs)]
        else:
            raise InputError(f"there is no `{source}`", place="source", hint="check the address and your credentials")
    except (OSError, ValueError, ImportError) as err:
        raise InputError(f"`{source}` cannot be listed: {err}", place="source") from err
    prefix = root.rstrip("/").split("/")[-1] + "/" if several and not _is_glob(source) else ""
    named = [(hit, str(hit)[len(root) :].lstrip("/")) for hit in hits if not fs.isdir(hit)]
    return [_Found(fs.unstrip_protocol(hit), prefix + rel, listed, fs) for hit, rel in named if not _hidden(rel)]


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(url)
    except ImportError as err:
        raise RequestError(f"`{url}` needs a package that is not installed: {err}", place="source") from err
    except (OSError, ValueError) as err:
        raise InputError(f"`{url}` cannot be opened: {err}", place="source") from err
    return fs, str(path)


def _readable(found: list[_Found], options: ReadOptions, source: str, digests: bool) -> list[SourceFile]:
    """Found files that hold rows, with format, size and digest; see the module's first words for what is passed over."""
    kinds = {item.name: _kind(item.name, options) for item in found}
    has_data = any(kind in FORMATS.values() for kind, _ in kinds.values())
    chosen: list[tuple[_Found, str, str]] = []
    strange: list[str] = []
    for item in sorted(found, key=lambda item: item.name):
        kind, compression = kinds[item.name]
        if kind == "json":
            kind = "companion" if item.listed and has_data else "jsonl"
        if kind == "unknown" and options.format != "auto":
            kind = options.format
        if kind == "companion":
            if not item.listed:
                kind = options.format if options.format != "auto" else "unknown"
            else:
                continue
        if kind == "unknown" or (compression != "none" and kind in ("parquet", "arrow")):
            strange.append(item.name)
        elif options.format in ("auto", kind) or not item.listed:
            chosen.append((item, kind if options.format == "auto" or item.listed else options.format, compression))
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        raise RequestError(
            f"`{strange[0]}`{more}: not a kind of file that is read",
            place=f"source `{source}`",
            hint="read are .parquet, .jsonl, .csv, .tsv (the last three also .gz and .zst), .arrow and .feather; "
            "rename the file, start its name with `_` to have it skipped, or say `read: {format: jsonl}`",
        )
    if not chosen:
        raise InputError(f"`{source}` holds no data files", place="source", hint=f"{len(found)} other files were seen there")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda one: _source_file(one[0], one[1], one[2], digests), chosen))


def _kind(name: str, options: ReadOptions) -> tuple[str, str]:
    """(format, compression) by extension; `json`, `companion` and `unknown` are decided later."""
    stem, last = os.path.splitext(name.rsplit("/", 1)[-1].lower())
    compression = COMPRESSIONS.get(last, "none")
    if compression != "none":
        stem, last = os.path.splitext(stem)
    if last in FORMATS:
        return FORMATS[last], compression
    if last == ".json":
        return ("jsonl" if compression != "none" else "json"), compression
    if compression == "none" and (last in COMPANIONS or stem in COMPANION_NAMES):
        return "companion", compression
    return "unknown", compression


def _source_file(item: _Found, kind: str, compression: str, digests: bool) -> SourceFile:
    try:
        size, digest = _remote_identity(item) if item.fs else _local_identity(item.path, digests)
    except (OSError, ValueError) as err:
        raise InputError(f"`{item.name}` cannot be read: {err}", place=item.path) from err
    return SourceFile(item.path, item.name, kind, compression, size, digest, item.fs is not None, partition_of(item.name))


def _local_identity(path: str, digests: bool) -> tuple[int, str]:
    with open(path, "rb") as handle:
        if not digests:
            return os.fstat(handle.fileno()).st_size, ""
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
        return handle.tell(), digest


def _remote_identity(item: _Found) -> tuple[int, str]:
    """Size, and a digest of what the store says of the object (its tag, version or time), without reading it."""
    path = item.fs._strip_protocol(item.path)
    size = item.fs.info(path).get("size")
    if size is None:
        size = len(item.fs.cat_file(path))
    return int(size), hashlib.sha256(f"{item.fs.ukey(path)}|{size}".encode()).hexdigest()


def _is_glob(source: str) -> bool:
    return any(mark in source for mark in "*?[")


def _glob_root(source: str) -> tuple[str, str]:
    """The fixed folders of a glob, and the rest."""
    steps = source.split("/")
    first = next(index for index, step in enumerate(steps) if _is_glob(step))
    root = "/".join(steps[:first])
    return (root or ("/" if source.startswith("/") else "."), "/".join(steps[first:]))


def _hidden(name: str) -> bool:
    return any(step.startswith((".", "_")) for step in name.split("/"))
