"""Sample rows for the page: a rejected row, the row it was compared with, and the words that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curate.render.highlight import Piece, compare
from curate.render.visible import name, visible
from curate.render.words import count, number

_ONE_SIDED = 600
"""characters of a text without a witness that are enough to judge it"""


def view(sample: Mapping[str, Any], chars: int, rule: str = "") -> dict[str, Any]:
    """One sample, ready to be placed: at most `chars` characters of each text, around the first difference."""
    witness = sample.get("witness")
    text = _text(sample)
    own = {
        "row": count(sample.get("row_id")),
        "id": _id(sample),
        "value": "" if rule == "is_true" else number(sample.get("value")),
        "place": _place(sample),
    }
    if witness is None:
        return {**own, **_cut((Piece(text, False),), 0, min(chars, _ONE_SIDED), sample), "witness": None, "note": ""}
    difference = compare(text, _text(witness))
    note = "the same words" if difference.same else "" if difference.compared else "too unlike to compare word by word"
    return {
        **own,
        **_cut(difference.left, _first(difference.left), chars, sample),
        "witness": {
            "row": count(witness.get("row_id")),
            "id": _id(witness),
            **_cut(difference.right, _first(difference.right), chars, witness),
        },
        "note": note,
    }


def _text(row: Mapping[str, Any]) -> str:
    return "" if row.get("text") is None else str(row["text"])


def _place(sample: Mapping[str, Any]) -> str:
    if not sample.get("source_file"):
        return ""
    row = sample.get("source_row")
    return name(sample["source_file"], 100) + ("" if row is None else f", row {count(row)}")


def _id(row: Mapping[str, Any]) -> str:
    return "" if row.get("id") in (None, "") else name(row["id"], 80)


def _first(pieces: Sequence[Piece]) -> int:
    """Characters before the first difference."""
    at = 0
    for piece in pieces:
        if piece.differs:
            return at
        at += len(piece.text)
    return 0


def _cut(pieces: Sequence[Piece], around: int, chars: int, row: Mapping[str, Any]) -> dict[str, Any]:
    whole = sum(len(piece.text) for piece in pieces)
    start = 0 if whole <= chars else max(0, min(around - chars // 3, whole - chars))
    out, at = [], 0
    for piece in pieces:
        inside = piece.text[max(0, start - at) : max(0, start + chars - at)]
        if inside:
            out.append(Piece(visible(inside), piece.differs))
        at += len(piece.text)
    return {
        "pieces": out,
        "empty": not whole,
        "cut_before": bool(row.get("cut_before")) or start > 0,
        "cut_after": bool(row.get("cut_after")) or start + chars < whole or whole < len(_text(row)),
    }
