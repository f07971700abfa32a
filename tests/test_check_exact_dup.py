from __future__ import annotations

import datetime
import unicodedata
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.cells import normalise_text
from curate.check import make_check
from curate.dataset import Roles, Rows
from curate.errors import RequestError
from curate.prefer import Highest, best_first, preference_columns
from curate.testing import run_check

TEXT = Roles(text=("text",))


def found(table: dict[str, Any] | pa.Table, roles: Roles = TEXT, **parameters: Any) -> dict[str, list[Any]]:
    table = table if isinstance(table, pa.Table) else pa.table(table)
    return run_check(make_check("exact_dup", parameters), table, roles, shards=3).to_pydict()


def test_copies_point_to_the_first_row_and_the_group_knows_its_size() -> None:
    answers = found({"text": ["a", "b", "a", "c", "a", "b"]})

    assert answers["is_copy"] == [False, False, True, False, True, True]
    assert answers["copy_of"] == [None, None, 0, None, 0, 1]
    assert answers["group_size"] == [3, 2, 3, 1, 3, 2]


@pytest.mark.parametrize(
    "other",
    ["THE CAFÉ  STRASSE", unicodedata.normalize("NFD", "the café straße"), "\n the\u00a0café\tstraße ", "The Café Straße"],
)
def test_spelling_variants_are_copies_only_when_normalised(other: str) -> None:
    assert found({"text": ["the café straße", other]})["is_copy"] == [False, True]
    assert found({"text": ["the café straße", other]}, normalise=False)["is_copy"] == [False, False]


def test_cells_are_not_glued_together() -> None:
    table = {"text": ["a", "ab"], "more": ["bc", "c"]}

    assert found(table, of=["text", "more"])["is_copy"] == [False, False]


def test_null_is_not_empty() -> None:
    table = {"text": ["x", "x", "x", "x"], "more": [None, "", None, ""]}

    assert found(table, of=["text", "more"])["copy_of"] == [None, None, 0, 1]


def test_rows_that_hold_nothing_are_missing_or_copies_as_asked() -> None:
    table = {"text": pa.array(["", " \n", None, "x", None])}

    skipped, matched = found(table), found(table, empty="match")

    assert skipped["is_copy"] == [None, None, None, False, None]
    assert skipped["group_size"] == [None, None, None, 1, None]
    assert matched["copy_of"] == [None, 0, None, None, 2]


def test_a_null_cell_over_leftover_bytes_is_like_any_other_null() -> None:
    text = pa.LargeStringArray.from_buffers(
        3, pa.array([0, 2, 4, 6], pa.int64()).buffers()[1], pa.py_buffer(b"xxyyzz"), pa.array([False, False, True]).buffers()[1]
    )

    assert found(pa.table({"text": text}), empty="match", normalise=False)["copy_of"] == [None, 0, None]


@pytest.mark.parametrize(
    ("values", "copies"),
    [
        (pa.array([0.0, -0.0, float("nan"), float("nan"), None, 1.5]), [None, 0, None, 2, None, None]),
        (pa.array([1, 2, 1]), [None, None, 0]),
        (pa.array([True, False, True]), [None, None, 0]),
        (pa.array([b"\xff", b"\xfe", b"\xff"]), [None, None, 0]),
        (
            pa.array([datetime.datetime(2024, 1, 1), None, datetime.datetime(2024, 1, 1)], pa.timestamp("us", "Asia/Tokyo")),
            [None, None, 0],
        ),
        (pa.array(["A", "B", "a"]).dictionary_encode(), [None, None, 0]),
        (pa.array(["1.10", "1.2", "1.10"]).cast(pa.decimal128(5, 2)), [None, None, 0]),
    ],
)
def test_values_are_compared_by_value(values: pa.Array, copies: list[int | None]) -> None:
    assert found(pa.table({"value": values}), of=["value"], empty="match")["copy_of"] == copies


@pytest.mark.parametrize(
    ("prefer", "kept"),
    [
        ("first", 0),
        ("longest", 1),
        ({"newest": "day"}, 2),
        ({"highest": "score"}, 3),
        ({"lowest": "score"}, 4),
        ({"order": ["wiki", "web"], "of": "source"}, 3),
        ([{"order": ["web"], "of": "source"}, {"highest": "score"}], 2),
        (["longest", "first"], 1),
    ],
)
def test_the_preferred_row_stays(prefer: Any, kept: int) -> None:
    table = pa.table(
        {
            "text": ["a  b", "a   b", "a b", "A B", "a b"],
            "day": ["2020-01-01", "2021-01-01", "2024-05-01", None, "2023-01-01"],
            "score": [float("nan"), None, 2.0, 9.0, 1.0],
            "source": ["web", "web", "web", "wiki", "other"],
        }
    )

    answers = found(table, prefer=prefer)

    assert answers["copy_of"] == [None if row == kept else kept for row in range(5)]


def test_a_preferred_row_without_a_value_comes_last_and_the_row_id_breaks_ties() -> None:
    table = pa.table({"text": ["a"] * 3, "score": pa.array([None, 1, 1])})

    assert found(table, prefer={"highest": "score"})["copy_of"] == [1, None, 1]
    assert found(table, prefer={"lowest": "score"})["copy_of"] == [1, None, 1]


@pytest.mark.parametrize(
    "kind",
    [
        pa.float16(), pa.uint64(), pa.decimal128(9, 2), pa.decimal256(60, 2), pa.date32(), pa.timestamp("ns", "Asia/Tokyo"),
        pa.duration("s"), pa.time64("us"), pa.string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)  # fmt: skip
def test_every_scalar_type_has_an_order(kind: pa.DataType) -> None:
    values: list[Any] = [1, None, 3, 2]
    if not pa.types.is_primitive(kind) and not pa.types.is_decimal(kind):
        values = [None if value is None else str(value) for value in values]
    scores = pa.array(values).cast(kind) if pa.types.is_dictionary(kind) else pa.array(values, kind)
    prefer = Highest(highest="score")
    columns = preference_columns(Rows(pa.table({"score": scores}), np.arange(4, dtype=np.uint64), TEXT), prefer, ())

    assert best_first(pa.table({"row": np.arange(4, dtype=np.uint64), **columns}), prefer).tolist() == [2, 3, 0, 1]


CELL = st.one_of(st.none(), st.sampled_from(["a", "A", "a ", "ab", "b", "", " ", "é", "e\u0301", "É"]))


@given(st.lists(st.tuples(CELL, CELL), max_size=12), st.booleans())
def test_the_groups_are_those_of_a_dictionary(rows: list[tuple[str | None, str | None]], raw: bool) -> None:
    table = pa.table({"text": pa.array([a for a, _ in rows], pa.string()), "more": pa.array([b for _, b in rows], pa.string())})
    first: dict[tuple[str | None, ...], int] = {}
    expected: list[int | None] = []
    for place, row in enumerate(rows):
        cells = tuple(cell if raw or cell is None else normalise_text(cell) for cell in row)
        keeper = first.setdefault(cells, place)
        expected.append(keeper if keeper != place and any(cells) else None)

    assert found(table, of=["text", "more"], normalise=not raw)["copy_of"] == expected


def test_a_collision_of_keys_is_no_copy() -> None:
    shard = pa.table(
        {
            "row": np.arange(4, dtype=np.uint64),
            "key": np.full(4, 7, np.uint64),
            "digest_hi": np.array([1, 2, 1, 2], np.uint64),
            "digest_lo": np.array([5, 5, 5, 6], np.uint64),
        }
    )

    assert make_check("exact_dup", {}).match(shard).to_pydict() == {"row": [2], "other": [0]}  # type: ignore[attr-defined]


def test_keys_do_not_change_between_releases() -> None:
    keys = make_check("exact_dup", {}).keys(Rows(pa.table({"text": ["Hello  World"]}), np.array([0], np.uint64), TEXT))  # type: ignore[attr-defined]

    assert keys.to_pydict() == {
        "row": [0],
        "key": [13740701240128670155],
        "digest_hi": [11441261050443447455],
        "digest_lo": [14893315975595114254],
    }


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"of": ["txet"]}, "did you mean `text`"),
        ({"of": ["parts"]}, "lists, structs and maps"),
        ({"prefer": {"newest": "dya"}}, "did you mean `day`"),
        ({"prefer": {"newest": "parts"}}, "has no order"),
    ],
)
def test_a_wrong_column_is_a_request_error_with_a_way_out(parameters: dict[str, Any], words: str) -> None:
    schema = pa.schema({"text": pa.string(), "day": pa.date32(), "parts": pa.list_(pa.int64())})

    with pytest.raises(RequestError) as caught:
        make_check("exact_dup", parameters).needs(TEXT, schema)
    assert words in str(caught.value)


def test_without_text_or_columns_there_is_nothing_to_compare() -> None:
    with pytest.raises(RequestError, match="no column to compare"):
        make_check("exact_dup", {}).needs(Roles(), pa.schema({"a": pa.int64()}))


def test_a_misspelt_preference_lists_the_vocabulary() -> None:
    with pytest.raises(RequestError, match="expected first, longest"):
        make_check("exact_dup", {"prefer": {"newst": "day"}})
