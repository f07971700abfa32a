"""Rows that give away the items of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from curate import item_index
from curate.check import Column, FitCheck, Scores, State, parameters
from curate.dataset import Names, Roles, Rows
from curate.errors import RequestError
from curate.items import identity, read_items

HALF = 0.15
"""the likeness that is as suspect as half of an item word by word"""
SHOWN = 20


@parameters
class Contamination(FitCheck):
    """How much of a benchmark item each row gives away, and which item that is.

    *Columns*: `suspicion`, 0 to 1, the greater of two: `overlap`, the share of an item's words that stand in the row in
    runs of `run_words` words; and `likeness`, L, as L / (L + 0.15). Likeness is the share of words and pairs of words that
    an item and a piece of the row about as long have in common outside such runs, rare ones weighing more: it finds
    rephrased and translated items. `contaminated`: the suspicion reaches `limit`; then `item` and `source` name the item
    and its file.

    *What does not matter*: case, white space, line breaks, punctuation, Markdown fences, what stands before and behind;
    `has_close_items` and `hasCloseItems` are the same words. An item with fewer words than a run is looked for whole.

    *Common runs* say nothing: quotations, licence headers, templates. A run does not count where more than `common_rows` of
    the fitted rows have it without holding the item, or more than 3 items and 2 % of the items have it; a short item
    does not count where so many longer rows have it.

    *Missing*: every column, for a row without a word.

    *Cost*: the benchmark in memory, about 100 bytes a word; each row is read twice, to count (a sample of 200,000) and to
    score, together at about 25 MB/s a core of English and code for 164 items, and 5 MB/s for 14,000.

    *Raises* `RequestError` without `against` or for a column that a benchmark lacks, `InputError` for a benchmark or an item
    that cannot be read.

    *Source*: runs of 13 words as in Brown et al., "Language Models are Few-Shot Learners" (2020), appendix C, where any
    single run counts; shares, what is common, and likeness are ours. Measured on the rephrased and translated problems of
    Yang et al., "Rethinking Benchmark and Contamination with Rephrased Samples" (2023): see [leaks](../leakage.md).

    *When it is wrong*: it does not find an idea told in other words and other numbers, nor prose in another language. Another
    exercise of the same kind can be as alike as a rephrased one. Of a passage that item and row both quote, such as one
    that questions are asked about, the row is suspect though the question is not in it. With few rows nothing is known
    to be common.
    """

    against: Names = ()
    """the files of the benchmark"""
    text: Names = ()
    """the columns of a benchmark that hold an item's text; the data's text columns when not given"""
    id: str | None = None
    """the column of a benchmark that names an item; without it items are called by their row"""
    run_words: Annotated[int, Field(ge=2, le=64)] = 13
    """words of a run"""
    min_words: Annotated[int, Field(ge=1, le=64)] = 4
    """items of fewer words are not looked for; the report lists them"""
    common_rows: Annotated[int, Field(ge=1)] = 10
    """so many of the fitted rows may have a run without the item before it counts as common"""
    limit: Annotated[float, Field(gt=0, le=1)] = 0.5
    """the suspicion from which on a row is called contaminated"""

    name: ClassVar[str] = "contamination"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True
    lets_threads_run: ClassVar[bool] = True
    fit_rows: ClassVar[int] = 200_000

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The text columns; the benchmark is read here too, so that a run that cannot read it fails before it begins."""
        columns = super().needs(roles, schema)
        if not self.against:
            raise RequestError(
                "`contamination` has nothing to compare with",
                place="against",
                hint="name the files of the benchmark: `against: [benchmark.jsonl]`",
            )
        read_items(self.against, self.text or roles.text, self.id)
        return columns

    def identity(self) -> dict[str, Any]:
        """As of any check, and what the benchmark's files hold."""
        return {**super().identity(), "items": identity(self.against) if self.against else []}

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """The suspicion, its two parts, the flag, the item and its file."""
        return (
            Column("suspicion", "suspicion", "how much of an item the row gives away"),
            Column("overlap", "measure", "words of the item that stand in the row, in runs", "share"),
            Column("likeness", "measure", "rare words in common with the item, as a share of both", "share"),
            Column("contaminated", "flag", f"the suspicion is {self.limit:g} or more"),
            Column("item", "category", "the item that a contaminated row gives away"),
            Column("source", "category", "the benchmark file that the item is from"),
        )

    def fit(self, rows: Rows) -> State:
        """The items, and how common their runs and words are in these rows."""
        items = read_items(self.against, self.text or rows.roles.text, self.id)
        return item_index.index_items(items, rows.whole_text(), self.run_words, self.min_words, self.common_rows)

    def score(self, rows: Rows, state: State) -> Scores:
        """Each row against every item; of equals the item that stands first is named."""
        texts = item_index.words_of(rows.whole_text())
        found = item_index.score(state, texts)
        mask = np.diff(texts.bounds) == 0
        alike = found.likeness / (found.likeness + HALF)
        suspicion = np.maximum(found.overlap, alike)
        item = np.where(found.overlap >= alike, found.overlap_item, found.likeness_item)
        contaminated = suspicion >= self.limit
        unnamed = mask | ~contaminated
        named = pa.array(np.maximum(item, 0), mask=unnamed)
        return {
            "suspicion": pa.array(suspicion, mask=mask),
            "overlap": pa.array(found.overlap, mask=mask),
            "likeness": pa.array(found.likeness, mask=mask),
            "contaminated": pa.array(contaminated, mask=mask),
            "item": pa.array(state["names"].tolist(), pa.string()).take(named),
            "source": pa.array(state["files"].tolist(), pa.string()).take(named),
        }

    def evidence(self, state: State) -> Mapping[str, Any]:
        """The benchmark by file, the items that fitted rows hold, and those that are not looked for, with the reason."""
        names, files, rows = state["names"].tolist(), state["files"].tolist(), state["item_rows"]
        words = np.diff(state["bounds"])
        short = words < self.min_words
        common = ~short & (state["item_words"] == 0) & (state["item_totals"] == 0)
        held = np.argsort(-rows, kind="stable")[:SHOWN]
        told = [
            {
                "file": file,
                "items": int((own := state["files"] == file).sum()),
                "too_short": int((own & short).sum()),
                "common": int((own & common).sum()),
                "in_fitted_rows": int((own & (rows > 0) & ~common).sum()),
            }
            for file in dict.fromkeys(files)
        ]
        lost = int(short.sum() + common.sum())
        why = f"{int(short.sum())} have fewer than {self.min_words} words, {int(common.sum())} are common in the data"
        warning = f"{lost} of {len(names)} benchmark items cannot be looked for: {why}"
        return {
            "benchmark": told,
            "items_in_fitted_rows": [
                {"item": names[at], "file": files[at], "rows": int(rows[at])} for at in held if rows[at] and not common[at]
            ],
            "items_not_looked_for": [
                {"item": names[at], "file": files[at], "words": int(words[at]), "why": "too short" if short[at] else "common"}
                for at in np.flatnonzero(short | common)[:SHOWN]
            ],
            "warnings": [warning] if lost else [],
        }
