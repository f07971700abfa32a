"""Small checks whose right answers are plain to see, importable by worker processes.

Where a test wants to know how often a check was asked, it sets `TOY_LOG` to a file: each call
appends a line, from whatever process.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.check import Column, Emitted, FitCheck, GroupCheck, RowCheck, Scores, State, parameters
from curate.dataset import Roles, Rows
from curate.errors import RequestError
from curate.groups import first_of_run, run_starts
from curate.hashing import mix64
from curate.policy import Above, IsTrue, Rule

LOG = "TOY_LOG"


def note(what: str, rows: int) -> None:
    """Append a line to the log, if a test asked for one."""
    path = os.environ.get(LOG)
    if path:
        with open(path, "a") as file:
            file.write(f"{what} {rows}\n")


def calls(path: Path) -> dict[str, int]:
    """Rows shown to each check, by its name and method, since the log began."""
    found: dict[str, int] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        what, rows = line.split()
        found[what] = found.get(what, 0) + int(rows)
    return found


@parameters
class Amount(RowCheck):
    """The number in a column, as a measure; `tag` tells two of them apart in the log."""

    of: str = "value"
    """the column"""
    tag: str = "amount"
    """what the log calls it"""

    name: ClassVar[str] = "amount"
    version: ClassVar[int] = 1

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        return (self.of,)

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        return (Column("amount", "measure", "the number", "points"),)

    def default_rules(self, roles: Roles, schema: pa.Schema) -> tuple[Rule, ...]:
        return (Above(above=0.5, of="amount"),)

    def score(self, rows: Rows) -> Scores:
        note(f"{self.tag}.score", len(rows))
        return {"amount": rows.table.column(self.of).combine_chunks().cast(pa.float64())}


@parameters
class Length(RowCheck):
    """Characters of the text, and whether there are more than `most`."""

    most: int = 8
    """the longest text that is not `too_long`"""

    name: ClassVar[str] = "length"
    version: ClassVar[int] = 1

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        return (Column("characters", "measure", "length", "characters"), Column("too_long", "flag", "longer than most"))

    def default_rules(self, roles: Roles, schema: pa.Schema) -> tuple[Rule, ...]:
        return (IsTrue(is_true="too_long"),)

    def score(self, rows: Rows) -> Scores:
        note("length.score", len(rows))
        count = pc.utf8_length(rows.text(rows.roles.text[0]))
        return {"characters": count, "too_long": pc.greater(count, self.most)}


@parameters
class Lottery(RowCheck):
    """A number from 0 to 1 that the seed and the row id alone decide; reads no column at all."""

    name: ClassVar[str] = "lottery"
    version: ClassVar[int] = 1

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        return ()

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        return (Column("ticket", "suspicion", "drawn"),)

    def score(self, rows: Rows) -> Scores:
        return {"ticket": pa.array(mix64(rows.row_ids, rows.seed) / 2.0**64)}


@parameters
class Centre(FitCheck):
    """How far a number lies from the mean of the fitted rows; the state has every kind of array."""

    of: str = "value"
    """the column"""

    name: ClassVar[str] = "centre"
    version: ClassVar[int] = 1
    fit_rows: ClassVar[int] = 40

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        return (self.of,)

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        return (Column("distance", "measure", "from the mean", "points"), Column("seen", "flag", "the row was fitted"))

    def fit(self, rows: Rows) -> State:
        note("centre.fit", len(rows))
        values = self._values(rows)
        with np.errstate(invalid="ignore", over="ignore"):
            mean = values.mean() if len(values) else 0.0
        return {
            "mean": np.array(mean),
            "rows": rows.row_ids,
            "grid": np.arange(6.0).reshape(2, 3),
            "names": np.array(["é", "", "long name"]),
            "nothing": np.empty((0, 2)),
            "no_names": np.array([], dtype="U4"),
            "flags": np.array([True, False]),
            "gaps": np.array([np.nan, np.inf]),
        }

    def score(self, rows: Rows, state: State) -> Scores:
        note("centre.score", len(rows))
        assert state["grid"].shape == (2, 3)
        assert state["mean"].shape == ()
        assert state["names"].dtype.kind == "U"
        assert state["names"].tolist() == ["é", "", "long name"]
        assert state["no_names"].dtype.kind == "U"
        assert state["nothing"].shape == (0, 2)
        assert state["flags"].dtype == np.bool_
        assert np.isnan(state["gaps"][0])
        assert np.isposinf(state["gaps"][1])
        seen = np.isin(rows.row_ids, state["rows"])
        with np.errstate(invalid="ignore"):
            distance = np.abs(self._values(rows) - state["mean"])
        return {"distance": pa.array(distance), "seen": pa.array(seen)}

    def evidence(self, state: State) -> Mapping[str, Any]:
        return {"names": state["names"].tolist()}

    def _values(self, rows: Rows) -> npt.NDArray[np.float64]:
        return np.asarray(rows.table.column(self.of).to_numpy(), np.float64)


@parameters
class Twice(FitCheck):
    """Twice what stage `amount` says of a row, less the greatest amount of the fitted rows."""

    name: ClassVar[str] = "twice"
    version: ClassVar[int] = 1

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        return ("id",)

    def uses(self, roles: Roles, earlier: Sequence[Emitted]) -> tuple[str, ...]:
        found = tuple(one.name for one in earlier if one.check == "amount")
        if not found:
            raise RequestError("`twice` reads what `amount` says", hint="put `amount` before it")
        return found[:1]

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        return (Column("twice", "measure", "twice the amount", "points"),)

    def fit(self, rows: Rows) -> State:
        note("twice.fit", len(rows))
        return {"most": np.array(pc.max(rows.table.column(1)).as_py() or 0.0)}

    def score(self, rows: Rows, state: State) -> Scores:
        note("twice.score", len(rows))
        amount = rows.table.column(1).combine_chunks()
        return {"twice": pc.subtract(pc.multiply(amount, 2.0), float(state["most"]))}


@parameters
class SameValue(GroupCheck):
    """Rows with the same number: all but the one with the smallest row id are copies. Empty cells have no key."""

    of: str = "value"
    """the column"""

    name: ClassVar[str] = "same_value"
    version: ClassVar[int] = 1

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        return (self.of,)

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        return (Column("same", "flag", "another row has the number"), Column("same_as", "link", "the first such row"))

    def default_rules(self, roles: Roles, schema: pa.Schema) -> tuple[Rule, ...]:
        return (IsTrue(is_true="same"),)

    def unsettled(self) -> Mapping[str, float | bool | None]:
        return {"same": False, "same_as": None}

    def keys(self, rows: Rows) -> pa.Table:
        note("same_value.keys", len(rows))
        values = np.asarray(rows.table.column(self.of).to_numpy(), np.float64) + 0.0
        return pa.table({"row": np.arange(len(rows), dtype=np.uint64), "key": mix64(values.view(np.uint64))})

    def match(self, shard: pa.Table) -> pa.Table:
        shard = shard.sort_by([("key", "ascending"), ("row", "ascending")])
        row, starts = shard.column("row").to_numpy(), run_starts(shard.column("key").to_numpy())
        first = row[first_of_run(starts)]
        return pa.table({"row": row[~starts], "other": first[~starts]})

    def settle(self, pairs: pa.Table) -> pa.Table:
        return pa.table({"row": pairs.column("row"), "same": [True] * pairs.num_rows, "same_as": pairs.column("other")})


@parameters
class Trouble(RowCheck):
    """A check that breaks its word in one of several ways, at rows whose text has `at` in it."""

    how: Literal["raise", "short", "undeclared", "range", "kill", "slow", "nothing"] = "raise"
    """the way"""
    at: str = ""
    """the rows at which it happens"""
    after_s: float = 0.0
    """how long it waits first"""

    name: ClassVar[str] = "trouble"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        return (Column("level", "suspicion", "of trouble"),)

    def score(self, rows: Rows) -> Scores:
        note("trouble.score", len(rows))
        level = pa.array(np.zeros(len(rows)))
        text = rows.text(rows.roles.text[0])
        if not pc.any(pc.match_substring(text, self.at)).as_py():
            return {"level": level}
        time.sleep(self.after_s)
        if self.how == "raise":
            raise ZeroDivisionError("a toy check divided by zero")
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "short":
            return {"level": level[:-1]}
        if self.how == "undeclared":
            return {"level": level, "more": level}
        if self.how == "range":
            return {"level": pa.array(np.full(len(rows), 1.5))}
        return {"level": level}
