"""The tokeniser's kernel against the plain definition in `plain_shingles`."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_shingles import characters, hash_of, tokens, words

from curate.cells import fold
from curate.kernels.vectors import address
from curate.kernels.words import DONE, PIECE, begin_text, make_pad, next_tokens
from curate.letters import EXPANDS, JOINS, SLOW, letters

MODES = {"auto": 0, "whole": 1, "characters": 2}
SPECIAL = [chr(code) for code in range(0x20000) if letters().entries[code] & (EXPANDS | JOINS | SLOW) or letters().classes[code]]
FIRST = [chr(int(pair) >> 21) for pair in letters().pairs if pair]
ALPHABETS = [
    "abcXYZ_09 .,;-",
    "éÉßŉĳΐİẞſﬁσς“”’",
    "中文字かなカナが\u3099ไทยกำลังกุ้ง",
    "हिन्दी\u093cक\u093cड\u093cा",
    "الع\u0651\u064eر\u0650\u0651بيّة",
    "\u1100\u1161\u11a8각가",
    SPECIAL,
    FIRST,
]
TEXT = st.lists(st.sampled_from([*"".join(map("".join, ALPHABETS[:6])), *SPECIAL, *FIRST]), max_size=30).map("".join)


def read(text: str, mode: str, folded: bool = False) -> tuple[list[int], bool]:
    """The tokens of a text, and whether Python had to fold it."""
    raw = np.frombuffer(text.encode(), np.uint8)
    pad, found = make_pad(0), list[int]()
    begin_text(pad)
    while raw.size and not pad.cursor[DONE]:
        count = next_tokens(address(raw), raw.size, folded, pad, MODES[mode], 0)
        if count < 0:
            assert not folded
            return read(fold(text), mode, folded=True)[0], True
        found += pad.tokens[:count].tolist()
    return found, folded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't STOP, snake_case 3.14", ["don", "t", "stop", "snake_case", "3", "14"]),
        ("東京タワー is tall", ["東", "京", "タ", "ワ", "ー", "is", "tall"]),
        ("ไทย", ["ไ", "ท", "ย"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("Straße, CAFE\u0301", ["strasse", "café"]),
        ("\u0301 ... !?", []),
        ("한국어 텍스트", ["한국어", "텍스트"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected
    assert read(text, "auto")[0] == [hash_of(word.encode()) for word in expected]


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=400, deadline=None)  # the first call may compile
@given(text=st.one_of(TEXT, st.text(st.characters(exclude_categories=("Cs",)), max_size=40)))
def test_the_kernel_reads_what_the_definition_says(mode: str, text: str) -> None:
    assert read(text, mode)[0] == tokens(text, mode)


@pytest.mark.parametrize("mode", MODES)
def test_texts_of_several_pieces_read_like_short_ones(mode: str) -> None:
    pick = random.Random(1)
    for alphabets in [ALPHABETS[:1], ALPHABETS[:3], ALPHABETS[3:5], ALPHABETS]:
        text = "".join(pick.choice(pick.choice(alphabets)) for _ in range(PIECE))

        assert read(text, mode)[0] == tokens(text, mode)


@pytest.mark.parametrize("mode", MODES)
def test_what_stands_across_two_pieces_is_read_like_anything_else(mode: str) -> None:
    awkward = [
        "word",
        "Éa\u0301\u0316b",
        "ﬁn",
        "กุ้ง",
        "हि\u093cन्दी",
        "\u0301\u0316",
        "東\u3099京",
        "a\u0328\u0301",
        "\u1100\u1161\u11a8",
        "\U00020000x",
    ]
    for piece in awkward:
        for before in range(len(piece.encode()) + 2):
            text = "filled " * (PIECE // 7 - 2) + "x" * ((PIECE - before) % 7 + 13) + " " + piece + " and more"
            text = text[len(text[: text.rindex(piece)].encode()) - PIECE + before :]

            assert text.encode().index(piece.encode()) == PIECE - before
            assert read(text, mode)[0] == tokens(text, mode)


@pytest.mark.parametrize("mode", MODES)
def test_mixes_of_alphabets_read_as_defined(mode: str) -> None:
    for seed in range(1_500):
        pick = random.Random(seed)
        chosen = pick.sample(ALPHABETS, pick.randint(1, 4))
        text = "".join(pick.choice(pick.choice(chosen)) for _ in range(pick.choice([1, 3, 10, 60, 200])))

        assert read(text, mode)[0] == tokens(text, mode), ascii(text)


@pytest.mark.parametrize("mode", MODES)
def test_marks_on_letters_read_as_defined_in_any_order(mode: str) -> None:
    """A sample of letter, mark, mark; all twelve million of them, and others, were compared once."""
    classes = letters().classes
    marks = [chr(int(np.flatnonzero(classes == one)[place])) for one in np.unique(classes[classes > 0]) for place in (0, -1)]
    marks += [chr(code) for code in np.flatnonzero(letters().entries[:] & JOINS)]
    composed = [chr(int(one)) for one in letters().joined if one]
    pick = random.Random(3)
    for _ in range(6_000):
        text = pick.choice(pick.choice([FIRST, composed, SPECIAL, "aAxß1_ .カअ"])) + "".join(
            pick.choices(marks, k=pick.randint(1, 3))
        )

        assert read(text, mode)[0] == tokens(text, mode), ascii(text)


def test_no_text_has_more_tokens_than_its_bytes_allow() -> None:
    """Kernels make room by the bytes of a text as it stands, though Python may fold it to more of them."""
    for code in range(0x20000):
        if not 0xD800 <= code < 0xE000:
            for text in (chr(code) * 3, f"a{chr(code)}b"):
                assert len(words(text)) <= len(text.encode()) // 2 + 1
                assert len(words(text, "whole")) <= len(text.encode()) // 2 + 1
                assert len(characters(text)) <= len(text.encode()) + 1


@pytest.mark.parametrize("mode", MODES)
def test_every_length_around_a_vector_is_read_to_its_end_and_no_further(mode: str) -> None:
    text = "the quick “brown” fox jumps over the lazy dog and runs away from the angry Bärenfamilie of the forest"
    for length in range(len(text) + 1):
        assert read(text[:length], mode)[0] == tokens(text[:length], mode)
        assert read(text[length:], mode)[0] == tokens(text[length:], mode)


def test_marks_that_pass_through_a_joined_letter_are_left_to_python() -> None:
    for text in ("\u00f5\u0328", "\u00e2\u0323", "A\u0302\u0323", "\u01eb\u0303", "o\u0303\u0328"):
        assert read(text, "auto")[0] == tokens(text)


def test_endless_words_are_cut_where_the_definition_cuts_them() -> None:
    for text in ("x" * 4096, "x" * 4097, "é" * 50_000, "ab" * 40_000 + " end", "x" * (PIECE + 1), "y " + "z" * 12_288):
        assert read(text, "auto")[0] == tokens(text)


def test_common_scripts_need_no_python() -> None:
    texts = [
        "“Curly” – quotes…",
        "Straße",
        "CAFE\u0301",
        "हिन्दी\u093c",
        "مُدَرِّس",
        "東京タワー",
        "กุ้งไทย",
        "한국어",
        "Ἀθῆναι",
        "İstanbul",
    ]

    assert [text for text in texts if read(text, "auto")[1]] == []


def test_bytes_that_are_no_text_are_read_no_further() -> None:
    for raw in (b"a\xe6", b"\xff\xff\xff", b"abc\xf0\x9f", b"\x80" * 100):
        array = np.frombuffer(raw, np.uint8)
        pad = make_pad(0)
        begin_text(pad)

        count = next_tokens(address(array), array.size, False, pad, 0, 0)

        assert -1 <= count <= len(raw)


def test_columns_of_any_shape_are_read_alike() -> None:
    from curate.kernels.signatures import shingle_sets
    from curate.minhash import signing

    texts = ["one two three four five six", None, "", "東京都は日本の首都です", "Ein Caf\u0065\u0301", "..."]
    hidden = pa.LargeStringArray.from_buffers(
        2, pa.array([0, 5, 8], pa.int64()).buffers()[1], pa.py_buffer(b"nulls abc"[:8]), pa.py_buffer(b"\x02")
    )
    whole = shingle_sets(pa.array(texts, pa.large_string()), signing(25, 5, 3, 0))

    for start in range(len(texts)):
        bounds, values = shingle_sets(pa.array(texts, pa.large_string()).slice(start), signing(25, 5, 3, 0))
        assert values.tolist() == whole[1][whole[0][start] :].tolist()
        assert bounds.tolist() == (whole[0][start:] - whole[0][start]).tolist()
    assert shingle_sets(hidden, signing(25, 5, 3, 0))[0].tolist() == [0, 0, 1]  # a null that spans bytes says nothing
