from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.check import checked_scores, make_check
from curate.checks.missing import Missing
from curate.dataset import Roles, Rows
from curate.errors import RequestError
from curate.testing import run_check

BODY = Roles(text=("body",))


def flags(texts: list[str | None]) -> dict[str, list[bool]]:
    table = pa.table({"body": pa.array(texts, pa.string())})
    return run_check(make_check("missing", {}), table, BODY).to_pydict()


def test_null_empty_and_blank_are_three_things() -> None:
    found = flags(["text", None, "", " \t\n", " x "])

    assert found["body_null"] == [False, True, False, False, False]
    assert found["body_empty"] == [False, False, True, False, False]
    assert found["body_blank"] == [False, False, False, True, False]
    assert found["text_missing"] == [False, True, True, True, False]


@pytest.mark.parametrize(
    "text", ["\u00a0", "\u3000\u2003", "\u200b\u200d\ufeff", "\u00ad", "\u3164", "\x1c\x1f", "\u2028", "\u0085"]
)
def test_what_nobody_can_see_is_blank(text: str) -> None:
    assert flags([text])["body_blank"] == [True]


@pytest.mark.parametrize("text", ["0", ".", "N/A", "\u0301", "😀", "\x00", "\u2800"])
def test_what_has_a_mark_is_not_blank(text: str) -> None:
    assert flags([text])["text_missing"] == [False]


@given(st.lists(st.one_of(st.none(), st.text(max_size=4)), max_size=6))
def test_exactly_the_whitespace_of_python_is_blank_among_texts_without_format_characters(texts: list[str | None]) -> None:
    found = flags(texts)

    for text, null, empty, blank in zip(texts, found["body_null"], found["body_empty"], found["body_blank"], strict=True):
        assert null == (text is None)
        assert empty == (text == "")
        assert blank >= bool(text and text.isspace())
        assert null + empty + blank <= 1


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_the_layout_of_text_does_not_matter(kind: pa.DataType) -> None:
    table = pa.table({"body": pa.array(["a", None, "", " "]).cast(kind)})
    rows = Rows(table, np.arange(4, dtype=np.uint64), BODY)

    found = checked_scores(check := Missing(), check.columns(BODY, table.schema), check.score(rows), 4)

    assert {"row": [0, 1, 2, 3], **{name: flag.to_pylist() for name, flag in found.items()}} == flags(["a", None, "", " "])


def test_nan_counts_as_null_and_numbers_have_no_empty_flag() -> None:
    table = pa.table({"width": pa.array([1.0, None, float("nan"), 0.0])})

    found = run_check(make_check("missing", {}), table, Roles(features=("width",))).to_pydict()

    assert found == {"row": [0, 1, 2, 3], "width_null": [False, True, True, False]}


def test_a_row_lacks_text_only_if_all_its_text_columns_do() -> None:
    table = pa.table({"title": ["a", "", None], "body": [None, " ", "b"], "more": [[1], None, []]})
    check = make_check("missing", {"of": ["more"]})

    found = run_check(check, table, Roles(text=("title", "body"))).to_pydict()

    assert found == {"row": [0, 1, 2], "more_null": [False, True, False], "text_missing": [False, True, False]}


@pytest.mark.parametrize(("given_of", "hint"), [({"of": ["boddy"]}, "did you mean `body`"), ({}, "add `of: [COLUMN]`")])
def test_a_request_without_columns_or_with_a_wrong_one_says_what_exists(given_of: dict[str, Any], hint: str) -> None:
    with pytest.raises(RequestError, match=hint.replace("[", r"\[")):
        make_check("missing", given_of).needs(Roles(), pa.schema({"body": pa.string()}))


def test_rows_without_text_are_rejected_by_default_and_other_gaps_are_not() -> None:
    schema = pa.schema({"body": pa.string(), "width": pa.float64()})
    check = make_check("missing", {})

    assert [rule.column for rule in check.default_rules(BODY, schema)] == ["text_missing"]
    assert check.default_rules(Roles(features=("width",)), schema) == ()
