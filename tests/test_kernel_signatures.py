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
@pytest.mark.parametrize(("size", "trials"), [(1_000, 400), (10_000, 200), (100_000, 60), (1_000_000, 12)])
def test_the_estimate_has_no_bias_and_the_error_of_theory(size: int, trials: int, similarity: float) -> None:
    signing = minhash.signing(1, 512, 5, 0)
    common = round(2 * size * similarity / (1 + similarity))
    exact = common / (2 * size - common)
    errors = []
    for trial in range(trials):
        drawn = np.random.default_rng([trial, size]).integers(0, 2**64, 2 * size - common, dtype=np.uint64)
        agree = least(drawn[:size], signing) == least(drawn[size - common :], signing)
        errors.append(float(np.mean(agree)) - exact)

    theory = math.sqrt(exact * (1 - exact) / 512)
    noise = theory / math.sqrt(trials)  # of the mean error itself
    rmse = math.sqrt(float(np.mean(np.square(errors))))
    assert abs(float(np.mean(errors))) < max(0.005, 4 * noise)
    assert noise < 0.0065
    assert abs(rmse / theory - 1) < max(0.1, 4 / math.sqrt(2 * trials))


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
