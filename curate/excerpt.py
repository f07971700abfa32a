"""Short pieces of texts for the report: around where a row and its witness differ, or from the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curate.dataset import OUTSIDE
from curate.policy import finite_or_none

EXCERPT = 1_200
"""characters shown of a text"""
BEFORE = 200
"""characters shown before the first difference"""


def excerpts(row: Mapping[str, Any], rows: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """One sample: the row with an excerpt, and its witness with the matching one."""
    own = rows.get(row["row"], {"id": None, "text": None})
    other = None if row["witness"] is None else rows.get(row["witness"])
    text, witness = own["text"] or "", (other or {}).get("text") or ""
    start = _first_difference(text, witness) if other else 0
    out = {"row_id": row["row"], "id": own["id"], "value": finite_or_none(row["value"]), **_cut(text, start), "witness": None}
    if other is not None:
        inside = row["witness"] < OUTSIDE
        place = {"row_id": row["witness"] if inside else None, "source": other.get("source")}
        out["witness"] = {**place, "id": other["id"], **_cut(witness, start)}
    return out


def _first_difference(a: str, b: str) -> int:
    """Where two texts part, by whole words; 0 for texts that are equal or short enough to show."""
    if max(len(a), len(b)) <= EXCERPT:
        return 0
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    if low == len(a) == len(b):
        return 0
    start = max(0, low - BEFORE)
    return a.rfind(" ", 0, start) + 1 if start else 0


def _cut(text: str, start: int) -> dict[str, Any]:
    piece = text[start : start + EXCERPT]
    return {"text": piece, "cut_before": start > 0, "cut_after": start + EXCERPT < len(text)}
