"""How much a page may show, and the small parts every table shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

View = dict[str, Any]
_OPEN_ROWS = 12
"""rows of a table that are shown before the rest is folded"""


@dataclass(frozen=True)
class Budget:
    """How much of everything a page may show."""

    samples: int = 20
    """sample rows a reason"""
    chars: int = 1_200
    """characters of a sample's text"""
    rows: int = 200
    """rows of a table"""
    scores: int = 100
    """scores of a stage, and values of a category"""
    stages: int = 100


def folded(rows: Sequence[Any], most: int = _OPEN_ROWS) -> View:
    """Rows in two lists: what is shown at once, and what is folded (never one or two alone)."""
    many = len(rows) if len(rows) <= most + 2 else most
    return {"first": rows[:many], "rest": rows[many:]}


def width(share: float | None) -> str:
    """A share as a CSS percentage."""
    return f"{100 * min(1.0, max(0.0, share or 0.0)):.2f}"
