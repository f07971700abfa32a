"""How many rows each class of the label has."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from curate.check import Column, FitCheck, Scores, State, parameters, stored_facts
from curate.dataset import Roles, Rows
from curate.grouping import FEW, as_floats, is_number, label_column, words
from curate.intervals import wilson

LISTED = 200
"""classes the report lists by name, the largest first and then the smallest"""
MANY = 10_000
"""a label of more values than this names no classes"""


@parameters
class ClassBalance(FitCheck):
    r"""How the rows spread over the classes of the label: shares, imbalance, and classes too small to learn or to judge.

    *Columns*: `class_share`, the share of the rows that have the row's label.

    *Missing*: `class_share` where the label is null, and for every row where the label names no classes: a number
    with fractions and more than 20 different values, or more than 10,000 different values of any kind. The report says so.

    *Evidence*: `balance`: classes, rows without a label, largest and smallest class, `imbalance_ratio` (largest by smallest),
    `entropy` in nats, `effective_classes` (e to the entropy: 1 where one class has all rows, the number of classes
    where all are equal) and `evenness` (effective by counted classes). `classes`: each class's rows and share with Wilson's
    95 % interval, and the weight that would balance it. A class of fewer than `least` rows is warned of.

    *Cost*: one fit, on at most a million rows, and a pass.

    *Source*: the effective number is Hill's of order one ("Diversity and evenness", 1973); the weights are those
    scikit-learn calls `balanced`.

    *When it is wrong*: a rare class may be as rare in the world; nothing here says that it should not be. Labels are compared
    as written: `{label: "Yes"}` and `{label: "yes"}` are two classes.
    """

    least: Annotated[int, Field(ge=1)] = 10
    """a class of fewer rows is warned of"""

    name: ClassVar[str] = "class_balance"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The label."""
        return (label_column(self.name, roles, schema),)

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        return (Column("class_share", "measure", "the share of the rows that have the row's label", "share"),)

    def fit(self, rows: Rows) -> State:
        column = rows.table.column(0)
        labels = words(column)
        counts = labels.drop_null().value_counts()
        pairs = dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))
        names = sorted(pairs, key=lambda name: (-pairs[name], name))
        if _is_measured(column) or len(names) > MANY:
            told = {"not_assessed": f"the label has {len(names)} different values: it names no classes"}
            return {"names": np.array([], np.str_), "shares": np.empty(0), **stored_facts(told)}
        total = sum(pairs.values())
        told = _evidence([(name, pairs[name]) for name in names], labels.null_count, self.least)
        shares = np.array([pairs[name] / total for name in names], np.float64)
        return {"names": np.array(names, np.str_), "shares": shares, **stored_facts(told)}

    def score(self, rows: Rows, state: State) -> Scores:
        if not len(state["names"]):
            return {"class_share": pa.nulls(len(rows), pa.float64())}
        labels = words(rows.table.column(0))
        place = pc.index_in(labels, value_set=pa.array(state["names"].tolist(), pa.string()))
        share = (
            pa.array(state["shares"]).take(place).fill_null(0.0)
        )  # a label that the sample does not have is rarer than it can say
        return {"class_share": pc.if_else(labels.is_valid(), share, pa.scalar(None, pa.float64()))}


def _is_measured(column: pa.ChunkedArray) -> bool:
    """Whether a label is a measured number: with fractions, and more different values than classes have."""
    if not is_number(column.type) or pa.types.is_integer(column.type):
        return False
    values = np.unique(as_floats(column.drop_null()))
    values = values[np.isfinite(values)]
    return len(values) > FEW and bool(np.any(values != np.floor(values)))


def _evidence(classes: list[tuple[str, int]], nulls: int, least: int) -> dict[str, Any]:
    total = sum(rows for _, rows in classes)
    if not total:
        return {"not_assessed": "no row has a label"}
    entropy = -sum(rows / total * math.log(rows / total) for _, rows in classes)
    (largest, most), (smallest, fewest) = classes[0], classes[-1]
    lines = []
    shown = classes if len(classes) <= LISTED else [*classes[: LISTED // 2], *classes[-LISTED // 2 :]]
    for name, rows in shown:
        low, high = wilson(rows, total)
        line = {"class": name, "rows": rows, "share": rows / total, "share_low": low, "share_high": high}
        lines.append(line | {"balanced_weight": total / len(classes) / rows})
    small = [name for name, rows in classes if rows < least]
    warnings = [f"{len(small)} of {len(classes)} classes have fewer than {least} rows, such as {', '.join(small[-3:])}"]
    return {
        "balance": {
            "classes": len(classes),
            "rows": total,
            "without_label": nulls,
            "largest": largest,
            "largest_rows": most,
            "smallest": smallest,
            "smallest_rows": fewest,
            "imbalance_ratio": most / fewest,
            "entropy": abs(entropy),
            "effective_classes": math.exp(entropy),
            "evenness": math.exp(entropy) / len(classes),
        },
        "classes": lines,
        "classes_left_out": len(classes) - len(lines),
        "warnings": warnings if small else [],
    }
