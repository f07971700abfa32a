from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.errors import RequestError
from curate.expression import MAX_LENGTH, parse

NOON = datetime.datetime(2024, 1, 1, 12)
TABLE = pa.table(
    {
        "split": ["train", "test", None, "train"],
        "stars": pa.array([5, 4, None, 2**60 + 1], pa.int64()),
        "unsigned": pa.array([0, 2**64 - 1, None, 3], pa.uint64()),
        "tiny": pa.array([1, 2, None, -3], pa.int8()),
        "share": [1.5, float("nan"), None, 4.0],
        "short": pa.array([0.1, 4, None, 1], pa.float32()),
        "price": pa.array([decimal.Decimal("1.10"), None, None, decimal.Decimal("4")]),
        "good": [True, False, None, True],
        "country": pa.array(["DE", "FR", "US", None]).dictionary_encode(),
        "view": pa.array(["DE", "FR", "US", None], pa.string_view()),
        "day": [datetime.date(2024, 1, 1), datetime.date(2024, 2, 1), None, None],
        "at": pa.array([NOON, None, None, None], pa.timestamp("us", "UTC")),
        "local": pa.array([NOON, None, None, None], pa.timestamp("ns")),
        "nothing": pa.nulls(4),
        "my column": ["x", "y", None, "x"],
        "other split": pa.array(["train", "x", None, "x"], pa.large_string()),
        "items": [[1], [2], None, [3]],
    }
)


def met(text: str) -> str:
    return "".join("x" if hit else "." for hit in parse(text).mask(TABLE))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('split == "train"', "x..x"),
        ("split == 'train'", "x..x"),
        ('split == "train" and stars >= 4 and not country in ["DE", "FR"]', "...x"),
        ('split == "test" or stars > 4 and good', "xx.x"),
        ('(split == "test" or stars > 4) and not good', ".x.."),
        ("stars is null", "..x."),
        ("not stars is null", "xx.x"),
        ("stars is not null", "xx.x"),
        ("items is null", "..x."),
        ("4 < stars", "x..x"),
        ("good", "x..x"),
        ("not good", ".xx."),
        ("good == false", ".x.."),
        ('country not in ["DE"]', ".xxx"),
        ('view in ["DE", "US"]', "x.x."),
        ("split in []", "...."),
        ('`my column` == "x"', "x..x"),
        ("split == `other split`", "x..."),
        ("stars > share", "x..x"),
        ("share != 4", "xx.."),
        ('day >= "2024-02-01"', ".x.."),
        ('at > "2024-01-01"', "x..."),
        ('at == "2024-01-01T12:00:00Z"', "x..."),
        ('local in ["2024-01-01T12:00:00"]', "x..."),
        ("nothing == 1", "...."),
        ('nothing in ["a"] or nothing == stars', "...."),
        ("nothing is null", "xxxx"),
    ],
)
def test_a_condition_holds_for_these_rows(text: str, rows: str):
    assert met(text) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"stars == {2**60 + 1}", "...x"),
        (f"stars == {2**60}", "...."),
        (f"unsigned == {2**64 - 1}", ".x.."),
        ("unsigned > -1", "xx.x"),
        ("unsigned < 300000000000000000000", "xx.x"),
        ("tiny < 1000", "xx.x"),
        ("tiny != 1000", "xx.x"),
        ("tiny in [1, 1000]", "x..."),
        ("stars >= 4.5", "x..x"),
        ("stars in [4.0, 5.5]", ".x.."),
        ("short == 0.1", "x..."),
        ("price == 1.1", "x..."),
        ("price in [1.1, 4]", "x..x"),
    ],
)
def test_numbers_compare_exactly_and_never_overflow(text: str, rows: str):
    assert met(text) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends early"),
        ("split", "neither true nor false"),
        ('split = "a"', "`=` is not understood, at character 7"),
        ("split && good", "`&` is not understood"),
        ("splt == 1", "names the column `splt`"),
        ('stars == "a"', "does not compare with the text"),
        ("split == 3", "`split` is text and does not compare with 3"),
        ("items == 3", "does not compare"),
        ("split > stars", "they do not compare"),
        ('day == "soon"', "is not such a moment"),
        ("split == null", "`null` is not a value"),
        ('split in ["a", null]', "`null` is not a value"),
        ("1 == 2", "expected a column's name"),
        ('split == "abc', "is not understood"),
        ('(split == "a"', r"expected `\)`"),
        ("my column == 1", "expected a comparison"),
        ("in == 1", "expected a column's name"),
        ("good in 3", r"expected `\[`"),
        ("share == 1e999", "too large"),
        (f"stars == {'9' * 50}", "expected text, a number"),
        ("a.b == 1", "`.` is not understood"),
        ("open(1)", "expected `and`"),
        ("(" * 60 + "good" + ")" * 60, "nested more than 50 deep"),
        ("not " * 60 + "good", "nested more than 50 deep"),
        ("x" * (MAX_LENGTH + 1), "characters"),
    ],
)
def test_a_wrong_condition_says_what_and_where(text: str, message: str):
    with pytest.raises(RequestError, match=message):
        parse(text).mask(TABLE)


def test_the_hint_names_the_remedy():
    with pytest.raises(RequestError) as comparison:
        parse("a = 1")
    with pytest.raises(RequestError) as column:
        parse("splt == 1").mask(TABLE)
    with pytest.raises(RequestError) as missing:
        parse("split == null")

    assert comparison.value.hint == "write `==`"
    assert column.value.hint == "did you mean `split`?"
    assert missing.value.hint == "write `split is null`"


def test_a_condition_is_checked_before_any_row_is_read():
    parse('split == "train"').check_against(TABLE.schema)

    with pytest.raises(RequestError, match="does not compare") as caught:
        parse("split == 3").check_against(TABLE.schema, place="stage 1, when")
    assert caught.value.place == "stage 1, when"


def test_columns_are_listed_once_in_order_of_use():
    assert parse('b == 1 and (`a c` is null or b in [2]) and c > b and d == "e"').columns == ("b", "a c", "c", "d")


def test_thousands_of_alternatives_need_no_depth():
    text = " or ".join(f"stars == {i}" for i in range(600))

    assert parse(text).mask(TABLE).sum() == 2


@given(st.text(max_size=40).filter(lambda text: text.isprintable()))
def test_any_text_can_be_written_as_a_literal(value: str):
    written = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    table = pa.table({"a": pa.array([value, value + "x", None])})

    assert parse(f"a == {written}").mask(table).tolist() == [True, False, False]


@given(st.text(alphabet="ab=<>!()[],\"'` \\andortisul.019-", max_size=60))
def test_no_text_does_anything_but_parse_or_refuse(text: str):
    table = pa.table({"a": [1, None], "b": ["x", None]})

    try:
        mask = parse(text).mask(table)
    except RequestError:
        return
    assert mask.dtype == np.bool_
    assert len(mask) == 2
