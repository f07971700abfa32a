from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.check import make_check
from curate.checks.near_dup import NearDup
from curate.dataset import Roles, Rows
from curate.errors import RequestError
from curate.shingles import words
from curate.testing import run_check

TEXT = Roles(text=("text",))
LIMIT = 0.8


def near_dup(**parameters: Any) -> NearDup:
    check = make_check("near_dup", parameters)
    assert isinstance(check, NearDup)
    return check


def found(texts: list[str | None], **parameters: Any) -> dict[str, list[Any]]:
    return run_check(near_dup(**parameters), pa.table({"text": pa.array(texts, pa.string())}), TEXT, shards=4).to_pydict()


def sentence(seed: int, length: int = 100) -> list[str]:
    return [f"w{number}" for number in random.Random(seed).sample(range(10**6), length)]


def shown(texts: list[str]) -> Rows:
    return Rows(pa.table({"text": texts}), np.arange(len(texts), dtype=np.uint64), TEXT)


def steps(check: NearDup, rows: Rows) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Candidates, proven pairs, settled rows."""
    candidates, features = check.match(check.keys(rows)), check.features(rows)
    proven = check.verify(candidates, features)
    return candidates, proven, check.settle(proven, features.drop_columns(["shingles"]))


def test_a_near_copy_names_the_kept_row_and_the_exact_similarity() -> None:
    text = sentence(1)
    answers = found([" ".join(text), " ".join(sentence(2)), " ".join([*text, "end"])])

    assert answers["is_near_copy"] == [False, False, True]
    assert answers["near_copy_of"] == [None, None, 0]
    assert answers["similarity"] == [None, None, 96 / 97]
    assert answers["group_size"] == [2, 1, 2]


def test_short_texts_one_word_apart_both_stay() -> None:
    texts: list[str | None] = ["Route 11 is closed", "Route 12 is closed", "Yes", "No", "route 11 IS closed."]

    assert found(texts)["near_copy_of"] == [None, None, None, None, 0]


def test_texts_without_a_word_are_missing_and_not_alike() -> None:
    answers = found([None, "", "...", "!?", "word", " \n "])

    assert answers["is_near_copy"] == [None, None, None, None, False, None]
    assert answers["group_size"] == [None, None, None, None, 1, None]


def test_composed_and_decomposed_text_is_the_same_text() -> None:
    texts: list[str | None] = ["Ein Caf\u00e9 am Fluß ist schön und gut", "EIN CAFE\u0301 AM FLUSS IST SCHO\u0308N UND GUT"]

    assert found(texts)["similarity"] == [None, 1.0]


@pytest.mark.parametrize(
    "alphabet", ["東京都日本首世界最大級市", "กขคงจฉชซฌญ", "ກຂຄງຈສຊຍດຕ", "កខគឃងចឆជ", "ကခဂဃငစဆဇ", "あいうえおかきく"]
)
def test_scripts_without_spaces_are_compared_by_character(alphabet: str) -> None:
    text = "".join(random.Random(3).choices(alphabet, k=200))

    answers = found([text, text[:100] + "x" + text[100:], text[::-1]])

    assert answers["is_near_copy"] == [False, True, False]


def test_a_chain_keeps_its_ends() -> None:
    text = sentence(4, 120)
    first, middle, last = text[:100], text[8:108], text[16:116]
    answers = found([" ".join(part) for part in (first, middle, last)])

    assert answers["near_copy_of"] == [None, 0, None]


@pytest.mark.parametrize(("prefer", "kept"), [("first", 0), ("longest", 2), ({"highest": "score"}, 1)])
def test_the_preferred_row_stays(prefer: Any, kept: int) -> None:
    text = " ".join(sentence(5))
    table = pa.table({"text": [text, text + " a", text + " a b"], "score": [None, 3, 1]})

    answers = run_check(near_dup(prefer=prefer), table, TEXT).to_pydict()

    assert answers["near_copy_of"] == [None if row == kept else kept for row in range(3)]
    assert answers["group_size"] == [3, 3, 3]


def test_several_text_columns_are_one_text() -> None:
    head, tail = " ".join(sentence(6, 20)), " ".join(sentence(7, 60))
    table = pa.table({"title": [head, head, None], "text": [tail, tail, tail]})

    answers = run_check(near_dup(similarity=0.7), table, Roles(text=("title", "text"))).to_pydict()

    assert answers["similarity"] == [None, 1.0, 56 / 76]


def test_a_shared_header_removes_nothing_and_pairs_stay_few() -> None:
    header = " ".join(sentence(8, 120))
    rows = shown([header + " " + " ".join(sentence(100 + seed, 150)) for seed in range(1_000)])
    check = near_dup()

    candidates, proven, _ = steps(check, rows)

    assert len(proven) == 0
    assert len(candidates) < 50 * len(rows)
    assert candidates.num_rows == len(set(zip(candidates["row"].to_pylist(), candidates["other"].to_pylist(), strict=True)))


def test_a_large_group_costs_a_bounded_number_of_pairs_and_leaves_one_row() -> None:
    text = sentence(9, 300)
    edited = [" ".join([*text[:at], "edited", *text[at + 1 :]]) for at in range(300)]
    rows = shown(edited * 4)
    check = near_dup()

    candidates, _, settled = steps(check, rows)

    assert len(candidates) < (check.max_bucket_rows + 8) * len(rows)
    assert candidates["capped"].to_numpy().any()
    assert settled.filter(pa.compute.invert(settled["is_near_copy"]))["row"].to_pylist() == [0]


def test_equal_texts_cost_one_pair_each() -> None:
    candidates, _, settled = steps(near_dup(), shown([" ".join(sentence(10))] * 5_000))

    assert len(candidates) == 4_999
    assert set(settled["near_copy_of"].to_pylist()) == {None, 0}


def test_a_copy_of_a_removed_row_goes_with_it() -> None:
    text = sentence(11)
    best, twin = " ".join([*text, "a"]), " ".join(text)

    answers = found([best, twin, twin, twin])

    assert answers["near_copy_of"] == [None, 0, 0, 0]


def test_a_long_row_needs_no_table_of_permutations() -> None:
    import tracemalloc

    rows = shown([" ".join(map(str, range(200_000)))])
    check = near_dup()
    check.keys(shown(["warm up"]))
    tracemalloc.start()
    try:
        check.keys(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 60e6  # 200,000 shingles x 125 permutations would be 100 MB


EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.sampled_from([0.8, 0.85, 0.9, 1.0])), max_size=40)


@settings(max_examples=300)
@given(EDGES, st.permutations(range(12)))
def test_settling_keeps_rows_that_are_unlike_and_removes_only_what_is_proven(
    edges: list[tuple[int, int, float]], scores: list[int]
) -> None:
    similarity = _with_equal_rows_alike({(min(a, b), max(a, b)): s for a, b, s in edges if a != b})
    pairs = _pairs(similarity)
    features = pa.table({"row": np.arange(12, dtype=np.uint64), "prefer_0": pa.array(scores, pa.int64())})
    check = near_dup(prefer={"highest": "score"})

    settled = {row["row"]: row for row in check.settle(pairs, features).to_pylist()}

    assert set(settled) == {row for pair in similarity for row in pair}
    removed = {row for row, answer in settled.items() if answer["is_near_copy"]}
    for row in sorted(settled, key=lambda row: -scores[row]):
        alike_to = {a + b - row: alike for (a, b), alike in similarity.items() if row in (a, b)}
        kept = {other: alike for other, alike in alike_to.items() if scores[other] > scores[row] and other not in removed}
        assert (row in removed) == bool(kept)
        if kept:
            best = max(kept, key=lambda other: (kept[other], scores[other]))
            assert settled[row]["near_copy_of"] == best
            assert settled[row]["similarity"] == kept[best]
    for row, answer in settled.items():
        kept_row = answer["near_copy_of"] if row in removed else row
        assert answer["group_size"] == 1 + sum(other["near_copy_of"] == kept_row for other in settled.values())


@given(EDGES, st.randoms(use_true_random=False))
def test_settling_does_not_depend_on_the_order_of_pairs(edges: list[tuple[int, int, float]], shuffle: random.Random) -> None:
    similarity = {(min(a, b), max(a, b)): s for a, b, s in edges if a != b}
    features = pa.table({"row": np.arange(12, dtype=np.uint64)})
    shuffled = list(similarity.items())
    shuffle.shuffle(shuffled)

    expected = near_dup().settle(_pairs(similarity), features)

    assert near_dup().settle(_pairs(dict(shuffled)), features.take(shuffle.sample(range(12), 12))).equals(expected)


def test_no_pairs_settle_nothing() -> None:
    assert len(near_dup().settle(_pairs({}), pa.table({"row": np.empty(0, np.uint64)}))) == 0


@pytest.mark.parametrize(("folder", "name"), [("lo_help_near_dups", "doc_id"), ("licence_texts", "rule_id")])
def test_against_every_pair_of_real_texts(shared: Path, folder: str, name: str) -> None:
    docs = pq.read_table(shared / "data" / folder / "docs.parquet")
    truth = _true_pairs(pq.read_table(shared / "data" / folder / "pairs_jaccard.parquet"), docs[name].to_pylist(), name)
    texts = docs["text"].to_pylist()
    tokens = [tuple(words(text)) for text in texts]
    plain = {row for row, text in enumerate(texts) if list(tokens[row]) == re.findall(r"\w+", text.lower())}

    _, proven, settled = steps(near_dup(), shown(texts))

    similarity = {(a, b): s for a, b, s in zip(*(proven[c].to_pylist() for c in ("row", "other", "similarity")), strict=True)}
    for pair, alike in similarity.items():  # exact wherever both sides read the same words in the texts
        assert pair in truth
        assert alike == pytest.approx(truth[pair], rel=1e-6) or not plain.issuperset(pair)
    assert len(plain) > 0.99 * len(texts)
    first: dict[tuple[str, ...], int] = {}
    twin = [first.setdefault(key, row) for row, key in enumerate(tokens)]  # equal texts are compared once, for all of them
    wanted = {pair for pair, alike in truth.items() if alike >= LIMIT}
    missed = {(a, b) for a, b in wanted if twin[a] != twin[b] and tuple(sorted((twin[a], twin[b]))) not in similarity}
    assert len(missed) <= 0.01 * len(wanted)
    removed = settled.filter(settled["is_near_copy"])
    kept = set(range(len(texts))) - set(removed["row"].to_pylist())
    for row, witness, alike in zip(*(removed[c].to_pylist() for c in ("row", "near_copy_of", "similarity")), strict=True):
        pair = (min(row, witness), max(row, witness))
        assert witness in kept
        assert alike >= LIMIT
        assert truth.get(pair, 0) >= LIMIT or not plain.issuperset(pair)
    assert sum(a in kept and b in kept for a, b in wanted) <= 0.01 * len(wanted)


def test_the_curve_says_what_is_found() -> None:
    curve = dict(near_dup().detection_curve())

    assert near_dup().banding() == (25, 5)
    assert curve[0.8] > 0.9999
    assert curve[0.3] < 0.06
    assert list(curve.values()) == sorted(curve.values())


def test_keys_do_not_change_between_releases() -> None:
    keys = near_dup().keys(shown(["The quick brown fox jumps over the lazy dog. 東京"]))

    found = keys["key"][0].as_py(), keys["key"][24].as_py(), keys["content"][0].as_py()
    assert found == (2237732815402384505, 6348511485156061946, 6194482935127428690)


@pytest.mark.parametrize("parameters", [{"similarity": 0}, {"similarity": 1.01}, {"shingle": 0}, {"bands": 0}, {"prefer": []}])
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=next(iter(parameters))):
        near_dup(**parameters)


def _pairs(similarity: dict[tuple[int, int], float]) -> pa.Table:
    return pa.table(
        {
            "row": pa.array([a for a, _ in similarity], pa.uint64()),
            "other": pa.array([b for _, b in similarity], pa.uint64()),
            "similarity": pa.array(list(similarity.values()), pa.float64()),
        }
    )


def _with_equal_rows_alike(similarity: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """Similarities that sets could have: rows at 1.0 are one set, so they share all their other similarities."""
    head = list(range(12))
    for _ in head:
        for (a, b), alike in similarity.items():
            if alike == 1.0:
                head[a] = head[b] = min(head[a], head[b])
    between: dict[tuple[int, int], float] = {}
    for (a, b), alike in similarity.items():
        key = (min(head[a], head[b]), max(head[a], head[b]))
        between[key] = max(alike, between.get(key, 0.0))
    present = {row for pair in similarity for row in pair}
    every = {(a, b) for a in present for b in present if a < b}
    full = {(a, b): 1.0 if head[a] == head[b] else between.get((min(head[a], head[b]), max(head[a], head[b]))) for a, b in every}
    return {pair: alike for pair, alike in full.items() if alike is not None}


def _true_pairs(pairs: pa.Table, names: list[Any], name: str) -> dict[tuple[int, int], float]:
    row = {key: place for place, key in enumerate(names)}
    left, right = ([row[key] for key in pairs[f"{name}_{side}"].to_pylist()] for side in "ab")
    return {(min(a, b), max(a, b)): s for a, b, s in zip(left, right, pairs["jaccard_w5"].to_pylist(), strict=True)}
