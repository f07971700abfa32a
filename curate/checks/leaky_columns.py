"""What gives the label away: columns that alone tell it, and its own name in the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from curate import telling
from curate.check import Column, FitCheck, Scores, State, parameters, stored_facts
from curate.dataset import Names, Roles, Rows, shown
from curate.errors import RequestError
from curate.facets import facet, looked_at
from curate.hashing import mix64

MOST_TEXTS = 20_000
MOST_WARNED = 5


@parameters
class LeakyColumns(FitCheck):
    """How well each column alone tells the label, and where the text names it.

    *Columns*: where there is text, `label_in_text`: the row's label, as it is written, stands in its text as words
    (`_` and `-` count as spaces; labels with fewer than three letters are not looked for). In `report.json` under the stage's
    `detail` stand the facts.

    `columns`, a row a column: `tells`, the share of the guesses of the label that the column saves over guessing the most
    frequent class, learnt on one half of the rows and counted on the other (0: it tells nothing, 1: it tells the label), with
    its ends; for two classes and a number the `auroc` with its ends; `information`, the share of the label's
    entropy that it holds; `distinct` values; and a `verdict`: `tells the label` where the low end of `tells` reaches
    `determines`, `tells much` from 0.5 on, `like an id` where nearly every row has a value of its own, `like a time` for
    dates and for numbers that rise or fall with the rows, else `-`. A missing cell is a value too.

    `label_in_text`, a row a class: how many rows of the class name it in their text, and how many rows of other classes do.
    `telling_words`: words that are found in one class nearly alone and in much of it.

    *Missing*: `label_in_text` where there is no text or no label, or the label is not looked for.

    *Cost*: one sort a column of at most 200,000 rows; the words of at most 20,000 texts.

    *Raises* `RequestError` where no column has the role `label`.

    *Source*: leakage by a feature that stands in for the target: Kaufman, Rosset and Perlich, "Leakage in Data Mining" (2012).
    Wilson's interval for `tells`, that of Hanley and McNeil (1982) for `auroc`, Miller and Madow's correction for `information`.

    *When it is wrong*: a good feature is no leak. A thermometer tells a fever; whether a column is known before the label is,
    only you know. Columns that tell the label together and not alone are not seen. A label of many values (a number) is cut into
    five classes of equal size first. A word such as "refund" may be what a class is about.
    """

    of: Names = ()
    """the columns to look at; features and groups, or all columns of single values, when not given"""
    determines: Annotated[float, Field(gt=0, le=1)] = 0.9
    """the share of guesses saved from which on a column tells the label"""
    min_rows: Annotated[int, Field(ge=10)] = 100
    """labelled rows that there must be"""

    name: ClassVar[str] = "leaky_columns"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True
    fit_rows: ClassVar[int] = 200_000

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The label, the columns that are looked at and the text."""
        if roles.label is None:
            raise RequestError(
                f"`{self.name}` looks for what gives the label away, and no column has the role `label`",
                place="roles",
                hint="add `roles: {label: COLUMN}`; the columns are " + ", ".join(schema.names),
            )
        return tuple(dict.fromkeys((roles.label, *self._looked_at(roles, schema), *roles.text)))

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """Whether the text names the label, where there is text."""
        return (Column("label_in_text", "flag", "the row's label stands in its text as words"),) if roles.text else ()

    def fit(self, rows: Rows) -> State:
        """The tables, as JSON."""
        label = rows.table.column(str(rows.roles.label))
        target = telling.target_of(facet(label))
        known = target.codes >= 0
        told: dict[str, Any] = {"label": {"rows": int(known.sum()), "classes": len(target.names), "cut": target.cut}}
        if len(target.names) < 2 or known.sum() < self.min_rows:
            why = "the label has one class" if len(target.names) < 2 else f"fewer than {self.min_rows} rows have a label"
            return stored_facts(told | {"warnings": [f"nothing was looked for: {why}"] if len(rows) else []})
        half = mix64(rows.row_ids, rows.seed) % np.uint64(2) == 0
        order = np.argsort(rows.row_ids, kind="stable")
        lines = []
        for name in self._looked_at(rows.roles, rows.table.schema):
            found = telling.column(facet(rows.table.column(name)), target, half, order)
            lines.append({"column": name, **found, "verdict": self._verdict(found)})
        told["columns"] = lines
        if rows.roles.text:
            few = np.argsort(mix64(rows.row_ids, rows.seed), kind="stable")[:MOST_TEXTS]
            text, labels = rows.whole_text().take(pa.array(few)), shown(label).take(pa.array(few))
            told["label_in_text"] = telling.named(text, labels)
            told["telling_words"] = telling.words(text, labels)
        return stored_facts(told | {"warnings": _warnings(told)})

    def score(self, rows: Rows, state: State) -> Scores:
        """Each row's label in its own text."""
        if not rows.roles.text:
            return {}
        return {"label_in_text": telling.names_own(rows.whole_text(), shown(rows.table.column(str(rows.roles.label))))}

    def _looked_at(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        found = looked_at(self.of, roles, schema, (roles.split,))
        return tuple(name for name in found if name != roles.label)

    def _verdict(self, found: Mapping[str, Any]) -> str:
        if found["tells_low"] >= self.determines:
            return "tells the label"
        if found["tells_low"] >= 0.5:
            return "tells much"
        return "like an id" if found["like_id"] else "like a time" if found["like_time"] else "-"


def _warnings(told: Mapping[str, Any]) -> list[str]:
    found = [line for line in told["columns"] if line["verdict"] == "tells the label"]
    found.sort(key=lambda line: (-float(line["tells_low"]), line["column"]))
    out = [
        f"`{line['column']}` alone tells the label: it saves {line['tells']:.1%} of the wrong guesses; "
        "is it known before the label is?"
        for line in found[:MOST_WARNED]
    ]
    named = [line for line in told.get("label_in_text", ()) if line["verdict"] == "named"]
    if named:
        rows = ", ".join(f"`{line['label']}` in {line['share']:.0%} of its rows" for line in named[:MOST_WARNED])
        out.append(f"the text names the label: {rows}")
    alone = [line for line in told.get("telling_words", ()) if line["verdict"] == "tells the class"]
    if alone:
        out.append("one word tells a class: " + ", ".join(f"`{one['word']}` {one['label']}" for one in alone[:MOST_WARNED]))
    return out
