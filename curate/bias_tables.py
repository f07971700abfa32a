"""The tables of `bias`: plain rows of numbers with their intervals, one a group, ready for the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curate.association import auroc, cramers_v, table_of
from curate.bias_labels import LABEL_PARTS, MOST_VALUES, about_labels, read_labels
from curate.bias_lines import DIFFERS, MOST_LINES, Line, Notes, judged, shares_of
from curate.dataset import Rows
from curate.distances import class_imbalance
from curate.grouping import CROSS, Codes, Grouping, as_floats, crossed_name, cut, is_number
from curate.hashing import mix64
from curate.intervals import wilson

if TYPE_CHECKING:
    from curate.checks.bias import Bias

PROXY_ROWS = 50_000
"""proxies are looked for in so many rows, chosen by the seed and the row ids"""
MOST_WARNINGS = 6


def tables(check: Bias, rows: Rows, groupings: Sequence[Grouping], plain: int, notes: Notes) -> dict[str, Any]:
    """Every table there is something to say in; `plain` of the groupings are columns, the others intersections."""
    told: dict[str, Any] = {"representation": representation(check, groupings, plain)}
    labels = read_labels(check, rows, notes)
    if labels is not None:
        told["favourable"] = labels.said
        told |= about_labels(check, rows, groupings, labels)
    told["missing_cells"] = missing_cells(check, rows, groupings[:plain])
    for column in check.found_earlier(rows):
        told.setdefault("found_by_earlier_stages", []).extend(found_earlier(check, column, rows.table.column(column), groupings))
    told["proxies"] = proxies(check, rows, groupings[:plain], notes)
    told["warnings"] = warnings(told)[:MOST_WARNINGS]
    return {key: value for key, value in told.items() if value}


def representation(check: Bias, groupings: Sequence[Grouping], plain: int) -> list[Line]:
    """Each group's share of the rows against the reference: given, equal, or for intersections as if columns were independent."""
    lines = []
    for at, one in enumerate(groupings):
        expected, said = _expected(check, one, at < plain, groupings)
        sizes = dict(zip(one.groups, one.sizes.tolist(), strict=True))
        for name in dict.fromkeys((*one.groups, *expected)):
            lines.append(
                {"column": one.name, "group": name, **_share(sizes.get(name, 0), len(one.codes), expected.get(name), said)}
            )
    return judged(lines, check.margin, 0)


def _share(size: int, total: int, expected: float | None, said: str) -> Line:
    """A group's share of all rows beside the one it should have."""
    share, (low, high) = size / total if total else 0.0, wilson(size, total)
    line: Line = {"rows": size, "share": share, "share_low": low, "share_high": high, "expected": expected, "reference": said}
    line |= {"share_of_expected": share / expected if expected else None, "class_imbalance": class_imbalance(size, total - size)}
    if expected is None or not total:
        return line | {"_p": 1.0, "_gap": (0.0, -1.0, 1.0), "_rows": 0}
    spread = math.sqrt(expected * (1 - expected) / total)
    chance = math.erfc(abs(share - expected) / spread / math.sqrt(2)) if spread else float(share == expected)
    return line | {"_p": chance, "_gap": (share - expected, low - expected, high - expected), "_rows": total}


def _expected(check: Bias, one: Grouping, plain: bool, groupings: Sequence[Grouping]) -> tuple[dict[str, float], str]:
    """The share each group should have, where that is known, and in words why."""
    if plain:
        given = check.reference.get(one.name)
        return (dict.fromkeys(one.groups, 1 / max(1, len(one.groups))), "equal shares") if given is None else (given, "given")
    crossed = ((a, b) for a in groupings for b in groupings if f"{a.name}{CROSS}{b.name}" == one.name)
    sizes = [dict(zip(side.groups, side.sizes / max(1, len(side.codes)), strict=True)) for side in next(crossed)]
    first, second = sizes
    pairs = {crossed_name(a, b): float(first[a] * second[b]) for a in first for b in second}
    return {name: pairs[name] for name in one.groups if name in pairs}, "as if independent"


def missing_cells(check: Bias, rows: Rows, groupings: Sequence[Grouping]) -> list[Line]:
    """How often a cell is missing in each group; columns without a missing cell are left out."""
    lines = []
    label = (rows.roles.label,) if rows.roles.label else ()
    for column in dict.fromkeys((*check.examined(rows), *label, *rows.roles.text)):
        cells = rows.table.column(column)
        gone = pc.is_null(cells, nan_is_null=pa.types.is_floating(cells.type)).to_numpy()
        if gone.any():
            lines += shares_of(groupings, gone, {"of": column})
    return judged(lines, check.margin, check.min_size)


def found_earlier(check: Bias, column: str, cells: pa.ChunkedArray, groupings: Sequence[Grouping]) -> list[Line]:
    """A flag's share, or how often a suspicion is 0.5 or more, in each group, over the rows that were judged."""
    asked = cells.is_valid().to_numpy()
    flag = pa.types.is_boolean(cells.type)
    values = cells.filter(pa.array(asked)).to_numpy().astype(np.float64)
    mine = [one.where(asked).occurring() for one in groupings]
    said = column if flag else f"{column} at least 0.5"
    lines = shares_of(mine, values >= 0.5, {"found": said}) if asked.any() else []
    return judged(lines, check.margin, check.min_size)


def proxies(check: Bias, rows: Rows, groupings: Sequence[Grouping], notes: Notes) -> list[Line]:
    """How well each other column tells the group: Cramér's V, and for numbers the best AUROC of one group against the rest."""
    chosen = _sample(rows)
    lines: list[Line] = []
    for column in check.examined(rows):
        cells = rows.table.column(column).take(pa.array(chosen))
        parts = cut(column, cells, LABEL_PARTS, MOST_VALUES)
        codes = parts.codes(cells)
        distinct = len(np.unique(codes))
        if not parts.edges and np.mean(codes == len(parts.names)) > 0.5:
            notes.append(
                {
                    "what": f"proxy {column}",
                    "reason": f"more than half of the rows have other values than the {MOST_VALUES} most frequent",
                }
            )
            continue
        if distinct < 2:
            notes.append({"what": f"proxy {column}", "reason": "all rows have the same value"})
            continue
        for one in groupings:
            mine = one.take(chosen).occurring()
            found = cramers_v(table_of(mine.codes, codes)) if column != one.name else None
            if found is None:
                continue
            line = {"group_column": one.name, "column": column, "rows": len(chosen)}
            line |= dict(zip(("cramers_v", "cramers_v_low", "cramers_v_high"), found, strict=True))
            lines.append(line | (_best_auroc(mine, cells, check.min_size) if is_number(cells.type) else {}))
    return sorted(lines, key=lambda line: (-line["cramers_v"], line["group_column"], line["column"]))[:MOST_LINES]


def _best_auroc(one: Grouping, cells: pa.ChunkedArray, least: int) -> Line:
    """The group that a number tells best from the others, and how well: 0.5 is not at all, whichever side is higher."""
    values = as_floats(cells)
    there = ~np.isnan(values)
    best: Line = {"auroc": None, "auroc_low": None, "auroc_high": None, "tells": None}
    for at, name in enumerate(one.groups):
        inside = one.codes[there] == at
        if min(inside.sum(), (~inside).sum()) < least:
            continue
        area, low, high = auroc(values[there], inside) or (0.5, 0.0, 1.0)
        if area < 0.5:
            area, low, high = 1 - area, 1 - high, 1 - low
        if best["auroc"] is None or area > best["auroc"]:
            best = {"auroc": area, "auroc_low": low, "auroc_high": high, "tells": name}
    return best


def _sample(rows: Rows) -> Codes:
    order = np.argsort(mix64(rows.row_ids, rows.seed), kind="stable")[:PROXY_ROWS]
    return np.sort(order)


def warnings(told: Mapping[str, Any]) -> list[str]:
    """What the first screen should say: groups that earlier stages suspect more than others, and four fifths not kept."""
    return [*_suspected(told), *_four_fifths(told)]


def _four_fifths(told: Mapping[str, Any]) -> Iterator[str]:
    columns: dict[str, list[Line]] = {}
    for line in told.get("label_rates") or ():
        if line["four_fifths"] == "below" and CROSS not in line["column"]:  # intersections are in the table
            columns.setdefault(line["column"], []).append(line)
    for column, lines in columns.items():
        worst = min(lines, key=lambda line: line["impact_ratio"])
        ends = f"95 % interval {worst['impact_ratio_low']:.2f} to {worst['impact_ratio_high']:.2f}"
        others = len(lines) - 1
        more = f"; so {'is' if others == 1 else 'are'} {others} more of {column}" if others else ""
        rate = f"{worst['impact_ratio']:.2f} times the rate of {worst['compared_with']} ({ends})"
        who = f"{100 * worst['share']:.1f} % of {column} {worst['group']}"
        yield f"{told['favourable']} for {who}, {rate}: below four fifths{more}"


def _suspected(told: Mapping[str, Any]) -> Iterator[str]:
    """For each stage and column the group that is found most above the others."""
    worst: dict[tuple[str, str], list[Line]] = {}
    for line in told.get("found_by_earlier_stages") or ():
        if line["finding"] == DIFFERS and line["share"] > line["rest_share"] and CROSS not in line["column"]:
            worst.setdefault((line["found"].split(".")[0], line["column"]), []).append(line)
    for lines in worst.values():
        line = max(lines, key=lambda one: one["share"] - one["rest_share"])
        yield (
            f"{line['found']} for {100 * line['share']:.1f} % of {line['column']} {line['group']} and "
            f"{100 * line['rest_share']:.1f} % of the others"
        )
