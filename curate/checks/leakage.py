"""Texts of one split that stand, exactly or nearly, in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from curate import minhash
from curate.check import Column, GroupCheck, parameters
from curate.dataset import Names, Roles, Rows
from curate.errors import RequestError
from curate.groups import run_starts, stretches
from curate.linked import alike_rows, links_of
from curate.policy import AtLeast, Rule

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PROTECTED = ("test", "validation", "valid", "val", "dev")
"""the splits that are kept whole unless `protect` says otherwise, the most protected first"""
LEARNT = ("train", "training", "unlabeled", "unlabelled", "unsupervised")
"""the splits that give way to all others"""
PAIRS_AT_ONCE = 1 << 22
CANDIDATES = 64
"""rows of a more protected split, with a band in common, that a row is compared with"""


@parameters
class Leakage(GroupCheck):
    """For each text that nearly repeats one of a more protected split, such as a training row of a test row: that row.

    *Columns*: `similarity`, the exact Jaccard similarity to that row (from the limit to 1; null for rows that leak
    nothing); `leaks`, that row; `leaks_into`, its split; `is_leak`.

    *Which side is to blame*: of two alike rows in two splits, the one in the less protected split. `protect` lists
    splits, the most protected first; then come those it does not list, by name; the training split comes last. So test rows
    stay and the training rows that repeat them are rejected. Inside one split nothing is compared: see `near_dup`.

    *Texts*: as in `near_dup`: words after NFC and case folding, characters in scripts without spaces, in runs of five; a
    shorter text is one run of all it has, so it has only exact partners. The row named is the most similar, of equals the
    most protected, then the first.

    *Missing*: every column, for a row without a word or without a split.

    *Cost*: as `near_dup`: one pass over the text, 16 bytes a row and band, and a second read of the rows that share a band.

    *Raises* `RequestError` where no column has the role `split`.

    *Source*: as `near_dup`; the share of test rows met in training is what Lee et al., "Deduplicating Training Data Makes
    Language Models Better" (2022), section 4.2, count.

    *When it is wrong*: forms and templates. Two test reports with other numbers in a long fixed text are alike, and
    the training row goes though it tells nothing of the test row; raise `similarity`. It misses paraphrases and translations,
    the same person or place in two splits (give `group` a split of its own), and texts that contain each other.
    """

    similarity: Annotated[float, Field(gt=0, le=1)] = 0.8
    """the least similarity, more than 0 and at most 1, at which a row leaks"""
    protect: Names = PROTECTED
    """the splits that stay whole, the most protected first, whatever their case"""

    name: ClassVar[str] = "leakage"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True
    lets_threads_run: ClassVar[bool] = True
    verifies: ClassVar[bool] = True

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The text columns and the split."""
        if roles.split is None:
            raise RequestError(
                "`leakage` compares splits, and no column has the role `split`",
                place="roles",
                hint="add `roles: {split: COLUMN}`; the columns are " + ", ".join(schema.names),
            )
        return (*super().needs(roles, schema), roles.split)

    def load(self) -> None:
        """The kernels."""
        table = pa.table({"text": ["one", "one"], "split": ["train", "test"]})
        rows = Rows(table, np.arange(2, dtype=np.uint64), Roles(text=("text",), split="split"))
        self.verify(self.match(self.keys(rows)), self.features(rows))

    def identity(self) -> dict[str, Any]:
        """As of any check, and the version of the signatures."""
        return {**super().identity(), "signatures": minhash.VERSION}

    def keys_per_row(self) -> int:
        """A key a band."""
        return minhash.choose_bands(self.similarity)[0]

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """The similarity to the row that is given away, that row, its split and the flag."""
        return (
            Column("similarity", "measure", "share of shingles in common with the row that is given away", "Jaccard"),
            Column("leaks", "link", "the row of a more protected split that this one nearly repeats"),
            Column("leaks_into", "category", "the split of that row"),
            Column("is_leak", "flag", "a row of a more protected split is at least as similar as the limit"),
        )

    def default_rules(self, roles: Roles, schema: pa.Schema) -> tuple[Rule, ...]:
        """Rows that give away a row of a more protected split are rejected."""
        return (AtLeast(at_least=self.similarity, of="similarity"),)

    def unsettled(self) -> Mapping[str, float | bool | None]:
        """A row that leaks nothing."""
        return {"similarity": None, "leaks": None, "leaks_into": None, "is_leak": False}

    def keys(self, rows: Rows) -> pa.Table:
        """One even key a band for each text that has words and a split."""
        from curate.kernels.signatures import sign

        signed = sign(rows.whole_text(), self._signing())
        known = rows.text(str(rows.roles.split)).is_valid().to_numpy(zero_copy_only=False)
        row = np.flatnonzero((signed.shingles > 0) & known)
        keys = signed.keys[row]
        return pa.table({"row": np.repeat(row, keys.shape[1]).astype(np.uint64), "key": keys.ravel()})

    def match(self, shard: pa.Table) -> pa.Table:
        """The rows of every key that more than one row has."""
        return links_of(shard)

    def features(self, rows: Rows) -> pa.Table:
        """The set of shingle hashes of each text, sorted, and its split."""
        from curate.kernels.signatures import shingle_sets

        bounds, values = shingle_sets(rows.whole_text(), self._signing())
        return pa.table(
            {
                "row": np.arange(len(rows), dtype=np.uint64),
                "shingles": pa.LargeListArray.from_arrays(pa.array(bounds), pa.array(values)),
                "split": rows.text(str(rows.roles.split)),
            }
        )

    def verify(self, links: pa.Table, features: pa.Table) -> tuple[pa.Table, Mapping[str, float]]:
        """Each row that leaks, the row that it gives away, and how similar the two are; leaks by pair of splits."""
        row = features.column("row").to_numpy()
        split = features.column("split").to_pylist()
        rank = _ranks(split, self.protect)
        alike, _ = alike_rows(links, row, features.column("shingles").combine_chunks(), np.empty(0))
        place, other, value = _best(alike, rank, row, self.similarity)
        into = [split[at] for at in other.tolist()]
        counts = Counter(f"{split[at]}\t{to}" for at, to in zip(place.tolist(), into, strict=True))
        pairs = {"row": row[place], "other": row[other], "similarity": value, "into": pa.array(into, pa.string())}
        return pa.table(pairs), dict(counts)

    def settle(self, pairs: pa.Table) -> pa.Table:
        """A row that leaks names what it gives away."""
        return pa.table(
            {
                "row": pairs.column("row"),
                "similarity": pairs.column("similarity"),
                "leaks": pairs.column("other"),
                "leaks_into": pairs.column("into"),
                "is_leak": pa.repeat(True, pairs.num_rows),
            }
        )

    def facts(self) -> dict[str, Any]:
        """The bands, what a shingle is, and the chance that a pair is found, by similarity."""
        bands, deep = minhash.choose_bands(self.similarity)
        curve = [list(point) for point in minhash.detection_curve(bands, deep)]
        shingle = "5 words, or characters where a script has no spaces"
        return {"bands": bands, "minima_a_band": deep, "shingle": shingle, "curve": curve}

    def summary(self, counts: Mapping[str, float]) -> dict[str, Any]:
        """The rows of each split that give away rows of another."""
        told = [(*name.split("\t"), int(rows)) for name, rows in sorted(counts.items()) if "\t" in name]
        return {"leaks_by_split": [{"split": own, "into": into, "rows": rows} for own, into, rows in told]}

    def _signing(self) -> minhash.Signing:
        return minhash.signing(*minhash.choose_bands(self.similarity), 5, minhash.BY_SCRIPT)


def _ranks(split: list[str | None], protect: tuple[str, ...]) -> Int64s:
    """The rank of each row's split, 0 for the most protected."""
    listed = [name.casefold() for name in protect]

    def turn(name: str) -> tuple[int, str]:
        low = name.casefold()
        if low in listed:
            return listed.index(low), ""
        return len(listed) + int(low in LEARNT), name

    order = {name: at for at, name in enumerate(sorted({one for one in split if one is not None}, key=turn))}
    return np.array([order[one] if one is not None else len(order) for one in split], np.int64)


def _best(alike: Any, rank: Int64s, row: npt.NDArray[np.uint64], limit: float) -> tuple[Int64s, Int64s, Floats]:
    """For each place that has one: the most similar place of a lower rank; the similarity. By place."""
    place = np.repeat(np.arange(len(rank)), np.diff(alike.starts))
    best = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))
    for level in np.unique(rank)[:-1].tolist():
        for one, other in _candidates(place, alike.buckets, rank, row, level):
            best = _reduced(alike, one, other, limit, best, rank, row)
    return best


def _candidates(place: Int64s, bucket: Int64s, rank: Int64s, row: npt.NDArray[np.uint64], level: int) -> Any:
    """Pairs of a place of a higher rank and one of this rank that share a bucket, some at a time."""
    own = np.flatnonzero(rank[place] == level)
    own = own[np.lexsort((row[place[own]], bucket[own]))]
    starts = np.flatnonzero(run_starts(bucket[own])) if len(own) else np.empty(0, np.int64)
    inside = np.arange(len(own)) - np.repeat(starts, np.diff(np.append(starts, len(own))))
    own = own[inside < CANDIDATES]
    far = np.flatnonzero(rank[place] > level)
    first = np.searchsorted(bucket[own], bucket[far])
    count = np.searchsorted(bucket[own], bucket[far], side="right") - first
    far, first, count = far[count > 0], first[count > 0], count[count > 0]
    for start, stop in stretches(count, PAIRS_AT_ONCE):
        many = count[start:stop]
        step = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        yield np.repeat(place[far[start:stop]], many), place[own[np.repeat(first[start:stop], many) + step]]


def _reduced(
    alike: Any,
    one: Int64s,
    other: Int64s,
    limit: float,
    best: tuple[Int64s, Int64s, Floats],
    rank: Int64s,
    row: npt.NDArray[np.uint64],
) -> tuple[Int64s, Int64s, Floats]:
    """The best of what was known and of these pairs."""
    from curate.kernels.survivors import similarities

    pairs = np.unique(one * len(rank) + other)
    one, other = pairs // len(rank), pairs % len(rank)
    value, _, _ = similarities(alike, one, other)
    enough = value >= limit
    one, other = np.concatenate([best[0], one[enough]]), np.concatenate([best[1], other[enough]])
    value = np.concatenate([best[2], value[enough]])
    order = np.lexsort((row[other], rank[other], -value, one))
    order = order[run_starts(one[order])] if len(order) else order
    return one[order], other[order], value[order]
