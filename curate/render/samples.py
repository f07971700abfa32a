"""Sample rows for the page: a rejected row, the row it was compared with, and the words that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curate.render.highlight import Piece, compare
from curate.render.visible import name, visible
from curate.render.words import count, number

MOST = 20
"""sample rows a reason that can be shown"""
MAX_CHARS = 1_200
"""characters of a text that are looked at"""
_ONE_SIDED = 600
"""characters of a text without a witness that are enough to judge it"""


def prepare(drawn: Mapping[str, Any] | None) -> dict[str, list[dict[str, Any]]]:
    """By stage, `samples.json` with every row compared with its witness once, however often pages are tried."""
    return {
        stage: [{**one, "samples": [_compared(sample) for sample in (one.get("samples") or ())[:MOST]]} for one in reasons]
        for stage, reasons in ((drawn or {}).get("stages") or {}).items()
    }


def least_bytes(drawn: Mapping[str, list[dict[str, Any]]], samples: int, chars: int) -> int:
    """The bytes that the texts of a page with so much of every sample take at least."""
    return sum(
        min(chars, sum(len(piece.text) for piece in side["pieces"]))
        for reasons in drawn.values()
        for one in reasons
        for sample in one["samples"][:samples]
        for side in (sample, sample["witness"])
        if side is not None
    )


def view(sample: Mapping[str, Any], chars: int, rule: str) -> dict[str, Any]:
    """One prepared sample, ready to be placed: at most `chars` characters of each text, around the first difference."""
    witness = sample["witness"]
    own = {
        "row": count(sample.get("row_id")),
        "id": _id(sample),
        "value": "" if rule == "is_true" else number(sample.get("value")),
        "place": _place(sample),
        "note": sample["note"],
    }
    if witness is None:
        return {**own, **_cut(sample, min(chars, _ONE_SIDED)), "witness": None}
    place = count(witness["row_id"]) if witness.get("row_id") is not None else name(witness.get("source") or "", 200)
    other = {"row": place, "id": _id(witness), **_cut(witness, chars)}
    return {**own, **_cut(sample, chars), "witness": other}


def _compared(sample: Mapping[str, Any]) -> dict[str, Any]:
    """The sample with its text in `pieces`, and its witness likewise."""
    witness, text = sample.get("witness"), _text(sample)
    if witness is None:
        return {**sample, "pieces": (Piece(text[:MAX_CHARS], False),), "witness": None, "note": ""}
    difference = compare(text[:MAX_CHARS], _text(witness)[:MAX_CHARS])
    note = "the same words" if difference.same else "" if difference.compared else "too unlike to compare word by word"
    return {**sample, "pieces": difference.left, "witness": {**witness, "pieces": difference.right}, "note": note}


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


def _cut(row: Mapping[str, Any], chars: int) -> dict[str, Any]:
    pieces, whole = row["pieces"], sum(len(piece.text) for piece in row["pieces"])
    start = 0 if whole <= chars else max(0, min(_first(pieces) - chars // 3, whole - chars))
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
