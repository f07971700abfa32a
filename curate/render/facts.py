"""What a check found out about the whole data, as tables of the page: a generic reading of `detail` in `report.json`.

A check's `evidence` needs no code here. Lists of objects become tables, objects become lists of facts, plain lists one
line. In a table, `value` with `low` and `high`, or `NAME` with `NAME_low` and `NAME_high`, become one column with the
interval drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from curate.render.budget import Budget, View, folded
from curate.render.visible import name
from curate.render.words import number

DRAWN_ELSEWHERE = frozenset(("curve", "observed", "near_copies", "missed", "warnings"))
_MOST_COLUMNS = 14
_CHANCES, _LEAST_CHANCE = ("p", "q"), 0.0001
"""columns of chances, of which none is told more exactly than this"""
_WIDTH, _HEIGHT, _MARGIN = 120, 12, 4


def facts_view(detail: Mapping[str, Any], budget: Budget) -> list[View]:
    """The parts of a stage's evidence that have a shape: each with a title, and a table or facts or a line."""
    found = []
    for key, value in detail.items():
        if key not in DRAWN_ELSEWHERE and (view := _part(key, value, budget)):
            found.append(view)
    most = max(4, budget.rows // 8)
    return found[:most]


def interval(value: float | None, low: float, high: float, axis: tuple[float, float], marks: Sequence[float] = ()) -> Markup:
    """A value as a dot on the line of its interval, on an axis that a whole table shares; `marks` are upright strokes."""
    spoken = f"{_short(value)}, interval {_short(low)} to {_short(high)}"
    parts = [Markup('<svg class="span" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(_WIDTH, _HEIGHT, spoken)]
    parts += [Markup('<path class="mark" d="M{:.1f} 0V{}"/>').format(_x(mark, axis), _HEIGHT) for mark in marks]
    left, right = _x(low, axis), _x(high, axis)
    parts.append(Markup('<path class="reach" d="M{:.1f} 6H{:.1f}"/>').format(left, max(right, left + 0.5)))
    if value is not None:
        parts.append(Markup('<circle class="at" cx="{:.1f}" cy="6" r="3"/>').format(_x(value, axis)))
    return Markup("").join([*parts, Markup("</svg>")])


def table(rows: Sequence[Mapping[str, Any]], budget: Budget) -> View:
    """Heads and rows of cells; a cell has words and, where its column has intervals, a drawing."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    ends = {key: ends for key in keys if (ends := _ends(key, keys))}
    hidden = {end for pair in ends.values() for end in pair}
    shown = [key for key in keys if key not in hidden][:_MOST_COLUMNS]
    axes = {key: _axis(key, ends[key], rows) for key in shown if key in ends}
    numeric = {
        key for key in shown if key not in axes and all(_is_number(row.get(key)) for row in rows if row.get(key) is not None)
    }
    cells = [[_table_cell(key, row, ends.get(key), axes.get(key)) for key in shown] for row in rows[: budget.rows]]
    heads = [{"name": _title(key), "numeric": key in numeric, "drawn": key in axes} for key in shown]
    return {"heads": heads, "left": max(0, len(rows) - budget.rows), **folded(cells)}


def _part(key: str, value: Any, budget: Budget) -> View | None:
    title = _title(key)
    if isinstance(value, Mapping):
        if not value or "words" in value:  # remarks of rows have a table of their own
            return None
        facts = [(_title(inner), _cell(one)) for inner, one in list(value.items())[: budget.rows]]
        return {"title": title, "facts": facts, "line": "", "table": None}
    if not isinstance(value, list | tuple) or not value:
        return None
    if all(isinstance(one, Mapping) for one in value):
        return {"title": title, "facts": [], "line": "", "table": table(value, budget)}
    return {"title": title, "facts": [], "line": _cell(list(value)[: budget.rows]), "table": None}


def _ends(key: str, keys: Sequence[str]) -> tuple[str, str] | None:
    for low, high in ((f"{key}_low", f"{key}_high"), *([("low", "high")] if key in ("value", "share") else [])):
        if low in keys and high in keys:
            return low, high
    return None


def _axis(key: str, ends: tuple[str, str], rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[float, float], list[float]]:
    """From where to where a column's intervals are drawn, and what is marked: nothing, or for a ratio one."""
    found = [row.get(one) for row in rows for one in (key, *ends)]
    values = [float(value) for value in found if value is not None and _is_number(value)]
    even = 1.0 if "ratio" in key else 0.0
    low, high = min([*values, even]), max([*values, even])
    if "ratio" not in key and low >= 0 and 0.5 < high <= 1:
        high = 1.0
    return (low, high if high > low else low + 1.0), [even]


def _table_cell(
    key: str, row: Mapping[str, Any], ends: tuple[str, str] | None, axis: tuple[tuple[float, float], list[float]] | None
) -> View:
    value = row.get(key)
    if ends is None or axis is None:
        tiny = key in _CHANCES and value is not None and _is_number(value) and value < _LEAST_CHANCE
        return {"words": f"<{_LEAST_CHANCE:g}" if tiny else _cell(value), "numeric": _is_number(value), "svg": ""}
    low, high = (row.get(end) for end in ends)
    if low is None or high is None or not (_is_number(low) and _is_number(high)):
        open_end = f" [{_short(low)}, ∞)" if _is_number(low) and _is_number(value) else ""
        return {"words": _cell(value) + open_end, "numeric": False, "svg": ""}
    words = f"{_short(value)} [{_short(low)}, {_short(high)}]"
    drawn = value if _is_number(value) else None
    return {"words": words, "numeric": False, "svg": interval(drawn, low, high, *axis)}


def _cell(value: Any) -> str:
    if value is None or value in ([], {}):
        return "–"
    if isinstance(value, Mapping):
        return name("; ".join(f"{_title(str(key))}: {_cell(one)}" for key, one in value.items()), 600)
    if isinstance(value, list | tuple):
        return name(", ".join(_cell(one) for one in value), 600)
    return _short(value) if _is_number(value) else number(value) if isinstance(value, bool) else name(value, 300)


def _short(value: Any) -> str:
    """A number in four digits; whole numbers whole."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{int(value):,}" if value.is_integer() and abs(value) >= 1_000 else f"{value:.4g}"
    return number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _title(key: str) -> str:
    return name(key, 80).replace("_", " ")


def _x(value: float, axis: tuple[float, float]) -> float:
    share = (value - axis[0]) / (axis[1] - axis[0])
    return _MARGIN + (_WIDTH - 2 * _MARGIN) * min(1.0, max(0.0, share))
