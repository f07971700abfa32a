"""Whether the order of the rows tells something: sorted, drifting or blocked data."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from curate.check import Column, FitCheck, Scores, State, parameters, stored_facts
from curate.dataset import Names, Roles, Rows
from curate.facets import MOST_CLASSES, classes_of, facet, looked_at, ranks, text_lengths, verdict
from curate.groups import first_of_run, run_lengths, run_starts
from curate.intervals import z_of

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

LABEL_PARTS = 10
"""a label of many numbers is cut into so many classes"""


@parameters
class NonIid(FitCheck):
    """How much each column follows the order of the rows, with and without what the label's own order explains.

    *Columns*: none; the check tells facts. In `report.json` under the stage's `detail`: `order`, two rows a column, one
    for each way it can follow: `trend`, the rank correlation of the column with the row's position, and `neighbours`, the rank
    correlation of a row with the next. Each has `raw` and, where there is a label, `within_label`, with their ends,
    and a `verdict`. The label itself, and columns of categories, have `neighbours` only: how much more often two rows
    that follow each other agree than two rows at random, 0 to 1.

    *Given the label*: data that was written class by class is sorted, not dependent. `within_label` compares each row with
    rows of its own class only: ranks and positions are taken inside the class, and the next row is the next of the class.

    *Verdicts*: `follows the order` where, within the label, all of the interval is `effect` or more away from 0; `by label
    only` where that is so of the raw number alone; `independent` where all of it is nearer to 0; else `unclear`; `too
    few rows` below `min_rows`. The interval holds for all columns together with a chance of 95 %.

    *Missing*: rows without a value or, within the label, without a label are left out.

    *Cost*: one sort a column, of at most 1,000,000 rows; of more a sample, in which the next row is the next of the sample.

    *Source*: Spearman's rank correlation with position, and lag-1 serial rank correlation (Wald and Wolfowitz 1943) with
    Fisher's interval; agreement beyond chance as Cohen's kappa.

    *When it is wrong*: it sees trends and neighbours, not seasons, and not groups of rows far apart (several rows of
    one person: give `group` and split by it). A position that is itself random, such as after a shuffle, hides all of it. Ids
    that count up follow the order and should: leave them out with the role `id`.
    """

    of: Names = ()
    """the columns to look at; features, label and groups, or all columns of single values, when not given"""
    effect: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """the correlation from which on a column is said to follow the order"""
    min_rows: Annotated[int, Field(ge=10)] = 100
    """rows with a value that a column must have"""

    name: ClassVar[str] = "non_iid"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The columns that are looked at, the text and the label."""
        label = (roles.label,) if roles.label else ()
        return tuple(dict.fromkeys((*looked_at(self.of, roles, schema, (roles.id,)), *roles.text, *label)))

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """None: the check is about the whole."""
        return ()

    def fit(self, rows: Rows) -> State:
        """The table, as JSON."""
        order = np.argsort(rows.row_ids, kind="stable")
        names = looked_at(self.of, rows.roles, rows.table.schema, (rows.roles.id,))
        facets = {name: facet(rows.table.column(name)) for name in names}
        if rows.roles.text:
            facets["text length"] = text_lengths(rows)
        label = None if rows.roles.label is None else facet(rows.table.column(rows.roles.label))
        classes = None if label is None else classes_of(label, MOST_CLASSES, LABEL_PARTS)[0][order]
        ways = sum(1 if column.kind == "category" else 2 for column in facets.values())
        z = z_of(ways)
        lines = []
        for name, column in facets.items():
            own = None if name == rows.roles.label else classes
            if column.kind == "category":
                lines.append(self._line(name, "neighbours", *_agreement(column.codes[order], own), z))
            else:
                values = column.numbers[order]
                lines.append(self._line(name, "trend", *_trend(values, own), z))
                lines.append(self._line(name, "neighbours", *_serial(values, own), z))
        told = {"order": lines, "warnings": _warnings(lines)}
        return stored_facts(told)

    def score(self, rows: Rows, state: State) -> Scores:
        """Nothing a row."""
        return {}

    def _line(self, name: str, way: str, raw: tuple[float, int], within: tuple[float, int] | None, z: float) -> dict[str, Any]:
        line: dict[str, Any] = {"column": name, "way": way, "rows": raw[1]}
        if raw[1] < self.min_rows or (within is not None and within[1] < self.min_rows):
            return {**line, "raw": None, "raw_low": None, "raw_high": None, "verdict": "too few rows"}
        said = []
        for key, found in (("raw", raw), ("within_label", within)):
            if found is not None:
                low, high = _fisher(*found, z)
                line |= {key: round(found[0], 4), f"{key}_low": round(low, 4), f"{key}_high": round(high, 4)}
                near, far = (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
                said.append(verdict(near, far, self.effect, ("follows the order", "independent")))
        only = len(said) == 2 and said[0] == "follows the order" and said[1] != "follows the order"
        return {**line, "verdict": "by label only" if only else said[-1]}


def _warnings(lines: list[dict[str, Any]]) -> list[str]:
    follow = [line["column"] for line in lines if line["verdict"] == "follows the order"]
    by_label = [line["column"] for line in lines if line["verdict"] == "by label only"]
    told = []
    if follow:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(follow))
        told.append(
            f"the rows are not in random order: {names} follow it, so rows that are near are alike; split by time or group"
        )
    if by_label:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(by_label))
        told.append(f"the rows are sorted by label, which explains the order of {names}: shuffle before a split by position")
    return told


def _trend(values: Floats, classes: Int64s | None) -> tuple[tuple[float, int], tuple[float, int] | None]:
    """The rank correlation with position: over all rows, and inside the classes."""
    known = ~np.isnan(values)
    position = np.arange(len(values), dtype=np.float64)
    raw = (_correlation(ranks(values[known]), ranks(position[known])), int(known.sum()))
    if classes is None:
        return raw, None
    known &= classes >= 0
    one, two = _inside(values[known], classes[known]), _inside(position[known], classes[known])
    return raw, (_correlation(one, two), int(known.sum()))


def _serial(values: Floats, classes: Int64s | None) -> tuple[tuple[float, int], tuple[float, int] | None]:
    """The rank correlation of a row with the next: over all rows, and inside the classes."""
    known = ~np.isnan(values)
    rank = ranks(values[known])
    raw = (_correlation(rank[:-1], rank[1:]), int(known.sum()))
    if classes is None:
        return raw, None
    known &= classes >= 0
    order = np.argsort(classes[known], kind="stable")
    rank, own = _inside(values[known], classes[known])[order], classes[known][order]
    together = own[:-1] == own[1:]
    return raw, (_correlation(rank[:-1][together], rank[1:][together]), int(together.sum()))


def _agreement(codes: Int64s, classes: Int64s | None) -> tuple[tuple[float, int], tuple[float, int] | None]:
    """How much more often than by chance a row and the next have the same value: over all rows, and inside the classes."""
    known = codes >= 0
    raw = (_kappa(codes[known], np.zeros(int(known.sum()), np.int64)), int(known.sum()))
    if classes is None:
        return raw, None
    known &= classes >= 0
    order = np.argsort(classes[known], kind="stable")
    return raw, (_kappa(codes[known][order], classes[known][order]), int(known.sum()))


def _kappa(codes: Int64s, classes: Int64s) -> float:
    """Agreement of neighbours of one class beyond chance; chance is that of two rows of the class."""
    together = classes[:-1] == classes[1:]
    if not together.any():
        return 0.0
    agree = float((codes[:-1] == codes[1:])[together].mean())
    _, number, size = np.unique(classes, return_inverse=True, return_counts=True)
    _, pair, count = np.unique(np.stack([number, codes]), axis=1, return_inverse=True, return_counts=True)
    of = size[number]
    same = np.bincount(number, weights=(count[pair.ravel()] - 1) / np.maximum(of - 1, 1)) / size
    weight = np.maximum(size - 1, 0)
    chance = float((same * weight).sum() / weight.sum())
    return (agree - chance) / (1 - chance) if chance < 1 else 0.0


def _inside(values: Floats, classes: Int64s) -> Floats:
    """The rank of each value among those of its class, around 0."""
    order = np.lexsort((values, classes))
    value, own, place = values[order], classes[order], np.arange(len(order))
    first, size = run_starts(own), run_lengths(run_starts(own))
    ties = run_starts(own, value)
    middle = first_of_run(ties) + (run_lengths(ties) - 1) / 2 - place[first_of_run(first)]
    out = np.empty(len(values), np.float64)
    out[order] = np.where(size > 1, middle / np.maximum(size - 1, 1), 0.5) - 0.5
    return out


def _correlation(one: Floats, two: Floats) -> float:
    if len(one) < 2 or not one.std() or not two.std():
        return 0.0
    return float(np.corrcoef(one, two)[0, 1])


def _fisher(value: float, rows: int, z: float) -> tuple[float, float]:
    """The ends of a correlation's interval."""
    middle, half = math.atanh(max(-0.999999, min(0.999999, value))), z / math.sqrt(max(rows - 3, 1))
    return math.tanh(middle - half), math.tanh(middle + half)
