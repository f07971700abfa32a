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
        self._left = budget // SHARE
        self._batches: dict[str, list[pa.RecordBatch]] = {}

    def __reduce__(self) -> tuple[type[Held], tuple[()]]:
        return Held, ()

    def fits(self, sizes: Sequence[int]) -> bool:
        """Whether parts of these decoded sizes may be held together, if what their files say of them is true."""
        return sum(sizes) <= self._left

    def read(
        self, key: str, columns: Sequence[str], read: Callable[[Sequence[str] | None], Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a part, `columns` of them; `read` reads all of its columns the first time.

        A part that turns out not to fit is let go, and no other is held from there on.
        """
        held = self._batches.get(key)
        if held is not None or self._left <= 0:
            for batch in read(columns) if held is None else held:
                yield batch.select(list(columns))
            return
        batches: list[pa.RecordBatch] = []
        for batch in read(None):
            self._left -= batch.nbytes
            if self._left > 0:
                batches.append(batch)
            else:
                batches.clear()
            yield batch.select(list(columns))
        if self._left > 0:
            self._batches[key] = batches
