"""What models that never saw a row think its label is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from curate import encode, features, folds, oof
from curate.check import Column, FitCheck, Scores, State, parameters
from curate.dataset import Roles, Rows, as_text
from curate.errors import RequestError
from curate.linear import Linear, fit_linear

Int64s = npt.NDArray[np.int64]
MOST_CLASSES = 1000
TOLERANCE = 1e-3
"""given probabilities of a row may sum to 1 within this"""


@parameters
class OofProbs(FitCheck):
    """Class probabilities of each row, by models that were trained without it and without its copies.

    *Columns*: `probabilities`, a vector with a number for each class, in the order of `classes` in the report (by the
    written form of the label); `predicted`, the likeliest class, and `confidence`, its probability; `label`, the
    position of the row's own label among the classes, where the models that judged the row knew it; `copies`, rows in
    its cluster of copies, itself counted; `copies_disagree`, the share of the other copies that carry another label.

    *Missing*: rows without a label or without what the models read; every row where there are fewer than two classes
    or two clusters. The last two columns for rows beyond the fitted ones.

    *Models*: texts get logistic regression over TF-IDF of words, pairs of words and character n-grams, averaged with
    extremely randomised trees over their presence; tables gradient boosting, logistic regression and such trees; a
    column of vectors logistic regression and nearest neighbours. With text and features, all of them. `fast: true`
    takes the first of each kind. The report names them, with the number of trainings. Nothing is sharpened: suspicion
    ranks better so; `temperature` in the report is the power that would calibrate the probabilities to the labels.

    *Folds*: rows that share a band of MinHash minima at a similarity of 0.8 (texts), hold the same cells (tables), or
    have the same `group_key`, are in one fold; classes are spread evenly. Folds, and thus all numbers, depend on what
    rows hold, not on their order.

    *Cost*: folds x models trainings on up to 200,000 rows, drawn by the seed; the rows beyond them are judged by one
    more linear model of all fitted texts, or, in a table, get no answer. Trees of texts are left out above 20,000 rows;
    100,000 texts of 100 words in 20 classes then take about 40 s of one core and 1 GB.

    *Raises*: `RequestError` for more than 1,000 classes, for lists as labels, and where there is nothing to read.

    *Source*: out-of-fold prediction as confident learning needs it (Northcutt, Jiang and Chuang, 2021); folds grouped by
    duplicate, since a model that saw a copy with the same wrong label believes it.

    *When it is wrong*: a class of fewer rows than folds is hardly learnt, and a class whose rows are all in one fold gets
    probability 0 there; `label_noise` calls such rows not assessable. Labels that follow from the text by a wrong rule are
    learnt as if they were right.
    """

    folds: Annotated[int, Field(ge=2, le=50)] = 5
    """parts of the data, each judged by models of the others"""
    fast: bool = False
    """one model instead of several"""
    group_key: str | None = None
    """a column: rows with the same value are in one fold, such as those of one author"""
    probabilities: str | None = None
    """a column of lists with your own out-of-sample probabilities, in the order of the classes; no model is trained"""

    name: ClassVar[str] = "oof_probs"
    version: ClassVar[int] = 1
    fit_rows: ClassVar[int] = 200_000

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The label, and the texts and features, or the given probabilities."""
        if roles.label is None:
            raise RequestError(
                "`oof_probs` judges labels, and no column has the role `label`",
                place="roles",
                hint="add `roles: {label: COLUMN}`",
            )
        if pa.types.is_nested(schema.field(roles.label).type):
            kind = schema.field(roles.label).type
            raise RequestError(f"the label `{roles.label}` is of type {kind}", hint="one class a row is expected, not a list")
        read = (self.probabilities,) if self.probabilities else (*roles.text, *roles.features)
        if not read:
            raise RequestError(
                "`oof_probs` finds nothing that models could read",
                place="roles",
                hint="give a column the role `text` or `features`",
            )
        for name in (*read, *((self.group_key,) if self.group_key else ())):
            if name == roles.label:
                raise RequestError(
                    f"`{name}` is the label itself", place="roles", hint="a model that reads the label finds no error"
                )
        return tuple(dict.fromkeys((roles.label, *read, *((self.group_key,) if self.group_key else ()))))

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """The probabilities, what follows from them, and what is known of copies."""
        return (
            Column("probabilities", "vector", "the probability of each class"),
            Column("predicted", "category", "the likeliest class"),
            Column("confidence", "measure", "the probability of the likeliest class", "share"),
            Column("label", "measure", "the position of the row's label among the classes", "class"),
            Column("copies", "measure", "rows in the cluster of copies, this one counted", "rows"),
            Column("copies_disagree", "measure", "how many of the other copies carry another label", "share"),
        )

    def fit(self, rows: Rows) -> State:
        """The out-of-fold probabilities of the fitted rows, by what they hold, and a model for rows beyond them."""
        written = as_text(rows.table.column(str(rows.roles.label)))
        classes = sorted(set(written.to_pylist()))
        if len(classes) > MOST_CLASSES:
            raise RequestError(
                f"the label `{rows.roles.label}` has {len(classes):,} values",
                hint=f"at most {MOST_CLASSES:,} classes can be judged",
            )
        labels = _positions(written, classes)
        state: dict[str, npt.NDArray[Any]] = {"classes": np.array(classes, dtype=np.str_), "note": np.array([""], dtype="U1")}
        if len(classes) < 2:
            return state | {"note": np.array([f"{len(classes)} classes: nothing to tell apart"])}
        if self.probabilities:
            return state
        key = encode.content_keys(self._read(rows), rows.seed)
        order = np.lexsort((labels, key))
        return state | self._judged(_taken(rows, order), labels[order], key[order])

    def score(self, rows: Rows, state: State) -> Scores:
        """The stored probabilities of fitted rows; rows beyond them are judged by the linear model."""
        classes = [str(name) for name in state["classes"]]
        labels = _positions(as_text(rows.table.column(str(rows.roles.label))), classes)
        shares = np.full((len(rows), len(classes)), np.nan, np.float32)
        copies = np.full((len(rows), 2), np.nan)
        if self.probabilities and len(classes) > 1:
            shares = _given(rows.table.column(self.probabilities), len(classes))
        elif "key" in state:
            key = encode.content_keys(self._read(rows), rows.seed)
            place = np.minimum(np.searchsorted(state["key"], key), len(state["key"]) - 1)
            found = state["key"][place] == key
            shares[found] = state["shares"][place[found]]
            own = np.minimum(np.searchsorted(state["row"], rows.row_ids), len(state["row"]) - 1)
            fitted = state["row"][own] == rows.row_ids
            copies[fitted] = state["copies"][own[fitted]]
            labels[fitted & ~state["assessable"][own]] = -1
            if "kinds" in state and not found.all():
                shares[~found] = _judged_beyond(rows.take(~found), state, len(classes))
        return _columns(shares, labels, classes, copies)

    def evidence(self, state: State) -> Mapping[str, Any]:
        """The classes, the models and what they cost, and how well they agree with the labels."""
        told: dict[str, Any] = {"classes": [str(name) for name in state["classes"]], "reason": str(state["note"][0]) or None}
        if "models" in state:
            told |= {
                "models": [str(name) for name in state["models"]],
                "trainings": int(state["trainings"]),
                "folds": int(state["folds"]),
                "temperature": float(state["temperature"]),
                "not_assessable": int((~state["assessable"]).sum()),
                "agreement": float(state["agreement"]),
                "rows_with_copies": int((state["copies"][:, 0] > 1).sum()),
            }
        return told

    def _read(self, rows: Rows) -> list[Any]:
        return [rows.table.column(name) for name in (*rows.roles.text, *rows.roles.features)]

    def _judged(self, rows: Rows, labels: Int64s, key: encode.U64s) -> dict[str, npt.NDArray[Any]]:
        groupings = [folds.copies_by_key(key)]
        families: list[oof.Family] = []
        state: dict[str, npt.NDArray[Any]] = {}
        if rows.roles.text:
            text = rows.whole_text()
            groupings.append(folds.copies_of_texts(text))
            made, parts = oof.text_families(text, labels, _seed(rows), self.fast)
            families += made
            if len(labels) >= self.fit_rows:
                model = fit_linear(parts["linear"], labels, int(labels.max()) + 1, _seed(rows))
                state |= {**parts["weights"].to_state(), "seen": model.seen, "weights": model.weights}
        families += self._of_features(rows, labels)
        copies = folds.merged(*groupings)
        groups = copies
        if self.group_key:
            groups = folds.merged(copies, folds.copies_by_key(encode.content_keys([rows.table.column(self.group_key)], 0)))
        fold = oof.folds_of(labels, groups, key, self.folds)
        if fold.max() < 1:
            return {"note": np.array(["all rows are copies of each other, or have one group key"])}
        judged = oof.out_of_fold(families, labels, fold, int(labels.max()) + 1)
        by_row = np.argsort(rows.row_ids)
        return state | {
            "key": key,
            "shares": judged.probabilities.astype(np.float32),
            "row": rows.row_ids[by_row],
            "copies": _copies(copies, labels)[by_row],
            "assessable": judged.assessable[by_row],
            "models": np.array(judged.models, dtype=np.str_),
            "trainings": np.array(judged.trainings),
            "folds": np.array(fold.max() + 1),
            "temperature": np.array(judged.temperature),
            "agreement": np.array((judged.probabilities.argmax(axis=1) == labels).mean()),
        }

    def _of_features(self, rows: Rows, labels: Int64s) -> list[oof.Family]:
        kinds = {name: rows.table.schema.field(name).type for name in rows.roles.features}
        families: list[oof.Family] = []
        plain = tuple(name for name, kind in kinds.items() if not encode.is_vector(kind))
        if plain:
            families += oof.table_families(encode.encode(rows.table, plain), labels, _seed(rows), self.fast)
        for name in kinds:
            if name in plain:
                continue
            vectors = encode.matrix(rows.table.column(name))
            if vectors is None:
                raise RequestError(
                    f"the lists in `{name}` differ in length or have gaps", hint="a vector has one length in all rows"
                )
            families += oof.vector_families(vectors, labels, self.fast)
        return families


def _seed(rows: Rows) -> int:
    return int(rows.seed % 2**32)


def _taken(rows: Rows, order: Int64s) -> Rows:
    return Rows(rows.table.take(pa.array(order)), rows.row_ids[order], rows.roles, rows.seed)


def _positions(written: pa.LargeStringArray, classes: list[str]) -> Int64s:
    """Of each label its place among the classes, -1 for one that was not fitted."""
    found = pa.compute.index_in(written, value_set=pa.array(classes, pa.large_string()))
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def _copies(group: Int64s, labels: Int64s) -> npt.NDArray[np.float64]:
    """Of each row the size of its cluster, and the share of the others in it that carry another label (missing if none)."""
    _, cluster, sizes = np.unique(group, return_inverse=True, return_counts=True)
    _, pair, alike = np.unique(cluster * (labels.max() + 1) + labels, return_inverse=True, return_counts=True)
    size, same = sizes[cluster].astype(np.float64), alike[pair]
    return np.column_stack([size, np.divide(size - same, size - 1, out=np.full(len(size), np.nan), where=size > 1)])


def _given(column: pa.ChunkedArray, classes: int) -> npt.NDArray[np.float32]:
    """The caller's probabilities; NaN for a row whose list has another length, a gap, or another sum than 1."""
    shares = encode.matrix(column)
    if shares is None or shares.shape[1:] != (classes,):
        fits = pa.compute.equal(pa.compute.list_value_length(column), classes).fill_null(False)
        shares = np.full((len(column), classes), np.nan, np.float32)
        rows = [cell if ok else [np.nan] * classes for cell, ok in zip(column.to_pylist(), fits.to_pylist(), strict=True)]
        if rows:
            shares = np.array([[np.nan if one is None else one for one in row] for row in rows], np.float32)
    wrong = ~((shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) <= TOLERANCE))
    return np.where(wrong[:, None], np.float32(np.nan), np.minimum(shares, np.float32(1)))


def _judged_beyond(rows: Rows, state: State, classes: int) -> npt.NDArray[np.float32]:
    weights = features.Weights.from_state(state)
    text = rows.whole_text()
    matrix = features.weighted([features.sets(text, *kind) for kind in weights.kinds], weights)
    shares = np.zeros((len(rows), classes), np.float32)
    shares[:, : len(state["seen"])] = Linear(state["weights"], state["seen"]).probabilities(matrix)
    return shares


def _columns(shares: npt.NDArray[np.float32], labels: Int64s, classes: list[str], copies: npt.NDArray[np.float64]) -> Scores:
    known = ~np.isnan(shares).any(axis=1) if shares.size else np.zeros(len(shares), np.bool_)
    bounds = np.concatenate([[0], np.cumsum(np.where(known, shares.shape[1], 0))]).astype(np.int32)
    vectors = pa.ListArray.from_arrays(pa.array(bounds), pa.array(shares[known].ravel()), mask=pa.array(~known))
    best = np.where(known, np.nan_to_num(shares).argmax(axis=1) if shares.size else 0, 0)
    top = np.nan_to_num(shares).max(axis=1, initial=0).astype(np.float64)
    return {
        "probabilities": vectors,
        "predicted": pa.array(classes, pa.string()).take(pa.array(best, mask=~known)),
        "confidence": pa.array(top, mask=~known),
        "label": pa.array(labels.astype(np.float64), mask=~known | (labels < 0)),
        "copies": pa.array(copies[:, 0], mask=np.isnan(copies[:, 0])),
        "copies_disagree": pa.array(copies[:, 1], mask=np.isnan(copies[:, 1])),
    }
