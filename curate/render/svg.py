"""Distributions as inline SVG: built from numbers and escaped labels, coloured by the page's style sheet."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from curate.render.visible import name
from curate.render.words import count, number, plural

WIDTH, HEIGHT = 320, 118
_LEFT, _RIGHT, _TOP, _BOTTOM = 6, 314, 22, 98
_STEPS = [step * 10.0**power for power in range(-6, 13) for step in (1, 2, 5)]
_WIDE = [-math.inf, *(-edge for edge in reversed(_STEPS)), 0.0, *_STEPS, math.inf]
_MOST_EMPTY = 3
"""more empty bins than this between two full ones are drawn as a gap"""
_SIGNS = {"above": ">", "at_least": "≥", "below": "<", "worst_fraction": ">"}


@dataclass(frozen=True)
class _Slot:
    """One place on the axis: a bin, or a gap that stands for many empty ones."""

    low: float
    high: float
    rows: int = 0
    gap: bool = False


def histogram(label: str, score: Mapping[str, Any], rules: Sequence[Mapping[str, Any]] = ()) -> Markup:
    """A score's bins as bars with each rule's limit drawn in; empty where there is nothing to draw.

    What lies beyond a limit has the colour of what is rejected. Bins of equal width in steps of
    1, 2, 5, 10 make the axis of a wide measure logarithmic.
    """
    bins = score.get("bins") or ()
    if not bins:
        return Markup("")
    linear = is_share(score)
    limits = [rule for rule in rules if rule["rule"] in _SIGNS and rule.get("limit") is not None]
    slots = _linear_slots(bins) if linear else _wide_slots(bins, [rule["limit"] for rule in limits])
    most = max(slot.rows for slot in slots)
    width = (_RIGHT - _LEFT) / len(slots)
    cuts = [(_place(slots, rule["limit"], linear), rule) for rule in limits]
    parts = [
        Markup('<svg class="hist" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            WIDTH, HEIGHT, _spoken(label, score, limits)
        ),
        Markup('<path class="grid" d="M{0} {1}H{2}M{0} {3}H{2}"/>').format(_LEFT, _TOP, _RIGHT, (_TOP + _BOTTOM) // 2),
    ]
    parts += [bar for at, slot in enumerate(slots) for bar in _bars(at, slot, width, most, cuts)]
    parts.append(Markup('<path class="axis" d="M{} {}H{}"/>').format(_LEFT, _BOTTOM, _RIGHT))
    parts += _ticks(slots, width, linear)
    crowded = any(place * width < WIDTH * 0.25 for place, _ in cuts)
    parts.append(
        Markup('<text x="{}" y="11" class="most {}">{}</text>').format(
            _RIGHT if crowded else _LEFT, "end" if crowded else "start", count(most)
        )
    )
    parts += [part for cut in cuts for part in _limit(*cut, width)]
    return Markup("").join([*parts, Markup("</svg>")])


def is_share(score: Mapping[str, Any]) -> bool:
    """Whether a score runs from 0 to 1 in equal bins."""
    return score.get("kind") == "suspicion" or score.get("unit") in ("share", "Jaccard")


def bin_words(low: float | None, high: float | None) -> str:
    """A bin in words; an open end has no number."""
    if low is None:
        return f"below {short(high)}"
    return f"from {short(low)}" if high is None else f"{short(low)} to {short(high)}"


def short(value: float | None) -> str:
    """A number in as few signs as an axis has room for."""
    if value is None or math.isinf(value):
        return "∞" if value is None or value > 0 else "-∞"
    for size, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if sign == 'k' else size):.4g}{sign}"
    return f"{value:.4g}"


def _spoken(label: str, score: Mapping[str, Any], limits: Sequence[Mapping[str, Any]]) -> str:
    words = f"Distribution of {name(label)}: {plural(score.get('count') or 0, 'value')}"
    if score.get("min") is not None:
        words += f" from {number(score['min'])} to {number(score['max'])}"
    if score.get("mean") is not None:
        words += f", mean {number(score['mean'])}"
    return words + "".join(f"; limit: {name(rule['rule']).replace('_', ' ')} {number(rule['limit'])}" for rule in limits)


def _linear_slots(bins: Sequence[Sequence[Any]]) -> list[_Slot]:
    rows: dict[int, int] = {}
    for low, high, many in bins:
        at = min(19, max(0, round((low if low is not None else (high or 0) - 0.05) * 20)))
        rows[at] = rows.get(at, 0) + many
    return [_Slot(at / 20, (at + 1) / 20, rows.get(at, 0)) for at in range(20)]


def _wide_slots(bins: Sequence[Sequence[Any]], limits: Sequence[float]) -> list[_Slot]:
    rows: dict[int, int] = {}
    for low, high, many in bins:
        middle = _middle(-math.inf if low is None else low, math.inf if high is None else high)
        rows[_bin(middle)] = rows.get(_bin(middle), 0) + many
    ends = [*rows, *(_bin(limit) for limit in limits)]
    full = {*rows, *ends}
    slots: list[_Slot] = []
    at = min(ends)
    while at <= max(ends):
        stop = at
        while stop not in full:
            stop += 1
        if stop - at > _MOST_EMPTY:
            slots.append(_Slot(_WIDE[at], _WIDE[stop], gap=True))
            at = stop
        slots += [_Slot(_WIDE[one], _WIDE[one + 1], rows.get(one, 0)) for one in range(at, stop + 1)]
        at = stop + 1
    return slots


def _middle(low: float, high: float) -> float:
    """A number inside a bin, whatever rounding did to its borders."""
    if math.isinf(low) or math.isinf(high):
        return high - 1 if math.isinf(low) else low + 1
    return (low + high) / 2


def _bin(value: float) -> int:
    return min(len(_WIDE) - 2, max(0, bisect_right(_WIDE, value) - 1))


def _place(slots: Sequence[_Slot], limit: float, linear: bool) -> float:
    """Where on the axis a limit stands, in slots from the left."""
    if linear:
        return min(1.0, max(0.0, limit)) * len(slots)
    for at, slot in enumerate(slots):
        if slot.low <= limit < slot.high:
            if slot.gap or math.isinf(slot.low) or math.isinf(slot.high):
                return at + (0.0 if limit == slot.low else 0.5)
            if slot.low * slot.high > 0:
                return at + math.log(limit / slot.low) / math.log(slot.high / slot.low)
            return at + (limit - slot.low) / (slot.high - slot.low)
    return 0.0 if limit < slots[0].low else float(len(slots))


def _bars(at: int, slot: _Slot, width: float, most: int, cuts: Sequence[tuple[float, Mapping[str, Any]]]) -> list[Markup]:
    """A bin's bar, in two colours where a limit goes through it."""
    if slot.gap:
        return [Markup('<text x="{:.1f}" y="{}" class="gap">···</text>').format(_LEFT + (at + 0.5) * width, _BOTTOM - 3)]
    if not slot.rows:
        return []
    height = max(1.5, (_BOTTOM - _TOP) * slot.rows / most)
    borders = sorted({0.0, 1.0, *(place - at for place, _ in cuts if 0 < place - at < 1)})
    title = f"{bin_words(slot.low, slot.high)}: {plural(slot.rows, 'row')}"
    out = [Markup("<g><title>{}</title>").format(title)]
    for left, right in pairwise(borders):
        beyond = any(_beyond(at + (left + right) / 2, place, rule) for place, rule in cuts)
        out.append(
            Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                "out" if beyond else "in",
                _LEFT + (at + left) * width + (0.5 if left == 0 else 0),
                _BOTTOM - height,
                max(0.5, (right - left) * width - (0.5 if left == 0 else 0) - (0.5 if right == 1 else 0)),
                height,
            )
        )
    return [*out, Markup("</g>")]


def _beyond(place: float, limit: float, rule: Mapping[str, Any]) -> bool:
    return place < limit if rule["rule"] == "below" else place > limit


def _ticks(slots: Sequence[_Slot], width: float, linear: bool) -> list[Markup]:
    """Numbers under the borders of the bins, not more than there is room for."""
    every = 5 if linear else max(1, math.ceil(len(slots) / 6))
    borders = [slot.low for slot in slots] + [slots[-1].high]
    out = []
    for at, border in enumerate(borders):
        if at % every and at != len(slots):
            continue
        if at != len(slots) and len(slots) - at < every:
            continue  # the last number needs the room
        anchor = "start" if at == 0 else "end" if at == len(slots) else "middle"
        out.append(
            Markup('<text x="{:.1f}" y="{}" class="tick {}">{}</text>').format(
                _LEFT + at * width, _BOTTOM + 13, anchor, short(border)
            )
        )
    return out


def _limit(place: float, rule: Mapping[str, Any], width: float) -> list[Markup]:
    x = _LEFT + place * width
    anchor = "end" if x > WIDTH * 0.72 or (rule["rule"] == "below" and x > WIDTH * 0.28) else "start"
    words = f"{_SIGNS[rule['rule']]} {short(rule['limit'])}"
    return [
        Markup('<path class="limit" d="M{:.1f} {}V{}"/>').format(x, 4, _BOTTOM),
        Markup('<text x="{:.1f}" y="11" class="cut {}">{}</text>').format(x + (4 if anchor == "start" else -4), anchor, words),
    ]
