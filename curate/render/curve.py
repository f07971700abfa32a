"""What a check that compares rows finds, as inline SVG and in words: the chance by similarity, a sample, the copies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from curate.render.svg import short
from curate.render.visible import name
from curate.render.words import count, number, percent, plural

TOLD = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""similarities whose chance is said in words"""
WIDTH, HEIGHT = 320, 118
_LEFT, _RIGHT, _TOP, _BOTTOM = 30, 314, 8, 98


def curve(detail: Mapping[str, Any], limit: float | None) -> Markup:
    """The chance that a pair is found as a line, the share found of sampled pairs as points; empty without a curve."""
    points = detail.get("curve") or ()
    if not points:
        return Markup("")
    line = " L".join(f"{_x(at):.1f} {_y(chance):.1f}" for at, chance in points)
    parts = [
        Markup('<svg class="hist curve" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, words(detail)),
        Markup('<path class="grid" d="M{0} {1}H{2}M{0} {3}H{2}"/>').format(_LEFT, _TOP, _RIGHT, (_TOP + _BOTTOM) // 2),
        Markup('<path class="line" d="M{}"/>').format(line),
        Markup('<path class="axis" d="M{} {}H{}"/>').format(_LEFT, _BOTTOM, _RIGHT),
    ]
    parts += [
        Markup('<circle class="seen" cx="{:.1f}" cy="{:.1f}" r="2.4"><title>{}</title></circle>').format(
            _x((low + high) / 2),
            _y(found / sampled),
            f"{number(low)} to {number(high)}: {count(found)} of {count(sampled)} pairs",
        )
        for low, high, sampled, found in detail.get("observed") or ()
        if sampled
    ]
    if limit is not None:
        parts.append(Markup('<path class="limit" d="M{:.1f} {}V{}"/>').format(_x(limit), _TOP, _BOTTOM))
    for at, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        parts.append(Markup('<text x="{:.1f}" y="{}" class="tick {}">{}</text>').format(_x(at), _BOTTOM + 13, anchor, number(at)))
    for at in (0, 1):
        parts.append(Markup('<text x="{}" y="{:.1f}" class="tick end">{}</text>').format(_LEFT - 4, _y(at) + 3, percent(at)))
    return Markup("").join([*parts, Markup("</svg>")])


def copies(detail: Mapping[str, Any], limit: float | None) -> Markup:
    """Near copies by similarity as bars, from the limit to 1; empty without any."""
    bins = [one for one in detail.get("near_copies") or () if one[2]]
    if not bins:
        return Markup("")
    low = min([one[0] for one in bins] + ([] if limit is None else [limit]))
    most = max(rows for *_, rows in bins)
    wide = (_RIGHT - _LEFT) / max(1.0 - low, 1e-9)
    spoken = "Near copies by similarity: " + ", ".join(f"{number(one)} to {number(two)} {count(rows)}" for one, two, rows in bins)
    parts = [
        Markup('<svg class="hist" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, spoken),
        Markup('<path class="grid" d="M{0} {1}H{2}M{0} {3}H{2}"/>').format(_LEFT, _TOP, _RIGHT, (_TOP + _BOTTOM) // 2),
    ]
    parts += [
        Markup('<rect class="out" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>').format(
            _LEFT + (one - low) * wide,
            _y(rows / most),
            max((two - one) * wide - 1, 1),
            _BOTTOM - _y(rows / most),
            f"{number(one)} to {number(two)}: {plural(rows, 'row')}",
        )
        for one, two, rows in bins
    ]
    parts.append(Markup('<path class="axis" d="M{} {}H{}"/>').format(_LEFT, _BOTTOM, _RIGHT))
    for at, anchor in ((low, "start"), ((low + 1) / 2, "middle"), (1.0, "end")):
        place = _LEFT + (at - low) * wide
        text = number(round(at, 3))
        parts.append(Markup('<text x="{:.1f}" y="{}" class="tick {}">{}</text>').format(place, _BOTTOM + 13, anchor, text))
    parts.append(Markup('<text x="{}" y="{}" class="tick end">{}</text>').format(_LEFT - 4, _TOP + 3, short(most)))
    return Markup("").join([*parts, Markup("</svg>")])


def words(detail: Mapping[str, Any]) -> str:
    """The curve in one sentence, without a full stop."""
    return "Found, by theory, of pairs of a similarity: " + ", ".join(
        f"{percent(found)} at {number(at)}" for at, found in told(detail)
    )


def told(detail: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The points of the curve that are said in words: similarity and chance."""
    return [(round(at, 2), chance) for at, chance in detail.get("curve") or () if round(at, 2) in TOLD]


def missed(detail: Mapping[str, Any]) -> str:
    """What the sample says of pairs that were missed, in a sentence; empty where the check says nothing of it."""
    sample = detail.get("missed")
    if not sample:
        return ""
    if sample.get("high") is None or not sample["sampled"]:
        return f"How many pairs are missed is not known: {name(sample.get('reason') or 'no pair was sampled', 200)}."
    lost = sample["not_found"]
    many = (
        f"{count(lost)} {'was' if lost == 1 else 'were'} missed: about {percent(sample['share'])}, "
        if lost
        else "none was missed: "
    )
    return (
        f"Of {plural(sample['sampled'], 'sampled pair')} at or above the limit {many}at most {_bound(sample['high'])}, at 95 %."
    )


def cut(detail: Mapping[str, Any]) -> str:
    """What was left out where too many rows are alike, in a sentence; empty where the check says nothing of it."""
    if detail.get("cut_rows") is None:
        return ""
    if not detail["cut_rows"] and not detail.get("full_buckets"):
        return "No row had more candidates than are compared."
    return (
        f"{plural(detail['cut_rows'], 'row')} ({percent(detail.get('cut_share'))} of those with a candidate) had more candidates "
        f"than are compared; {count(detail.get('full_buckets'))} of {plural(detail.get('buckets') or 0, 'bucket')} "
        f"({percent(detail.get('full_share'))}) were full."
    )


def _bound(share: float) -> str:
    """An upper bound, never rounded down: 0.00462 is "0.47 %"."""
    return f"{math.ceil(share * 10_000) / 100:g} %"


def _x(similarity: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * similarity


def _y(chance: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * chance
