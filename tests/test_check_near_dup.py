from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from near_dup_texts import TEXT, near_dup, removed_rows, sentence, shown, steps, with_template
from plain_shingles import shingles, words

from curate.dataset import Roles, Rows
from curate.errors import RequestError
from curate.testing import run_check

LIMIT = 0.8


def found(texts: list[str | None], **parameters: Any) -> dict[str, list[Any]]:
    return run_check(near_dup(**parameters), pa.table({"text": pa.array(texts, pa.string())}), TEXT, shards=4).to_pydict()


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


def test_unique_rows_with_a_shared_header_stay_and_cost_few_pairs() -> None:
    texts, originals = with_template(4_000, 120, 150, copies=40, edits=3)

    _, settled, counts = steps(near_dup(), shown(texts))

    removed = removed_rows(settled)
    assert removed.items() <= originals.items()
    assert len(removed) >= 0.95 * len(originals)
    assert counts["compared"] < 50 * len(texts)


def test_a_large_group_costs_a_pair_a_row_and_leaves_one_row() -> None:
    text = sentence(9, 300)
    edited = [" ".join([*text[:at], "edited", *text[at + 1 :]]) for at in range(300)]

    _, settled, counts = steps(near_dup(), shown(edited * 4))

    assert counts["compared"] == 4 * len(edited) - 1
    assert settled.filter(pa.compute.invert(settled["is_near_copy"]))["row"].to_pylist() == [0]


def test_a_crowd_of_unlike_rows_in_the_same_buckets_is_compared_boundedly() -> None:
    """Rows in groups of three alike, all of one bucket a band: no bucket remembers them all."""
    base = sentence(12, 30)
    texts = [[*base, *sentence(1_000 + seed // 3, 30)] for seed in range(900)]
    check = near_dup(bands=60, rows=1, similarity=0.9, max_bucket_rows=8)

    _, settled, counts = steps(check, shown([" ".join(text) for text in texts]))

    assert counts["compared"] <= 8 * len(texts)
    assert counts["full_buckets"] > 0
    assert counts["cut_rows"] > 0
    removed = settled.filter(settled["is_near_copy"])
    assert (removed["row"].to_numpy() // 3 == removed["near_copy_of"].to_numpy() // 3).all()
    assert len(removed) >= 0.9 * 600


def test_equal_texts_cost_one_pair_each() -> None:
    _, settled, counts = steps(near_dup(), shown([" ".join(sentence(10))] * 5_000))

    assert counts["compared"] == 4_999
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


PHRASES = [" ".join(sentence(500 + number, 12)) for number in range(6)]
COLLECTION = st.lists(st.lists(st.sampled_from(PHRASES), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=14)
PREFERENCES: list[Any] = ["first", "longest", {"highest": "score"}, ["longest", {"lowest": "score"}]]


@settings(max_examples=200, deadline=None)
@given(COLLECTION, st.sampled_from(PREFERENCES), st.sampled_from([0.3, 0.5, 0.8, 1.0]), st.randoms(use_true_random=False))
def test_a_row_goes_exactly_when_a_kept_row_that_is_preferred_is_alike_enough(
    texts: list[str], prefer: Any, limit: float, pick: random.Random
) -> None:
    scores = [pick.choice([None, 1, 2, 3]) for _ in texts]
    check = near_dup(prefer=prefer, similarity=limit, bands=40, rows=1)  # at 40 bands of one row, alike pairs share one
    table = pa.table({"text": texts, "score": pa.array(scores, pa.int64())})

    answers = run_check(check, table, TEXT, shards=3).to_pydict()

    sets = [set(shingles(text, check._signing().places.tolist())) for text in texts]
    keys = check.keys(Rows(table, np.arange(len(texts), dtype=np.uint64), TEXT)).to_pandas().groupby("row")["key"].agg(set)
    kept: list[int] = []
    for row in sorted(range(len(texts)), key=lambda row: order(prefer, texts[row], scores[row], row)):
        alike = {one: len(sets[row] & sets[one]) / len(sets[row] | sets[one]) for one in kept if keys[row] & keys[one]}
        witness = max((one for one in alike if alike[one] >= limit), key=lambda one: (alike[one], -kept.index(one)), default=None)
        assert answers["near_copy_of"][row] == witness
        assert answers["similarity"][row] == (None if witness is None else alike[witness])
        if witness is None:
            kept.append(row)
    for row in range(len(texts)):
        leader = answers["near_copy_of"][row] if answers["is_near_copy"][row] else row
        assert answers["group_size"][row] == 1 + answers["near_copy_of"].count(leader)


def order(prefer: Any, text: str, score: int | None, row: int) -> tuple[Any, ...]:
    """What rows are sorted by, the preferred one first."""
    if prefer == "first":
        return (row,)
    if prefer == "longest":
        return (-len(text), row)
    falling = prefer == {"highest": "score"}
    ranked = (score is None, 0 if score is None else -score if falling else score)
    return (*ranked, row) if falling else (-len(text), *ranked, row)


def test_no_links_settle_nothing() -> None:
    links, settled, counts = steps(near_dup(), shown(["one two three four five", "six seven eight nine ten"]))

    assert (len(links), len(settled), counts["compared"]) == (0, 0, 0)


@pytest.mark.parametrize(("folder", "name"), [("lo_help_near_dups", "doc_id"), ("licence_texts", "rule_id")])
def test_against_every_pair_of_real_texts(shared: Path, folder: str, name: str) -> None:
    docs = pq.read_table(shared / "data" / folder / "docs.parquet")
    truth = _true_pairs(pq.read_table(shared / "data" / folder / "pairs_jaccard.parquet"), docs[name].to_pylist(), name)
    texts = docs["text"].to_pylist()
    tokens = [tuple(words(text)) for text in texts]
    plain = {row for row, text in enumerate(texts) if list(tokens[row]) == re.findall(r"\w+", text.lower())}

    links, settled, _ = steps(near_dup(), shown(texts))

    assert len(plain) > 0.99 * len(texts)
    keys: dict[int, set[int]] = {}
    for row, key in zip(links["row"].to_pylist(), links["key"].to_pylist(), strict=True):
        keys.setdefault(row, set()).add(key)
    wanted = {pair for pair, alike in truth.items() if alike >= LIMIT}
    found = sum(bool(keys.get(a, set()) & keys.get(b, set())) for a, b in wanted)
    assert found >= 0.995 * len(wanted)
    removed = settled.filter(settled["is_near_copy"])
    kept = set(range(len(texts))) - set(removed["row"].to_pylist())
    for row, witness, alike in zip(*(removed[c].to_pylist() for c in ("row", "near_copy_of", "similarity")), strict=True):
        pair = (min(row, witness), max(row, witness))
        assert witness in kept
        assert alike >= LIMIT
        assert alike == pytest.approx(truth.get(pair, 0), rel=1e-6) or not plain.issuperset(pair)
    assert sum(a in kept and b in kept for a, b in wanted) <= 0.01 * len(wanted)


def test_the_curve_says_what_is_found() -> None:
    curve = dict(near_dup().detection_curve())

    assert near_dup().banding() == (25, 5)
    assert curve[0.8] > 0.9999
    assert curve[0.3] < 0.06
    assert list(curve.values()) == sorted(curve.values())


@pytest.mark.parametrize(
    "parameters", [{"similarity": 0}, {"similarity": 1.01}, {"words": 0}, {"chars": 65}, {"bands": 0}, {"prefer": []}]
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=next(iter(parameters))):
        near_dup(**parameters)


def _true_pairs(pairs: pa.Table, names: list[Any], name: str) -> dict[tuple[int, int], float]:
    row = {key: place for place, key in enumerate(names)}
    left, right = ([row[key] for key in pairs[f"{name}_{side}"].to_pylist()] for side in "ab")
    return {(min(a, b), max(a, b)): s for a, b, s in zip(left, right, pairs["jaccard_w5"].to_pylist(), strict=True)}


PEOPLE = pa.table(
    {
        "name": ["Anna Berg", "Ana Berg", "Anna Berg", "Otto Klein", None],
        "street": ["12 Long Lane", "12 Long Lane", "7 Short Street", "12 Long Lane", "12 Long Lane"],
        "town": ["Ulm", "Ulm", "Bonn", "Kiel", None],
    }
)


def test_records_are_compared_column_by_column() -> None:
    answers = run_check(near_dup(record=["name", "street", "town"]), PEOPLE, Roles()).to_pydict()

    assert answers["near_copy_of"] == [None, 0, None, None, None]
    assert 0.55 < answers["similarity"][1] < 1
    assert answers["is_near_copy"][4] is None  # a street alone is no record


def test_a_heavy_column_decides_about_records() -> None:
    by_street = run_check(near_dup(record={"name": 1, "street": 50, "town": 1}), PEOPLE.slice(0, 4), Roles()).to_pydict()

    assert by_street["near_copy_of"] == [None, 0, None, 0]


@pytest.mark.parametrize("record", [{"name": 0}, {"name": -1}, ["name", "name"], {"name": {"chars": 1}}, 7])
def test_records_that_make_no_sense_are_refused(record: Any) -> None:
    with pytest.raises(RequestError, match="record"):
        near_dup(record=record)


def test_a_column_of_a_record_that_is_not_there_is_named() -> None:
    with pytest.raises(RequestError, match="names the column `nme`"):
        near_dup(record=["nme"]).needs(Roles(), PEOPLE.schema)


def test_a_shingle_is_of_one_kind() -> None:
    for two in ({"words": 3, "chars": 3}, {"words": 3, "record": ["name"]}):
        with pytest.raises(RequestError, match="give one of"):
            near_dup(**two)


@pytest.mark.parametrize(
    ("file", "columns", "least"),
    [
        (
            "er_febrl/dataset3",
            "given_name surname street_number address_1 address_2 suburb postcode state date_of_birth soc_sec_id",
            0.95,
        ),
        ("er_cddb/records", "artist title tracks", 0.85),
    ],
)
def test_records_of_known_truth(shared: Path, file: str, columns: str, least: float) -> None:
    names = columns.split()
    table = pq.read_table(shared / "data" / f"{file}.parquet")

    answers = run_check(near_dup(record=names), table.select(names), Roles()).to_pydict()

    truth = table["cluster"].to_pylist()
    group = [row if kept is None else kept for row, kept in enumerate(answers["near_copy_of"])]
    right, made, wanted = (_pairs_in(each) for each in (list(zip(truth, group, strict=True)), group, truth))
    assert 2 * right / (made + wanted) >= least


def _pairs_in(groups: list[Any]) -> int:
    return sum(size * (size - 1) // 2 for size in Counter(groups).values())
