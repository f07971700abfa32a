"""The words of each text in order, as hashes, and the hash of any run of them in one step."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.kernels.signatures import _pack, _readings, _sizes
from curate.kernels.words import DONE, FIRST, SECOND, Pad, begin_text, make_pad, next_tokens

U64 = np.uint64
U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BASE = FIRST | U64(1)
"""what the hash of a run is a polynomial in; the words are scrambled hashes themselves"""


def sequences(text: pa.LargeStringArray, mode: int) -> tuple[Int64s, U64s]:
    """The words of each text, end to end: bounds (n + 1) and hashes; none for a null. `mode` as in `curate.minhash`."""
    room = np.zeros(len(text) + 1, np.int64)
    np.cumsum(_sizes(text) // 2 + 1, out=room[1:])  # of two words one byte lies between
    held, counts = np.empty(room[-1], np.uint64), np.zeros(len(text), np.int64)
    for where in _readings(text):
        _collect(*where, make_pad(0), mode, room, held, counts)
    bounds = np.zeros(len(text) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    packed = np.empty(bounds[-1], np.uint64)
    _pack(held, room, counts, packed)
    return bounds, packed


def powers(most: int) -> U64s:
    """The powers of the base up to the longest run."""
    out = np.ones(most + 1, np.uint64)
    with np.errstate(over="ignore"):
        for step in range(most):
            out[step + 1] = out[step] * BASE
    return out


@nb.njit(cache=True, nogil=True)
def prefixes(tokens: U64s) -> U64s:
    """What `run_hash` needs of a text, with one place more than `tokens`."""
    out = np.empty(tokens.size + 1, np.uint64)
    out[0] = U64(0)
    for at in range(tokens.size):
        out[at + 1] = out[at] * BASE + tokens[at]
    return out


@nb.njit(cache=True, nogil=True, inline="always")
def run_hash(before: U64s, start: int, size: int, scale: U64s) -> np.uint64:
    """The hash of the `size` words from `start` on; never 0, and the same wherever the run stands."""
    value = before[start + size] - before[start] * scale[size] + U64(size)
    value = (value ^ (value >> U64(32))) * SECOND
    return (value ^ (value >> U64(29))) | U64(1)


@nb.njit(cache=True, nogil=True)
def _collect(
    base: np.uint64,
    offsets: Int64s,
    folded: bool,
    texts: Int64s,
    rows: Int64s,
    slow: Bools,
    pad: Pad,
    mode: int,
    room: Int64s,
    held: U64s,
    counts: Int64s,
) -> None:
    for index in range(texts.size):
        text, row = texts[index], rows[index]
        begin_text(pad)
        at = room[row]
        while pad.cursor[DONE] == 0:
            found = next_tokens(base + U64(offsets[text]), offsets[text + 1] - offsets[text], folded, pad, mode, 0)
            if found < 0:
                slow[row] = True
                break
            held[at : at + found] = pad.tokens[:found]
            at += found
        counts[row] = 0 if slow[row] else at - room[row]
