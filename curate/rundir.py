"""The run directory: who may write it, what is published in it, and reading it back.

Data folders are swapped in by rename when everything is written; `manifest.json` is removed
first and written last, so a directory with a manifest is whole. A publish that was killed half
way is finished by the next run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curate.errors import BusyError, RequestError
from curate.store import write_json, write_text

PRIVATE = ".curate"
FOLDERS = ("kept", "rejected", "quarantined", "verdicts", "scores")
DOCUMENTS = ("manifest.json", "report.json", "samples.json", "gate.json", "junit.xml", "report.html")
VERSION = 1


class RunDir:
    """The folder `--out` names."""

    def __init__(self, path: Path) -> None:
        self.given = str(path)
        """the folder as the caller named it, for commands in the report"""
        self.path = path.absolute()
        self.root = self.path / PRIVATE

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one run.

        Raises `BusyError` when another run holds it, and `RequestError` when the folder has
        files in it that no run of ours put there.
        """
        self._claim()
        with self._lock("wait for it, or choose another --out"):
            yield

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder of a finished run while its documents are made again; raises `BusyError` like `locked`.

        A copy without the private folder is nobody's: no run works there, and nothing of ours is put into it.
        """
        with self._lock("wait for it") if self.root.is_dir() else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def _lock(self, hint: str) -> Iterator[None]:
        with (self.root / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as err:
                lock.seek(0)
                holder = lock.read().strip()
                raise BusyError(
                    f"another run (process {holder or 'unknown'}) is writing here",
                    place=str(self.path),
                    hint=hint,
                ) from err
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def _claim(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise RequestError("the output is a file, not a folder", place=str(self.path), hint="choose another --out")
        if self.path.exists() and not self.root.exists() and any(self.path.iterdir()):
            raise RequestError(
                "the output folder has other files in it", place=str(self.path), hint="choose a new or an empty folder for --out"
            )
        self.root.mkdir(parents=True, exist_ok=True)

    def staging(self, key: str) -> Path:
        """Where the files of an output that is not complete yet are written."""
        return self.root / "stage" / key

    def is_published(self, key: str, sizes: Mapping[str, int]) -> bool:
        """Whether exactly this output is in place, every file as long as it was written."""
        marker = self.root / "published"
        if not marker.exists() or marker.read_text() != key:
            return False
        return all((self.path / name).exists() and (self.path / name).stat().st_size == size for name, size in sizes.items())

    def is_publishing(self, key: str) -> bool:
        """Whether a publish of this output was begun: all its files were complete."""
        marker = self.root / "publishing"
        return marker.exists() and marker.read_text() == key

    def publish(self, key: str) -> None:
        """Swap the staged folders in; can be repeated after a kill at any moment."""
        staging, trash = self.staging(key), self.root / "trash"
        if not self.is_publishing(key):
            for folder in FOLDERS:
                (staging / folder).mkdir(parents=True, exist_ok=True)
            _mark(self.root / "publishing", key)
        for name in DOCUMENTS:
            (self.path / name).unlink(missing_ok=True)
        for folder in FOLDERS:
            if (staging / folder).exists():
                if (self.path / folder).exists():
                    shutil.rmtree(trash / folder, ignore_errors=True)
                    trash.mkdir(exist_ok=True)
                    (self.path / folder).rename(trash / folder)
                (staging / folder).rename(self.path / folder)
        _sync(self.path)
        _mark(self.root / "published", key)
        self.tidy()

    def tidy(self) -> None:
        """Drop what a publish leaves behind it, perhaps one that was killed on its last steps."""
        (self.root / "publishing").unlink(missing_ok=True)
        shutil.rmtree(self.root / "stage", ignore_errors=True)
        shutil.rmtree(self.root / "trash", ignore_errors=True)

    def unfinish(self) -> None:
        """Take the manifest away before other documents change: with one, a directory is whole."""
        (self.path / "manifest.json").unlink(missing_ok=True)

    def write_document(self, name: str, value: Mapping[str, Any]) -> None:
        write_json(self.path / name, value, self._aside(name))

    def write_text(self, name: str, text: str) -> None:
        """A document that is not JSON, published as a whole."""
        write_text(self.path / name, text, self._aside(name))

    def _aside(self, name: str) -> Path | None:
        """Where a document is written before it has its name; beside it in a run that was copied without its private folder."""
        return self.root / f"{name}.tmp" if self.root.is_dir() else None


def read_document(run: Path, name: str) -> dict[str, Any]:
    """`report.json`, `manifest.json` or `gate.json` of a finished run; `RequestError` where it is no such thing."""
    path = run / name
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError as err:
        finished = (run / PRIVATE).exists()
        hint = (
            "the run is not finished: run the same command again" if finished else "give the folder that `curate run --out` wrote"
        )
        raise RequestError(f"there is no {name}", place=str(run), hint=hint) from err
    except ValueError as err:
        raise RequestError(f"{name} is not readable JSON", place=str(path), hint="run the pipeline again") from err
    if document.get("version") != VERSION:
        raise RequestError(
            f"{name} has version {document.get('version')!r}; this curate reads version {VERSION}",
            place=str(path),
            hint="run the pipeline again",
        )
    return dict(document)


def _mark(path: Path, text: str) -> None:
    aside = path.with_suffix(".tmp")
    with aside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
