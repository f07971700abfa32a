"""What is stored of an index at one moment: `index.json`, verified, and the segments it names, opened together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from curate.errors import RequestError, TemporaryError
from curate.hashing import key_of
from curate.keyfile import Int64s, U64s, damaged
from curate.segment import Segment, open_segment

FORMAT = 1
OPENINGS = 20
"""how often a reader begins anew because a writer dropped the segments it was about to open"""
_OWN = {"index.json", "segments", "aside", "lock"}
_EMPTY: dict[str, Any] = {"format": FORMAT, "identity": None, "batches": [], "segments": []}


@dataclass(frozen=True)
class Snapshot:
    """What one `index.json` says, with its segments open."""

    document: Mapping[str, Any]
    state: str
    segments: tuple[Segment, ...]

    @property
    def bases(self) -> Int64s:
        """The number of the first entry of every segment, and the number of all entries."""
        return np.cumsum([0, *(segment.rows for segment in self.segments)])


def open_snapshot(folder: Path, identity: Mapping[str, Any] | None) -> Snapshot:
    """What is stored now; begins anew where a writer drops segments between our reading their names and opening them.

    Raises as `read_document`, and `InputError` where a segment is damaged or gone.
    """
    for _ in range(OPENINGS):
        document, state = read_document(folder, identity)
        try:
            return Snapshot(document, state, tuple(_opened(folder, entry) for entry in document["segments"]))
        except FileNotFoundError as err:
            if read_document(folder, identity)[1] == state:
                raise damaged(str(err.filename)) from err
    raise TemporaryError("the index is being rewritten", place=str(folder), hint="run the same command again")


def read_document(folder: Path, identity: Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
    """The document of an index and its digest, verified; an empty one where nothing is stored."""
    path = folder / "index.json"
    try:
        document = json.loads(path.read_bytes())
        seal = document.pop("seal")
        form, whole = document["format"], seal == key_of(document)
    except FileNotFoundError:
        return _nothing(folder, identity), ""
    except NotADirectoryError as err:
        raise RequestError("the index is a file, not a folder", place=str(folder), hint="name another folder") from err
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise damaged(str(path)) from err
    if form != FORMAT:
        hint = "use the curate that wrote it, or delete the folder and build the index anew"
        raise RequestError(f"the index has format {form!r}; this curate reads format {FORMAT}", place=str(path), hint=hint)
    if not whole:
        raise damaged(str(path))
    if identity is not None:
        _compare(document["identity"], identity, path)
    return document, seal


def _nothing(folder: Path, identity: Mapping[str, Any] | None) -> dict[str, Any]:
    others = sorted(path.name for path in folder.iterdir() if path.name not in _OWN) if folder.is_dir() else []
    if identity is None:
        raise RequestError(
            "there is no index here", place=str(folder), hint="give the folder that a run with an index has written"
        )
    if others:
        raise RequestError(
            f"the folder of the index has other files in it, such as {others[0]!r}",
            place=str(folder),
            hint="name a new or an empty folder",
        )
    if len(list((folder / "segments").glob("*.rows"))) > 1:  # a first batch that was killed leaves one at most
        raise damaged(str(folder / "index.json"))
    return dict(_EMPTY)


def _compare(stored: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    """Refuse an index whose keys or shingles mean something else."""
    differing = [name for name in sorted({*stored, *wanted}) if stored.get(name) != wanted.get(name)]
    if differing:
        said = "; ".join(f"`{name}` was {_said(stored, name)} and is {_said(wanted, name)} now" for name in differing)
        raise RequestError(
            f"the index was made in another way: {said}",
            place=str(path),
            hint="go back to what it was made with, or name a new folder and add the older batches to it again",
        )


def _said(identity: Mapping[str, Any], name: str) -> str:
    return json.dumps(identity[name], ensure_ascii=False) if name in identity else "not set"


def as_stored(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The identity as it will be read back: tuples are lists, keys are strings."""
    return dict(json.loads(json.dumps(dict(identity), allow_nan=False)))


def _opened(folder: Path, entry: Mapping[str, Any]) -> Segment:
    """A segment and its dead rows, verified as far as opening does."""
    dead: U64s = np.empty(0, np.uint64)
    if entry["dead"] is not None:
        path = folder / "segments" / entry["dead"]["name"]
        data = path.read_bytes()
        if xxhash.xxh3_128_hexdigest(data) != entry["dead"]["digest"]:
            raise damaged(str(path))
        dead = np.frombuffer(data, "<u8")
    return open_segment(folder / "segments" / f"{entry['name']}.rows", entry, dead)


def files_of(entry: Mapping[str, Any]) -> list[str]:
    """The files of a segment."""
    return [f"{entry['name']}.rows", *([] if entry["dead"] is None else [entry["dead"]["name"]])]
