"""What the peers' scripts share: `python with_PEER.py CORPUS OUT` reads `id` and `text`, and writes the ids it would remove.

The names say `with_`, since a script named as the package it imports would import itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

WORDS_IN_SHINGLE = 5
SIMILARITY = 0.8
BANDS, ROWS = 14, 8
"""where a peer leaves the choice to its user: what FineWeb used and datatrove has as its default, 112 permutations"""

WORD = re.compile(r"\w+")


def asked() -> tuple[Path, Path]:
    """The corpus to read and the file to write."""
    return Path(sys.argv[1]), Path(sys.argv[2])


def read(corpus: Path) -> tuple[list[int], list[str]]:
    """The ids and texts of a corpus."""
    table = pq.read_table(corpus, columns=["id", "text"])
    return table.column("id").to_pylist(), table.column("text").to_pylist()


def shingles(text: str) -> list[str]:
    """The runs of five lower-case words, as most examples make them, for the peers that leave this to their user."""
    words = WORD.findall(text.lower())
    return [" ".join(words[at : at + WORDS_IN_SHINGLE]) for at in range(max(1, len(words) - WORDS_IN_SHINGLE + 1))]


def write(removed: Iterable[int], out: Path) -> None:
    """The ids, each once."""
    pq.write_table(pa.table({"id": pa.array(sorted(set(removed)), pa.int64())}), out)
