"""Telling GitHub Actions, where a run happens there: `GITHUB_ACTIONS=true` in the environment.

Workflow commands go to stderr, which the runner reads as it reads stdout, so that stdout stays one
JSON document. The runner takes a command from *any* line that begins with `::`, or holds `##[`, and
a line of our output may come from a cell of somebody's data; so human text is printed between
`stop-commands` and its token, as GitHub advises for text that is not one's own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from typing import Any

_MARGIN = 4 << 10
"""bytes of the summary left for others"""


def on_github() -> bool:
    """Whether this process is a step of a GitHub workflow."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


@contextlib.contextmanager
def plain_text() -> Iterator[None]:
    """What is printed on stderr inside is text: on GitHub no line of it is obeyed."""
    if not on_github():
        yield
        return
    token = secrets.token_hex(16)
    _say(f"::stop-commands::{token}")
    try:
        yield
    finally:
        _say(f"::{token}::")


def announce(report: Mapping[str, Any], gate: Mapping[str, Any] | None, out: object = "") -> None:
    """On GitHub: annotate what the gate found, and append the run to the step's summary. Elsewhere nothing."""
    if not on_github():
        return
    from curate.render import github

    for line in github.annotate(gate, str(report.get("name") or "")) if gate else ():
        _say(line)
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with open(path, "ab") as file:
            room = github.SUMMARY_BYTES - _MARGIN - file.tell()
            file.write(github.summary(report, gate, str(out), room).encode())
    except OSError as err:  # the run is done and its verdict stands
        _say(github.command("warning", "curate", f"the step summary cannot be written: {err.strerror}"))


def announce_error(message: str, place: str, hint: str) -> None:
    """On GitHub: annotate an error that ended the command."""
    if on_github():
        from curate.render import github

        lines = [message, f"where: {place}" if place else "", f"try: {hint}" if hint else ""]
        _say(github.command("error", "curate", "\n".join(filter(None, lines))))


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
