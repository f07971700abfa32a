"""What goes with the label without being a reason for it: columns, and single words of the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from curate.association import cramers_v, table_of
from curate.check import Column, FitCheck, Scores, State, parameters, stored_facts
from curate.dataset import Names, Roles, Rows, is_single
from curate.errors import RequestError, did_you_mean
from curate.grouping import Codes, cut, label_column
from curate.hashing import mix64
from curate.intervals import wilson, z_of

LOOKED_AT = 50_000
"""rows that are looked at, chosen by the seed and the row ids"""
PARTS, MOST_VALUES = 10, 100
"""numbers are cut into so many parts; so many values of a column or labels are told apart"""
WORD = r"[\pL\pN_']+"


@parameters
class Spurious(FitCheck):
    r"""How strongly each other column goes with the label, and which single words of the text give the label away.

    *Columns*: where there is text, `has_shortcut`: the text has a word that gives a label away.

    *Missing*: `has_shortcut` where all texts are null. Columns that cannot be judged are listed under `not_assessed`.

    *Evidence*: `columns`: Cramér's V of each column and the label, 0 to 1, with its 95 % interval; numbers are cut into ten
    parts of equal size. Group columns, the split and every column without a role are looked at. `shortcuts`: words that
    are in at least `min_rows` texts, nearly all of one label: the share of that label among the texts with the word, its
    Wilson interval, which holds for all words at once (Bonferroni), above `purity` and above the label's share of all
    texts. A group column whose V is surely above `strong` is warned of, and so are shortcuts.

    *Cost*: one fit on 50,000 rows; a pass over the text where a shortcut was found.

    *Source*: Cramér's V after Bergsma (2013), as in `bias`; single words that give the label away: Gardner et al.,
    "Competency problems: on finding and removing artifacts in language data" (2021), with an interval for their z statistic.

    *When it is wrong*: it cannot tell a shortcut from a reason. `{text: "win a free prize", label: spam}`: "free" gives spam away
    because it is part of what spam is. A column computed from the label is a leak, which `leakage` looks for.
    """

    of: Names = ()
    """the columns to look at; when not given all but the id, the text and the label"""
    min_rows: Annotated[int, Field(ge=2)] = 20
    """a word in fewer texts is not judged"""
    purity: Annotated[float, Field(gt=0.5, lt=1)] = 0.9
    """the share of one label among the texts with a word, above which the word is a shortcut"""
    strong: Annotated[float, Field(gt=0, le=1)] = 0.3
    """a group column with a larger Cramér's V is warned of"""
    most: Annotated[int, Field(ge=1, le=200)] = 30
    """shortcuts that are listed"""

    name: ClassVar[str] = "spurious"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The label, the text, and the columns to look at."""
        label = label_column(self.name, roles, schema)
        for column in self.of:
            if column not in schema.names:
                hint = did_you_mean(column, schema.names)
                raise RequestError(f"`spurious`: `of` names the column `{column}`, which the data does not have", hint=hint)
        skip = {label, *roles.text, *([roles.id] if roles.id else [])}
        others = self.of or tuple(one.name for one in schema if one.name not in skip and is_single(one.type))
        return tuple(dict.fromkeys((label, *roles.text, *others)))

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        return (Column("has_shortcut", "flag", "the text has a word that gives a label away"),) if roles.text else ()

    def fit(self, rows: Rows) -> State:
        chosen = np.sort(np.argsort(mix64(rows.row_ids, rows.seed), kind="stable")[:LOOKED_AT])
        seen = Rows(rows.table.take(pa.array(chosen)), rows.row_ids[chosen], rows.roles, rows.seed)
        label = seen.table.column(seen.roles.label)
        parts = cut(str(seen.roles.label), label, PARTS, MOST_VALUES)
        codes = parts.codes(label)
        known = codes != len(parts.names) + 1
        notes: list[dict[str, str]] = []
        told: dict[str, Any] = {"rows_looked_at": len(chosen), "columns": self._columns(seen, codes, known, notes)}
        words: list[dict[str, Any]] = []
        if rows.roles.text:
            words = self._shortcuts(seen, codes, known, parts.groups)
            told["shortcuts"] = words[: self.most]
            told["shortcuts_found"] = len(words)
        told |= {"warnings": list(self._warnings(told, rows.roles)), "not_assessed": notes}
        return {"words": np.array([line["word"] for line in words], np.str_), **stored_facts(told)}

    def score(self, rows: Rows, state: State) -> Scores:
        if not rows.roles.text:
            return {}
        import polars as pl

        text = pl.Series(rows.whole_text())
        if not len(state["words"]):
            return {"has_shortcut": text.is_null().replace_strict({True: None, False: False}, return_dtype=pl.Boolean).to_arrow()}
        found = text.str.to_lowercase().str.extract_all(WORD).list.set_intersection(pl.Series([state["words"].tolist()]))
        return {"has_shortcut": (found.list.len() > 0).to_arrow()}

    def _columns(
        self, rows: Rows, codes: Codes, known: npt.NDArray[np.bool_], notes: list[dict[str, str]]
    ) -> list[dict[str, Any]]:
        skip = {rows.roles.label, *rows.roles.text} - set(self.of)
        lines = []
        for name in rows.table.column_names:
            if name in skip or name == rows.roles.label:
                continue
            column = rows.table.column(name)
            parts = cut(name, column, PARTS, MOST_VALUES)
            own = parts.codes(column)
            if np.count_nonzero(own == len(parts.names)) > len(own) / 2:
                notes.append({"what": name, "reason": f"most rows have other values than the {MOST_VALUES} most frequent"})
                continue
            found = cramers_v(table_of(own[known], codes[known]))
            if found is None:
                notes.append({"what": name, "reason": "it, or the label, has one value only"})
                continue
            lines.append({"column": name, "cramers_v": found[0], "cramers_v_low": found[1], "cramers_v_high": found[2]})
        return sorted(lines, key=lambda line: (-line["cramers_v"], line["column"]))

    def _shortcuts(self, rows: Rows, codes: Codes, known: npt.NDArray[np.bool_], names: tuple[str, ...]) -> list[dict[str, Any]]:
        """The words that give a label away, those of most rows first."""
        import polars as pl

        frame = pl.DataFrame({"label": codes, "word": pl.Series(rows.whole_text())}).filter(pl.Series(known)).drop_nulls()
        base = dict(frame.group_by("label").len().iter_rows())
        found = frame.with_columns(pl.col("word").str.to_lowercase().str.extract_all(WORD).list.unique()).explode("word")
        counted = found.drop_nulls().group_by("word", "label").len("hits")
        counted = counted.with_columns(pl.col("hits").sum().over("word").alias("rows")).filter(pl.col("rows") >= self.min_rows)
        z = z_of(counted["word"].n_unique())
        lines = []
        for word, label, hits, texts in counted.filter(pl.col("hits") / pl.col("rows") > self.purity).iter_rows():
            low, high = wilson(hits, texts, z)
            share = base[label] / frame.height
            if low > max(self.purity, share):
                line = {
                    "word": word,
                    "label": names[label],
                    "rows": texts,
                    "share": hits / texts,
                    "share_low": low,
                    "share_high": high,
                }
                lines.append(line | {"share_of_all": share})
        return sorted(lines, key=lambda line: (-line["rows"], line["word"]))

    def _warnings(self, told: Mapping[str, Any], roles: Roles) -> list[str]:
        found = [
            f"the group column {line['column']} goes with the label: Cramér's V {line['cramers_v']:.2f} "
            f"(95 % interval {line['cramers_v_low']:.2f} to {line['cramers_v_high']:.2f})"
            for line in told["columns"]
            if line["column"] in roles.group and line["cramers_v_low"] > self.strong
        ]
        words = told.get("shortcuts") or []
        if words:
            top = ", ".join(f"{line['word']} ({line['label']})" for line in words[:3])
            found.append(f"{told['shortcuts_found']} words give the label away, in most rows {top}")
        return found
