"""What stays decoded in memory: all of a part or nothing, and never more than its share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from curate.held import SHARE, Held

PART = [pa.record_batch({"a": [at] * 100, "b": [at] * 100}) for at in range(3)]
BYTES = sum(batch.nbytes for batch in PART)


def read_by(log: list[Sequence[str] | None], columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    log.append(columns)
    for batch in PART:
        yield batch if columns is None else batch.select(list(columns))


def test_a_part_is_read_once_and_any_of_its_columns_are_given_again() -> None:
    held = Held(SHARE * BYTES * 2)
    log: list[Sequence[str] | None] = []

    first = list(held.read("p", ["a"], lambda columns: read_by(log, columns)))
    again = list(held.read("p", ["b"], lambda columns: read_by(log, columns)))

    assert first == [batch.select(["a"]) for batch in PART]
    assert again == [batch.select(["b"]) for batch in PART]
    assert log == [None]


def test_a_part_that_decodes_to_more_than_was_promised_is_let_go() -> None:
    held = Held(SHARE * (BYTES - 1))
    log: list[Sequence[str] | None] = []

    rounds = [list(held.read("p", ["a"], lambda columns: read_by(log, columns))) for _ in range(2)]

    assert rounds == [[batch.select(["a"]) for batch in PART]] * 2
    assert log == [None, ["a"]]


def test_a_part_that_was_not_read_to_its_end_is_not_held() -> None:
    held = Held(SHARE * BYTES * 2)
    log: list[Sequence[str] | None] = []

    next(held.read("p", ["a"], lambda columns: read_by(log, columns)))
    whole = list(held.read("p", ["a"], lambda columns: read_by(log, columns)))

    assert [batch.num_rows for batch in whole] == [100, 100, 100]
    assert log == [None, None]
