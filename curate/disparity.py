"""Who loses rows: how unequally the groups of a column are rejected, by the run as a whole and by each stage.

Of two groups, the one that loses the largest share and the one that loses the smallest, the difference and the ratio of
the shares. Groups of fewer than `LEAST_ROWS` rows are too small to be one of the two. The two are
chosen after looking, so the intervals hold for every pair of groups at once (Bonferroni). The `finding` is one of

* `uneven`: more than chance, and more than a difference nobody would mind (`LEAST_DIFFERENCE`) or a ratio of `EVEN_RATIO`;
* `even`: the interval shows that the difference, or the ratio, is no larger than that;
* `insufficient evidence`: neither, or fewer than two groups are large enough. This is never called even.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curate.intervals import newcombe, ratio_of_shares, z_of
from curate.policy import finite_or_none

LEAST_ROWS = 30
"""a group of fewer rows is not compared"""
LEAST_DIFFERENCE = 0.02
"""two points of a hundred"""
EVEN_RATIO = 1.25
"""the four-fifths rule of the Uniform Guidelines on Employee Selection Procedures (1978), turned over"""
SOURCES = "(source file)"
"""what the files the rows came from are called among the columns"""
UNEVEN, EVEN, UNKNOWN = "uneven", "even", "insufficient evidence"
Tallies = Mapping[str, Mapping[str, Any]]


def disparity(columns: Mapping[str, Tallies]) -> dict[str, Any]:
    """For each column, from the tallies of its groups: the whole run's disparity, and under `stages` that of each."""
    return {column: _column(groups) for column, groups in columns.items()}


def worst_ratio(found: Mapping[str, Any], key: str = "max_ratio") -> float | None:
    """The largest ratio over all columns, by the run as a whole; None where no two groups could be compared.

    Where the groups of a column are even, it counts as 1: three rows against none are no disparity.
    """
    ratios = [1.0 if one["finding"] == EVEN else one[key] for one in found.values() if one["max_ratio"] is not None]
    return max(ratios, default=None)


def warnings(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """A sentence for each column whose groups are rejected unevenly, naming the group and the stage that did it most."""
    return [
        {"column": column, "stage": stage, "text": _sentence(column, stage, one)}
        for column, whole in found.items()
        for stage, one in _worst(whole)
    ]


def compared(hits: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """The most and the least rejected of groups, given rejected rows and rows of each."""
    large = {name: pair for name, pair in hits.items() if pair[1] >= LEAST_ROWS}
    out: dict[str, Any] = {"groups": len(large), "small_groups": len(hits) - len(large)}
    if len(large) < 2:
        reason = f"fewer than two groups of {LEAST_ROWS} rows"
        return {**out, **dict.fromkeys(_NUMBERS), "finding": UNKNOWN, "reason": reason}
    rates = {name: hit / of for name, (hit, of) in large.items()}
    most = min(large, key=lambda name: (-rates[name], -large[name][1], name))  # of equal shares the one of most rows
    least = min(large, key=lambda name: (rates[name], -large[name][1], name))
    z = z_of(len(large) * (len(large) - 1) // 2)
    (hit, of), (other, other_of) = large[most], large[least]
    low, high = newcombe(hit, of, other, other_of, z)
    ratio, ratio_low, ratio_high = ratio_of_shares(hit, of, other, other_of, z)
    difference = hit / of - other / other_of
    ratio = max(1.0, ratio) if difference else 1.0  # half a row added to a small group would turn the ratio over
    ratio_low, ratio_high = min(ratio, ratio_low), max(ratio, ratio_high)
    return {
        **out,
        "most": most,
        "most_share": hit / of,
        "least": least,
        "least_share": other / other_of,
        "difference": difference,
        "difference_low": low,
        "difference_high": high,
        "max_ratio": ratio,
        "max_ratio_low": ratio_low,
        "max_ratio_high": finite_or_none(ratio_high),
        "finding": _finding(difference, low, high, ratio, ratio_high),
        "reason": None,
    }


_NUMBERS = (
    "most most_share least least_share difference difference_low difference_high max_ratio max_ratio_low max_ratio_high".split()
)


def _column(groups: Tallies) -> dict[str, Any]:
    whole = compared({name: (tally["rejected"], tally["input"]) for name, tally in groups.items()})
    stages = list(next(iter(groups.values()), {}).get("stages", ()))
    by_stage = {
        stage: compared(
            {name: (one["stages"][stage]["rejected"], one["stages"][stage]["rows_in"]) for name, one in groups.items()}
        )
        for stage in stages
    }
    return {**whole, "stages": by_stage}


def _finding(difference: float, low: float, high: float, ratio: float, ratio_high: float) -> str:
    if high <= LEAST_DIFFERENCE or ratio_high <= EVEN_RATIO:
        return EVEN
    clear = low > 0 and ratio > EVEN_RATIO
    return UNEVEN if clear and difference > LEAST_DIFFERENCE else UNKNOWN


def _worst(whole: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The stage whose groups differ most, if any is uneven; where only the stages together are, the run as a whole."""
    uneven = [(stage, one) for stage, one in whole["stages"].items() if one["finding"] == UNEVEN]
    if uneven:
        return [max(uneven, key=lambda item: item[1]["difference"])]
    return [("", whole)] if whole["finding"] == UNEVEN else []


def _sentence(column: str, stage: str, one: Mapping[str, Any]) -> str:
    who = f"stage {stage} rejects" if stage else "the stages together reject"
    return (
        f"{who} {100 * one['most_share']:.1f} % of {column} {one['most']} and {100 * one['least_share']:.1f} % of "
        f"{column} {one['least']}: {one['max_ratio']:.2f} times as many ({_ends(one)})"
    )


def _ends(one: Mapping[str, Any]) -> str:
    low, high = one["max_ratio_low"], one["max_ratio_high"]
    return f"at least {low:.2f}, at 95 %" if high is None else f"95 % interval {low:.2f} to {high:.2f}"
