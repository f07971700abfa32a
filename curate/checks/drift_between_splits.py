"""Whether the splits of a data set are alike: every column, and the words of the text."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from curate import shifts
from curate.check import Column, FitCheck, Scores, State, parameters, stored_facts
from curate.dataset import Names, Roles, Rows
from curate.errors import RequestError
from curate.facets import Facet, facet, looked_at, text_lengths, verdict
from curate.hashing import mix64

MOST_SPLITS = 20
MOST_WARNED = 5


@parameters
class DriftBetweenSplits(FitCheck):
    """How far each split is from the largest one, column by column: a distance from 0 to 1, with its interval.

    *Columns*: none; the check tells facts. In `report.json` under the stage's `detail`: `drift`, a row a split and column,
    with the `distance` and its ends, the rows on both sides and a `verdict`.

    *The distance* is the greatest difference that any threshold shows between two shares of rows: for numbers and times
    the Kolmogorov-Smirnov distance, for categories the total variation. 0.1 means that no such question is answered
    otherwise by more than 10 % of the rows. Missing cells count as a column of their own (`is missing`). Of text the
    length, and `words`: a classifier of the two splits is learnt on one half of the rows, and the distance is that of its scores
    on the other half, so it is a lower bound of how far the texts are apart.

    *Verdicts*: `drift` where even the low end reaches `effect`, `alike` where the high end stays below it, else `unclear`;
    `too few rows` below `min_rows` on one side. The interval holds for all columns of a split together with a chance of
    95 %. There is one rule for every number of rows, so 1,001 rows get no other test than 1,000.

    *Missing*: rows without a split are left out.

    *Cost*: one sort a column and split, of at most 200,000 rows.

    *Raises* `RequestError` where no column has the role `split`, or the reference is none of its values.

    *Source*: Kolmogorov and Smirnov; the interval is the asymptotic one of their statistic (for total variation: McDiarmid's
    inequality and the greatest bias). The classifier: Lopez-Paz and Oquab, "Revisiting Classifier Two-Sample Tests" (2017).

    *When it is wrong*: columns are looked at one by one, so two that change together and not alone look alike. A split made by
    time or by group drifts on purpose. Rare values of a column with thousands of values are `unclear` with any number of
    rows. Near copies inside a split make the interval too narrow.
    """

    of: Names = ()
    """the columns to compare; features, label and groups, or all columns of single values, when not given"""
    reference: str | None = None
    """the split that the others are held against; the largest when not given"""
    effect: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """the distance from which on two splits are said to drift"""
    min_rows: Annotated[int, Field(ge=10)] = 100
    """rows with a value that both sides must have"""

    name: ClassVar[str] = "drift_between_splits"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True
    fit_rows: ClassVar[int] = 200_000

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The split, the columns that are compared and the text."""
        if roles.split is None:
            raise RequestError(
                f"`{self.name}` compares splits, and no column has the role `split`",
                place="roles",
                hint="add `roles: {split: COLUMN}`; the columns are " + ", ".join(schema.names),
            )
        return tuple(dict.fromkeys((roles.split, *self._compared(roles, schema), *roles.text)))

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """None: the check is about the whole."""
        return ()

    def fit(self, rows: Rows) -> State:
        """The table of distances, as JSON."""
        split = facet(rows.table.column(str(rows.roles.split)))
        split = split if split.kind == "category" else _as_names(split)
        sizes = np.bincount(split.codes[split.codes >= 0], minlength=len(split.names))
        told: dict[str, Any] = {"splits": [{"split": n, "rows": int(s)} for n, s in zip(split.names, sizes, strict=True)]}
        if len(split.names) > MOST_SPLITS:
            told["warnings"] = [
                f"`{rows.roles.split}` has {len(split.names)} values: a column of splits has {MOST_SPLITS} at most"
            ]
        elif len(split.names) > 1:
            told |= self._compare(rows, split, sizes)
        else:
            told["warnings"] = ["there is one split: nothing to compare"] if len(rows) else []
        return stored_facts(told)

    def score(self, rows: Rows, state: State) -> Scores:
        """Nothing a row."""
        return {}

    def _compared(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        return looked_at(self.of, roles, schema, (roles.id, roles.split))

    def _compare(self, rows: Rows, split: Facet, sizes: npt.NDArray[np.int64]) -> dict[str, Any]:
        if self.reference is not None and self.reference not in split.names:
            raise RequestError(
                f"`{self.name}`: `reference` is `{self.reference}`, which is no split",
                place="reference",
                hint="the splits are " + ", ".join(split.names),
            )
        base = split.names.index(self.reference) if self.reference else int(np.argmax(sizes))
        facets = {name: facet(rows.table.column(name)) for name in self._compared(rows.roles, rows.table.schema)}
        if rows.roles.text:
            facets["text length"] = text_lengths(rows)
        lines = []
        for at in range(len(split.names)):
            if at != base:
                here, there = split.codes == at, split.codes == base
                found = [one for name, column in facets.items() for one in shifts.of_column(name, column, here, there)]
                if rows.roles.text:
                    learnt = mix64(rows.row_ids, rows.seed) % np.uint64(2) == 0
                    found.append(shifts.of_words(rows.whole_text(), here, there, learnt))
                lines += [self._line(split.names[at], split.names[base], one, len(found)) for one in found]
        warned = [line for line in lines if line["verdict"] == "drift"]
        warned.sort(key=lambda line: (-float(line["distance"]), line["split"], line["column"]))
        told = [
            f"`{line['column']}` of split `{line['split']}` is {line['distance']:.2f} away from `{line['reference']}` "
            f"({line['distance_low']:.2f} to {line['distance_high']:.2f}, by {line['measure']})"
            for line in warned[:MOST_WARNED]
        ]
        return {"drift": lines, "warnings": told}

    def _line(self, split: str, reference: str, found: shifts.Distance, together: int) -> dict[str, Any]:
        line: dict[str, Any] = {"split": split, "column": found.column, "measure": found.measure, "reference": reference}
        few = min(found.rows, found.reference_rows) < self.min_rows
        low, high = found.interval(0.05 / together)
        names = ("drift", "alike")
        return {
            **line,
            "distance": None if few else round(found.value, 4),
            "distance_low": None if few else round(low, 4),
            "distance_high": None if few else round(high, 4),
            "rows": found.rows,
            "reference_rows": found.reference_rows,
            "verdict": "too few rows" if few else verdict(low, high, self.effect, names),
        }


def _as_names(split: Facet) -> Facet:
    values, codes = np.unique(split.numbers[~split.missing], return_inverse=True)
    out = np.full(len(split.numbers), -1, np.int64)
    out[~split.missing] = codes
    return Facet("category", np.empty(0), out, tuple(f"{value:g}" for value in values.tolist()))
