"""Compiled and vectorised steps against plain readable references of the same."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curate.cells import normalise_text
from curate.kernels.normalise import normalise, tables

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
TRICKY = st.text(
    st.sampled_from("aÅå\u030a\u0301\u0316\u0345ßẞİıΣςσǰ \t\n\u00a0\u3000\u200b가각각क़ाुคึ้😀\U00020000Ⱥ\u1e9e\u2126\x00\x1c"),
    max_size=12,
)


@settings(max_examples=300, deadline=None)  # the first call may compile
@given(st.lists(st.one_of(st.none(), TEXT, TRICKY), max_size=8), st.integers(0, 3))
@example([None, "", " \u3000 ", "É\u0301x ß"], 1)
def test_the_kernel_equals_the_plain_definition(texts: list[str | None], skipped: int) -> None:
    column = pa.array(texts, pa.large_string()).slice(skipped)

    found = normalise(column)

    found.validate(full=True)
    assert found.to_pylist() == [None if text is None else normalise_text(text) for text in texts[skipped:]]


def test_the_kernel_is_right_for_every_code_point_in_context() -> None:
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = [f"A{c} B" for c in characters] + [f"\u0301{c}\u0316" for c in characters[:0x20000]]

    found = normalise(pa.array(texts, pa.large_string()))

    assert found.equals(pa.array([normalise_text(text) for text in texts], pa.large_string()))


def test_curly_quotes_accents_and_ordered_marks_need_no_python() -> None:
    folds, _ = tables()

    assert all(folds[ord(c)] for c in "éÉ“”’–жЖλ東京カ한글हि्คึ้بَ")
    assert not any(folds[ord(c)] for c in "ßİ\u0301\u1161")


def test_bytes_cut_short_are_left_to_python_and_read_no_further() -> None:
    broken = pa.LargeStringArray.from_buffers(1, pa.array([0, 2], pa.int64()).buffers()[1], pa.py_buffer(b"a\xe6"))

    with pytest.raises(UnicodeDecodeError):
        normalise(broken)


@settings(max_examples=300)
@given(st.one_of(TEXT, TRICKY))
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalise_text(text)

    assert normalise_text(once) == once
    assert normalise_text(unicodedata.normalize("NFD", text)) == once
