"""Shingles, sets, keys and minima of the kernels against `plain_shingles`, and the estimate that they make."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import plain_shingles
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate import minhash
from curate.kernels.signatures import MOST_SAMPLED, SAMPLED, STRIP, Strip, _lower_minima, _sort_unique, shingle_sets, sign

MODES = {"auto": 0, "whole": 1, "characters": 2}
TEXT = st.lists(st.sampled_from(["one", "Two", "đ", "東京", "three4", "é", "E\u0301", ",", " ", "ก", "ß"]), max_size=30).map(
    " ".join
)


def plain_keys(text: str, signing: minhash.Signing, mode: str) -> list[int]:
    places, factors, shifts = (array.tolist() for array in (signing.places, signing.factors, signing.shifts))
    return plain_shingles.keys(text, places, factors, shifts, signing.bands, mode)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=100, deadline=None)
@given(texts=st.lists(TEXT, min_size=1, max_size=5), size=st.integers(1, 7))
def test_sets_and_keys_are_those_of_the_definition(mode: str, texts: list[str], size: int) -> None:
    signing = minhash.signing(4, 3, size, MODES[mode])
    column = pa.array(texts, pa.large_string())

    bounds, values = shingle_sets(column, signing)
    signed = sign(column, signing)

    for row, text in enumerate(texts):
        expected = plain_shingles.shingles(text, signing.places.tolist(), mode)
        assert values[bounds[row] : bounds[row + 1]].tolist() == sorted(set(expected))
        assert signed.shingles[row] == len(expected)
        if expected:
            assert signed.keys[row].tolist() == plain_keys(text, signing, mode)


def test_long_texts_have_the_keys_and_the_sample_of_the_definition() -> None:
    texts = [" ".join(f"w{number * 7919 % 104729}" for number in range(count)) for count in (STRIP, STRIP + 5, 3 * STRIP + 1)]
    signing = minhash.signing(3, 2, 5, 0)

    signed = sign(pa.array(texts, pa.large_string()), signing)

    for row, text in enumerate(texts):
        shingles = plain_shingles.shingles(text, signing.places.tolist())
        assert signed.keys[row].tolist() == plain_keys(text, signing, "auto")
        chosen = [plain_shingles.mix(one) | 1 for one in shingles if one & SAMPLED == 0]
        assert signed.sampled[signed.sampled_rows == row].tolist() == chosen[:MOST_SAMPLED]


@pytest.mark.parametrize("mode", MODES)
def test_texts_of_several_pieces_have_the_sets_and_keys_of_the_definition(mode: str) -> None:
    """In the last ones Python must fold, and the kernel finds it out when it has read, and sampled, some pieces."""
    english = " ".join(f"Word{number * 7919 % 104729}" for number in range(9_000))
    chinese = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(25_000))
    texts = [english, chinese + " mixed " + english, english + " \u1100\u1161", chinese + "\u0344", "short"]
    column = pa.array(["x y z", None, *texts], pa.large_string()).slice(1)
    signing = minhash.signing(5, 2, 4, MODES[mode])

    signed, (bounds, values) = sign(column, signing), shingle_sets(column, signing)

    for row, text in enumerate(texts, 1):
        shingles = plain_shingles.shingles(text, signing.places.tolist(), mode)
        assert values[bounds[row] : bounds[row + 1]].tolist() == sorted(set(shingles))
        assert signed.shingles[row] == len(shingles)
        assert signed.keys[row].tolist() == plain_keys(text, signing, mode)
        chosen = [plain_shingles.mix(one) | 1 for one in shingles if one & SAMPLED == 0]
        assert sorted(signed.sampled[signed.sampled_rows == row].tolist()) == sorted(chosen[:MOST_SAMPLED])


def test_a_text_that_repeats_a_sampled_shingle_gives_a_few_samples() -> None:
    """`İ` folds to more bytes than it has; of many such characters each sampled."""
    signing = minhash.signing(1, 1, 1, 2)
    letter = next(
        c for c in map(chr, range(0x4E00, 0x9FFF)) if plain_shingles.shingles(c, signing.places.tolist())[0] & SAMPLED == 0
    )
    texts = [letter * 3, letter * 10, letter * 500, (letter + "İ") * 60 + "\u0344"]

    signed = sign(pa.array(texts, pa.large_string()), signing)

    assert np.bincount(signed.sampled_rows).tolist() == [3, 10, 64, 60]


def test_no_rows_and_rows_without_words_have_no_shingles() -> None:
    for column in (pa.array([], pa.large_string()), pa.array([None, "", "... !", None], pa.large_string())):
        signed, (bounds, values) = sign(column, minhash.signing(2, 2, 5, 0)), shingle_sets(column, minhash.signing(2, 2, 5, 0))

        assert signed.shingles.tolist() == [0] * len(column)
        assert bounds.tolist() == [0] * (len(column) + 1)
        assert len(values) == len(signed.sampled) == 0


def test_keys_of_bands_are_even_and_samples_odd() -> None:
    signed = sign(pa.array([" ".join(map(str, range(100_000)))], pa.large_string()), minhash.signing(25, 5, 5, 0))

    assert not (signed.keys % 2).any()
    assert (signed.sampled % 2).all()
    assert 0 < len(signed.sampled) <= MOST_SAMPLED


def test_keys_do_not_change_between_releases() -> None:
    """A change here makes every index that users keep useless: raise `minhash.VERSION` with it."""
    signed = sign(
        pa.array(["The quick brown fox jumps over the lazy dog. 東京"], pa.large_string()), minhash.signing(25, 5, 5, 0)
    )

    assert minhash.VERSION == 2
    assert signed.keys[0, [0, 24]].tolist() == [7672681437226434568, 4999448573831391876]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=300), st.booleans())
@settings(deadline=None)
def test_sets_are_sorted_and_have_no_repeats(numbers: list[int], crowded: bool) -> None:
    values = np.array([number >> 40 if crowded else number for number in [*numbers, *numbers[::3]]], np.uint64)

    count = _sort_unique(mine := values.copy(), np.empty(len(values), np.uint64))

    assert mine[:count].tolist() == sorted(set(values.tolist()))


def test_distinct_short_texts_do_not_collapse() -> None:
    texts = ["Yes", "No", "Route 11 is closed", "Route 12 is closed", "yes"]

    signed = sign(pa.array(texts, pa.large_string()), minhash.signing(25, 5, 5, 0))

    assert (signed.shingles == 1).all()
    assert [len(np.unique(signed.keys[:, band])) for band in range(25)] == [4] * 25


def least(hashes: npt.NDArray[np.uint64], signing: minhash.Signing) -> npt.NDArray[np.uint32]:
    strip = Strip(
        np.empty(STRIP, np.uint64), np.zeros(STRIP + 64, np.uint32), np.full(len(signing.factors), 2**32 - 1, np.uint32)
    )
    for start in range(0, len(hashes), STRIP):
        piece = hashes[start : start + STRIP]
        strip.shingles[: len(piece)] = piece
        _lower_minima(strip, len(piece), signing)
    return strip.least


@pytest.mark.parametrize("similarity", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("size", [1_000, 10_000, 100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_the_estimate_has_no_bias_and_the_error_of_theory(size: int, similarity: float) -> None:
    """1,000 pairs of sets, each with the 125 permutations of the default: the mean error's own error is at most 0.0014."""
    signing = minhash.signing(25, 5, 5, 0)
    common = round(2 * size * similarity / (1 + similarity))
    exact = common / (2 * size - common)
    errors = np.empty(1_000)
    for trial in range(len(errors)):
        drawn = np.random.default_rng([trial, size]).integers(0, 2**64, 2 * size - common, dtype=np.uint64)
        agree = least(drawn[:size], signing) == least(drawn[size - common :], signing)
        errors[trial] = np.mean(agree) - exact

    assert abs(errors.mean()) < 0.005
    assert math.sqrt(np.square(errors).mean()) == pytest.approx(math.sqrt(exact * (1 - exact) / 125), rel=0.1)


@pytest.mark.parametrize("kind", ["words", "numbers"])
@pytest.mark.parametrize("similarity", [0.3, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_pairs_of_texts_are_found_as_often_as_the_curve_says(similarity: float, kind: str) -> None:
    """2,000 pairs of 204 tokens, so of 200 shingles; numbers in order are as unlike random words as text can be."""
    signing = minhash.signing(25, 5, 5, 0)
    common = round(400 * similarity / (1 + similarity))
    exact = common / (400 - common)
    texts = []
    for pair in range(2_000):
        drawn = (
            np.arange(pair * 400, pair * 400 + 404)
            if kind == "numbers"
            else np.random.default_rng([7, pair]).integers(0, 10**7, 404)
        )
        names = drawn.astype(str).tolist()
        texts += [" ".join(names[:204]), " ".join(names[200 - common : 404 - common])]

    keys = sign(pa.array(texts, pa.large_string()), signing).keys

    sets = [set(plain_shingles.shingles(text, signing.places.tolist())) for text in texts[:2]]
    assert len(sets[0] & sets[1]) / len(sets[0] | sets[1]) == pytest.approx(exact)
    found = float((keys[::2] == keys[1::2]).any(axis=1).mean())
    assert abs(found - minhash.detection(exact, 25, 5)) < 0.03  # three times its standard error where that is largest


@pytest.mark.parametrize("similarity", [0.05, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99, 1.0])
def test_chosen_bands_find_a_pair_at_the_limit(similarity: float) -> None:
    assert minhash.detection(similarity, *minhash.choose_bands(similarity)) >= 0.999


def test_what_the_caller_chose_of_the_bands_is_kept() -> None:
    assert minhash.choose_bands(0.8) == (25, 5)
    assert minhash.choose_bands(0.8, rows=5) == (25, 5)
    assert minhash.choose_bands(0.8, bands=25) == (25, 5)
    assert minhash.choose_bands(0.8, bands=14, rows=8) == (14, 8)


@pytest.mark.parametrize("similarity", [0.5, 0.7, 0.8, 0.9])
def test_fewer_pairs_are_missed_than_with_the_parameters_of_datasketch(similarity: float) -> None:
    from datasketch.lsh import _optimal_param

    theirs = _optimal_param(similarity, 128, 0.5, 0.5)

    assert minhash.detection(similarity, *minhash.choose_bands(similarity)) >= minhash.detection(similarity, *theirs)
