from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curate import english
from curate.english import BEFORE_DOT, LETTER, LOWER, MONEY, PREFIX, QUOTES, SUFFIX, SYMBOL, UNITS, UPPER
from curate.kernels.tokens import LONGEST, token_ends, vocabulary


def tokens(text: str) -> list[str]:
    """The tokens of a text, by the kernel."""
    found = []
    for piece in text.split():
        ends = token_ends(piece, vocabulary()).tolist()
        found += [piece[low:high] for low, high in zip([0, *ends], ends, strict=False)]
    return found


def members(kind: int) -> str:
    """A regular expression's class of the characters of a kind."""
    return "[" + "".join(re.escape(chr(code)) for code in np.flatnonzero(english.kinds() & kind)) + "]"


A, AL, AU, ICON = members(LETTER), members(LOWER), members(UPPER), members(SYMBOL)
Q, COIN = "[" + re.escape(QUOTES) + "]", "[" + re.escape(MONEY) + "]"
BEGIN = re.compile(rf"{members(PREFIX)}|\+(?![0-9])|\.\.+|US\$|[CA]\$")
END = re.compile(
    rf"(?:……|{members(SUFFIX)}|\.\.+|['’][sS]|(?<=[0-9])\+|(?<=°[FfCcKk])\.|(?<=[0-9])(?:{COIN}|US\$|[CA]\$)"
    rf"|(?<=[0-9])(?:{'|'.join(map(re.escape, UNITS.split()))})|(?<={members(BEFORE_DOT)})\.|(?<={AU}{AU})\.)\Z"
)
JOINT = re.compile(
    rf"\.\.+|…|{ICON}|(?<=[0-9])[+\-*^](?=[0-9-])|(?<={AL[:-1]}{Q[1:]})\.(?={AU[:-1]}{Q[1:]})|(?<={A}),(?={A})"
    rf"|(?<={A[:-1]}0-9])(?:-|–|—|--|---|——|~)(?={A})|(?<={A[:-1]}0-9])[:<>=/](?={A})"
)
HOST = r"(?:[A-Za-z0-9\u00a1-\uffff][A-Za-z0-9\u00a1-\uffff_-]{0,62})?[A-Za-z0-9\u00a1-\uffff]\."
ADDRESS = re.compile(
    r"(?:[\w+\-.]{2,}://)?(?:\S+(?::\S*)?@)?(?:(?!(?:10|127)(?:\.\d{1,3}){3})(?!(?:169\.254|192\.168)(?:\.\d{1,3}){2})"
    r"(?!172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2})(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])(?:\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])){2}"
    rf"\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4])|(?:{HOST})+{AL}{{2,63}})(?::\d{{2,5}})?(?:[/?#]\S*)?",
    re.ASCII,
)


def plain_tokens(piece: str) -> list[str]:
    """The same by regular expressions, faces across tokens left out."""
    known = english.exceptions()
    before: list[str] = []
    behind: list[str] = []
    last = -1
    while piece and len(piece) != last and piece not in known:
        last = len(piece)
        start = BEGIN.match(piece)
        begin = 1 if start and start[0].startswith("…") else len(start[0]) if start else 0
        if begin and piece[begin:] in known:
            before.append(piece[:begin])
            piece = piece[begin:]
            break
        found = END.search(piece[begin:])
        end = len(found[0]) if found else 0
        if end and piece[:-end] in known:
            behind.append(piece[-end:])
            piece = piece[:-end]
            break
        if end and begin + end <= len(piece):
            behind.append(piece[-end:])
            piece = piece[:-end]
        if begin:
            before.append(piece[:begin])
            piece = piece[begin:]
    middle = [] if not piece else list(known[piece]) if piece in known else [piece] if ADDRESS.fullmatch(piece) else parted(piece)
    return [*before, *middle, *reversed(behind)]


def parted(piece: str) -> list[str]:
    found, start = [], 0
    for joint in JOINT.finditer(piece):
        if joint.start() > 0:
            found += [piece[start : joint.start()], joint[0]]
            start = joint.end()
    return [token for token in [*found, piece[start:]] if token]


PIECES = st.text(
    st.sampled_from("aAbBsSnt'’\".,:;!?()-–—~/<>=+*^$%#@_&0159km²°C…€US|é中の。ßД😀¯\u00a1"), min_size=1, max_size=12
)
WORDS = st.lists(
    st.sampled_from(
        [*list(english.exceptions())[::7], *"'\"().,:;-/…", "..", "http://", "www.", "a.com", "me@x.org", "10", "km"]
    ),
    min_size=1,
    max_size=5,
).map("".join)


@settings(max_examples=1_000, deadline=None)
@given(st.one_of(PIECES, WORDS))
@example("don't")
@example("http://user@example.com:8080/a?b#c")
@example("US$5--x..y")
def test_the_kernel_cuts_as_the_rules_written_as_regular_expressions(piece: str) -> None:
    found, expected = tokens(piece), plain_tokens(piece)

    assert "".join(found) == piece
    if found != expected:  # only a face may differ: neighbours joined to an exception
        ends, other = np.cumsum([len(token) for token in found]), np.cumsum([len(token) for token in expected])
        assert set(ends) < set(other) or re.search(r"[0-9][ap]\.m\.|°[CcFfKk]\.", piece)
        assert any(token in english.exceptions() for token in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(Yes), it isn't.", "( Yes ) , it is n't ."),
        ("I’m gonna stay; cannot go.", "I ’m gon na stay ; can not go ."),
        ("state-of-the-art and/or 3-4 w/o", "state - of - the - art and/or 3 - 4 w/o"),
        ("See www.example.com/a,b. Mail me@x.org!", "See www.example.com/a,b . Mail me@x.org !"),
        ("http://10.0.0.1/a http://8.8.8.8/a", "http://10.0.0.1 / a http://8.8.8.8/a"),
        ("5km at 10a.m. costs $5 or 5US$, e.g. 20% more...", "5 km at 10 a.m. costs $ 5 or 5 US$ , e.g. 20 % more ..."),
        ("Dr. Smith's U.S. dogs' :-) (a):", "Dr. Smith 's U.S. dogs ' :-) ( a ):"),
        ("wait…what?!", "wait … what ? !"),
        ("O'Brien C++ a.b A.B up.Yes x.Y it:o):}", "O'Brien C++ a.b A.B up . Yes x. Y it :o) : }"),
    ],
)
def test_english_is_cut_as_expected(text: str, expected: str) -> None:
    assert tokens(text) == expected.split()


def test_every_exception_is_cut_as_it_says() -> None:
    for word, parts in english.exceptions().items():
        assert tokens(word) == list(parts)


@pytest.mark.parametrize(
    "piece", [")" * LONGEST, "." * LONGEST, "a@" * (LONGEST // 2), ":)" * (LONGEST // 2), "a." * (LONGEST // 2)]
)
def test_a_long_run_of_marks_is_cut_in_time(piece: str) -> None:
    assert "".join(tokens(piece)) == piece


def test_kinds_are_pythons_and_unicodes() -> None:
    table = english.kinds()

    for code in (*range(0x3000), 0xA1, 0x1F600):
        assert bool(table[code] & english.SPACE) == chr(code).isspace()
        assert bool(table[code] & english.ALPHABETIC) == chr(code).isalpha()
    assert english.kind_of(0x20000) == english.HAN
    assert english.kind_of(0x10FFFF) == 0
