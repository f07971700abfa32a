"""Decoded parts that stay in memory from one reading of the data to the next, where all of them fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

SHARE = 8
"""an eighth of the memory budget may hold decoded parts"""


class Held:
    """The batches of the parts of one run, kept once they were read to their end.

    For tasks in the command's own process only: sent to another one, it is empty there and holds nothing.
    """

    def __init__(self, budget: int = 0) -> None:
        self._budget = budget
        self._batches: dict[str, list[pa.RecordBatch]] = {}

    def __reduce__(self) -> tuple[type[Held], tuple[()]]:
        return Held, ()

    def fits(self, sizes: Sequence[int]) -> bool:
        """Whether parts of these decoded sizes may be held together."""
        return sum(sizes) * SHARE <= self._budget

    def read(
        self, key: str, columns: Sequence[str], read: Callable[[None], Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a part, `columns` of them; `read` reads all of its columns the first time."""
        batches = self._batches.get(key)
        if batches is None:
            batches = []
            for batch in read(None):
                batches.append(batch)
                yield batch.select(list(columns))
            self._batches[key] = batches
            return
        for batch in batches:
            yield batch.select(list(columns))
