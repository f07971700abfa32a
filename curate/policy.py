"""Typed rules over columns. A policy sees columns, never data, so it can be replayed for nothing.

A rule is written as one word and a limit: `{above: 0.9, of: suspicion}`, `{is_true: is_copy}`.
The first rule that fires is a row's reason; every score is kept, whatever fired.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, TypeAdapter, ValidationError

from curate.errors import RequestError, did_you_mean
from curate.parameters import parameters

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
OnMissing = Literal["keep", "reject"]
Number = Annotated[float, Field(allow_inf_nan=False)]


class RuleBase(ABC):
    """What all rules can do. `values` are a column's cells as floats, NaN where missing."""

    word: ClassVar[str]
    needs_all_rows: ClassVar[bool] = False
    """true: the limit is known only when every row has been scored"""

    @property
    @abstractmethod
    def column(self) -> str:
        """The column the rule looks at."""

    @abstractmethod
    def limit(self, values: Floats | None) -> float:
        """The number cells are held against; `values` (of every row asked) only for `needs_all_rows`."""

    @abstractmethod
    def fires(self, values: Floats, limit: float) -> Bools:
        """True where the rule rejects; never where the cell is missing."""


@parameters
class Above(RuleBase):
    """Reject cells greater than a limit."""

    above: Number
    """the greatest value that is kept"""
    of: str
    """the column"""
    word: ClassVar[str] = "above"

    @property
    def column(self) -> str:
        return self.of

    def limit(self, values: Floats | None) -> float:
        return self.above

    def fires(self, values: Floats, limit: float) -> Bools:
        return np.asarray(values > limit)


@parameters
class AtLeast(RuleBase):
    """Reject cells that reach a limit."""

    at_least: Number
    """the smallest value that is rejected"""
    of: str
    """the column"""
    word: ClassVar[str] = "at_least"

    @property
    def column(self) -> str:
        return self.of

    def limit(self, values: Floats | None) -> float:
        return self.at_least

    def fires(self, values: Floats, limit: float) -> Bools:
        return np.asarray(values >= limit)


@parameters
class Below(RuleBase):
    """Reject cells smaller than a limit."""

    below: Number
    """the smallest value that is kept"""
    of: str
    """the column"""
    word: ClassVar[str] = "below"

    @property
    def column(self) -> str:
        return self.of

    def limit(self, values: Floats | None) -> float:
        return self.below

    def fires(self, values: Floats, limit: float) -> Bools:
        return np.asarray(values < limit)


@parameters
class IsTrue(RuleBase):
    """Reject rows whose flag is set."""

    is_true: str
    """the flag column"""
    word: ClassVar[str] = "is_true"

    @property
    def column(self) -> str:
        return self.is_true

    def limit(self, values: Floats | None) -> float:
        return 1.0

    def fires(self, values: Floats, limit: float) -> Bools:
        return np.asarray(values == 1.0)


@parameters
class WorstFraction(RuleBase):
    """Reject the rows with the highest values, at most this share of the rows asked.

    Ties at the border are kept, so never more than the share is rejected.
    """

    worst_fraction: Annotated[float, Field(gt=0, lt=1)]
    """the share of rows, more than 0 and less than 1"""
    of: str
    """the column"""
    word: ClassVar[str] = "worst_fraction"
    needs_all_rows: ClassVar[bool] = True

    @property
    def column(self) -> str:
        return self.of

    def limit(self, values: Floats | None) -> float:
        assert values is not None, "worst_fraction needs the column of all rows"
        budget = int(self.worst_fraction * len(values))
        present = values[~np.isnan(values)]
        if budget >= len(present):  # every value may go: a limit just under the least of them
            return float(np.nextafter(present.min(), -np.inf)) if len(present) else float("-inf")
        return float(np.partition(present, len(present) - 1 - budget)[len(present) - 1 - budget])

    def fires(self, values: Floats, limit: float) -> Bools:
        return np.asarray(values > limit)


Rule = Union[Above, AtLeast, Below, IsTrue, WorstFraction]  # noqa: UP007 (pydantic shows each form in the schema)
RULES: tuple[type[RuleBase], ...] = (Above, AtLeast, Below, IsTrue, WorstFraction)


def make_rule(given: Any, place: str = "") -> Rule:
    """A rule from its written form; `RequestError` names the nearest word for a misspelt one."""
    words = {rule.word: rule for rule in RULES}
    if isinstance(given, RULES):
        return given  # type: ignore[return-value]
    if not isinstance(given, dict) or not given:
        raise RequestError(f"a rule is a mapping such as {{above: 0.9, of: suspicion}}, not {given!r}", place=place)
    chosen = [key for key in given if key != "of"]
    if len(chosen) != 1 or chosen[0] not in words:
        wrong = next((key for key in chosen if key not in words), "")
        message = f"`{wrong}` is not a rule" if wrong else "a rule has exactly one of its words"
        raise RequestError(message, place=place, hint=did_you_mean(str(wrong), words))
    try:
        return TypeAdapter(words[chosen[0]]).validate_python(given)  # type: ignore[return-value]
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise RequestError(f"rule `{chosen[0]}`: `{where}`: {first['msg']}", place=place) from err


@dataclass(frozen=True)
class Policy:
    """The rules of one stage and what a missing cell means for them."""

    rules: tuple[Rule, ...] = ()
    on_missing: OnMissing = "keep"

    @property
    def needs_all_rows(self) -> bool:
        return any(rule.needs_all_rows for rule in self.rules)


@dataclass(frozen=True)
class Decision:
    """What a policy says of n rows: `rule[i]` is the index of the rule that fired, -1 for none.

    `value` and `limit` are what the rule compared (NaN where the cell was missing);
    `by_missing[i]` says that `on_missing: reject` decided.
    """

    rule: npt.NDArray[np.int16]
    value: Floats
    limit: Floats
    by_missing: Bools


def decide(policy: Policy, columns: dict[str, Floats], limits: tuple[float, ...], rows: int) -> Decision:
    """Apply a policy to the columns of n rows, given the limit of each rule."""
    fired = np.full(rows, -1, np.int16)
    value, limit = np.full(rows, np.nan), np.full(rows, np.nan)
    by_missing = np.zeros(rows, bool)
    for index, (rule, bound) in enumerate(zip(policy.rules, limits, strict=True)):
        cells = columns[rule.column]
        missing = np.isnan(cells) if policy.on_missing == "reject" else np.zeros(rows, bool)
        new = (fired < 0) & (rule.fires(cells, bound) | missing)
        fired[new], value[new], limit[new] = index, cells[new], bound
        by_missing |= new & missing
    return Decision(fired, value, limit, by_missing)


def finite_or_none(limit: float) -> float | None:
    """A limit as JSON can hold it; None for an infinite one, which `worst_fraction` of no or infinite values has."""
    return limit if np.isfinite(limit) else None


def as_floats(column: pa.Array | pa.ChunkedArray) -> Floats:
    """A scalar column as floats for rules: flags are 0 and 1, missing cells NaN."""
    floats = column.cast(pa.float64()) if not pa.types.is_boolean(column.type) else column.cast(pa.int8()).cast(pa.float64())
    return np.asarray(
        floats.to_numpy(zero_copy_only=False) if isinstance(floats, pa.Array) else floats.to_numpy(), dtype=np.float64
    )
