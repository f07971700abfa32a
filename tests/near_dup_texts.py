"""Texts to compare and the steps of `near_dup` in memory, for its tests."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa

from curate.check import make_check
from curate.checks.near_dup import NearDup
from curate.dataset import Roles, Rows

TEXT = Roles(text=("text",))


def near_dup(**parameters: Any) -> NearDup:
    check = make_check("near_dup", parameters)
    assert isinstance(check, NearDup)
    return check


def sentence(seed: int, length: int = 100) -> list[str]:
    """So many different words; those of different seeds are hardly ever in one order."""
    return [f"w{number}" for number in random.Random(seed).sample(range(10**6), length)]


def shown(texts: list[str]) -> Rows:
    return Rows(pa.table({"text": texts}), np.arange(len(texts), dtype=np.uint64), TEXT)


def steps(check: NearDup, rows: Rows) -> tuple[pa.Table, pa.Table, dict[str, float]]:
    """Links, settled rows, counts."""
    links = check.match(check.keys(rows))
    linked = np.isin(np.arange(len(rows)), links["row"].to_numpy())
    pairs, counts = check.verify(links, check.features(rows).filter(pa.array(linked)))
    return links, check.settle(pairs), dict(counts)


def removed_rows(settled: pa.Table) -> dict[int, int]:
    """Each removed row and its witness."""
    gone = settled.filter(settled["is_near_copy"])
    return dict(zip(gone["row"].to_pylist(), gone["near_copy_of"].to_pylist(), strict=True))


def with_template(rows: int, shared: int, own: int, copies: int, edits: int) -> tuple[list[str], dict[int, int]]:
    """Texts of shared words and words of their own, and behind them copies with a few words edited; the original of each copy."""
    drawn = np.random.default_rng([shared, own])
    head = sentence(shared, shared)
    texts = [[*head, *words] for words in np.char.add("u", drawn.integers(0, 10**9, (rows, own)).astype(str)).tolist()]
    originals = drawn.choice(rows, copies, replace=False).tolist()
    for copy, row in enumerate(originals):
        text = list(texts[row])
        for at in drawn.choice(len(text), edits, replace=False).tolist():
            text[at] = f"edited{copy}"
        texts.append(text)
    return [" ".join(text) for text in texts], dict(enumerate(originals, rows))
