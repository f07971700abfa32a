"""Texts that are nearly the same: each one removed is proven similar to one that is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from curate import minhash
from curate.check import Column, GroupCheck, parameters
from curate.dataset import Roles, Rows
from curate.groups import first_of_run, run_lengths, run_starts, with_company
from curate.policy import AtLeast, Rule
from curate.prefer import Prefer, best_first, columns_needed, preference_columns
from curate.shingles import Shingles, shingle

U64s = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

NEIGHBOURS = 8
"""rows a row of a full bucket is also compared with: those beside it by the next band's key"""


@parameters
class NearDup(GroupCheck):
    """For each text that nearly repeats a preferred one: that text, and how similar the two are.

    *Columns*: `similarity`, the exact Jaccard similarity (share of common shingles, from the limit
    to 1) to the kept row, null for rows that stay; `near_copy_of`, that kept row; `is_near_copy`;
    `group_size` in rows: a kept row and all rows that are near copies of it, 1 for a row alone.

    *The rule*: rows are taken from the most to the least preferred, and one is a near copy exactly when
    its similarity to a row already kept reaches the limit. The kept row named is the most similar
    of these, the most preferred among equals. So in a chain A~B~C where A and C differ, only B goes.

    *Texts*: words after NFC and case folding, characters in scripts without spaces, in runs of
    `shingle`; a shorter text is one run of all its words, so it has only exact partners. Several
    text columns are read as one, a line each.

    *Missing*: every column, for a row whose text has no word (null, empty, only punctuation).

    *Cost*: about 20 MB/s a core of English in one pass, about 30 bytes a row and band to match, then a
    second read of the rows in candidate pairs. No bucket yields pairs beyond
    `max_bucket_rows + 8` a row, so shared headers cost little; `capped` marks pairs from such a bucket.

    *Source*: Broder 1997 (resemblance, minima of permutations); Leskovec, Rajaraman and Ullman, "Mining
    of Massive Datasets", chapter 3 (bands). Unlike them we verify every pair and never merge by chains.

    *When it is wrong*: a few words can matter more than their number. Of two contracts of 2,000 words that
    differ in the name and the sum, one is flagged at 0.99; of two releases of a page, perhaps the newer (set
    `prefer`). And it misses paraphrases, translations, and short texts one word apart: "Route 11 is closed"
    and "Route 12 is closed" both stay.
    """

    similarity: Annotated[float, Field(gt=0, le=1)] = 0.8
    """the least Jaccard similarity, more than 0 and at most 1, at which two texts count as one"""
    prefer: Prefer = "first"
    """the row that stays: first, longest, {newest: COLUMN}, {highest: COLUMN}, {lowest: COLUMN},
    {order: [VALUE, ...], of: COLUMN}, or a list of these"""
    shingle: Annotated[int, Field(ge=1, le=64)] = 5
    """words in a shingle"""
    bands: Annotated[int, Field(ge=1, le=1024)] | None = None
    """bands of a signature; chosen so that a pair at the limit is found with a chance of at least 0.999 (25 at 0.8)"""
    rows: Annotated[int, Field(ge=1, le=128)] | None = None
    """minima in a band; chosen with the bands (5 at 0.8)"""
    max_bucket_rows: Annotated[int, Field(ge=2, le=4096)] = 64
    """rows with a band in common that are all compared with each other; in a larger bucket each
    row meets only so many of the most preferred, and its neighbours"""

    name: ClassVar[str] = "near_dup"
    version: ClassVar[int] = 1
    sees_nulls: ClassVar[bool] = True
    verifies: ClassVar[bool] = True

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The text columns and those the preference reads."""
        return tuple(dict.fromkeys((*super().needs(roles, schema), *columns_needed(self.prefer, schema))))

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """The similarity to the kept row, that row, the flag and the size of the group."""
        return (
            Column("similarity", "measure", "share of shingles in common with the kept row", "Jaccard"),
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
        return minhash.choose_bands(self.similarity, self.bands, self.rows)

    def detection_curve(self) -> tuple[tuple[float, float], ...]:
        """For similarities 0, 0.05, …, 1 the chance that such a pair is found; each found pair is then verified."""
        return tuple((step / 20, minhash.detection(step / 20, *self.banding())) for step in range(21))

    def keys(self, rows: Rows) -> pa.Table:
        """One key a band for each text that has words."""
        bands, deep = self.banding()
        made = self._shingles(rows)
        row = np.flatnonzero(np.diff(made.bounds))
        bounds = np.append(made.bounds[row], made.bounds[-1])
        keys = minhash.band_keys(minhash.minima(made.hashes, bounds, bands * deep), bands, deep)
        preferred = preference_columns(rows, self.prefer, rows.roles.text)
        each = np.repeat(row, bands)
        return pa.table(
            {
                "row": each.astype(np.uint64),
                "key": keys.ravel(),
                "band": np.tile(np.arange(bands, dtype=np.uint16), len(row)),
                "beside": (np.roll(keys, -1, axis=1) >> np.uint64(32)).astype(np.uint32).ravel(),
                "content": np.repeat(made.content[row], bands),
                **{name: values.take(pa.array(each)) for name, values in preferred.items()},
            }
        )

    def match(self, shard: pa.Table) -> pa.Table:
        """Candidates: rows that share a bucket, a bounded number for each row; `capped` where the bucket was full.

        Rows with the same words in the same order share every bucket. All but the preferred one
        are paired with that one, once, and compared with nothing else.
        """
        shard = shard.take(pa.array(with_company(shard.column("key").to_numpy())))
        shard = shard.take(pa.array(best_first(shard, self.prefer)))
        row, key, content = (shard.column(name).to_numpy() for name in ("row", "key", "content"))
        order = np.lexsort((content, key))  # stable: the preferred row leads
        leads = run_starts(key[order], content[order])
        leader = order[first_of_run(leads)]
        twin = ~leads & (shard.column("band").to_numpy()[order] == 0)
        small, full = _bucket_pairs(key, shard.column("beside").to_numpy(), np.sort(order[leads]), self.max_bucket_rows)
        left = np.concatenate([leader[twin], *(left for left, _ in small), *(left for left, _ in full)])
        right = np.concatenate([order[twin], *(right for _, right in small), *(right for _, right in full)])
        capped = np.arange(len(left)) >= len(left) - sum(len(left) for left, _ in full)
        return _distinct(row[left], row[right], capped)

    def features(self, rows: Rows) -> pa.Table:
        """The set of shingle hashes of each text, sorted, and its preference."""
        made = self._shingles(rows)
        sets = [np.unique(made.hashes[low:high]) for low, high in zip(made.bounds, made.bounds[1:], strict=False)]
        bounds = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(one) for one in sets], out=bounds[1:])
        values = np.concatenate([np.empty(0, np.uint64), *sets])
        return pa.table(
            {
                "row": np.arange(len(rows), dtype=np.uint64),
                "shingles": pa.LargeListArray.from_arrays(pa.array(bounds), pa.array(values)),
                **preference_columns(rows, self.prefer, rows.roles.text),
            }
        )

    def verify(self, pairs: pa.Table, features: pa.Table) -> pa.Table:
        """The pairs whose exact similarity reaches the limit."""
        features = features.select(["row", "shingles"]).sort_by("row").combine_chunks()
        row = features.column("row").to_numpy()
        lists = features.column("shingles").combine_chunks()
        bounds, values = lists.offsets.to_numpy(), lists.values.to_numpy()
        left, right = (np.searchsorted(row, pairs.column(name).to_numpy()) for name in ("row", "other"))
        size = np.diff(bounds)
        sizes = np.sort(np.stack([size[left], size[right]]), axis=0)
        hopeful = np.flatnonzero(sizes[0] >= self.similarity * sizes[1] * (1 - 1e-9))
        similarity = np.zeros(len(left))
        for place in hopeful.tolist():
            a, b = left[place], right[place]
            similarity[place] = _jaccard(values[bounds[a] : bounds[a + 1]], values[bounds[b] : bounds[b + 1]])
        return pairs.append_column("similarity", pa.array(similarity)).filter(pa.array(similarity >= self.similarity))

    def settle(self, pairs: pa.Table, features: pa.Table | None) -> pa.Table:
        """The rule of the class, over all proven pairs; `features` needs `row` and the preferred columns.

        Texts with equal sets of shingles are settled as one and named one by one, so a text whose
        twin is a near copy of a kept row is one too, even where no bucket paired it with that row.
        """
        assert features is not None, "near_dup settles by preference, which the features hold"
        row = features.column("row").to_numpy()[best_first(features, self.prefer)]  # rank -> row id
        left, right = (_ranks(row, pairs.column(name).to_numpy()) for name in ("row", "other"))
        similarity = pairs.column("similarity").to_numpy()
        head = _heads(len(row), left[similarity == 1.0], right[similarity == 1.0])
        witness, value = _witnesses(head[left], head[right], similarity, len(row))
        places = np.unique(np.concatenate([left, right]))
        leader = head[places]
        value, cause = value[leader], witness[leader]  # a twin names its leader where that stays, else what removed it
        _name_later_witnesses(places, leader, cause, value, (head[left], head[right], similarity), witness)
        removed = cause != places
        size = np.bincount(cause[removed], minlength=len(row)) + 1
        order = np.argsort(row[places])
        return pa.table(
            {
                "row": pa.array(row[places][order], pa.uint64()),
                "similarity": pa.array(value[order], pa.float64(), mask=~removed[order]),
                "near_copy_of": pa.array(row[cause][order], pa.uint64(), mask=~removed[order]),
                "is_near_copy": pa.array(removed[order]),
                "group_size": pa.array(size[cause][order].astype(np.float64)),
            }
        )

    def _shingles(self, rows: Rows) -> Shingles:
        return shingle(_texts(rows), self.shingle)


def _texts(rows: Rows) -> Iterator[str]:
    text = rows.whole_text()
    for start in range(0, len(rows), 256):
        yield from (cell or "" for cell in text.slice(start, 256).to_pylist())


Pairs = list[tuple[Places, Places]]


def _bucket_pairs(keys: U64s, beside: npt.NDArray[Any], chosen: Places, limit: int) -> tuple[Pairs, Pairs]:
    """Pairs of places with a key in common, from buckets of at most `limit` rows, and from fuller ones.

    `chosen` stands best first, and so do the rows of each bucket.
    """
    order = chosen[np.argsort(keys[chosen], kind="stable")]
    starts = run_starts(keys[order])
    begin, length = first_of_run(starts), run_lengths(starts)
    depth = np.arange(len(order)) - begin
    small: Pairs = []
    full: Pairs = []
    for anchor in range(limit):
        behind = np.flatnonzero((depth > anchor) & (length > 1))
        if not len(behind):
            break
        is_full = length[behind] > limit
        for found, some in ((small, behind[~is_full]), (full, behind[is_full])):
            found.append((order[begin[some] + anchor], order[some]))
    crowd = order[length > limit]
    crowd = crowd[np.lexsort((beside[crowd], keys[crowd]))]
    for step in range(1, NEIGHBOURS + 1):
        near = np.flatnonzero(keys[crowd[step:]] == keys[crowd[:-step]])
        full.append((crowd[near], crowd[near + step]))
    return small, full


def _distinct(left: U64s, right: U64s, capped: npt.NDArray[np.bool_]) -> pa.Table:
    """Each pair once, the smaller row id first; capped where any bucket it was found in was full."""
    low, high = np.minimum(left, right), np.maximum(left, right)
    order = np.lexsort((~capped, high, low))
    once = order[run_starts(low[order], high[order])]
    return pa.table({"row": low[once], "other": high[once], "capped": capped[once]})


def _jaccard(left: U64s, right: U64s) -> float:
    both = np.concatenate([left, right])
    both.sort()
    common = int(np.count_nonzero(both[1:] == both[:-1]))
    return common / (len(both) - common)


def _ranks(row: U64s, wanted: U64s) -> Places:
    order = np.argsort(row)
    return order[np.searchsorted(row, wanted, sorter=order)]


def _heads(count: int, left: Places, right: Places) -> Places:
    """For each rank the best rank with an equal set (similarity 1 is transitive, so this merges no chains)."""
    head = np.arange(count)
    while True:
        least = np.minimum(head[left], head[right])
        before = head.copy()
        np.minimum.at(head, left, least)
        np.minimum.at(head, right, least)
        head = head[head]
        if np.array_equal(head, before):
            return head


def _witnesses(left: Places, right: Places, similarity: Floats, count: int) -> tuple[Places, Floats]:
    """For each rank the kept rank that removes it (itself where it stays), and the similarity of the two.

    Pairs are taken in the order of their worse row, so a row's fate is known before it decides another's.
    """
    better, worse = np.minimum(left, right), np.maximum(left, right)
    order = np.lexsort((better, -similarity, worse))
    order = order[better[order] != worse[order]]
    better, worse, similarity = better[order], worse[order], similarity[order]
    witness, value = list(range(count)), [1.0] * count
    for low, high, alike in zip(better.tolist(), worse.tolist(), similarity.tolist(), strict=True):
        if witness[low] == low and witness[high] == high:  # the first kept row met is the most similar one
            witness[high], value[high] = low, alike
    return np.array(witness, np.int64), np.array(value)


def _name_later_witnesses(
    places: Places, leader: Places, cause: Places, value: Floats, pairs: tuple[Places, Places, Floats], witness: Places
) -> None:
    """Name, for a twin of a removed leader, the kept row that is preferred to the twin alone and more similar.

    Such a row stands between the leader and the twin, so it could not remove the leader. Changes `cause` and `value`.
    """
    left, right, similarity = pairs
    better, worse = np.minimum(left, right), np.maximum(left, right)
    late = np.flatnonzero((better != worse) & (witness[better] != better) & (witness[worse] == worse))
    between: dict[int, list[tuple[int, float]]] = {}
    for place in late[np.argsort(worse[late])].tolist():
        between.setdefault(int(better[place]), []).append((int(worse[place]), float(similarity[place])))
    if not between:
        return
    for index in np.flatnonzero((leader != places) & (cause != leader)).tolist():
        for kept, alike in between.get(int(leader[index]), ()):
            if kept < places[index] and alike > value[index]:
                cause[index], value[index] = kept, alike
