"""Groups of people in the data: how many, which labels they get, what is missing, what tells them apart."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from curate.check import Column, Emitted, FitCheck, Scores, State, parameters, stored_facts
from curate.dataset import Names, Roles, Rows, is_single
from curate.errors import RequestError, did_you_mean
from curate.grouping import Cut, Grouping, crossed, cut

JUDGES = ("label_noise", "outlier")
"""the checks whose findings are counted by group"""
Shares = dict[str, dict[str, Annotated[float, Field(ge=0, le=1)]]]


@parameters
class Bias(FitCheck):
    r"""How the groups of each `group` column differ in number, labels, missing cells, suspicion and wording.

    *Columns*: `group`, the row's group by all group columns together, such as `Female, Black`, rare ones as
    `(other values)`. Where there is text: `identity_terms`, how many words of it name a group of people, and `has_twin`,
    another text says the same of somebody else. What the whole data shows is in the report, and in `report.json` under the
    stage's `detail`.

    *Missing*: `identity_terms` where all texts are null. A row without a value is in the group `(missing)`, which is
    a group like the others. What could not be judged is listed under `not_assessed` with its reason.

    *Evidence*: each table has a line a group, for every group column and for the intersections of two.
    `representation`: the share of the rows against the reference. `label_rates`: the share of the favourable label, the
    share of all other rows less it, and its ratio to the highest group's, held against the four-fifths line.
    `label_gaps`: for a column the difference and the ratio of the two groups that differ most. `distances`: Clarify's
    CI, DPL, KL, JS, LP, TVD, KS and CDDL, the group against all other rows. `missing_cells`, and what `label_noise` and
    `outlier` found, where they ran before (`found_by_earlier_stages`). `proxies`: how well another column tells the group.
    For text `identity_terms` and `toxicity`, and how many texts have a counterfactual twin.

    *Findings*: shares have Wilson's interval, differences Newcombe's, ratios Donner and Zou's, distances a bootstrap's, all at
    95 %. `q` is the p value of the group against all other rows (of `representation`: against the reference) after
    Benjamini and Hochberg, over all groups of the table. `differs` needs q at most 0.05 and a difference above `margin`;
    `within margin` an interval inside it; all else, and every group of fewer than `min_size` rows, is `insufficient
    evidence`, which does not mean fair.

    *Cost*: one fit, on at most a million rows, and a pass.

    *Source*: the eight measures and their signs are SageMaker Clarify's (Hardt et al., KDD 2021), without its fault of
    comparing only the labels that both sides have; difference and ratio of `label_gaps` are fairlearn's
    `demographic_parity_difference` and `_ratio`; the four-fifths line is that of the Uniform Guidelines on Employee
    Selection Procedures (1978); identity terms follow Dixon et al. (2018).

    *When it is wrong*: it sees rows, not people: a group that is rare in the world is rare here too, equal rates can be
    unfair and unequal ones justified. Words are counted, not understood: `{text: "a black coat"}` has an identity term.
    """

    favourable: str | None = None
    """the label, as written, that people want; of two labels the rarer when not given"""
    reference: Shares = Field(default_factory=dict)
    """for a group column, the share each group should have; equal shares when not given"""
    within: str | None = None
    """the column whose values are the strata of CDDL"""
    of: Names = ()
    """the columns to look for missing cells and proxies in; features when not given, or all that have no other role"""
    min_size: Annotated[int, Field(ge=2)] = 30
    """a group of fewer rows is counted and not judged"""
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """a difference of shares that is too small to matter"""
    quantiles: Annotated[int, Field(ge=2, le=50)] = 5
    """a group column of more than 20 different numbers is cut into so many groups"""
    max_groups: Annotated[int, Field(ge=2, le=200)] = 50
    """the most frequent values of a group column that are groups of their own"""
    toxic_words: Names = ()
    """words that insult, besides the built-in ones"""

    name: ClassVar[str] = "bias"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """Groups, label, text, the strata, and the columns that may be proxies."""
        if not roles.group and not roles.text:
            raise RequestError(
                "`bias` compares groups, and no column has the role `group`, nor `text` to look for names of groups in",
                place="roles",
                hint="add `roles: {group: [COLUMN]}`; the columns are " + ", ".join(schema.names),
            )
        self._known(roles, schema)
        named, used = self._named(roles), {column for _, column in roles}
        others = self.of or roles.features or tuple(one.name for one in schema if one.name not in used and is_single(one.type))
        return tuple(dict.fromkeys((*(name for name in others if name not in named), *named)))

    def uses(self, roles: Roles, earlier: Sequence[Emitted]) -> tuple[str, ...]:
        """Suspicions and flags of the checks that judge labels and cells."""
        return tuple(one.name for one in earlier if one.check in JUDGES and one.column.kind in ("suspicion", "flag"))

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        found = []
        if roles.group:
            found.append(Column("group", "category", "the row's group by all group columns together"))
        if roles.text:
            found.append(Column("identity_terms", "measure", "words of the text that name a group of people", "words"))
            found.append(Column("has_twin", "flag", "another text differs from this one only in whom it names"))
        return tuple(found)

    def fit(self, rows: Rows) -> State:
        """The groups, the keys of texts with a twin, and the evidence as JSON text: a state holds no objects."""
        from curate import bias_tables, bias_text

        cuts = [cut(name, rows.table.column(name), self.quantiles, self.max_groups) for name in rows.roles.group]
        plain = [Grouping(one.column, one.groups, one.codes(rows.table.column(one.column))) for one in cuts]
        groupings = [one.occurring() for one in plain]
        notes: list[dict[str, str]] = []
        for pair in itertools.combinations(groupings, 2):
            both, small = crossed(*pair, self.min_size)
            groupings.append(both.occurring())
            if small:
                notes.append(
                    {"what": both.name, "reason": f"{small} intersections of fewer than {self.min_size} rows are in one"}
                )
        told = bias_tables.tables(self, rows, groupings, len(cuts), notes) if cuts and len(rows) else {}
        state: dict[str, Any] = {"twins": np.empty(0, np.uint64)}
        if rows.roles.text:
            about, state["twins"] = bias_text.evidence(rows, self.toxic_words, self.min_size, self.margin)
            told |= about
        told["not_assessed"] = notes
        for at, one in enumerate(cuts):
            state |= {f"names{at}": np.array(one.names, np.str_), f"edges{at}": np.array(one.edges, np.float64)}
        state |= {"combined": self._combined(plain), **stored_facts(told)}
        return state

    def score(self, rows: Rows, state: State) -> Scores:
        found: dict[str, pa.Array] = {}
        if rows.roles.group:
            cuts = [
                Cut(name, tuple(state[f"names{at}"].tolist()), tuple(state[f"edges{at}"].tolist()))
                for at, name in enumerate(rows.roles.group)
            ]
            names = _joined([Grouping(one.column, one.groups, one.codes(rows.table.column(one.column))) for one in cuts])
            known = pa.array(state["combined"].tolist(), pa.string())
            found["group"] = pc.if_else(pc.is_in(names, value_set=known), names, "(other values)")
        if rows.roles.text:
            from curate.identity import count_terms, twin_keys

            text = rows.whole_text()
            found["identity_terms"] = count_terms(text)
            found["has_twin"] = pa.array(np.isin(twin_keys(text)[0], state["twins"]))
        return found

    def examined(self, rows: Rows) -> tuple[str, ...]:
        """The columns that are searched for missing cells and proxies: those before the ones with a part of their own."""
        before, _ = self._beside(rows)
        return tuple(dict.fromkeys((*self.of, *before)))

    def found_earlier(self, rows: Rows) -> tuple[str, ...]:
        """The columns of earlier stages, which stand last."""
        return self._beside(rows)[1]

    def _beside(self, rows: Rows) -> tuple[tuple[str, ...], tuple[str, ...]]:
        names, named = rows.table.column_names, self._named(rows.roles)
        places = [names.index(name) for name in named]
        return tuple(names[: min(places)]), tuple(names[max(places) + 1 :])

    def _named(self, roles: Roles) -> tuple[str, ...]:
        """Groups, label, text and strata: they stand together, between the examined columns and those of earlier stages."""
        label, within = (roles.label,) if roles.label else (), (self.within,) if self.within else ()
        return tuple(dict.fromkeys((*roles.group, *label, *roles.text, *within)))

    def _known(self, roles: Roles, schema: pa.Schema) -> None:
        """Raise `RequestError` where a parameter names a column that is not there."""
        for key, columns in (("of", self.of), ("within", [self.within] if self.within else ()), ("reference", self.reference)):
            for column in columns:
                known = roles.group if key == "reference" else schema.names
                if column not in known:
                    raise RequestError(
                        f"`bias`: `{key}` names the column `{column}`, which "
                        + ("has not the role `group`" if key == "reference" else "the data does not have"),
                        hint=did_you_mean(column, known),
                    )

    def _combined(self, groupings: Sequence[Grouping]) -> Any:
        """The names of the most frequent intersections of all group columns."""
        if not groupings:
            return np.array([], np.str_)
        counts = _joined(groupings).value_counts()
        pairs = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
        return np.array([name for name, _ in sorted(pairs, key=lambda one: (-one[1], one[0]))[:200]], np.str_)


def _joined(groupings: Sequence[Grouping]) -> pa.StringArray:
    names = [pa.array(one.groups, pa.string()).take(pa.array(one.codes)) for one in groupings]
    return names[0] if len(names) == 1 else pc.binary_join_element_wise(*names, ", ")
