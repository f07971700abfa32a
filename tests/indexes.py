"""Rows with known keys, and the index they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from curate.index import Index

IDENTITY = {"shingle": 5, "bands": [25, 5], "signature": 2}
TOP = 2**64 - 1


@dataclass(frozen=True)
class Row:
    """A row to add, as plain values."""

    id: str | None
    source: str
    source_row: int
    content: int
    keys: tuple[int, ...]
    shingles: tuple[int, ...]

    @property
    def seen(self) -> tuple[Any, ...]:
        """What `read` gives back."""
        return self.id, self.source, self.source_row, self.content, list(self.shingles)


def table(rows: Sequence[Row]) -> pa.Table:
    lists = pa.large_list(pa.uint64())
    return pa.table(
        {
            "id": pa.array([row.id for row in rows], pa.string()),
            "source": pa.array([row.source for row in rows], pa.string()),
            "source_row": pa.array([row.source_row for row in rows], pa.uint64()),
            "content": pa.array([row.content for row in rows], pa.uint64()),
            "keys": pa.array([row.keys for row in rows], lists),
            "shingles": pa.array([row.shingles for row in rows], lists),
        }
    )


def numbers(values: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.array(sorted(set(values)), np.uint64)


def planted(count: int, first: int = 0) -> list[Row]:
    """Rows that each have a key of their own, one of ten that many share, and the greatest key of all."""
    return [
        Row(f"id-{row}", f"part-{row % 3}.parquet", row, 7 * row, (1000 + row, row % 10, TOP), tuple(range(row, row + row % 5)))
        for row in range(first, first + count)
    ]


def shown(found: Index, keys: Sequence[int], limit: int | None = None) -> list[tuple[int, tuple[Any, ...]]]:
    """The rows of each key, in the order in which `lookup` gives them."""
    pairs = found.lookup(numbers(keys), limit)
    rows = found.read(pairs["entry"].to_numpy())
    names = ("id", "source", "source_row", "content", "shingles")
    by_entry = {row["entry"]: tuple(row[name] for name in names) for row in rows.to_pylist()}
    assert pairs["entry"].to_pylist() == [entry for _, entry in sorted(zip(*pairs.to_pydict().values(), strict=True))]
    return [(pair["key"], by_entry[pair["entry"]]) for pair in pairs.to_pylist()]


def expected(rows: Sequence[Row], keys: Sequence[int]) -> list[tuple[int, tuple[Any, ...]]]:
    return [(key, row.seen) for key in sorted(set(keys)) for row in rows if key in row.keys]


def filled(folder: Path, *batches: Sequence[Row]) -> Index:
    made = Index.open(folder, IDENTITY)
    for at, rows in enumerate(batches):
        assert made.add(f"batch {at}", [table(rows)])
    return made


def files(folder: Path) -> list[str]:
    return sorted(path.name for part in ("segments", "aside") for path in (folder / part).iterdir())


def the_segment(folder: Path) -> Path:
    return next((folder / "segments").glob("*.rows"))
