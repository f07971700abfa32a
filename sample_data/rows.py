"""What a row of the sample corpus is, and the dice that every choice about it is made with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One row of the corpus and what is true of it; `raw` replaces the record of a broken row."""

    key: str
    text: str | None
    lang: str
    source: str
    kind: str
    of: str = ""
    planted: tuple[str, ...] = ()
    file: str = ""
    raw: bytes = b""


def draw(below: int, *name: object) -> int:
    """A number from 0 to `below - 1` that depends on `name` alone."""
    digest = hashlib.blake2b(repr(name).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % below


def pick(choices: Sequence[str], *name: object) -> str:
    """One of the choices, by `name` alone."""
    return choices[draw(len(choices), *name)]


def shuffled(choices: Sequence[str], *name: object) -> list[str]:
    """All of the choices in an order that depends on `name` and on each choice."""
    return sorted(choices, key=lambda choice: draw(2**63, *name, choice))


def in_turn(sentences: Sequence[str], sizes: Iterator[int]) -> Iterator[list[str]]:
    """The sentences cut into runs of these sizes: none is used twice."""
    start = 0
    for size in sizes:
        if start + size > len(sentences):
            raise ValueError(f"the sources hold only {len(sentences)} sentences")
        yield list(sentences[start : start + size])
        start += size
