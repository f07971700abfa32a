"""The benchmark's corpus and its judge say what is true, by a plain reckoning over every pair of texts."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from near_dup_texts import near_dup, removed_rows, shown, steps
from plain_shingles import words

MEGABYTES = 0.3


@pytest.fixture(scope="module")
def scripts(root: Path) -> Iterator[dict[str, ModuleType]]:
    folder = root / "benchmarks"
    if not folder.is_dir():
        pytest.skip("there are no benchmarks beside these tests")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        names = ("near_dup_corpus", "near_dup_truth")
        yield {name: importlib.import_module(name) for name in names}
        for name in names:
            del sys.modules[name]


@pytest.fixture(scope="module")
def paragraphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    drawn = random.Random(7)
    vocabulary = ["".join(drawn.choices("etaoinshrdlé", k=drawn.randint(2, 9))) for _ in range(3_000)]
    texts = [" ".join(drawn.choices(vocabulary, k=drawn.randint(15, 90))).capitalize() + "." for _ in range(800)]
    path = tmp_path_factory.mktemp("paragraphs") / "paragraphs.parquet"
    pq.write_table(pa.table({"text": texts}), path)
    return path


@pytest.fixture(scope="module")
def folder(scripts: dict[str, ModuleType], paragraphs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("corpus")
    scripts["near_dup_corpus"].make(paragraphs, made, MEGABYTES)
    return made


@pytest.fixture(scope="module")
def texts(folder: Path) -> list[str]:
    table = pq.read_table(folder / "corpus.parquet")
    assert table.column("id").to_pylist() == list(range(len(table)))
    return list(table.column("text").to_pylist())


def similarity(first: set[tuple[str, ...]], second: set[tuple[str, ...]]) -> float:
    return len(first & second) / len(first | second)


def sets(texts: list[str]) -> list[set[tuple[str, ...]]]:
    found = map(words, texts)
    return [{tuple(one[at : at + 5]) for at in range(max(1, len(one) - 4))} for one in found]


def test_planted_pairs_have_the_similarity_that_the_truth_says(folder: Path, texts: list[str]):
    truth, shingles = pq.read_table(folder / "truth_pairs.parquet").to_pylist(), sets(texts)

    plain = [similarity(shingles[pair["a"]], shingles[pair["b"]]) for pair in truth]

    assert plain == [pair["j"] for pair in truth]
    assert all(pair["a"] < pair["b"] for pair in truth)
    assert {"exact", "words", "cut", "added", "chain"} <= {pair["kind"] for pair in truth}
    assert np.median([abs(pair["j"] - pair["target_j"]) for pair in truth]) < 0.01


def test_the_corpus_has_about_the_size_asked_for_and_is_made_again_the_same(
    scripts: dict[str, ModuleType], paragraphs: Path, folder: Path, texts: list[str], tmp_path: Path
):
    scripts["near_dup_corpus"].make(paragraphs, tmp_path, MEGABYTES)

    assert sum(len(text.encode()) for text in texts) == pytest.approx(MEGABYTES * 1e6, rel=0.3)
    for name in ("corpus.parquet", "truth_pairs.parquet"):
        assert pq.read_table(tmp_path / name).equals(pq.read_table(folder / name))


def test_a_second_pass_over_the_paragraphs_repeats_none_of_the_first(scripts: dict[str, ModuleType], paragraphs: Path):
    first = pq.read_table(paragraphs).column("text").to_pylist()

    second = scripts["near_dup_corpus"].reworded(first, np.random.default_rng(1))

    assert list(map(len, map(words, second))) == list(map(len, map(words, first)))
    assert not set().union(*sets(first)) & set().union(*sets(second))


def test_the_exact_join_finds_the_pairs_that_comparing_all_texts_finds(
    scripts: dict[str, ModuleType], folder: Path, texts: list[str]
):
    truth, shingles = scripts["near_dup_truth"].truth_of(folder), sets(texts)

    pairs = combinations(range(len(texts)), 2)
    plain = {pair: found for pair in pairs if (found := similarity(shingles[pair[0]], shingles[pair[1]])) >= 0.8}

    assert (
        dict(zip(zip(truth.first.tolist(), truth.second.tolist(), strict=True), truth.similarity.tolist(), strict=True)) == plain
    )
    assert truth.planted.sum() == sum(pair["j"] >= 0.8 for pair in pq.read_table(folder / "truth_pairs.parquet").to_pylist())


def test_what_near_dup_removes_is_right_and_all_there_is(scripts: dict[str, ModuleType], folder: Path, texts: list[str]):
    judge = scripts["near_dup_truth"]

    removed = removed_rows(steps(near_dup(), shown(texts))[1])
    worth = judge.worth(judge.truth_of(folder), np.array(sorted(removed)))

    assert (worth.removed, worth.precision, worth.recall_all) == (len(removed), 1.0, 1.0)


def test_a_removal_is_right_only_beside_a_kept_row(scripts: dict[str, ModuleType]):
    judge = scripts["near_dup_truth"]
    chain = judge.Truth(5, np.array([0, 1, 3]), np.array([1, 2, 4]), np.array([0.9, 0.9, 0.81]), np.array([True, False, True]))

    worth = judge.worth(chain, np.array([1, 2]))

    assert (worth.removed, worth.precision) == (2, 0.5)
    assert (worth.recall_planted, worth.recall_near_limit, worth.recall_all) == (1.0, 0.0, 2 / 3)
