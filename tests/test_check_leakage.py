"""`leakage`: planted leaks between splits, by row, with the split that is to blame and the witness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate import api
from curate.check import make_check
from curate.dataset import Roles
from curate.errors import RequestError
from curate.testing import run_check
from tests.benchmark_items import Words, background
from tests.runs import by_id, document, pipeline

ROLES = Roles(id="id", text=("text",), split="split")


def leaks(texts: list[str | None], splits: list[str | None], **parameters: Any) -> pa.Table:
    table = pa.table({"text": pa.array(texts, pa.string()), "split": pa.array(splits, pa.string())})
    return run_check(make_check("leakage", parameters), table, Roles(text=("text",), split="split"))


def test_planted_leaks_are_found_in_training_rows_alone_and_name_the_test_row():
    words = Words(1)
    rows = background(words, 200)
    splits = ["test" if at < 50 else "train" for at in range(200)]
    rows[60], rows[70], rows[80] = rows[3], rows[4].upper() + "\n", " ".join([*words.sentence(60).split(), "end"])
    rows[5], rows[90] = rows[80] + " of it", rows[91]

    found = leaks(rows, splits)

    flagged = np.flatnonzero(found["is_leak"].to_numpy(zero_copy_only=False)).tolist()
    assert flagged == [60, 70, 80]
    assert found["leaks"].take(flagged).to_pylist() == [3, 4, 5]
    assert found["similarity"].take(flagged).to_pylist() == pytest.approx([1, 1, 57 / 59])
    assert found["leaks_into"].take(flagged).to_pylist() == ["test"] * 3


def test_the_more_protected_split_stays_whole_whatever_the_order_of_rows():
    text = "one sentence of some words that stands in three splits at once"

    found = leaks([text] * 4, ["train", "validation", "Test", "extra"])

    assert found["is_leak"].to_pylist() == [True, True, False, True]
    assert found["leaks"].to_pylist() == [2, 2, None, 2]


def test_protect_says_which_split_is_to_blame():
    text = "one sentence of some words that stands in two splits at once"

    found = leaks([text] * 2, ["train", "test"], protect="train")

    assert found["is_leak"].to_pylist() == [False, True]


def test_of_splits_that_are_not_listed_the_first_by_name_stays_and_training_gives_way():
    text = "one sentence of some words that stands in all of the folds"

    found = leaks([text] * 3, ["train", "fold2", "fold1"])

    assert found["leaks"].to_pylist() == [2, 2, None]


def test_copies_inside_a_split_and_rows_without_a_split_or_a_word_are_left_alone():
    text = "one sentence of some words that comes again and again here"

    found = leaks([text, text, text, "", None], ["train", "train", None, "test", "test"])

    assert found["is_leak"].to_pylist() == [False, False, None, None, None]


def test_a_thousand_equal_short_answers_in_both_splits_cost_little_and_all_training_ones_leak():
    found = leaks(["Yes."] * 2000, ["train", "test"] * 1000)

    assert found["is_leak"].to_pylist() == [True, False] * 1000


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["train", "test", "val", "x"])), max_size=25))
def test_every_leak_is_proven_and_no_exact_one_is_missed(rows: list[tuple[int, str]]):
    texts = [f"text {at} " + " ".join(f"w{at}{step}" for step in range(9)) for at, _ in rows]
    order = ["test", "val", "x", "train"]

    found = leaks(texts, [split for _, split in rows])

    for at, (kind, split) in enumerate(rows):
        better = [other for other, (same, to) in enumerate(rows) if same == kind and order.index(to) < order.index(split)]
        assert found["is_leak"][at].as_py() == bool(better)
        if better:
            assert found["leaks"][at].as_py() == min(better, key=lambda other: (order.index(rows[other][1]), other))


def test_a_run_rejects_the_training_row_names_the_witness_and_counts_leaks_by_split(tmp_path: Path):
    rows = background(Words(4), 60)
    rows[41] = rows[7]
    splits = ["test" if at < 20 else "train" for at in range(60)]
    pq.write_table(pa.table({"id": [f"r{at}" for at in range(60)], "text": rows, "split": splits}), tmp_path / "rows.parquet")

    api.run(pipeline("leakage", roles=ROLES), tmp_path / "rows.parquet", tmp_path / "out")

    gone = {name: row for name, row in by_id(tmp_path / "out").items() if row[0] == "rejected"}
    assert gone == {"r41": ("rejected", "leakage", "leakage", "similarity", "at_least", 1.0, 0.8, "r7")}
    detail = document(tmp_path / "out")["stages"]["leakage"]["detail"]
    assert detail["leaks_by_split"] == [{"split": "train", "into": "test", "rows": 1}]
    assert api.why(tmp_path / "out", "r41")["witness"]["id"] == "r7"


def test_without_a_split_the_request_is_refused():
    with pytest.raises(RequestError, match="role `split`"):
        make_check("leakage", {}).needs(Roles(text=("text",)), pa.schema([("text", pa.string())]))


def test_the_same_pairs_as_all_against_all():
    sentences = [Words(8).sentence(40)] + [Words(seed).sentence(40) for seed in range(20, 30)]
    texts, splits = [], []
    for at, sentence in enumerate(sentences * 6):
        words = sentence.split()
        words[at % 40 : at % 40 + at // 11] = ["other"] * (at // 11)
        texts.append(" ".join(words))
        splits.append("test" if at % 3 == 0 else "train")
    sets = [{tuple(text.lower().rstrip(".").split()[at : at + 5]) for at in range(len(text.split()) - 4)} for text in texts]
    expected = []
    for one, split in zip(sets, splits, strict=True):
        values = [len(one & two) / len(one | two) for two, to in zip(sets, splits, strict=True) if to == "test"]
        expected.append(split == "train" and max(values) >= 0.6)

    found = leaks(texts, splits, similarity=0.6)

    assert found["is_leak"].to_pylist() == expected
    assert pl.Series(expected).sum() > 10
