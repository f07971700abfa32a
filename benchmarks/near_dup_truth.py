"""What is true of a corpus: every pair of texts that is similar enough, and what a tool's removals are worth.

The pairs come from an exact join, in plain Python and numpy, that shares nothing with the check it judges but the rule of
what a word is. Two sets with Jaccard similarity of at least t share an element among the (1 - t) * size + 1 rarest of each
(Bayardo, Ma and Srikant 2007, "Scaling up all pairs similarity search"): so the pairs that share one of these are
compared, whole set with whole set, and no other can be similar. Exact as far as 64-bit hashes of shingles differ, which
fails for one corpus of 1 GB in a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from near_dup_corpus import SHINGLE, words

LIMIT = 0.8
NEAR_LIMIT = 0.82
"""pairs up to here are told apart: a method that estimates may miss some of them"""
FREQUENCY_BITS = 26
"""shingles are counted in so many bits of their hash; a collision only makes one look less rare"""
ODD = np.uint64(0x9E3779B97F4A7C15)

U64s = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """All pairs with a similarity of at least `LIMIT` (`first` < `second`), and which of them were planted."""

    rows: int
    first: Ids
    second: Ids
    similarity: npt.NDArray[np.float64]
    planted: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Worth:
    """What became of a corpus: shares of 0 to 1.

    `precision`: of the removed rows those that are similar enough to a row that was kept. `recall`: of the pairs those of
    which not both were kept, of planted ones well above the limit, of planted ones just above it, and of all.
    """

    removed: int
    precision: float
    recall_planted: float
    recall_near_limit: float
    recall_all: float


def worth(truth: Truth, removed: Ids) -> Worth:
    """Judge the ids that a tool removed."""
    gone = np.zeros(truth.rows, bool)
    gone[removed] = True
    proven = np.zeros(truth.rows, bool)
    for one, other in ((truth.first, truth.second), (truth.second, truth.first)):
        proven[one[~gone[other]]] = True
    found = gone[truth.first] | gone[truth.second]
    near = truth.similarity < NEAR_LIMIT
    return Worth(
        removed=int(gone.sum()),
        precision=_share(proven[gone]),
        recall_planted=_share(found[truth.planted & ~near]),
        recall_near_limit=_share(found[truth.planted & near]),
        recall_all=_share(found),
    )


def truth_of(folder: Path) -> Truth:
    """The truth of a corpus, computed on the first use (a minute for 255 MB) and kept beside it."""
    corpus, kept = folder / "corpus.parquet", folder / "exact_pairs.parquet"
    if not kept.exists():
        pairs = similar_pairs(list(shingle_sets(corpus)))
        aside = kept.with_suffix(".tmp")
        pq.write_table(pa.table(dict(zip(("a", "b", "j"), pairs, strict=True))), aside)
        aside.rename(kept)
    pairs, planted = pq.read_table(kept), pq.read_table(folder / "truth_pairs.parquet")
    rows = pq.ParquetFile(corpus).metadata.num_rows
    first, second, similarity = (pairs.column(name).to_numpy() for name in ("a", "b", "j"))
    keys = planted.column("a").to_numpy() * rows + planted.column("b").to_numpy()
    return Truth(rows, first, second, similarity, np.isin(first * rows + second, keys))


def similar_pairs(sets: list[U64s]) -> tuple[Ids, Ids, npt.NDArray[np.float64]]:
    """Every pair of sorted sets with a similarity of at least `LIMIT`, in order."""
    rarest = _rarest(sets)
    size = np.array([len(one) for one in sets], np.int64)
    row, element = np.repeat(np.arange(len(sets)), [len(one) for one in rarest]), np.concatenate(rarest)
    order = np.lexsort((row, element))
    row, element = row[order], element[order]
    starts = np.flatnonzero(np.append(True, element[1:] != element[:-1]))
    sharing = np.diff(np.append(starts, len(row)))
    sharing = np.repeat(sharing, sharing)
    keys, step = [np.empty(0, np.int64)], 1
    while (lasts := sharing > step).any():
        row, element, sharing = row[lasts], element[lasts], sharing[lasts]
        same = np.flatnonzero(element[step:] == element[:-step])
        first, second = row[same], row[same + step]
        like = np.minimum(size[first], size[second]) >= LIMIT * np.maximum(size[first], size[second])
        keys.append(np.unique(first[like] * len(sets) + second[like]))
        step += 1
    candidates = np.unique(np.concatenate(keys))
    first, second = candidates // len(sets), candidates % len(sets)
    similarity = np.array([_jaccard(sets[one], sets[other]) for one, other in zip(first.tolist(), second.tolist(), strict=True)])
    similar = similarity >= LIMIT
    return first[similar], second[similar], similarity[similar]


def shingle_sets(corpus: Path) -> Iterator[U64s]:
    """The sorted shingle hashes of each text of a Parquet file."""
    numbers: dict[str, int] = {}
    places = ODD ** np.arange(1, SHINGLE + 1, dtype=np.uint64)
    with pq.ParquetFile(corpus) as file:
        for batch in file.iter_batches(4_096, columns=["text"]):
            for text in batch.column(0).to_pylist():
                found = np.array([numbers.setdefault(word, len(numbers) + 1) for word in words(text)], np.uint64)
                tokens = _mixed(np.pad(found, (0, max(0, SHINGLE - len(found)))))
                windows = np.lib.stride_tricks.sliding_window_view(tokens, SHINGLE)
                yield np.unique(_mixed((windows * places).sum(axis=1, dtype=np.uint64)))


def _rarest(sets: list[U64s]) -> list[U64s]:
    """Of each set the elements of which a similar set must share one."""
    counts = np.zeros(1 << FREQUENCY_BITS, np.uint32)
    low = np.uint64(len(counts) - 1)
    for one in sets:
        np.add.at(counts, one & low, 1)
    return [one[np.lexsort((one, counts[one & low]))[: len(one) - math.ceil(LIMIT * len(one)) + 1]] for one in sets]


def _jaccard(first: U64s, second: U64s) -> float:
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)


def _mixed(values: U64s) -> U64s:
    values = (values ^ (values >> np.uint64(32))) * ODD
    values = (values ^ (values >> np.uint64(29))) * ODD
    return values ^ (values >> np.uint64(32))


def _share(flags: npt.NDArray[np.bool_]) -> float:
    return float(flags.mean()) if len(flags) else math.nan
