"""Texts that are nearly the same: each one removed is proven similar to one that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, model_validator
from pydantic_core import ArgsKwargs

from curate import evidence, minhash, records
from curate.check import Column, GroupCheck, parameters
from curate.dataset import Names, Roles, Rows
from curate.errors import RequestError, did_you_mean
from curate.linked import alike_rows, links_of
from curate.met_again import flags, met_again, named_inside, names
from curate.policy import AtLeast, Rule
from curate.prefer import Prefer, best_first, columns_needed, preference_columns
from curate.records import Record

U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

WORDS_IN_SHINGLE = 5


@parameters
class NearDup(GroupCheck):
    """For each text that nearly repeats a preferred one: that text, and how similar the two are.

    *Columns*: `similarity`, the exact Jaccard similarity (share of common shingles, from the limit
    to 1) to the kept row, null for rows that stay; `near_copy_of`, that kept row; `is_near_copy`;
    `group_size` in rows: a kept row and all rows that are near copies of it, 1 for a row alone.

    *The rule*: rows are taken from the most to the least preferred, and one is a near copy exactly when
    its similarity to a row already kept reaches the limit. The kept row named is the most similar
    of these, the most preferred among equals. So in a chain A~B~C where A and C differ, only B goes.

    *Texts*: words after NFC and case folding, characters in scripts without spaces, in runs of five;
    `words: n` reads words in every script, `chars: n` characters. A shorter text is one run of all it has, so it
    has only exact partners. Several text columns are read as one, a line each.

    *Records*: with `record`, columns of short cells are compared one by one, and `similarity` is their weighted mean: of
    the columns filled in both rows, the share of pieces of three characters in common, by weight times the square root of the
    length. It is 0 where these columns hold no more than half of all weight.

    *Missing*: every column, for a row whose text has no word (null, empty, only punctuation), and for a record of which no
    more than half is filled.

    *Cost*: about 500 MB/s a core of English in one pass, 16 bytes a row and band to match, then a second read of
    the rows that share a band. A row is compared with at most `max_bucket_rows` others, so shared headers cost little.

    *Source*: Broder 1997 (resemblance, minima of permutations); Leskovec, Rajaraman and Ullman, "Mining
    of Massive Datasets", chapter 3 (bands). Unlike them we verify every pair and never merge by chains.

    *When it is wrong*: a few words can matter more than their number. Of two contracts of 2,000 words that
    differ in the name and the sum, one is flagged at 0.99; of two releases of a page, perhaps the newer (set
    `prefer`). Of records at one address, relatives are alike: give names and dates of birth more weight. And it
    misses paraphrases, translations, and short texts one word apart: "Route 11 is closed"
    and "Route 12 is closed" both stay.
    """

    similarity: Annotated[float, Field(gt=0, le=1)] = 0.8
    """the least similarity, more than 0 and at most 1, at which two rows count as one; for records 0.55 unless given"""
    prefer: Prefer = "first"
    """the row that stays: first, longest, {newest: COLUMN}, {highest: COLUMN}, {lowest: COLUMN},
    {order: [VALUE, ...], of: COLUMN}, or a list of these"""
    words: Annotated[int, Field(ge=1, le=64)] | None = None
    """words in a shingle, in every script; without it and `chars`: five words, or characters where a script has no spaces"""
    chars: Annotated[int, Field(ge=1, le=64)] | None = None
    """characters in a shingle, with one space between two words, instead of words"""
    record: Record = ()
    """columns of short cells, such as names and addresses, that are compared one by one instead of the text: a list, or
    weights as in {name: 2, street: 1, title: {weight: 3, chars: 3}}"""
    bands: Annotated[int, Field(ge=1, le=1024)] | None = None
    """bands of a signature; chosen so that a pair at the limit is found with a chance of at least 0.999 (25 at 0.8)"""
    rows: Annotated[int, Field(ge=1, le=128)] | None = None
    """minima in a band; chosen with the bands (5 at 0.8)"""
    max_bucket_rows: Annotated[int, Field(ge=2, le=4096)] = 64
    """kept rows with a band in common that a row is compared with; of more, those that share most bands with it"""

    against: Names = ()
    """files, or the folder of a run (its kept rows): a row that is nearly one of theirs is removed, and theirs stay"""
    index: str | None = None
    """the folder of an index: rows accepted by earlier runs are compared with, and this run's kept rows are added"""

    name: ClassVar[str] = "near_dup"
    version: ClassVar[int] = 2
    sees_nulls: ClassVar[bool] = True
    lets_threads_run: ClassVar[bool] = True
    verifies: ClassVar[bool] = True

    @model_validator(mode="before")
    @classmethod
    def _limit_of_records(cls, given: Any) -> Any:
        """Records have a limit of their own where none is given."""
        values = given.kwargs or {} if isinstance(given, ArgsKwargs) else given
        if not isinstance(values, Mapping) or not values.get("record") or "similarity" in values:
            return given
        values = {**values, "similarity": records.LIMIT}
        return ArgsKwargs(given.args, values) if isinstance(given, ArgsKwargs) else values

    def __post_init__(self) -> None:
        if sum(map(bool, (self.words, self.chars, self.record))) > 1:
            raise ValueError(
                "give one of `words`, `chars` and `record`: a shingle is of words, of characters, or of a record's cells"
            )

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The text columns, those the preference reads, and the id where rows from outside must be told from these."""
        if self.index is not None and roles.id is None:
            raise RequestError(
                "`near_dup` keeps an index, and no column has the role `id`: a row could not be told from its copy of last night",
                place="roles",
                hint="add `roles: {id: COLUMN}`; the columns are " + ", ".join(schema.names),
            )
        own = (roles.id,) if roles.id is not None and (self.against or self.index) else ()
        for column in self.record:
            if column.name not in schema.names:
                raise RequestError(
                    f"`near_dup`: `record` names the column `{column.name}`, which the data does not have",
                    hint=did_you_mean(column.name, schema.names),
                )
        compared = self.compares(roles) if self.record else super().needs(roles, schema)
        return tuple(dict.fromkeys((*compared, *columns_needed(self.prefer, schema), *own)))

    def compares(self, roles: Roles) -> tuple[str, ...]:
        """The columns of the record, or the text."""
        return tuple(column.name for column in self.record) or roles.text

    def load(self) -> None:
        """The kernels, compiled on the first run of a machine (about 12 s) and read from a cache later (0.3 s)."""
        rows = Rows(pa.table({"text": ["one", "one"]}), np.arange(2, dtype=np.uint64), Roles(text=("text",)))
        check = NearDup()
        check.verify(check.match(check.keys(rows)), check.features(rows))

    def identity(self) -> dict[str, Any]:
        """As every check's, and the version of the signatures."""
        return {**super().identity(), "signatures": minhash.VERSION, "records": records.VERSION}

    def keys_per_row(self) -> int:
        """A key a band."""
        return self.banding()[0]

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """The similarity to the kept row, that row, the flag and the size of the group."""
        return (
            Column("similarity", "measure", "share of shingles, or of a record, in common with the kept row", "Jaccard"),
            Column("near_copy_of", "link", "the kept row that this one nearly repeats"),
            Column("is_near_copy", "flag", "a kept row is at least as similar as the limit"),
            Column("group_size", "measure", "the kept row and its near copies", "rows"),
        )

    def default_rules(self, roles: Roles, schema: pa.Schema) -> tuple[Rule, ...]:
        """Near copies are rejected; the ledger's value is the exact similarity."""
        return (AtLeast(at_least=self.similarity, of="similarity"),)

    def unsettled(self) -> Mapping[str, float | bool | None]:
        """A text like no other stays, alone in its group."""
        return {"similarity": None, "near_copy_of": None, "is_near_copy": False, "group_size": 1.0}

    def banding(self) -> tuple[int, int]:
        """The bands, and the minima in each, that are used."""
        if self.record and self.bands is None and self.rows is None:
            return records.choose_keys(self.similarity)
        return minhash.choose_bands(self.similarity, self.bands, self.rows)

    def detection_curve(self) -> tuple[tuple[float, float], ...]:
        """For similarities 0, 0.05, …, 1 the chance that such a pair is found; each found pair is then verified."""
        return minhash.detection_curve(*self.banding())

    def facts(self) -> dict[str, Any]:
        """The bands, what a shingle is, and the curve of detection."""
        bands, deep = self.banding()
        curve = [list(point) for point in self.detection_curve()]
        return {"bands": bands, "minima_a_band": deep, "shingle": self._shingle(), "curve": curve}

    def summary(self, counts: Mapping[str, float]) -> dict[str, Any]:
        """Pairs compared, rows and buckets with more candidates than are compared, what a sample says; see `evidence.summary`."""
        return evidence.summary(counts, evidence.OF_RECORDS if self.record else "")

    def keys(self, rows: Rows) -> pa.Table:
        """One even key a band for each text that has words; odd ones for shingles sampled by chance."""
        return self.keyed(rows)[0]

    def keyed(self, rows: Rows) -> tuple[pa.Table, Mapping[str, pa.Array]]:
        """As `keys`; the remarks are of texts that are `short` or `wordless`."""
        row, keys, sampled_rows, sampled, remarks = self._keys(rows)
        each = np.concatenate([np.repeat(row, keys.shape[1]), sampled_rows])
        return pa.table({"row": each.astype(np.uint64), "key": np.concatenate([keys.ravel(), sampled])}), remarks

    def match(self, shard: pa.Table) -> pa.Table:
        """The rows of every key that more than one row has, and not too many where the key is a sampled shingle."""
        return links_of(shard)

    def features(self, rows: Rows) -> pa.Table:
        """The set of shingle hashes of each text, sorted, and its preference."""
        bounds, values = self._sets(rows)
        return pa.table(
            {
                "row": np.arange(len(rows), dtype=np.uint64),
                "shingles": pa.LargeListArray.from_arrays(pa.array(bounds), pa.array(values)),
                **preference_columns(rows, self.prefer, self.compares(rows.roles)),
                **(names(rows, bounds, values) if self.against or self.index else {}),
            }
        )

    def references(self) -> tuple[str, ...]:
        """What `against` names."""
        return self.against

    def index_folder(self) -> str | None:
        """What `index` names."""
        return self.index

    def index_identity(self) -> dict[str, Any]:
        """The signatures and the kind of shingles; limits and preferences may change from run to run."""
        bands, deep = self.banding()
        shingle = (
            {"words": self.words}
            if self.words
            else {"chars": self.chars}
            if self.chars
            else {"words by script": WORDS_IN_SHINGLE}
        )
        return {"check": self.name, "signatures": minhash.VERSION, "shingle": shingle, "bands": bands, "rows": deep}

    def most_of_a_key(self) -> int:
        """As of any bucket, and one more, since one of them can be the row itself."""
        return self.max_bucket_rows + 1

    def entries(self, rows: Rows) -> pa.Table:
        """The band keys and the shingles of each text that has words."""
        row, keys, *_ = self._keys(rows)
        bounds, values = self._sets(rows)
        made = {
            "row": np.arange(len(rows), dtype=np.uint64),
            **names(rows, bounds, values),
            "shingles": pa.LargeListArray.from_arrays(pa.array(bounds), pa.array(values)),
        }
        bands = np.arange(0, keys.size + 1, keys.shape[1], dtype=np.int64)
        lists = pa.LargeListArray.from_arrays(pa.array(bands), pa.array(keys.ravel()))
        return pa.table(made).take(pa.array(row)).append_column("keys", lists)

    def verify(self, links: pa.Table, features: pa.Table) -> tuple[pa.Table, Mapping[str, float]]:
        """Each removed row, the kept row it is most similar to, and how similar; the counts for `summary`."""
        from curate.kernels.survivors import COMPARED, CUT, FULL, similarities, survivors

        sets, features = features.column("shingles").combine_chunks(), features.drop_columns(["shingles"]).combine_chunks()
        row, outside = features.column("row").to_numpy(), flags(features, "outside")
        weights = np.array([column.weight for column in self.record])
        alike, samples = alike_rows(links, row, sets, weights)
        order = best_first(features, self.prefer)
        order = np.concatenate([np.sort(order[outside[order]]), order[~outside[order]]])
        itself = met_again(features, outside, order)
        witness, value, counts = survivors(alike, order, outside, itself, self.similarity, self.max_bucket_rows)
        witness = named_inside(witness, itself, order)
        removed = np.flatnonzero(witness >= 0)
        pairs = {"row": row[removed], "other": row[witness[removed]], "similarity": value[removed]}
        counted = {"compared": counts[COMPARED], "cut_rows": counts[CUT], "full_buckets": counts[FULL]}
        counted |= {"rows": len(row), "buckets": alike.buckets.max(initial=-1) + 1, **evidence.count_copies(value[removed])}
        alikeness, together, _ = similarities(alike, *samples)
        counted |= evidence.count_sampled(alikeness, together, self.similarity)
        return pa.table(pairs), {name: int(count) for name, count in counted.items()}

    def settle(self, pairs: pa.Table) -> pa.Table:
        """A removed row names the kept one; both know the size of their group."""
        copies, kept = pairs.column("row").to_numpy(), pairs.column("other").to_numpy()
        stay, group, counts = np.unique(kept, return_inverse=True, return_counts=True)
        row = np.concatenate([copies, stay])
        order = np.argsort(row)
        removed = (np.arange(len(row)) < len(copies))[order]
        similarity = np.concatenate([pairs.column("similarity").to_numpy(), np.zeros(len(stay))])[order]
        link = np.concatenate([kept, stay])[order]
        size = np.concatenate([counts[group], counts])[order] + 1.0
        return pa.table(
            {
                "row": pa.array(row[order], pa.uint64()),
                "similarity": pa.array(similarity, pa.float64(), mask=~removed),
                "near_copy_of": pa.array(link, pa.uint64(), mask=~removed),
                "is_near_copy": pa.array(removed),
                "group_size": pa.array(size, pa.float64()),
            }
        )

    def _keys(self, rows: Rows) -> tuple[Int64s, U64s, Int64s, U64s, Mapping[str, pa.Array]]:
        """The rows that can be compared and the keys of each (rows x bands); the rows of sampled shingles, and these; remarks."""
        from curate.kernels.signatures import sign

        if self.record:
            row, keys = records.keys([rows.text(name) for name in self.compares(rows.roles)], self._comparison())
            return row, keys, np.empty(0, np.int64), np.empty(0, np.uint64), {}
        text = rows.whole_text()
        signed = sign(text, self._signing())
        row = np.flatnonzero(signed.shingles)
        return row, signed.keys[row], signed.sampled_rows, signed.sampled, evidence.remarks(text, signed.shingles, signed.short)

    def _sets(self, rows: Rows) -> tuple[Int64s, U64s]:
        """The set of shingles, or of pieces, of each row: bounds and values."""
        from curate.kernels.signatures import shingle_sets

        if self.record:
            return records.features([rows.text(name) for name in self.compares(rows.roles)], self._comparison())
        return shingle_sets(rows.whole_text(), self._signing())

    def _comparison(self) -> records.Comparison:
        return records.comparison(self.record, *self.banding())

    def _shingle(self) -> str:
        if self.record:
            cells = ", ".join(f"{column.name} ({column.chars} characters, weight {column.weight:g})" for column in self.record)
            return f"1 cell of {cells}"
        signing = self._signing()
        kind = ("words, or characters where a script has no spaces", "words", "characters")[signing.mode]
        return f"{len(signing.places)} {kind}"

    def _signing(self) -> minhash.Signing:
        size = self.words or self.chars or WORDS_IN_SHINGLE
        mode = minhash.WHOLE_WORDS if self.words else minhash.CHARACTERS if self.chars else minhash.BY_SCRIPT
        return minhash.signing(*self.banding(), size, mode)
