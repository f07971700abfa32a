"""`curate init`: a guess as a pipeline file that a person goes on from.

Everything that can be said stands in it: what is assumed, uncommented, and what else there is, in
comments that become valid when their `# ` is taken away. Names of columns come from somebody's
data, so in comments too they stand as `flow` writes them: on one line, quoted where needed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from curate.describe import checks
from curate.guess import Guess, column_lines, quoted
from curate.specfile import flow

SCHEMA_NAME = "curate.schema.json"
USEFUL: Mapping[str, tuple[str, ...]] = {
    "missing": ("of",),
    "text_quality": ("preset",),
    "language": ("allowed", "min_confidence"),
    "pii": ("kinds",),
    "exact_dup": ("of", "normalise", "prefer"),
    "near_dup": ("similarity", "prefer"),
}
"""the parameters somebody is likely to change, where the check has them"""
EXAMPLES: Mapping[tuple[str, str], Any] = {("language", "allowed"): ["en"]}
"""what stands in a comment where the default would say nothing"""
WIDTH = 118
_ROLES = {
    "text": "the columns that hold the text, one or several",
    "id": "your own name for a row; findings carry it",
    "label": "the class a model is to learn",
    "split": "which column says train, validation or test",
    "group": "languages, sources, groups of people",
}


def starter(guess: Guess, file: str) -> str:
    """The text of the pipeline file; `file` is how it will be called, for the command in its first lines."""
    lines = [f"# yaml-language-server: $schema={SCHEMA_NAME}", *_head(guess, file), ""]
    lines += [f"name: {flow(guess.name)}", f"source: {flow(guess.source)}  # a file, a folder, a glob or an address", ""]
    lines += [*_columns(guess), "", *_roles(guess), "", *_stages(guess), "", *_gate(guess), "", *_rest(guess)]
    return "\n".join(lines) + "\n"


def _head(guess: Guess, file: str) -> Iterator[str]:
    yield f"# Written by `curate init` after a look at {guess.sample.rows:,} rows. Change what is wrong, then:"
    yield f"#   curate run {quoted(file)}"
    yield "# Paths are relative to where the command runs. The first line is for editors: the schema lies beside this file."


def _columns(guess: Guess) -> Iterator[str]:
    yield "# The columns:"
    for line in column_lines(guess.sample.columns, most=40):
        yield f"#   {_one_line(line)}"


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _roles(guess: Guess) -> Iterator[str]:
    known = guess.roles
    if not known:
        yield "# roles:"
    else:
        yield "roles:"
    for role, about in _ROLES.items():
        if role not in known:
            yield f"  # {role}: COLUMN  # {about}; no column looks like it"
            continue
        columns = known[role]
        value = flow(list(columns) if len(columns) > 1 or role == "group" else columns[0])
        others = ", ".join(map(flow, guess.others.get(role, ())))
        yield f"  {role}: {value}  # {about}; {_one_line(guess.reasons[role])}" + (f"; or: {others}" if others else "")


def _stages(guess: Guess) -> Iterator[str]:
    yield "# Each stage sees the rows still alive. `curate checks` lists all there are, `curate checks NAME` explains one."
    yield "stages:"
    told = {check["name"]: check for check in checks()}
    for name in guess.stages:
        own = guess.parameters(name)
        yield from _wrapped(told[name]["summary"], "  # ")
        for note in guess.notes:
            yield from _wrapped(note, "  # ") if note.startswith(name) else ()
        yield f"  - {name}:"
        yield from (f"      {key}: {flow(value)}" for key, value in own.items())
        for parameter in told[name]["parameters"]:
            if parameter["name"] in USEFUL.get(name, ()) and parameter["name"] not in own:
                value = EXAMPLES.get((name, parameter["name"]), parameter["default"]) or list(guess.roles.get("text", ()))
                yield from _wrapped(parameter["doc"], "      # # ")
                yield f"      # {parameter['name']}: {flow(value)}"
        yield "    # reject: []  # score and report, reject nothing"
        yield from [""] if name != guess.stages[-1] else []


def _wrapped(text: str, before: str) -> Iterator[str]:
    yield from textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent=before, subsequent_indent=before)


def _gate(guess: Guess) -> Iterator[str]:
    last = guess.stages[-1]
    yield "# Limits on any number of report.json. A broken one is exit code 3, or with `severity: warn` a warning."
    yield "gate:"
    yield "  - {metric: rejected_share, max: 0.5}  # more than half rejected: look before anything is built on it"
    yield f"  # - {{metric: {last}.rejected_share, max: 0.2, severity: warn}}"
    yield "  # - {metric: rejected_share, max_increase: 0.05}  # against another run: curate gate RUN --baseline RUN"


def _rest(guess: Guess) -> Iterator[str]:
    if read := guess.to_dict().get("read"):
        yield f"read: {flow(read)}"
    yield "quarantine_limit: 0.001  # more unreadable rows than this share is exit code 4"
    yield "seed: 0  # every random choice is a function of this number and the row"
    yield "# output: {format: jsonl}  # of the kept rows: parquet, jsonl, jsonl.zst or csv"
