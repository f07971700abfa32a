"""Numbers and row texts as words for a terminal."""

from __future__ import annotations

import unicodedata
from typing import Any

_BIDI = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def safe(text: object, limit: int = 0, lines: bool = False) -> str:
    """Any text without what could drive a terminal: no control or direction characters, no half characters.

    Line breaks and tabs become blanks, unless `lines` keeps the breaks. With `limit`, a longer
    text is cut and ends in "...".
    """
    text = str(text)
    cut = len(text) > limit > 0
    clean = "".join(_clean(char, lines) for char in (text[: limit - 3] if cut else text))
    return clean + "..." if cut else clean


def _clean(char: str, lines: bool) -> str:
    if char == "\n" and lines:
        return char
    if char in "\n\t\r\v\f\x85\u2028\u2029":
        return " "
    category = unicodedata.category(char)
    if category == "Cs":
        return "\ufffd"
    return "" if category == "Cc" or char in _BIDI else char


def count(number: float | None) -> str:
    """12345 is "12,345"."""
    return "?" if number is None else f"{number:,.0f}"


def percent(share: float | None) -> str:
    """0.1234 is "12.3 %"; a share above nothing is never shown as nothing, nor one below all as all."""
    if share is None:
        return "?"
    if 0 < share < 0.0005:
        return "<0.1 %"
    if 0.9995 <= share < 1:
        return ">99.9 %"
    return f"{100 * share:.1f} %"


def seconds(wall_s: float | None) -> str:
    """75 is "1 min 15 s"."""
    if wall_s is None:
        return "?"
    if wall_s < 10:
        return f"{wall_s:.1f} s"
    whole = round(wall_s)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(number: float | None) -> str:
    """1500000 is "1.5 MB"."""
    if number is None:
        return "?"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(number) < 1000:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def number(value: Any) -> str:
    """A score or a limit in at most six digits; missing is said in words."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else safe(value, 200)


def plural(amount: int, noun: str) -> str:
    """`plural(1, "row")` is "1 row", `plural(2, "row")` "2 rows"."""
    return f"{count(amount)} {noun}" if amount == 1 else f"{count(amount)} {noun}s"
