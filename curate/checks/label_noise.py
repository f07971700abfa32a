"""Labels that are likely wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from curate import encode, noise
from curate.audit import Audit, read_audit, share_wrong
from curate.check import Column, Emitted, FitCheck, Scores, State, parameters
from curate.dataset import Roles, Rows, as_text
from curate.errors import RequestError
from curate.policy import Rule

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
USED = ("probabilities", "label", "copies_disagree")
KINDS = ("likely wrong", "spared", "ambiguous", "unlike any class", "not assessable", "consistent")
CLEAR = 0.2
"""where the two likeliest classes are closer than this, a row is ambiguous"""
FAINT = 2.0
"""a likeliest class below so many times 1 / classes is no class at all"""
STANDS = 0.001
"""a default budget that would change by less stands"""
AUDITED = 5
"""fewer reviewed rows of a class say nothing of it"""


RELABELLED = Column("relabelled", "category", "the suggested label where the given one is likely wrong, else the given one")


@parameters
class LabelNoise(FitCheck):
    """Each row's label judged by models that have not seen the row: put `oof_probs` before it.

    *Columns*: `suspicion`, 1 - the probability of the given label; `given` and `suggested` labels, with
    `given_probability` and `suggested_probability`; `kind`, one of *likely wrong*, *spared* (likely wrong, beyond the
    budget of its class or group), *ambiguous* (two classes are about as likely), *unlike any class*, *not assessable*
    (no model knew its class), *consistent*; the flags `likely_wrong`, `confident_learning` and `disagreement`, what the two
    rules say by themselves; and `copies_conflict`, a copy of the row carries another label.

    *Missing*: rows without a label or probabilities; all but `kind` for those not assessable.

    *Rules*: none by default; flagged is not wrong. To reject: `reject: [{is_true: likely_wrong}]`.

    *Regimes*: where confident learning picks at least half of the rows the model disagrees with, noise looks *random*,
    and its picks are the likely errors; otherwise it is *structured*, and likely errors are labels with less than half
    the probability. The estimated rate is the share of picks with a Wilson interval, or else the mean suspicion,
    which is called not reliable.

    *Budgets*: no class, and no value of a group column, has more likely errors than its `budget`, a share of its rows: twice
    what all rows lose within the budgets, and at least 5 %, unless given. The most suspicious ones stay, the others are
    spared. So a rare class, or a minority whose labels follow other rules, is not eaten by models that never learnt it.

    *Raises*: `RequestError` where no `oof_probs` stage comes before it, where the probabilities look in-sample (they
    disagree with no label in 2,000), and for an audit file it cannot use.

    *Cost*: what cleanlab's filter costs, once over up to two million rows, and the probabilities twice in memory.

    *Source*: confident learning, `prune_by_noise_rate` in cleanlab (Northcutt, Jiang and Chuang, 2021); self-confidence as
    the ranking. Estimates from an audit follow Horvitz and Thompson (1952).

    *When it is wrong*: hard rows, rare phrasings and minorities look like errors; errors that follow a rule look right,
    since models learn the rule. `audit: FILE` tells how many flags are errors in your data.
    """

    budget: Annotated[float, Field(gt=0, le=1)] | Literal["none"] | None = None
    """the largest share of a class or group that may be flagged; `none` for no budget"""
    relabel: str | None = None
    """a name: kept rows get a column of it, with the suggested label where theirs is likely wrong and their own elsewhere"""
    audit: str | None = None
    """a CSV or Parquet file of reviewed rows: `id`, `wrong`, and perhaps `probability`, the chance by which it was drawn"""

    name: ClassVar[str] = "label_noise"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True
    fit_rows: ClassVar[int] = 2_000_000

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The label; groups, for their budgets; the id, where there is an audit."""
        if roles.label is None:
            raise RequestError(
                "`label_noise` judges labels, and no column has the role `label`",
                place="roles",
                hint="add `roles: {label: COLUMN}`",
            )
        if self.audit and roles.id is None:
            raise RequestError(
                "an audit names rows, and no column has the role `id`", place="roles", hint="add `roles: {id: COLUMN}`"
            )
        return tuple(dict.fromkeys((roles.label, *roles.group, *((roles.id,) if self.audit and roles.id else ()))))

    def uses(self, roles: Roles, earlier: Sequence[Emitted]) -> tuple[str, ...]:
        """What the nearest `oof_probs` stage before it says."""
        stages = [one.stage for one in earlier if one.check == "oof_probs"]
        if not stages:
            raise RequestError("`label_noise` reads what `oof_probs` says", hint="put the stage `oof_probs` before it")
        return tuple(f"{stages[-1]}.{name}" for name in USED)

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """Suspicion, labels with their probabilities, kind and flags."""
        return (
            Column("suspicion", "suspicion", "1 - the probability of the given label"),
            Column("given", "category", "the label as it is"),
            Column("suggested", "category", "the label the models hold for right"),
            Column("given_probability", "measure", "what the models give the given label", "share"),
            Column("suggested_probability", "measure", "what the models give the suggested label", "share"),
            Column("kind", "category", "; ".join(KINDS)),
            Column("likely_wrong", "flag", "likely wrong by the rule of the regime, within the budgets"),
            Column("confident_learning", "flag", "picked by confident learning"),
            Column("disagreement", "flag", "the models hold another class for likelier"),
            Column("copies_conflict", "flag", "a copy of the row carries another label"),
        ) + ((RELABELLED,) if self.relabel else ())

    def adds(self, roles: Roles, schema: pa.Schema) -> Mapping[str, tuple[str, pa.DataType]]:
        """The label to go on with, in the type of the given one."""
        if self.relabel is None:
            return {}
        return {self.relabel: ("relabelled", _cast_back(schema.field(str(roles.label)).type))}

    def default_rules(self, roles: Roles, schema: pa.Schema) -> tuple[Rule, ...]:
        """None: the check reports, and rejects where asked to."""
        return ()

    def fit(self, rows: Rows) -> State:
        """The regime, the rate, the picks of confident learning by row id, and the limits that keep the budgets."""
        seen = _seen(rows)
        if not len(seen.labels):
            return {"names": np.array([], dtype="U1"), "reason": np.array(["no row has a label and probabilities"])}
        names = _names(seen)
        if noise.looks_in_sample(seen.labels, seen.shares):
            raise RequestError(
                f"the probabilities disagree with hardly one of {len(seen.labels):,} labels: they look in-sample",
                place=self.name,
                hint="give probabilities by models that have not seen the row, or let `oof_probs` make them",
            )
        found = noise.assess(seen.labels, seen.shares)
        budget, limits = self._within_budget(rows, seen, found)
        kept = found.likely & (found.suspicion >= _limit(rows, seen, limits))
        classes = len(names)
        state = {
            "names": np.array(names, dtype=np.str_),
            "reason": np.array([""], dtype="U1"),
            "random": np.array(found.regime == "random"),
            "rate": np.array([found.rate, *([np.nan] * 2 if found.low is None else [found.low, found.high])]),
            **limits,
            "budget": np.array(np.nan if budget is None else budget),
            "confident": np.sort(rows.row_ids[seen.at[found.confident]]),
            "likely": np.sort(rows.row_ids[seen.at[found.likely]]) if found.regime == "random" else np.array([], np.uint64),
            "in_class": np.bincount(seen.labels, minlength=classes),
            "flagged_in_class": np.bincount(seen.labels[kept], minlength=classes),
            "spared_in_class": np.bincount(seen.labels[found.likely & ~kept], minlength=classes),
            "confusion": noise.confusion(seen.labels, found.suggested, kept, classes),
            "precision": np.array(noise.precision(seen.labels, seen.shares, kept)),
        }
        return state | (self._audited(rows, seen, found.likely) if self.audit else {})

    def score(self, rows: Rows, state: State) -> Scores:
        """Every row by its own probabilities; the picks of confident learning for the fitted ones."""
        seen = _seen(rows)
        names, count = [str(name) for name in state["names"]], len(rows)
        suspicion, kind = np.full(count, np.nan), np.full(count, -1)
        suggested, shares = np.full(count, -1), np.full((count, 2), np.nan)
        flags = np.zeros((count, 3), np.bool_)
        if len(seen.labels) and names:
            given, best = noise.given_and_likeliest(seen.labels, seen.shares)
            disagree, doubt = best != seen.labels, np.clip(1 - given, 0, 1)
            confident = np.isin(rows.row_ids[seen.at], state["confident"])
            is_random = bool(state["random"])
            likely = np.isin(rows.row_ids[seen.at], state["likely"]) if is_random else doubt >= noise.DOUBT
            kept = likely & (doubt >= _limit(rows, seen, state))
            best = noise.suggested(best, likely, seen.labels, seen.shares)
            suspicion[seen.at], suggested[seen.at] = doubt, best
            shares[seen.at, 0] = given
            shares[seen.at, 1] = seen.shares[np.arange(len(best)), best]
            flags[seen.at] = np.column_stack([kept, confident, disagree])
            kind[seen.at] = _kinds(seen.shares, likely, kept)
        kind[seen.beyond] = KINDS.index("not assessable")
        return self._columns(rows, seen, names, suspicion, suggested, shares, kind, flags)

    def evidence(self, state: State) -> Mapping[str, Any]:
        """Regime, rate, and by class what was flagged and spared; the most frequent confusions; what the audit says."""
        if str(state["reason"][0]):
            return {"reason": str(state["reason"][0])}
        names = [str(name) for name in state["names"]]
        rate, low, high = (None if np.isnan(one) else float(one) for one in state["rate"])
        budget = None if np.isnan(state["budget"]) else float(state["budget"])
        cells = state["confusion"]
        most = np.argsort(-cells.ravel(), kind="stable")[:20]
        told = {
            "reason": None,
            "regime": "random" if bool(state["random"]) else "structured",
            "noise_rate": {"value": rate, "low": low, "high": high, "reliable": low is not None},
            "estimated_precision": None if np.isnan(state["precision"]) else float(state["precision"]),
            "budget": budget,
            "by_class": [
                {"class": name, "rows": int(rows), "likely_wrong": int(flagged), "spared": int(spared)}
                for name, rows, flagged, spared in zip(
                    names, state["in_class"], state["flagged_in_class"], state["spared_in_class"], strict=True
                )
            ],
            "confusions": [
                {"given": names[at // len(names)], "suggested": names[at % len(names)], "rows": int(cells.ravel()[at])}
                for at in most.tolist()
                if cells.ravel()[at]
            ],
        }
        return told | ({"audit": _told(state, names)} if "audit_flagged" in state else {})

    def _within_budget(self, rows: Rows, seen: _Seen, found: noise.Assessed) -> tuple[float | None, dict[str, npt.NDArray[Any]]]:
        """The budget and the limits that keep it; by default twice the share that is flagged where the budget is kept.

        So what a minority would lose does not raise its own budget: the share is taken again until it stands.
        """
        if self.budget is not None:
            budget = None if self.budget == "none" else float(self.budget)
            return budget, self._limits(rows, seen, found, budget)
        budget, limits = 1.0, self._limits(rows, seen, found, None)
        share = float(found.likely.mean())
        while noise.default_budget(share) < budget - STANDS:
            budget = noise.default_budget(share)
            limits = self._limits(rows, seen, found, budget)
            share = float((found.likely & (found.suspicion >= _limit(rows, seen, limits))).mean())
        return budget, limits

    def _limits(self, rows: Rows, seen: _Seen, found: noise.Assessed, budget: float | None) -> dict[str, npt.NDArray[Any]]:
        """By class, and by value of each group column, the suspicion that keeps the budget; 0 where there is no need."""
        limits = {"limits": np.zeros(seen.shares.shape[1])}
        if budget is not None:
            for label, limit in noise.within_budget(found.likely, found.suspicion, seen.labels, budget).items():
                limits["limits"][label] = limit
        for at, column in enumerate(rows.roles.group):
            values = as_text(rows.table.column(column)).take(pa.array(seen.at)).dictionary_encode()
            member = np.asarray(values.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
            within = {} if budget is None else noise.within_budget(found.likely, found.suspicion, member, budget)
            limits[f"group{at}"] = np.array([values.dictionary[one].as_py() for one in within], dtype=np.str_)
            limits[f"group{at}_limits"] = np.array(list(within.values()), np.float64)
        return limits

    def _audited(self, rows: Rows, seen: _Seen, likely: Bools) -> dict[str, npt.NDArray[Any]]:
        """Of each reviewed row among the fitted ones: whether it was flagged, is wrong, its class, and its chance to be drawn."""
        audit: Audit = read_audit(str(self.audit))
        ids = as_text(rows.table.column(str(rows.roles.id))).take(pa.array(seen.at))
        place = pc.index_in(audit.ids, value_set=ids)
        known = np.asarray(place.is_valid())
        at = np.asarray(place.drop_null().to_numpy(zero_copy_only=False), np.int64)
        return {
            "audit_flagged": likely[at],
            "audit_wrong": audit.wrong[known],
            "audit_drawn": audit.drawn[known],
            "audit_class": seen.labels[at],
        }

    def _columns(
        self,
        rows: Rows,
        seen: _Seen,
        names: list[str],
        suspicion: npt.NDArray[np.float64],
        suggested: Int64s,
        shares: npt.NDArray[np.float64],
        kind: Int64s,
        flags: Bools,
    ) -> Scores:
        out = pa.array(np.isnan(suspicion))
        words = pa.array(names, pa.string())
        missing = np.isnan(suspicion)
        label = as_text(rows.table.column(str(rows.roles.label))).cast(pa.string())
        better = words.take(pa.array(suggested, mask=missing))
        relabelled = {"relabelled": pc.if_else(pa.array(flags[:, 0]), better, label)} if self.relabel else {}
        return relabelled | {
            "suspicion": pa.array(suspicion, mask=missing),
            "given": pc.if_else(out, pa.scalar(None, pa.string()), label),
            "suggested": better,
            "given_probability": pa.array(shares[:, 0], mask=missing),
            "suggested_probability": pa.array(shares[:, 1], mask=missing),
            "kind": pa.array(KINDS, pa.string()).take(pa.array(kind, mask=kind < 0)),
            "likely_wrong": pa.array(flags[:, 0], mask=missing),
            "confident_learning": pa.array(flags[:, 1], mask=missing),
            "disagreement": pa.array(flags[:, 2], mask=missing),
            "copies_conflict": pa.array(seen.conflict, mask=missing),
        }


@dataclass(frozen=True)
class _Seen:
    """The rows (by place) that have a label and probabilities, these two, and of all rows whether copies disagree."""

    at: Int64s
    labels: Int64s
    shares: npt.NDArray[np.float32]
    written: pa.LargeStringArray
    conflict: Bools
    beyond: Int64s
    """rows with probabilities whose class the models did not know"""


def _seen(rows: Rows) -> _Seen:
    table = rows.table  # the columns of earlier stages stand last, whatever the others are called
    probabilities, label, disagree = (
        next(table.column(name) for name in reversed(table.column_names) if name.endswith(f".{used}")) for used in USED
    )
    known = np.asarray(pc.and_(probabilities.is_valid(), label.is_valid()).to_numpy(), np.bool_)
    at = np.flatnonzero(known)
    labelled = rows.table.column(str(rows.roles.label)).is_valid()
    beyond = np.flatnonzero(pc.and_(labelled, probabilities.is_valid()).to_numpy() & ~known)
    shares = encode.matrix(probabilities.filter(pa.array(known)))
    assert shares is not None, "one stage's vectors are of one length"
    conflict = np.asarray(disagree.fill_null(0.0).to_numpy(), np.float64) > 0
    written = as_text(rows.table.column(str(rows.roles.label))).filter(pa.array(known))
    return _Seen(at, np.asarray(label.to_numpy(), np.float64)[at].astype(np.int64), shares, written, conflict, beyond)


def _limit(rows: Rows, seen: _Seen, state: State) -> npt.NDArray[np.float64]:
    """The suspicion each row must reach to stay in the budgets of its class and its groups."""
    limit = state["limits"][np.minimum(seen.labels, len(state["limits"]) - 1)]
    for at, column in enumerate(rows.roles.group):
        values = as_text(rows.table.column(column)).take(pa.array(seen.at))
        place = pc.index_in(values, value_set=pa.array(state[f"group{at}"].tolist(), pa.large_string())).fill_null(-1)
        mine = np.asarray(place.to_numpy(zero_copy_only=False), np.int64)
        limit = np.where(mine >= 0, np.maximum(limit, np.append(state[f"group{at}_limits"], 0.0)[mine]), limit)
    return np.asarray(limit, np.float64)


def _names(seen: _Seen) -> list[str]:
    """What each class is called, by the labels of the rows; a class that no row has keeps its number."""
    names = [f"class {at}" for at in range(seen.shares.shape[1])]
    labels, first = np.unique(seen.labels, return_index=True)
    for label, at in zip(labels.tolist(), first.tolist(), strict=True):
        names[label] = seen.written[at].as_py()
    return names


def _cast_back(kind: pa.DataType) -> pa.DataType:
    """The type that a label of this type is written in again; text where it would not come back from text."""
    plain = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_large_string(kind)
    return kind if plain else pa.string()


def _kinds(shares: npt.NDArray[np.float32], likely: Bools, kept: Bools) -> Int64s:
    classes = shares.shape[1]
    top = np.sort(shares, axis=1)[:, -2:]
    kind = np.full(len(shares), KINDS.index("consistent"))
    kind[top[:, 1] - top[:, 0] < CLEAR] = KINDS.index("ambiguous")
    kind[(top[:, 1] < FAINT / classes) & (classes > 2)] = KINDS.index("unlike any class")
    kind[likely & ~kept] = KINDS.index("spared")
    kind[kept] = KINDS.index("likely wrong")
    return kind


def _told(state: State, names: list[str]) -> dict[str, Any]:
    """What the audit says of flagged rows, of the others, and of each class with enough reviewed flags."""
    flagged, wrong, drawn = state["audit_flagged"], state["audit_wrong"], state["audit_drawn"]
    classes = state["audit_class"]
    by_class = [
        {"class": name, **share_wrong(wrong[mine], drawn[mine])}
        for at, name in enumerate(names)
        for mine in (flagged & (classes == at),)
        if mine.sum() >= AUDITED
    ]
    return {
        "flagged": share_wrong(wrong[flagged], drawn[flagged]),
        "not_flagged": share_wrong(wrong[~flagged], drawn[~flagged]),
        "by_class": by_class,
    }
