"""All that reading a text takes, in one tuple: compiled code is handed few things."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from curate.kernels.tokens import LONGEST, PARTS, Vocabulary

Bytes = npt.NDArray[np.uint8]
Kinds = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]
U64s = npt.NDArray[np.uint64]
_Item = TypeVar("_Item", np.int64, np.uint8)

MOST_TOKENS = 1 << 20
"""tokens of a text in which repeated runs are looked for"""


class StopWords(NamedTuple):
    """A hash table of words; `seen` is the last text that each was found in."""

    slots: U64s
    seen: Int64s
    longest: int


class Pad(NamedTuple):
    """Scratch memory: a piece of a text, the tokens of a text, hash tables, and a line to change.

    `line_again` is the memory of `line`, read-only as an Arrow buffer is, so that one compiled function reads both.
    """

    codes: Kinds
    kinds: Kinds
    prints: U64s
    ends: Int64s
    tails: Int64s
    marks: U64s
    lengths: Int64s
    joined: Int64s
    grams: U64s
    slots: U64s
    counts: Int64s
    firsts: Int64s
    line: Bytes
    line_again: Bytes


class Reader(NamedTuple):
    """All that reading a text takes: tables, scratch, the tally of the text, and what is known of the line."""

    table: Kinds
    words: Vocabulary
    stops: StopWords
    pad: Pad
    tally: Int64s
    line: Int64s
    row: int


def make_pad(longest: int) -> Pad:
    """Scratch memory for texts of up to so many bytes."""
    tokens = min(longest, MOST_TOKENS) + 1
    slots, piece = 1 << max(4, (2 * tokens).bit_length()), LONGEST + PARTS + 1
    line = np.empty(longest, np.uint8)
    return Pad(
        codes=np.empty(piece, np.uint32),
        kinds=np.empty(piece, np.uint32),
        prints=np.zeros(piece, np.uint64),
        ends=np.empty(piece, np.int64),
        tails=np.empty(piece, np.int64),
        marks=np.empty(tokens, np.uint64),
        lengths=np.zeros(tokens + 1, np.int64),
        joined=np.zeros(tokens + 1, np.int64),
        grams=np.empty(tokens, np.uint64),
        slots=np.empty(slots, np.uint64),
        counts=np.empty(slots, np.int64),
        firsts=np.empty(slots, np.int64),
        line=line,
        line_again=read_only(line, np.uint8),
    )


def read_only(buffer: Any, kind: type[_Item]) -> npt.NDArray[_Item]:
    """A buffer as an array that cannot be written to, whoever made it: one type, so code is compiled once."""
    made = np.frombuffer(buffer if buffer is not None else b"", kind)
    made.flags.writeable = False
    return made
