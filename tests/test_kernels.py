"""Compiled and vectorised steps against plain readable references of the same."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curate import minhash
from curate.cells import fold, normalise_text
from curate.kernels.normalise import normalise, tables
from curate.shingles import shingle, words

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
TRICKY = st.text(
    st.sampled_from("aÅå\u030a\u0301\u0316\u0345ßẞİıΣςσǰ \t\n\u00a0\u3000\u200b가각각क़ाुคึ้😀\U00020000Ⱥ\u1e9e\u2126\x00\x1c"),
    max_size=12,
)


@settings(max_examples=300, deadline=None)  # the first call may compile
@given(st.lists(st.one_of(st.none(), TEXT, TRICKY), max_size=8), st.integers(0, 3))
@example([None, "", " \u3000 ", "É\u0301x ß"], 1)
def test_the_kernel_equals_the_plain_definition(texts: list[str | None], skipped: int) -> None:
    column = pa.array(texts, pa.large_string()).slice(skipped)

    found = normalise(column)

    found.validate(full=True)
    assert found.to_pylist() == [None if text is None else normalise_text(text) for text in texts[skipped:]]


def test_the_kernel_is_right_for_every_code_point_in_context() -> None:
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = [f"A{c} B" for c in characters] + [f"\u0301{c}\u0316" for c in characters[:0x20000]]

    found = normalise(pa.array(texts, pa.large_string()))

    assert found.equals(pa.array([normalise_text(text) for text in texts], pa.large_string()))


def test_curly_quotes_accents_and_ordered_marks_need_no_python() -> None:
    folds, _ = tables()

    assert all(folds[ord(c)] for c in "éÉ“”’–жЖλ東京カ한글हि्คึ้بَ")
    assert not any(folds[ord(c)] for c in "ßİ\u0301\u1161")


def test_bytes_cut_short_are_left_to_python_and_read_no_further() -> None:
    broken = pa.LargeStringArray.from_buffers(1, pa.array([0, 2], pa.int64()).buffers()[1], pa.py_buffer(b"a\xe6"))

    with pytest.raises(UnicodeDecodeError):
        normalise(broken)


@settings(max_examples=300)
@given(st.one_of(TEXT, TRICKY))
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalise_text(text)

    assert normalise_text(once) == once
    assert normalise_text(unicodedata.normalize("NFD", text)) == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't STOP, snake_case 3.14", ["don", "t", "stop", "snake_case", "3", "14"]),
        ("東京タワー is tall", ["東", "京", "タ", "ワ", "ー", "is", "tall"]),
        ("ไทย", ["ไ", "ท", "ย"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("Straße, CAFE\u0301", ["strasse", "café"]),
        ("\u0301 ... !?", []),
        ("한국어 텍스트", ["한국어", "텍스트"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert list(words(text)) == expected


@given(st.text(st.characters(max_codepoint=0x2FF, exclude_characters="İ"), max_size=60))  # İ folds to i and a mark
def test_words_of_western_texts_are_runs_of_word_characters(text: str) -> None:
    assert list(words(text)) == re.findall(r"\w+", fold(text))


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=9), max_size=6), st.integers(1, 5))
def test_two_shingles_are_equal_exactly_when_their_words_are(texts: list[list[str]], size: int) -> None:
    made = shingle([" ".join(text) for text in texts], size)

    hashes, runs = made.hashes.tolist(), []
    for text, (low, high) in zip(texts, pairwise(made.bounds.tolist()), strict=True):
        expected = [tuple(text[i : i + size]) for i in range(len(text) - size + 1)] or ([tuple(text)] if text else [])
        assert high - low == len(expected)
        runs += expected
    assert all((hashes[i] == hashes[j]) == (runs[i] == runs[j]) for i in range(len(runs)) for j in range(i))


def test_a_long_text_has_the_words_of_its_pieces() -> None:
    text = "one two three " * 100_000

    made = shingle([text], 1)

    assert len(made.hashes) == 300_000
    assert len(np.unique(made.hashes)) == 3


@pytest.mark.parametrize("size", [10, 1_000, 100_000, 1_000_000])
def test_the_estimator_is_unbiased(size: int) -> None:
    count, tries = 512, 12 if size < 10_000 else 1
    errors = []
    for alike in (0.1, 0.5, 0.9):
        for trial in range(tries):
            common = round(2 * size * alike / (1 + alike))
            drawn = np.random.default_rng(trial).integers(0, 2**64, 2 * size - common, dtype=np.uint64)
            left, right = drawn[:size], drawn[size - common :]
            bounds = np.array([0, size, 2 * size])
            signature = minhash.minima(np.concatenate([left, right]), bounds, count)
            exact = common / (2 * size - common)
            errors.append(float(np.mean(signature[0] == signature[1])) - exact)

    assert abs(float(np.mean(errors))) < 0.02
    assert max(map(abs, errors)) < 5 * np.sqrt(0.25 / count)


def test_minima_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = np.random.default_rng(0).integers(0, 2**64, 1_000, dtype=np.uint64)
    bounds = np.array([0, 1, 64, 65, 500, 501, 999, 1_000])
    whole = minhash.minima(hashes, bounds, 9)

    monkeypatch.setattr(minhash, "BLOCK", 64)

    assert np.array_equal(minhash.minima(hashes, bounds, 9), whole)
    each = [minhash.minima(hashes[low:high], np.array([0, high - low]), 9)[0] for low, high in pairwise(bounds.tolist())]
    assert np.array_equal(np.array(each), whole)


def test_bands_hash_their_minima_in_order() -> None:
    signatures = np.array([[1, 2, 3, 4], [2, 1, 4, 3], [1, 2, 1, 2]], np.uint32)

    keys = minhash.band_keys(signatures, 2, 2)

    assert len(np.unique(keys)) == keys.size - 1  # sums would make rows 0 and 1 one
    assert keys[0, 0] == keys[2, 0]
    assert keys[2, 0] != keys[2, 1]


@pytest.mark.parametrize("similarity", [0.05, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99, 1.0])
def test_chosen_bands_find_a_pair_at_the_limit(similarity: float) -> None:
    assert minhash.detection(similarity, *minhash.choose_bands(similarity)) >= 0.999


def test_what_the_caller_chose_of_the_bands_is_kept() -> None:
    assert minhash.choose_bands(0.8) == (25, 5)
    assert minhash.choose_bands(0.8, rows=5) == (25, 5)
    assert minhash.choose_bands(0.8, bands=25) == (25, 5)
    assert minhash.choose_bands(0.8, bands=14, rows=8) == (14, 8)
