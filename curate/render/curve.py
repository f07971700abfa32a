"""The curve of what a check finds: the chance by similarity, what a sample saw, and the limit, as inline SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from curate.render.words import count, number, percent

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


def words(detail: Mapping[str, Any]) -> str:
    """The curve in one sentence."""
    told = [(at, chance) for at, chance in _points(detail) if at in (0.5, 0.6, 0.7, 0.8, 0.9)]
    return "A pair is found with a chance of " + ", ".join(f"{chance:.4g} at {number(at)}" for at, chance in told)


def missed(detail: Mapping[str, Any]) -> str:
    """What the sample says of pairs that were missed; empty where the check takes no sample."""
    sample = detail.get("missed")
    if not sample:
        return ""
    if not sample["sampled"]:
        return "No pair at or above the limit was in the sample, so it says nothing of missed pairs."
    many = "none" if not sample["not_found"] else count(sample["not_found"])
    return (
        f"Of {count(sample['sampled'])} sampled pairs at or above the limit {many} shared no band: "
        f"at most {percent(sample['high'])} of pairs are missed, at 95 %."
    )


def _points(detail: Mapping[str, Any]) -> Sequence[tuple[float, float]]:
    return [(round(at, 2), chance) for at, chance in detail.get("curve") or ()]


def _x(similarity: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * similarity


def _y(chance: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * chance
