"""Naive Bayes over byte n-grams, compiled: which language each text of an Arrow column is in.

The model is py3langid's: an automaton that reads UTF-8 bytes and names the n-grams it has seen,
and for each n-gram and language a weight. The answers equal `LanguageIdentifier.classify` with
`norm_probs=True`, up to rounding; a test holds the kernel to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class Automaton(NamedTuple):
    """The model as arrays: states of the automaton, then weights of each n-gram (rows) in each language (columns)."""

    row: npt.NDArray[np.uint32]
    """where each state's 256 transitions begin in `move`"""
    move: npt.NDArray[np.uint32]
    output: npt.NDArray[np.int32]
    """the n-gram that ends in each state, -1 for none"""
    weights: Floats
    prior: Floats
    first: npt.NDArray[np.int64]
    """for each column, the first column of the same language: some languages have one a script"""


SPACE_WITHIN = 32
"""how far a piece of a long text is moved to begin and end between words"""


@nb.njit(cache=True, nogil=True)
def sample_texts(data: Bytes, offsets: Int64s, most: int, out: Bytes, ends: Int64s) -> None:
    """Copy each text of at most `most` bytes; of longer ones the beginning, the middle and the end, on lines of their own.

    `ends[i + 1]` is where text i ends in `out`, which needs `most + 3` bytes a text.
    """
    at = 0
    piece = most // 3
    for text in range(offsets.size - 1):
        start, stop = offsets[text], offsets[text + 1]
        if stop - start <= most:
            at = _copy(data, start, stop, out, at)
        else:
            middle = (start + stop - piece) // 2
            at = _copy(data, start, _back(data, start, start + piece), out, at)
            out[at] = 0x0A
            at = _copy(data, _forth(data, middle, stop), _back(data, middle, middle + piece), out, at + 1)
            out[at] = 0x0A
            at = _copy(data, _forth(data, stop - piece, stop), stop, out, at + 1)
        ends[text + 1] = at


@nb.njit(cache=True, nogil=True)
def shouting(data: Bytes, offsets: Int64s) -> npt.NDArray[np.int8]:
    """Per text: 1 for ASCII whose letters are all capitals, 0 for other ASCII, -1 where a byte is not ASCII."""
    found = np.zeros(offsets.size - 1, np.int8)
    for text in range(found.size):
        small, capital, high = False, False, np.uint8(0)
        for place in range(offsets[text], offsets[text + 1]):
            letter = data[np.uint64(place)]
            high |= letter
            small |= (letter >= 0x61) & (letter <= 0x7A)
            capital |= (letter >= 0x41) & (letter <= 0x5A)
        found[text] = -1 if high >= 0x80 else np.int8(capital and not small)
    return found


@nb.njit(cache=True, nogil=True)
def identify(
    data: Bytes,
    offsets: Int64s,
    lower: npt.NDArray[np.bool_],
    model: Automaton,
    logs: Floats,
    best: npt.NDArray[np.int16],
    confidence: npt.NDArray[np.float64],
) -> None:
    """Write the column of the likeliest language of each text (-1 where no n-gram is known), and its probability.

    `lower` marks ASCII texts to be read in small letters; `logs[n]` is log(1 + n), to the longest text at least.
    """
    counts = np.zeros(model.output.size, np.int32)
    seen = np.empty(logs.size, np.int32)
    scores = np.empty(model.prior.size, np.float32)
    for text in range(offsets.size - 1):
        start, stop = offsets[text], offsets[text + 1]
        found = _count(data, start, stop, lower[text], model, counts, seen)
        best[text], confidence[text] = -1, 0.0
        if found > 0:
            _weigh(model, counts, seen[:found], logs, scores)
            best[text], confidence[text] = _decide(scores, model.first, stop - start)


@nb.njit(cache=True, nogil=True)
def _count(
    data: Bytes,
    start: int,
    stop: int,
    lower: bool,
    model: Automaton,
    counts: npt.NDArray[np.int32],
    seen: npt.NDArray[np.int32],
) -> int:
    """Count the n-grams of one text; `seen[:n]` are the ones that occur, in order of appearance."""
    state, found = np.uint64(0), 0
    for place in range(start, stop):
        letter = np.uint64(data[np.uint64(place)])
        if lower and np.uint64(0x41) <= letter <= np.uint64(0x5A):
            letter |= np.uint64(0x20)
        state = np.uint64(model.move[np.uint64(model.row[state]) + letter])
        gram = model.output[state]
        if gram >= 0:
            if counts[gram] == 0:
                seen[found] = gram
                found += 1
            counts[gram] += 1
    return found


@nb.njit(cache=True, nogil=True)
def _weigh(model: Automaton, counts: npt.NDArray[np.int32], seen: npt.NDArray[np.int32], logs: Floats, scores: Floats) -> None:
    """Each language's score, and the counts back to zero."""
    scores[:] = model.prior
    for gram in seen:
        factor = logs[counts[gram]]
        weights = model.weights[gram]
        for language in range(scores.size):
            scores[language] += factor * weights[language]
        counts[gram] = 0


@nb.njit(cache=True, nogil=True)
def _decide(scores: Floats, first: npt.NDArray[np.int64], length: int) -> tuple[int, float]:
    """The likeliest language and its probability, at the temperature at which py3langid calibrated it."""
    chances = np.exp((scores - scores.max()).astype(np.float64) / np.sqrt(length))
    chances /= chances.sum()
    for language in range(chances.size):
        if first[language] != language:
            chances[first[language]] += chances[language]
            chances[language] = 0.0
    best = int(np.argmax(chances))
    return best, chances[best]


@nb.njit(cache=True, nogil=True)
def _copy(data: Bytes, start: int, stop: int, out: Bytes, at: int) -> int:
    for place in range(start, stop):
        out[at + place - start] = data[place]
    return at + max(stop - start, 0)


@nb.njit(cache=True, nogil=True)
def _forth(data: Bytes, start: int, stop: int) -> int:
    """The first place from `start` on after a space, or else where a character begins."""
    for place in range(start, min(start + SPACE_WITHIN, stop)):
        if data[place - 1] <= 0x20:
            return place
    while start < stop and data[start] & 0xC0 == 0x80:
        start += 1
    return start


@nb.njit(cache=True, nogil=True)
def _back(data: Bytes, start: int, stop: int) -> int:
    """The last place up to `stop` before a space, or else where a character begins."""
    for place in range(stop, max(stop - SPACE_WITHIN, start), -1):
        if data[place] <= 0x20:
            return place
    while stop > start and data[stop] & 0xC0 == 0x80:
        stop -= 1
    return stop
