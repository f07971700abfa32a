"""What a check sees of rows with several text columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curate.check import make_check
from curate.dataset import Roles, Rows
from curate.testing import run_check

ROLES = Roles(text=("title", "body"))
TABLE = pa.table({"title": ["a title", None, None, "", None], "body": ["and a body", "alone", None, None, "é"]})


def test_the_whole_text_of_a_row_leaves_nulls_out_and_is_null_only_where_all_are() -> None:
    whole = Rows(TABLE, np.arange(5, dtype=np.uint64), ROLES).whole_text()

    assert whole.to_pylist() == ["a title\nand a body", "alone", None, "", "é"]


@pytest.mark.parametrize("name", ["text_quality", "language", "pii", "near_dup"])
def test_a_row_with_one_of_its_texts_is_examined_and_one_with_none_is_missing(name: str) -> None:
    text = "this is some plain English text that any check has an answer for"
    table = pa.table({"title": [text, None, None], "body": [None, text, None]})
    first = {"text_quality": "words", "language": "language", "pii": "emails", "near_dup": "is_near_copy"}[name]

    found = run_check(make_check(name, {}), table, ROLES).column(first).to_pylist()

    assert found[0] is not None
    assert found[1] is not None
    assert found[2] is None
