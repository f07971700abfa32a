"""What the tables of `bias` are made of: a line a group, with its share, its difference from all other rows, and the finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from curate.grouping import Grouping
from curate.intervals import false_discovery, newcombe, p_of_shares, wilson

Bools = npt.NDArray[np.bool_]
Line = dict[str, Any]
Notes = list[dict[str, str]]
DIFFERS, WITHIN, UNKNOWN = "differs", "within margin", "insufficient evidence"
MOST_LINES = 200
"""lines of a table; those of the least q where there are more"""


def shares_of(groupings: Sequence[Grouping], hit: Bools, said: Mapping[str, str]) -> list[Line]:
    """A line for each group of each grouping: the share of its rows that are hit."""
    lines = []
    for one in groupings:
        hits, sizes = np.bincount(one.codes, weights=hit, minlength=len(one.groups)).astype(int), one.sizes
        lines += [
            {"column": one.name, "group": name, **said} | against_rest(one, at, hits, sizes) for at, name in enumerate(one.groups)
        ]
    return lines


def against_rest(one: Grouping, at: int, hits: Any, sizes: Any) -> Line:
    """A group's share with its interval, the share of all other rows, and what `judged` needs."""
    own, rest = (int(hits[at]), int(sizes[at])), (int(hits.sum() - hits[at]), int(sizes.sum() - sizes[at]))
    low, high = wilson(*own)
    share, rest_share = own[0] / own[1], rest[0] / rest[1] if rest[1] else None
    return {
        "rows": own[1],
        "share": share,
        "share_low": low,
        "share_high": high,
        "rest_share": rest_share,
        "_p": p_of_shares(*own, *rest),
        "_gap": (share - (rest_share or 0.0), *newcombe(*own, *rest)),
        "_rows": min(own[1], rest[1]),
    }


def judged(lines: Sequence[Line], margin: float, least: int) -> list[Line]:
    """The lines with their q value over the whole table, and what follows from it.

    A line comes with `_p`, its `_gap` (a difference and its ends) and `_rows`, those of the smaller of the two sides.
    """
    chances = false_discovery([line["_p"] for line in lines])
    done = []
    for line, q in zip(lines, chances, strict=True):
        finding = finding_of(margin, line["_gap"], q <= 0.05) if line["_rows"] >= least else UNKNOWN
        done.append({key: value for key, value in line.items() if not key.startswith("_")} | {"q": q, "finding": finding})
    return done if len(done) <= MOST_LINES else sorted(done, key=lambda line: line["q"])[:MOST_LINES]


def finding_of(margin: float, gap: tuple[float, float, float], clear: bool) -> str:
    """What a difference with its ends says: that it is within the margin, beyond it and beyond chance, or nothing yet."""
    difference, low, high = gap
    if -margin <= low and high <= margin:
        return WITHIN
    return DIFFERS if clear and abs(difference) > margin else UNKNOWN
