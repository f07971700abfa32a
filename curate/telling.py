"""How much one column, or the text, tells of the label."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.association import mid_ranks
from curate.facets import MOST_CLASSES, Facet, classes_of, ranks
from curate.intervals import wilson

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

CUTS = 5
"""a label of many numbers is cut into so many classes of equal size"""
BINS = 64
UNIQUE = 0.95
"""the share of distinct values from which on a column is like an id"""
IN_ORDER = 0.99
MOST_NAMED, MOST_WORDS = 50, 20
LEAST_LETTERS = 3
ALONE, OFTEN, SOME, LEAST_ROWS = 0.95, 0.5, 0.1, 20
"""a word tells a class: its rows are of it nearly alone; and it is in so much of the class, or in enough to be shown"""
DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")


class Target(NamedTuple):
    """The label as classes: codes (-1 where missing), names, and whether a number was cut."""

    codes: Int64s
    names: tuple[str, ...]
    cut: bool


def target_of(label: Facet) -> Target:
    """The classes of a label: its values, or five classes of equal size of a number with many values."""
    if label.kind == "category":
        return Target(label.codes, label.names, cut=False)
    codes, values = classes_of(label, MOST_CLASSES, CUTS)
    if values is None:
        return Target(codes, tuple(f"part {at + 1} of {CUTS}" for at in range(CUTS)), cut=True)
    return Target(codes, tuple(f"{value:g}" for value in values.tolist()), cut=False)


def column(given: Facet, target: Target, half: Bools, order: Int64s) -> dict[str, Any]:
    """What a column tells of the label, with intervals; `half` are the rows to learn on first, `order` the rows by position."""
    known = target.codes >= 0
    values = _values(given)[known]
    classes = target.codes[known]
    right, base = _right(values, classes, half[known]), float(np.bincount(classes).max() / len(classes))
    low, high = wilson(right, len(classes))
    tells = [(share - base) / (1 - base) if base < 1 else 0.0 for share in (right / len(classes), low, high)]
    missing = given.missing
    distinct = len(np.unique(given.codes[~missing] if given.kind == "category" else given.numbers[~missing]))
    found: dict[str, Any] = {
        "kind": given.kind,
        "rows": int(known.sum()),
        "distinct": distinct,
        "missing": int(missing.sum()),
        "tells": round(tells[0], 4),
        "tells_low": round(tells[1], 4),
        "tells_high": round(tells[2], 4),
        "information": round(_information(values, classes), 4),
        "like_id": distinct >= UNIQUE * max(int((~missing).sum()), 1) and _whole(given),
        "like_time": _like_time(given, order),
    }
    if len(target.names) == 2 and given.kind != "category":
        use = known & ~missing
        found |= _auroc(given.numbers[use], target.codes[use] == 1)
    return found


def named(text: pa.LargeStringArray, labels: pa.StringArray) -> list[dict[str, Any]]:
    """For the most frequent classes: rows whose text has the class's name, among its own rows and among the others."""
    import polars as pl

    frame = pl.DataFrame({"text": _spaced(text), "label": pl.Series(labels.to_pylist(), dtype=pl.String)}).drop_nulls()
    counts = frame["label"].value_counts().sort(["count", "label"], descending=[True, False])
    lines = []
    for label, rows in counts.head(MOST_NAMED).iter_rows():
        pattern = _pattern(label)
        if pattern is None:
            continue
        hit = frame["text"].str.contains(pattern)
        own = frame["label"] == label
        hits, others = int((hit & own).sum()), int((hit & ~own).sum())
        rest = len(frame) - rows
        low, high = wilson(hits, rows)
        elsewhere = wilson(others, rest)
        tells = rows >= LEAST_ROWS and low >= OFTEN and low > 2 * elsewhere[1] and rest > 0
        lines.append(
            {
                "label": label,
                "rows": rows,
                "share": round(hits / rows, 4),
                "share_low": round(low, 4),
                "share_high": round(high, 4),
                "elsewhere": round(others / rest, 4) if rest else None,
                "verdict": "named" if tells else "-",
            }
        )
    return lines


def words(text: pa.LargeStringArray, labels: pa.StringArray) -> list[dict[str, Any]]:
    """Words whose rows are nearly all of one class and that much of the class has, those first that most of it has."""
    import polars as pl

    frame = pl.DataFrame({"text": pl.Series(text), "label": pl.Series(labels.to_pylist(), dtype=pl.String)}).drop_nulls()
    of_label = frame["label"].value_counts(name="of")
    if len(of_label) < 2:
        return []
    word = pl.col("text").str.to_lowercase().str.extract_all(r"\w+").list.unique()
    pairs = frame.select("label", word=word).explode("word").drop_nulls().group_by("word", "label").len("rows")
    pairs = pairs.with_columns(all=pl.col("rows").sum().over("word")).join(of_label, on="label")
    wanted = (pl.col("rows") >= LEAST_ROWS) & (pl.col("rows") >= ALONE * pl.col("all")) & (pl.col("rows") >= SOME * pl.col("of"))
    pairs = (
        pairs.filter(wanted)
        .with_columns(part=pl.col("rows") / pl.col("of"))
        .sort(["part", "word", "label"], descending=[True, False, False])
    )
    lines = []
    for row in pairs.iter_rows(named=True):
        low, high = wilson(row["rows"], row["all"])
        base = row["of"] / len(frame)
        if low < ALONE or base > 0.9:  # of a class that nearly all rows have, every word tells
            continue
        lines.append(
            {
                "word": row["word"],
                "label": row["label"],
                "rows": row["all"],
                "share": round(row["rows"] / row["all"], 4),
                "share_low": round(low, 4),
                "share_high": round(high, 4),
                "of_label": round(row["part"], 4),
                "verdict": "tells the class" if row["part"] >= OFTEN else "-",
            }
        )
    return lines[:MOST_WORDS]


def names_own(text: pa.LargeStringArray, labels: pa.StringArray) -> pa.Array:
    """Whether each text has the name of its own label; null without a text, a label, or a name that is looked for."""
    import polars as pl

    frame = pl.DataFrame({"text": _spaced(text), "label": pl.Series(labels.to_pylist(), dtype=pl.String)}).with_row_index()
    out = np.zeros(len(frame), np.bool_)
    known = np.zeros(len(frame), np.bool_)
    for (label,), own in frame.drop_nulls().group_by("label"):
        pattern = _pattern(str(label))
        if pattern is not None:
            at = own["index"].to_numpy()
            known[at] = True
            out[at] = own["text"].str.contains(pattern).to_numpy()
    return pa.array(out, mask=~known)


def _values(given: Facet) -> Int64s:
    """The column as codes from 0 on, missing too: its values, or 64 parts of equal size of a number with too many of them."""
    known = int((~given.missing).sum())
    return classes_of(given, max(BINS, known // 20), BINS)[0] + 1


def _right(values: Int64s, classes: Int64s, half: Bools) -> int:
    """How many labels are guessed right from the value alone, each half by what the other half shows."""
    right = 0
    for learnt in (half, ~half):
        if not learnt.any() or learnt.all():
            continue
        most = int(np.bincount(classes[learnt]).argmax())
        pair, count = np.unique(np.stack([values[learnt], classes[learnt]]), axis=1, return_counts=True)
        order = np.lexsort((pair[1], -count, pair[0]))
        value, first = np.unique(pair[0][order], return_index=True)
        guess = np.full(int(values.max()) + 1, most)
        guess[value] = pair[1][order][first]
        right += int((guess[values[~learnt]] == classes[~learnt]).sum())
    return right


def _information(values: Int64s, classes: Int64s) -> float:
    """The mutual information with the label as a share of the label's entropy, corrected for the number of values."""
    rows = len(classes)
    entropy, cells = [], []
    for counted in (values, classes, np.unique(np.stack([values, classes]), axis=1, return_inverse=True)[1].ravel()):
        count = np.bincount(counted)
        share = count[count > 0] / rows
        entropy.append(float(-(share * np.log(share)).sum()) + (len(share) - 1) / (2 * rows))
        cells.append(len(share))
    return min(1.0, max(0.0, (entropy[0] + entropy[1] - entropy[2]) / entropy[1])) if cells[1] > 1 else 0.0


def _auroc(numbers: Floats, positive: Bools) -> dict[str, float]:
    """The chance that a row of the second class has the greater number, with the ends of its interval."""
    one, two = int(positive.sum()), int((~positive).sum())
    if not (one and two):
        return {}
    rank = mid_ranks(numbers)
    area = float((rank[positive].sum() - one * (one + 1) / 2) / (one * two))
    both, other = area / (2 - area), 2 * area * area / (1 + area)
    spread = area * (1 - area) + (one - 1) * (both - area * area) + (two - 1) * (other - area * area)
    half = 1.959964 * math.sqrt(max(spread, 0.0) / (one * two))
    found = {"auroc": area, "auroc_low": max(0.0, area - half), "auroc_high": min(1.0, area + half)}
    return {name: round(value, 4) for name, value in found.items()}


def _whole(given: Facet) -> bool:
    """Whether a column's values could be ids: texts, or whole numbers."""
    return given.kind == "category" or (given.kind == "number" and bool((given.numbers[~given.missing] % 1 == 0).all()))


def _like_time(given: Facet, order: Int64s) -> bool:
    """Dates, as such or as written; and numbers that rise or fall with the rows."""
    if given.kind == "time":
        return True
    if given.kind == "category":
        return bool(given.names) and sum(bool(DATE.fullmatch(name)) for name in given.names) >= UNIQUE * len(given.names)
    numbers = given.numbers[order]
    numbers = numbers[~np.isnan(numbers)]
    if len(np.unique(numbers)) < max(10, len(numbers) // 100):
        return False
    return bool(abs(np.corrcoef(ranks(numbers), np.arange(len(numbers)))[0, 1]) >= IN_ORDER)


def _pattern(label: str) -> str | None:
    """A pattern of the label's words in any text; None where it has too few letters to mean anything."""
    found = re.findall(r"\w+", label.replace("_", " "))
    if sum(letter.isalpha() for letter in "".join(found)) < LEAST_LETTERS:
        return None
    return r"(?i)\b" + r"\W+".join(map(re.escape, found)) + r"\b"


def _spaced(text: pa.LargeStringArray) -> Any:
    import polars as pl

    return pl.Series(text).str.replace_all("_", " ", literal=True)
