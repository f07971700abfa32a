"""Which words only one of two texts has.

Myers' difference algorithm (1986) over words, after the common beginning and end are set
aside: time grows with the length times the number of differences, and both are capped, so no
pair of texts can hold a page up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_DIFFERENCES = 120
"""words that may differ before two texts count as too unlike to be compared word by word"""
_WORD = re.compile(
    r"\s+|[{0}]\s*|[^\s{0}]{{1,80}}\s*".format("\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af")
)
"""a word and the blanks behind it; single characters where a script has no spaces"""
_MAX_CHARS = 20_000


@dataclass(frozen=True)
class Piece:
    """A run of a text, and whether only this text has it."""

    text: str
    differs: bool


@dataclass(frozen=True)
class Difference:
    """Both texts in pieces that add up to what was compared of them; not `compared`: nothing is marked."""

    left: tuple[Piece, ...]
    right: tuple[Piece, ...]
    compared: bool

    @property
    def same(self) -> bool:
        return self.compared and not any(piece.differs for piece in (*self.left, *self.right))


def compare(a: str, b: str, max_words: int = 2_000) -> Difference:
    """Two texts word by word; blanks at the ends of words do not count as differences.

    Of a longer text only the first `max_words` words are compared and returned.
    """
    left, right = words(a, max_words), words(b, max_words)
    bare_left, bare_right = [word.strip() for word in left], [word.strip() for word in right]
    start = _common(bare_left, bare_right)
    end = _common(bare_left[: start - 1 if start else None : -1], bare_right[: start - 1 if start else None : -1])
    runs = _runs(bare_left[start : len(left) - end], bare_right[start : len(right) - end])
    if runs is None:
        return Difference(_pieces(left, ()), _pieces(right, ()), False)
    changed_left = {start + at for a_from, a_to, _, _ in runs for at in range(a_from, a_to)}
    changed_right = {start + at for _, _, b_from, b_to in runs for at in range(b_from, b_to)}
    return Difference(_pieces(left, changed_left), _pieces(right, changed_right), True)


def words(text: str, most: int) -> list[str]:
    """At most so many words with the blanks behind them; their sum is a beginning of the text."""
    return _WORD.findall(text[:_MAX_CHARS])[:most]


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _runs(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int, int]] | None:
    """The runs (from, to in a; from, to in b) that differ; None when there is too much to find."""
    if not a or not b:
        return [(0, len(a), 0, len(b))] if a or b else []
    trace = _trace(a, b)
    return None if trace is None else list(_differing(_matches(trace, len(a), len(b)), len(a), len(b)))


def _trace(a: Sequence[str], b: Sequence[str]) -> list[dict[int, int]] | None:
    """For each number of edits, how far into `a` every diagonal reaches."""
    reach, trace = {1: 0}, []
    for edits in range(min(len(a) + len(b), MAX_DIFFERENCES) + 1):
        trace.append(dict(reach))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
            x = reach[diagonal + 1] if down else reach[diagonal - 1] + 1
            while x < len(a) and 0 <= x - diagonal < len(b) and a[x] == b[x - diagonal]:
                x += 1
            reach[diagonal] = x
            if x >= len(a) and x - diagonal >= len(b):
                return trace
    return None


def _matches(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """The pairs of equal words on the shortest way, from the end back to the start."""
    found = []
    for edits in range(len(trace) - 1, -1, -1):
        reach, diagonal = trace[edits], x - y
        down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        from_x = reach[before] if edits else 0
        from_y = from_x - before if edits else 0
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            found.append((x, y))
        if edits:
            x, y = from_x, from_y
    return found


def _differing(matches: Sequence[tuple[int, int]], a: int, b: int) -> Iterator[tuple[int, int, int, int]]:
    x = y = 0
    for at_x, at_y in [*reversed(matches), (a, b)]:
        if at_x > x or at_y > y:
            yield x, at_x, y, at_y
        x, y = at_x + 1, at_y + 1


def _pieces(texts: Sequence[str], changed: set[int] | tuple[()]) -> tuple[Piece, ...]:
    """Neighbours of the same sort as one piece; the blanks behind a changed run stay plain."""
    out: list[Piece] = []
    run = ""
    for at, text in enumerate(texts):
        differs = at in changed and bool(text.strip())
        out_of = at + 1 >= len(texts) or (at + 1 in changed and bool(texts[at + 1].strip())) != differs
        run += text
        if out_of:
            bare = run.rstrip() if differs else run
            out += [piece for piece in (Piece(bare, differs), Piece(run[len(bare) :], False)) if piece.text]
            run = ""
    return tuple(out)
