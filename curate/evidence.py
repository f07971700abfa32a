"""What `near_dup` says of its own work: pairs that a sample shows to be missed, copies by similarity, texts too short.

Counts are plain numbers that add up over batches; `summary` alone makes the report of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.intervals import wilson

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

STEPS = 20
"""steps of similarity from 0 to 1 by which sampled pairs are counted"""
FINE_STEPS = 50
"""steps by which near copies are counted"""
BELOW = 0.3
"""so far below the limit, pairs are still counted: they show the curve where it falls"""
NO_PAIR = "no sampled pair reached the limit"
OF_RECORDS = "no sample is taken of records"


def count_sampled(value: Floats, together: Bools, limit: float) -> dict[str, int]:
    """Of pairs met by chance, their similarity and whether they share a band: how many there are, and are found, by step."""
    step = _steps(value, STEPS)
    counts: dict[str, int] = {}
    for at in np.unique(step[value >= limit - BELOW]).tolist():
        counts[f"sampled_{at}"] = int(np.count_nonzero(step == at))
        counts[f"sampled_found_{at}"] = int(np.count_nonzero(together & (step == at)))
    above = value >= limit
    return counts | {"sampled": int(above.sum()), "sampled_found": int((above & together).sum())}


def count_copies(value: Floats) -> dict[str, int]:
    """Near copies by the step of their similarity."""
    steps, rows = np.unique(_steps(value, FINE_STEPS), return_counts=True)
    return {f"copies_{at}": int(count) for at, count in zip(steps.tolist(), rows.tolist(), strict=True)}


def summary(counts: Mapping[str, float], no_sample: str = "") -> dict[str, Any]:
    """The part of the report that is made of counts; `no_sample` says why no sample was taken, where none was.

    `missed` is about pairs at or above the limit that a sampled shingle brought together: how many share no band, as
    a share with its Wilson interval at 95 %; nothing but a reason where there is no such pair. `observed` are
    sampled pairs by similarity: from, to, sampled, found. `near_copies` are rows by similarity: from, to, rows.
    """
    whole = {name: int(number) for name, number in counts.items()}
    rows, buckets = whole.get("rows", 0), whole.get("buckets", 0)
    cut, full = whole.get("cut_rows", 0), whole.get("full_buckets", 0)
    return {
        "compared_pairs": whole.get("compared", 0),
        "cut_rows": cut,
        "cut_share": cut / rows if rows else None,
        "buckets": buckets,
        "full_buckets": full,
        "full_share": full / buckets if buckets else None,
        "missed": _missed(whole.get("sampled", 0), whole.get("sampled_found", 0), no_sample),
        "observed": [[*span, of, whole[f"sampled_found_{at}"]] for at, span, of in _by_step(whole, "sampled_", STEPS)],
        "near_copies": [[*span, rows] for _, span, rows in _by_step(whole, "copies_", FINE_STEPS)],
    }


def remarks(text: pa.LargeStringArray, shingles: npt.NDArray[np.int64], short: Bools) -> dict[str, pa.Array]:
    """A word for each text that cannot be compared as others are, null for the rest.

    `short` texts have fewer tokens than a shingle, so they have exact partners only: the script of their first letter.
    `wordless` ones are compared with nothing: whether they are null, blank or nothing but marks.
    """
    return {"short": _words_at(short, _scripts(text, short)), "wordless": _words_at(shingles == 0, _kinds(text, shingles == 0))}


def _missed(sampled: int, found: int, no_sample: str) -> dict[str, Any]:
    reason = no_sample or (None if sampled else NO_PAIR)
    share = low = high = None
    if reason is None:
        share, (low, high) = (sampled - found) / sampled, wilson(sampled - found, sampled)
    return {"sampled": sampled, "not_found": sampled - found, "share": share, "low": low, "high": high, "reason": reason}


def _steps(value: Floats, steps: int) -> npt.NDArray[np.int64]:
    """The step of each similarity, borders belonging to the upper one; 1 is in the last."""
    return np.minimum(np.searchsorted(np.arange(steps + 1) / steps, value, side="right") - 1, steps - 1)


def _by_step(counts: Mapping[str, int], prefix: str, steps: int) -> list[tuple[int, tuple[float, float], int]]:
    """Of counts that are numbered by step: the step, where it begins and ends, and the count."""
    numbers = sorted(int(name.removeprefix(prefix)) for name in counts if name.removeprefix(prefix).isdecimal())
    return [(at, (at / steps, (at + 1) / steps), counts[f"{prefix}{at}"]) for at in numbers]


def _words_at(mask: Bools, words: pa.Array) -> pa.Array:
    """One word for each true row of the mask, null elsewhere."""
    return words.take(pa.array(np.maximum(np.cumsum(mask) - 1, 0), mask=~mask))


def _scripts(text: pa.LargeStringArray, wanted: Bools) -> pa.Array:
    """The script of the first letter of each wanted text, such as `Latin` or `Han`; `no letter` where there is none."""
    if not wanted.any():
        return pa.nulls(1, pa.string())
    found = pc.extract_regex(text.filter(pa.array(wanted)), r"(?P<letter>\pL)")
    first = pc.struct_field(found, "letter").dictionary_encode()
    names = pa.array([_script(letter) for letter in first.dictionary.to_pylist()], pa.string())
    return names.take(first.indices).fill_null("no letter")


def _script(letter: str) -> str:
    """A guess by the letter's name, which begins with its script, its width or form before that."""
    words = unicodedata.name(letter, "other letter").split()
    words = [word for word in words if word not in ("FULLWIDTH", "HALFWIDTH", "MODIFIER", "MATHEMATICAL")] or words
    return {"CJK": "Han", "IDEOGRAPHIC": "Han"}.get(words[0], words[0].capitalize())


def _kinds(text: pa.LargeStringArray, wanted: Bools) -> pa.Array:
    """Why each wanted text has no word."""
    if not wanted.any():
        return pa.nulls(1, pa.string())
    texts = text.filter(pa.array(wanted))
    blank = pc.equal(pc.binary_length(pc.utf8_trim_whitespace(texts)), 0)
    return pc.if_else(blank, "blank", "marks only").fill_null("null")
