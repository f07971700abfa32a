"""What `bias` says of labels: rates of the favourable one, the widest gap of a column, and Clarify's measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curate.association import cramers_v, table_of
from curate.bias_lines import UNKNOWN, Bools, Line, Notes, against_rest, finding_of, judged
from curate.dataset import Rows, is_single
from curate.distances import cddl, class_imbalance, distances
from curate.grouping import Codes, Grouping, as_floats, cut
from curate.hashing import mix64
from curate.intervals import newcombe, ratio_of_shares, z_of

if TYPE_CHECKING:
    from curate.checks.bias import Bias

FOUR_FIFTHS = 0.8
LABEL_PARTS = 10
"""a label of many numbers is cut into so many parts"""
MOST_VALUES = 100


@dataclass(frozen=True)
class Labels:
    """The label of each row by code, the rows that have one, and which of these are favourable, where that is known."""

    codes: Codes
    known: Bools
    favourable: Bools | None
    said: str


def read_labels(check: Bias, rows: Rows, notes: Notes) -> Labels | None:
    """The labels, and which are favourable; None with a note where there is no label to compare."""
    name = rows.roles.label
    if name is None:
        notes.append({"what": "labels", "reason": "no column has the role `label`"})
        return None
    column = rows.table.column(name)
    if not is_single(column.type):
        notes.append({"what": name, "reason": f"its cells are of type {column.type}, no single values"})
        return None
    parts = cut(name, column, LABEL_PARTS, MOST_VALUES)
    codes = parts.codes(column)
    known = codes != len(parts.names) + 1
    if parts.edges:
        values = as_floats(column)
        middle = float(np.median(values[known])) if known.any() else 0.0
        return Labels(codes, known, values > middle, f"{name} above its median, {middle:.6g}")
    favourable = _favourable(check, name, parts.names, codes, notes)
    if favourable is None:
        return Labels(codes, known, None, f"{name}: none, name one of its {len(parts.names)} values with `favourable`")
    return Labels(codes, known, codes == parts.names.index(favourable), f"{name} = {favourable}")


def _favourable(check: Bias, column: str, names: Sequence[str], codes: Codes, notes: Notes) -> str | None:
    """The favourable label: the given one, of two the rarer, of two as frequent the last as written."""
    if check.favourable is not None:
        if check.favourable not in names:
            reason = f"no row has the favourable label {check.favourable!r}; there are {', '.join(names[:10])}"
            notes.append({"what": f"label rates of {column}", "reason": reason})
            return None
        return check.favourable
    if len(names) != 2:
        reason = f"it has {len(names)} labels, and `favourable` does not say which of them people want"
        notes.append({"what": f"label rates of {column}", "reason": reason})
        return None
    counts = np.bincount(codes, minlength=2)
    return names[0] if counts[0] < counts[1] else names[1]


def about_labels(check: Bias, rows: Rows, groupings: Sequence[Grouping], labels: Labels) -> dict[str, Any]:
    """Rates, gaps and distances over the rows that have a label."""
    mine = [one.where(labels.known).occurring() for one in groupings]
    codes = labels.codes[labels.known]
    told: dict[str, Any] = {}
    if labels.favourable is not None:
        good = labels.favourable[labels.known]
        told["label_rates"] = label_rates(check, mine, good)
        told["label_gaps"] = label_gaps(check, mine, good, codes)
    told["distances"] = label_distances(check, rows, mine, codes, labels)
    return told


def label_rates(check: Bias, groupings: Sequence[Grouping], good: Bools) -> list[Line]:
    """Each group's share of the favourable label, against all other rows and against the group that has most of it."""
    lines = []
    for one in groupings:
        hits, sizes = np.bincount(one.codes, weights=good, minlength=len(one.groups)).astype(int), one.sizes
        large = [at for at in range(len(sizes)) if sizes[at] >= check.min_size]
        best = max(large, key=lambda at: (hits[at] / sizes[at], -at), default=None)
        for at, name in enumerate(one.groups):
            line, rest = against_rest(one, at, hits, sizes), (int(hits.sum() - hits[at]), int(sizes.sum() - sizes[at]))
            line |= {"rest_less_group": None, "rest_less_group_low": None, "rest_less_group_high": None}
            if rest[1]:
                low, high = newcombe(*rest, int(hits[at]), int(sizes[at]))
                gap = rest[0] / rest[1] - hits[at] / sizes[at]
                line |= {"rest_less_group": float(gap), "rest_less_group_low": low, "rest_less_group_high": high}
            lines.append({"column": one.name, "group": name} | line | _impact(at, best, hits, sizes, one, check))
    return judged(lines, check.margin, check.min_size)


def _impact(at: int, best: int | None, hits: Any, sizes: Any, one: Grouping, check: Bias) -> Line:
    """The ratio to the group of the highest rate, held against four fifths."""
    empty: Line = {"impact_ratio": None, "impact_ratio_low": None, "impact_ratio_high": None, "compared_with": None}
    if best is None or not hits[best]:
        return empty | {"four_fifths": UNKNOWN}
    line = empty | {"compared_with": one.groups[best]}
    if at == best:
        return line | {"impact_ratio": 1.0, "four_fifths": "highest rate"}
    _, low, high = ratio_of_shares(int(hits[at]), int(sizes[at]), int(hits[best]), int(sizes[best]), z_of(max(1, len(sizes) - 1)))
    ratio = float(hits[at] / sizes[at] / (hits[best] / sizes[best]))
    said = "below" if high < FOUR_FIFTHS else "kept" if low >= FOUR_FIFTHS else UNKNOWN
    line |= {"impact_ratio": ratio, "impact_ratio_low": min(low, ratio), "impact_ratio_high": max(high, ratio)}
    return line | {"four_fifths": said if sizes[at] >= check.min_size else UNKNOWN}


def label_gaps(check: Bias, groupings: Sequence[Grouping], good: Bools, codes: Codes) -> list[Line]:
    """The two groups of a column that differ most: parity difference and ratio, as fairlearn defines them, and Cramér's V."""
    lines = []
    for one in groupings:
        hits, sizes = np.bincount(one.codes, weights=good, minlength=len(one.groups)).astype(int), one.sizes
        large = [at for at in range(len(sizes)) if sizes[at] >= check.min_size]
        line: Line = {"column": one.name, "groups": len(large), "small_groups": len(sizes) - len(large)}
        if len(large) < 2:
            lines.append(line | {"finding": UNKNOWN})
            continue
        ranked = sorted(large, key=lambda at: (hits[at] / sizes[at], at))
        least, most = ranked[0], ranked[-1]
        z = z_of(len(large) * (len(large) - 1) // 2)
        pair = int(hits[most]), int(sizes[most]), int(hits[least]), int(sizes[least])
        difference, (low, high) = pair[0] / pair[1] - pair[2] / pair[3], newcombe(*pair, z)
        line |= {
            "most": one.groups[most],
            "most_rate": pair[0] / pair[1],
            "least": one.groups[least],
            "least_rate": pair[2] / pair[3],
        }
        line |= {"parity_difference": difference, "parity_difference_low": low, "parity_difference_high": high}
        if pair[0]:
            _, below, above = ratio_of_shares(*pair[2:], *pair[:2], z)
            ratio = pair[2] / pair[3] / (pair[0] / pair[1])
            line |= {"parity_ratio": ratio, "parity_ratio_low": min(below, ratio), "parity_ratio_high": max(above, ratio)}
        if found := cramers_v(table_of(one.codes, codes)):
            line |= dict(zip(("cramers_v", "cramers_v_low", "cramers_v_high"), found, strict=True))
        lines.append(line | {"finding": finding_of(check.margin, (difference, low, high), low > 0)})
    return lines


def label_distances(check: Bias, rows: Rows, groupings: Sequence[Grouping], codes: Codes, labels: Labels) -> list[Line]:
    """Clarify's measures of each group against all other rows."""
    strata = None
    if check.within:
        column = rows.table.column(check.within)
        strata = cut(check.within, column, check.quantiles, MOST_VALUES).codes(column)[labels.known]
    good = None if labels.favourable is None else labels.favourable[labels.known]
    lines: list[Line] = []
    for one in groupings:
        counts = np.zeros((len(one.groups), int(codes.max(initial=0)) + 1), np.int64)
        np.add.at(counts, (one.codes, codes), 1)
        for at, name in enumerate(one.groups):
            own, rest = counts[at], counts.sum(axis=0) - counts[at]
            line: Line = {"column": one.name, "group": name, "ci": class_imbalance(int(own.sum()), int(rest.sum())), "dpl": None}
            inside = one.codes == at
            if good is not None and inside.any() and not inside.all():
                line["dpl"] = float(good[~inside].mean() - good[inside].mean())
            line |= distances(own, rest, int(mix64(np.array([len(lines)], np.uint64), rows.seed)[0] >> np.uint64(2)))
            line["kl_is"] = (
                "infinite: a label the others have is never the group's"
                if own.sum() and rest.sum() and line["kl"] is None
                else None
            )
            if strata is not None and good is not None:
                line["cddl"], line["cddl_rows_share"] = cddl(inside, good, strata)
            lines.append({key: value for key, value in line.items() if value is not None or key != "kl_is"})
    return lines
