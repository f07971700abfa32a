"""The first five minutes: a run of data that nobody has described, and a pipeline file to go on from."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from curate.describe import schema
from curate.errors import InputError, RequestError, did_you_mean
from curate.guess import Guess, guess, no_text, quoted
from curate.pipeline import Pipeline
from curate.source.discover import format_of
from curate.specfile import changed, read_mapping
from curate.starter import SCHEMA_NAME, starter
from curate.store import write_text

_EARLY = ("read", "roles")
"""the keys that `--set` may change before anything is guessed"""


def assume(data: str, overrides: Sequence[str] = ()) -> tuple[Pipeline, dict[str, Any]]:
    """The default text pipeline for some data, and in plain values what it takes for granted and why.

    Only the first rows are read. `overrides` are changes as for `load`; they win over every guess.
    Raises `RequestError` with the columns listed where none looks like text and none is named.
    """
    early = [change for change in overrides if _key(change) in _EARLY]
    found = _guess(data, early)
    if "text" not in found.roles and not any(_key(change) == "stages" for change in overrides):
        raise no_text(found, data)
    pipeline = changed(found.to_dict(), overrides)
    told = {**found.described(), "stages": [stage.name for stage in pipeline.stages]}
    if any(_key(change) in ("stages", "text_quality") for change in overrides):
        told["notes"] = []
    said = "".join(f" --set {quoted(change)}" for change in early)
    return pipeline, {**told, "init": f"curate init {quoted(data)}{said} --out {quoted(found.name + '.yaml')}"}


def init(data: str, out: str | Path = "pipeline.yaml", force: bool = False, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Look at some data and write a commented pipeline for it, with the schema for editors beside it.

    The file is one that loads and runs as it is. `overrides` may name roles and how to read. A
    file that is there already is replaced only with `force`, but for an older schema of ours.
    Gives the guess, where the files are, and the command to run.
    """
    for change in overrides:
        if _key(change) not in _EARLY:
            raise RequestError(
                f"`{change}` can be written into the file afterwards",
                place="--set",
                hint="init takes only `roles.` and `read.`, such as --set roles.text=COLUMN",
            )
    file = Path(out)
    beside = file.with_name(SCHEMA_NAME)
    _refuse_to_replace(file, beside, force)
    found = _guess(data, overrides)
    text = starter(found, str(out))
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(beside, json.dumps(schema(), indent=2) + "\n")
    write_text(file, text)
    return {**found.described(), "path": str(file), "schema": str(beside), "run": f"curate run {quoted(str(out))}"}


def _key(change: str) -> str:
    return change.partition("=")[0].strip().partition(".")[0]


def _guess(data: str, overrides: Sequence[str]) -> Guess:
    """The guess, with what the overrides say of it in place of what was guessed."""
    _refuse_no_file(data)
    base: dict[str, Any] = {"name": "guess", "stages": ["missing"]}
    read = changed(dict(base), [change for change in overrides if _key(change) == "read"]).read
    found = guess(data, read)
    changes = [change for change in overrides if _key(change) == "roles"]
    if not changes:
        return found
    guessed = {role: list(columns) for role, columns in found.roles.items()}
    one = {role: columns[0] for role, columns in guessed.items() if len(columns) == 1}
    roles = changed({**base, "roles": guessed | one}, changes).roles
    roles.check_against(pa.schema([(look.name, look.type) for look in found.sample.columns]))
    said: dict[str, tuple[str, ...]] = {}
    for role, column in roles:
        said[role] = (*said.get(role, ()), column)
    reasons = {role: found.reasons[role] if found.roles.get(role) == said[role] else "--set says so" for role in said}
    return dataclasses.replace(found, roles=said, reasons=reasons)


def _refuse_no_file(data: str) -> None:
    """A path that leads nowhere, with the nearest name in its folder."""
    path = Path(data)
    if "://" in data or set(data) & set("*?[") or path.exists():
        return
    entries = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    names = [entry.name for entry in entries if entry.is_dir() or format_of(entry.name) not in ("unknown", "companion")]
    near = did_you_mean(path.name, [name for name in names if not name.startswith((".", "_"))])
    hint = near if near and len(near) < 500 else "check the path; it is relative to the current folder"
    raise InputError(f"there is no `{data}`", place=str(path.parent.absolute()), hint=hint)


def _refuse_to_replace(file: Path, beside: Path, force: bool) -> None:
    if force:
        return
    if file.exists() or file.is_symlink():
        raise RequestError("the file is there already", place=str(file), hint="choose another --out, or replace it with --force")
    if not beside.exists():
        return
    try:
        ours = read_mapping(beside)[0].get("title") == "curate pipeline"
    except RequestError:
        ours = False
    if not ours:
        raise RequestError(
            "the schema for editors would replace a file that curate did not write",
            place=str(beside),
            hint="choose a folder with --out, or replace it with --force",
        )
