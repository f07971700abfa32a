"""What is known of benchmark items once the data was seen: their runs of words and their words, and which of these say something.

A run (`n` words, or the whole of a shorter item) says nothing where it is *common*: many rows have it that do not hold
the item, or many items have it. Words weigh by how few rows and items have them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.cells import lengths
from curate.check import State
from curate.groups import run_starts, stretches
from curate.items import Items
from curate.minhash import BY_SCRIPT

U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LIKENED_WORDS = 20
"""words an item must have to be likened by its words: of shorter ones another question differs in one word"""
TEMPLATE_SHARE, TEMPLATE_ITEMS = 0.02, 3
"""a run that more items than this have, as a share or as a count, is part of a template"""
EVERYDAY_SHARE, EVERYDAY_ITEMS, MOST_ITEMS = 0.1, 10, 256
"""a word that more items have says nothing"""
NARROWEST, WIDEST = 64, 1 << 16
"""words of a window in which an item is likened: the power of two that is at least twice its length"""
LONGEST_NAME = 200
STRETCH_BYTES = 8 << 20
"""text whose words are counted at once"""


class Texts(NamedTuple):
    """Texts as words: where each begins, and the words."""

    bounds: Int64s
    tokens: U64s

    def take(self, keep: Bools) -> Texts:
        """The texts where `keep` is true."""
        sizes = np.diff(self.bounds)
        return Texts(np.concatenate([[0], np.cumsum(sizes[keep])]), self.tokens[np.repeat(keep, sizes)])


def words_of(text: pa.LargeStringArray) -> Texts:
    """The words of texts, those that code joins by `_` or by capitals apart: `hasCloseWords` and `has_close_words` are alike."""
    from curate.kernels.sequences import sequences

    apart = pc.replace_substring_regex(pc.replace_substring(text, "_", " "), r"([a-z0-9])([A-Z])", r"\1 \2")
    return Texts(*sequences(apart.cast(pa.large_string()), BY_SCRIPT))


def index_items(
    items: Items, rows: pa.LargeStringArray, run_words: int, least_words: int, common_rows: int
) -> dict[str, npt.NDArray[Any]]:
    """The state of a contamination check: the items, their runs and words, and how common these are in the rows."""
    texts = words_of(items.texts)
    first = _first_of_equals(texts)
    texts = texts.take(first)
    names = np.array([name[:LONGEST_NAME] for name, one in zip(items.names, first, strict=True) if one], np.str_)
    files = np.array([file for file, one in zip(items.files, first, strict=True) if one], np.str_)
    state = {
        "names": names,
        "files": files,
        "bounds": texts.bounds,
        **_runs(texts, run_words, least_words),
        **_words(texts),
    }
    runs, words, items_found = _counted(state, rows)
    documents = len(rows) + len(names)
    common = (runs > common_rows) | (state["run_items_of"] > max(TEMPLATE_ITEMS, TEMPLATE_SHARE * len(names)))
    everyday = state["word_items_of"] > min(MOST_ITEMS, max(EVERYDAY_ITEMS, EVERYDAY_SHARE * len(names)))
    weight = np.log((documents + 1) / (words + state["word_items_of"]))
    weight[everyday] = 0
    unknown = np.array([np.log(documents + 1)])
    found = {"run_counts": ~common, "run_rows": runs, "word_weight": weight, "unknown": unknown, "item_rows": items_found}
    state |= found
    return state | {"item_words": _covered(state, ~common), "item_totals": _totals(state, weight)}


def score(state: State, rows: Texts) -> Any:
    """The scores of rows, as `curate.kernels.overlap.Scores`."""
    from curate.kernels.overlap import Scores, make_found, score_rows

    runs, words = _tables(state)
    size = len(rows.bounds) - 1
    scores = Scores(np.zeros(size), np.full(size, -1, np.int64), np.zeros(size), np.full(size, -1, np.int64))
    found = make_found(runs, int(state["bounds"][-1]), len(state["names"]))
    score_rows(rows.tokens, rows.bounds, runs, words, state["item_words"], found, scores)
    return scores


def _first_of_equals(texts: Texts) -> Bools:
    seen: set[bytes] = set()
    first = np.zeros(len(texts.bounds) - 1, np.bool_)
    for at, (start, stop) in enumerate(zip(texts.bounds[:-1], texts.bounds[1:], strict=True)):
        words = texts.tokens[start:stop].tobytes()
        first[at] = words not in seen
        seen.add(words)
    return first


def _runs(texts: Texts, run_words: int, least_words: int) -> dict[str, npt.NDArray[Any]]:
    """Every run, where it stands and in which items; of an item with too few words none."""
    from curate.kernels.overlap import hash_runs
    from curate.kernels.sequences import powers

    lengths = np.diff(texts.bounds)
    long = lengths >= least_words
    size = np.minimum(lengths, run_words)
    item = np.repeat(np.flatnonzero(long), (lengths - size + 1)[long])
    within = texts.take(long)
    hashes = np.empty(len(item), np.uint64)
    hash_runs(within.tokens, within.bounds, size[long], powers(run_words), hashes)
    begin = np.concatenate([[0], np.cumsum((lengths - size + 1)[long])])[:-1]
    inside = np.arange(len(item)) - np.repeat(begin, (lengths - size + 1)[long])
    place = texts.bounds[item] + inside
    distinct, number = np.unique(hashes, return_inverse=True)
    order = np.lexsort((place, number))
    starts = np.searchsorted(number[order], np.arange(len(distinct) + 1))
    own = np.unique(np.stack([number, item]), axis=1)[0] if len(item) else number
    return {
        "run_hashes": distinct,
        "run_bounds": starts.astype(np.int64),
        "run_items": item[order].astype(np.int64),
        "run_places": place[order].astype(np.int64),
        "run_length": size[item[order][starts[:-1]]].astype(np.int64),
        "run_items_of": np.bincount(own, minlength=len(distinct)).astype(np.int64),
        "run_sizes": np.unique(size[long]).astype(np.int64),
        "run_words": np.array([run_words]),
    }


def _words(texts: Texts) -> dict[str, npt.NDArray[Any]]:
    """Every word and pair of words of the items that are long enough, and which items have it, by width of window."""
    from curate.kernels.overlap import hash_runs
    from curate.kernels.sequences import powers

    lengths = np.diff(texts.bounds)
    long = lengths >= LIKENED_WORDS
    within = texts.take(long)
    hashes, items = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for size in (1, 2):
        count = (lengths - size + 1)[long]
        found = np.empty(int(count.sum()), np.uint64)
        hash_runs(within.tokens, within.bounds, np.full(len(count), size), powers(2), found)
        hashes.append(found)
        items.append(np.repeat(np.flatnonzero(long), count))
    item, hashed = np.concatenate(items), np.concatenate(hashes)
    order = np.lexsort((item, hashed))
    item, hashed = item[order], hashed[order]
    once = run_starts(hashed, item)
    item, hashed = item[once], hashed[once]
    distinct, number = np.unique(hashed, return_inverse=True)
    width = np.clip(2 ** np.ceil(np.log2(np.maximum(2 * lengths, 1))), NARROWEST, WIDEST).astype(np.int64)
    widths, group = np.unique(width[long], return_inverse=True)
    group_of = np.zeros(len(lengths), np.int64)
    group_of[long] = group
    slot = group_of[item] * len(distinct) + number
    order = np.lexsort((item, slot))
    return {
        "word_hashes": distinct,
        "word_items": item[order],
        "word_bounds": np.searchsorted(slot[order], np.arange(len(widths) * len(distinct) + 1)).astype(np.int64),
        "word_items_of": np.bincount(number, minlength=len(distinct)).astype(np.int64),
        "word_widths": widths,
    }


def _tables(state: State) -> tuple[Any, Any]:
    """The state as the kernels want it."""
    from curate.kernels.overlap import Runs, Words
    from curate.kernels.sequences import powers

    features = len(state["run_hashes"])
    scale = powers(max(int(state["run_words"][0]), 2))
    runs = Runs(
        state["run_sizes"],
        scale,
        *_table(state["run_hashes"]),
        state["run_bounds"],
        state["run_items"],
        state["run_places"],
        state["run_length"],
        state.get("run_counts", np.ones(features, np.bool_)),
    )
    words = Words(
        *_table(state["word_hashes"]),
        state.get("word_weight", np.ones(len(state["word_hashes"]))),
        state["word_widths"],
        state["word_bounds"],
        state["word_items"],
        state.get("item_totals", np.ones(len(state["names"]))),
        float(state.get("unknown", np.ones(1))[0]),
    )
    return runs, words


def _table(hashes: U64s) -> tuple[U64s, Int64s]:
    from curate.kernels.overlap import fill

    size = 1 << max(4, int(2 * len(hashes)).bit_length())
    slots, numbers = np.zeros(size, np.uint64), np.zeros(size, np.int64)
    fill(hashes, slots, numbers)
    return slots, numbers


def _counted(state: State, rows: pa.LargeStringArray) -> tuple[Int64s, Int64s, Int64s]:
    """Rows that have each run without its item, each word, each item."""
    from curate.kernels.overlap import Counts, count_rows, make_found

    runs, words = _tables(state)
    items = len(state["names"])
    counts = Counts(*(np.zeros(size, np.int64) for size in (len(runs.length), len(words.weight), items)))
    item_words = np.maximum(_covered(state, np.ones(len(runs.length), np.bool_)), 1)
    for start, stop in stretches(np.maximum(lengths(rows), 0), STRETCH_BYTES):
        texts = words_of(rows.slice(start, stop - start))
        count_rows(texts.tokens, texts.bounds, runs, words, item_words, make_found(runs, int(state["bounds"][-1]), items), counts)
    return counts.runs, counts.words, counts.items


def _covered(state: State, counts: Bools) -> Int64s:
    """How many words of each item stand in a run that counts."""
    steps = np.zeros(int(state["bounds"][-1]) + 1, np.int64)
    number = np.repeat(np.arange(len(counts)), np.diff(state["run_bounds"]))
    keep = counts[number]
    place = state["run_places"][keep]
    np.add.at(steps, place, 1)
    np.add.at(steps, place + state["run_length"][number[keep]], -1)
    inside = np.concatenate([[0], np.cumsum(np.cumsum(steps)[:-1] > 0)])
    words: Int64s = inside[state["bounds"][1:]] - inside[state["bounds"][:-1]]
    return words


def _totals(state: State, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What the words of each item weigh together."""
    features = len(weight)
    slot = np.repeat(np.arange(len(state["word_bounds"]) - 1), np.diff(state["word_bounds"]))
    weights = weight[slot % features] if features else np.empty(0)
    return np.bincount(state["word_items"], weights=weights, minlength=len(state["names"])).astype(np.float64)
