"""Every error a user can meet: what happened, where, what was expected, what to do next.

The exit code belongs to the error, so the command line maps nothing by hand:

| kind             | exit | means                                                       |
|------------------|------|-------------------------------------------------------------|
| `InvariantError` | 1    | we broke our own promise; nothing was published             |
| `RequestError`   | 2    | the pipeline, an argument or a column name is wrong         |
| `InputError`     | 4    | the data could not be read, or too many rows are unreadable |
| `BusyError`      | 5    | another run holds the output folder                         |
| `TemporaryError` | 75   | disk full, a worker died: run the same command again        |
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CurateError(Exception):
    """The base of all errors raised on purpose.

    `message` says what was got and what was wanted, `place` where (file, line, key, stage),
    `hint` the next thing to try. `str(error)` joins the three.
    """

    exit_code = 1

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        self.message, self.place, self.hint = message, place, hint
        super().__init__(message)

    def __str__(self) -> str:
        tail = "; ".join(part for part in (self.place, self.hint) if part)
        return f"{self.message} ({tail})" if tail else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.place, self.hint)


def _rebuild(kind: type[CurateError], message: str, place: str, hint: str) -> CurateError:
    return kind(message, place=place, hint=hint)


class InvariantError(CurateError):
    """A promise of ours does not hold: a row would be lost, doubled or unexplained."""

    exit_code = 1


class RequestError(CurateError):
    """What was asked for is wrong; the data was not touched."""

    exit_code = 2


class InputError(CurateError):
    """The input cannot be read, or more of it is unreadable than the pipeline allows."""

    exit_code = 4


class BusyError(CurateError):
    """Another run holds the output folder."""

    exit_code = 5


class TemporaryError(CurateError):
    """Something outside failed in a way that running again can mend."""

    exit_code = 75


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The nearest valid name as a sentence, or the list of valid names when none is near."""
    known = sorted(set(names))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{near[0]}`?"
    return "expected one of: " + ", ".join(known) if known else ""
