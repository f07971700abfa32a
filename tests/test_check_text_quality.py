from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curate import english
from curate.check import make_check
from curate.checks.text_quality import COLUMNS, RULES, TextQuality
from curate.dataset import Roles
from curate.errors import RequestError
from curate.kernels import text_quality as kernel
from curate.kernels.tokens import LONGEST, token_ends, vocabulary
from curate.policy import Policy, as_floats, decide
from curate.testing import run_check

TEXT = Roles(text=("text",))
STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}
PHRASES = "terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies"
GOOD = "The keeper of the lighthouse had to be awake at night, and the ships that passed were glad of it. " * 3


def scores(*texts: str | None, **parameters: Any) -> dict[str, list[Any]]:
    table = pa.table({"text": pa.array(texts, pa.string())})
    return run_check(make_check("text_quality", parameters), table, TEXT).to_pydict()


def reasons(text: str, preset: str) -> list[str]:
    """The columns whose limits a text breaks."""
    found = scores(text)
    columns = {name: as_floats(pa.array(cells)) for name, cells in found.items()}
    rules = RULES[preset]  # type: ignore[index]
    return [r.column for r in rules if decide(Policy((r,)), columns, (r.limit(None),), 1).rule[0] == 0]


def is_a(character: str, kind: int) -> bool:
    return bool(english.kind_of(ord(character)) & kind)


def tokens(text: str) -> list[str]:
    """By the kernel that has tests of its own; then letters of scripts without spaces one by one."""
    found: list[str] = []
    for run in text.split():
        for piece in (run[start : start + LONGEST] for start in range(0, len(run), LONGEST)):
            ends = token_ends(piece, vocabulary()).tolist()
            for low, high in zip([0, *ends], ends, strict=False):
                spaced = "".join(f" {c} " if is_a(c, english.SPACELESS) else c for c in piece[low:high])
                found += spaced.split()
    return found


def sentences(line: str) -> int:
    """Sentences as a rule counts them: what follows an end and is no mark starts one."""
    count, ended = 0, False
    for part in re.split(r"(\s+)", line):
        for token in [part] if part.isspace() and part != " " else tokens(part):
            is_end = len(token) == 1 and is_a(token, english.SENTENCE_END)
            is_mark = all(is_a(c, english.PUNCTUATION) for c in token)
            if ended and not is_end and not is_mark:
                count, ended = count + 1, False
            ended |= is_end
    return count + 1


def repeated(parts: list[str]) -> tuple[int, int]:
    again = [part for index, part in enumerate(parts) if part.strip() and part in parts[:index]]
    return len(again), sum(map(len, again))


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def plain_scores(text: str) -> dict[str, float | bool | None]:
    """Every column by its definition, one after the other."""
    text = re.sub(r"\r+\n", "\n", text)
    found = tokens(text)
    words = [t for t in found if not all(is_a(c, english.MARK) for c in t)]
    spaced = [t for t in words if not _letter(t)]
    split = text.splitlines()
    out: dict[str, float | bool | None] = {
        "tokens": len(found),
        "words": len(words),
        "mean_word_length": share(sum(map(len, spaced)), len(spaced)),
        "hashes_per_word": share(text.count("#"), len(found)),
        "ellipses_per_word": share(text.count("...") + text.count("…"), len(found)),
        "bullet_line_share": share(sum(line.lstrip().startswith(("•", "-")) for line in split), len(split)),
        "ellipsis_line_share": share(sum(line.rstrip().endswith(("...", "…")) for line in split), len(split)),
        "alphabetic_word_share": share(sum(any(c.isalpha() for c in t) for t in found), len(found)),
        "stop_words": len(STOP_WORDS & set(found)),
    }
    paragraphs = re.split(r"\n{2,}", text.strip()) if text.strip() else []
    pieces = re.split(r"\n+", text) if text else []
    lines = [line for line in text.split("\n") if line.strip()]
    for name, parts in (("line", pieces), ("paragraph", paragraphs)):
        count, characters = repeated(parts)
        out[f"repeated_{name}_share"] = share(count, len(parts))
        out[f"repeated_{name}_char_share"] = share(characters, len(text))
    for size in range(2, 11):
        grams = [found[i : i + size] for i in range(len(found) - size + 1)]
        name = f"{'top' if size < 5 else 'repeated'}_{size}gram_char_share"
        out[name] = share(top(grams) if size < 5 else again(grams, size), len(text))
    out |= c4([line.strip() for line in split if line.strip()])
    ends = [is_a(line[-1], english.TERMINAL) for line in lines]
    return out | {
        "lines": len(lines),
        "punctuated_line_share": share(sum(ends), len(lines)),
        "short_line_share": share(sum(len(line) <= 30 for line in lines), len(lines)),
        "repeated_char_share": share(repeated(lines)[1], len(text.replace("\n", ""))),
        "newlines_per_word": share(text.count("\n"), len(found)),
    }


def _letter(token: str) -> bool:
    return len(token) == 1 and is_a(token, english.SPACELESS)


def top(grams: list[list[str]]) -> int:
    """Characters of the most frequent run, the first of several, with spaces where scripts write them."""
    if not grams:
        return 0
    gram, count = Counter(map(tuple, grams)).most_common(1)[0]
    spaces = sum(not (_letter(left) and _letter(right)) for left, right in pairwise(gram))
    return count * (len("".join(gram)) + spaces)


def again(grams: list[list[str]], size: int) -> int:
    seen, characters, index = set(), 0, 0
    while index < len(grams):
        gram = tuple(grams[index])
        characters += len("".join(gram)) if gram in seen else 0
        index += size if gram in seen else 1
        seen.add(gram)
    return characters


def c4(lines: list[str]) -> dict[str, float | bool | None]:
    names = ("c4_sentences", "long_word_lines", "javascript_lines", "policy_lines")
    n = dict.fromkeys((*names, "kept", "unfinished", "few"), 0)
    lorem = curly = False
    for line in lines:
        words = line.split()
        line = re.sub(r"\[[0-9]*\]|\[edit\]|\[citation needed\]", "", line)
        low = re.sub("[A-Z]", lambda hit: hit[0].lower(), line)
        long, few = any(len(word) > 1000 for word in words), len(words) < 3
        finished = line.endswith((".", "?", "!", '"', "'")) and not line.endswith("...")
        script, policy = "javascript" in low, bool(re.search(PHRASES, low))
        n["long_word_lines"] += long
        n["few"] += few
        n["unfinished"] += not finished
        n["javascript_lines"] += script
        n["policy_lines"] += policy
        if finished and not few and not long:
            lorem |= "lorem ipsum" in low
            curly |= "{" in line and not script
            if not (script or policy or "lorem ipsum" in low or "{" in line):
                n["kept"] += 1
                n["c4_sentences"] += sentences(line)
    shares = {"c4_kept_line_share": "kept", "unfinished_line_share": "unfinished", "few_word_line_share": "few"}
    return {
        **{name: n[name] for name in names},
        **{name: share(n[count], len(lines)) for name, count in shares.items()},
        "has_lorem_ipsum": lorem,
        "has_curly_brace": curly,
    }


BITS = st.sampled_from(
    [
        *(
            "the",
            "of",
            "and",
            "with",
            "Cat",
            "don't",
            "a",
            "x" * 11,
            "Use cookies",
            "use of",
            "JavaScript",
            "lorem ipsum",
            "[12]",
        ),
        *(" ", " ", "  ", "\t", "\u00a0", "\n", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x1c", "\x85", "\u2028", "\u3000"),
        *(
            ".",
            "...",
            "…",
            "?",
            "!",
            '"',
            ",",
            "#",
            "•",
            "-",
            "{",
            "[",
            "]",
            "。",
            "।",
            ":",
            ")",
            "1",
            "日本",
            "中",
            "ไทย",
            "한국",
            "é",
            "😀",
        ),
    ]
)
TEXTS = st.one_of(st.lists(BITS, max_size=30).map("".join), st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=30))


@settings(max_examples=400, deadline=None)  # the first call may compile
@given(st.lists(TEXTS, min_size=1, max_size=4))
@example(["", "\n", "\n\n", " ", "a", "\r\n\r\n", "a\r\nb\ra", "\n a\n a\n", "a[1]. b c? d[edit]!"])
@example(
    ["one two three. " * 30, "the same line\n" * 9, "東京都は日本の首都である。東京都は日本の首都である。", "a b c d e f " * 9]
)
def test_every_column_equals_its_definition(texts: list[str]) -> None:
    found = scores(*texts)

    for row, text in enumerate(texts):
        expected = plain_scores(text)
        assert {name: found[name][row] for name in expected} == expected
        assert len(expected) == len(COLUMNS)


def test_nulls_are_missing_and_empty_texts_are_not() -> None:
    found = scores(None, "", "\n \n")

    assert all(cells[0] is None for name, cells in found.items() if name != "row")
    assert [found[name][1:] for name in ("words", "tokens", "lines", "c4_sentences")] == [[0.0, 0.0]] * 4
    assert found["mean_word_length"][1:] == [None, None]
    assert all(reasons(text, preset) for text in ("", "\n \n") for preset in ("gopher", "c4", "fineweb"))


@pytest.mark.parametrize(
    ("text", "preset", "reason"),
    [
        ("Too short, that is.", "gopher", "words"),
        ("of the " + "ab " * 99, "gopher", "mean_word_length"),
        (GOOD + "# " * 12, "gopher", "hashes_per_word"),
        (GOOD + "Well ... " * 12, "gopher", "ellipses_per_word"),
        ("\n".join(f"- {GOOD.split()[i]} and with {i}" for i in range(40)), "gopher", "bullet_line_share"),
        ("\n".join(f"{word} and with the night {i}..." for i, word in enumerate(GOOD.split())), "gopher", "ellipsis_line_share"),
        ("of the " + " ".join(map(str, range(99))), "gopher", "alphabetic_word_share"),
        ("Der Leuchtturm steht seit vielen Jahren auf dem Felsen vor der Küste. " * 9, "gopher", "stop_words"),
        ("The same line of text is here to be read again.\n" * 9, "gopher", "repeated_line_share"),
        ("The same line of text.\n\n" * 29, "gopher", "repeated_paragraph_share"),
        (GOOD, "gopher", "repeated_10gram_char_share"),
        ("Lorem ipsum dolor sit amet.", "c4", "has_lorem_ipsum"),
        ("if (a) { print it; }.", "c4", "has_curly_brace"),
        ("This is it. And that is all.", "c4", "c4_sentences"),
        ("A heading without a mark\n" * 5, "fineweb", "punctuated_line_share"),
        ("Short.\nShorter.\n", "fineweb", "short_line_share"),
        ("A line of more than thirty characters.\n" * 2, "fineweb", "repeated_char_share"),
        ("One.\nTwo.\nThree.\n", "fineweb", "newlines_per_word"),
    ],
)
def test_each_preset_rejects_what_it_was_made_for(text: str, preset: str, reason: str) -> None:
    assert reason in reasons(text, preset)


def test_prose_passes_every_preset() -> None:
    prose = (
        "The lighthouse stood on a rock that no map had ever shown with care. Its keeper went up the stairs each evening "
        "to light the lamp, and came down again when the sun rose over the bay. Nobody asked what he read during the night. "
        "He would have told them, had they asked! In winter the boats stayed home, so he wrote letters to a sister who lived "
        "inland and never replied. Spring brought visitors, some fish, and the news of a war which was over by then."
    )

    assert not any(reasons(prose, preset) for preset in ("gopher", "c4", "fineweb"))


def test_line_ends_of_any_system_are_alike() -> None:
    text = "First line, which ends here.\n\nSecond line, and it is longer.\nSecond line, and it is longer.\n"
    unix, dos = scores(text), scores(text.replace("\n", "\r\n"))

    assert unix == dos
    assert unix["lines"] == [3.0]


@pytest.mark.parametrize(
    ("text", "words", "length"),
    [
        ("東京都は日本の首都です。", 11, None),
        ("สวัสดีครับ", 10, None),
        ("مرحبا بالعالم العربي", 3, 6.0),
        ("नमस्ते दुनिया", 2, 6.0),
        ("Tokyo は big です", 5, 4.0),
        ("word " * 100_000, 100_000, 4.0),
        ("......", 0, None),
    ],
)
def test_words_are_counted_in_every_script(text: str, words: int, length: float | None) -> None:
    found = scores(text)

    assert found["words"] == [words]
    assert found["mean_word_length"] == [length]


def test_a_blank_line_is_no_duplicate() -> None:
    assert scores("a\n \nb\n \nc\n \n")["repeated_line_share"] == [0.0]


def test_stop_words_of_another_language_can_be_given() -> None:
    assert scores("der die der das", stop_words=["der", "das", "中"])["stop_words"] == [2.0]
    assert scores("中文 the", stop_words=["der", "das", "中"])["stop_words"] == [1.0]


def test_several_text_columns_are_read_as_lines() -> None:
    table = pa.table({"title": ["One line", None, None], "body": ["Another line", "line", None]})

    found = run_check(TextQuality(), table, Roles(text=("title", "body"))).to_pydict()

    assert {name: found[name] for name in ("lines", "words")} == {"lines": [2.0, 1.0, None], "words": [4.0, 1.0, None]}
    assert found["has_curly_brace"] == [False, False, None]


def test_presets_choose_rules_and_nothing_else() -> None:
    def rules(preset: object) -> tuple[Any, ...]:
        return make_check("text_quality", {"preset": preset}).default_rules(TEXT, pa.schema({"text": pa.string()}))

    assert rules("none") == ()
    assert rules(["c4", "fineweb", "c4"]) == RULES["c4"] + RULES["fineweb"]
    assert make_check("text_quality", {}) == make_check("text_quality", {"preset": ["gopher"]})
    with pytest.raises(RequestError, match="preset"):
        make_check("text_quality", {"preset": "gofer"})
    with pytest.raises(RequestError, match="preset"):
        make_check("text_quality", {"preset": []})


def test_runs_are_sought_in_the_first_tokens_of_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens_ = kernel.MOST_TOKENS + 5

    found = scores("ab " * tokens_)

    assert found["tokens"] == [tokens_]
    assert found["repeated_10gram_char_share"][0] == pytest.approx(2 / 3, rel=1e-3)


def test_slices_and_layouts_of_text_do_not_matter() -> None:
    texts = ["first text here.", "", "日本 second text.", "third"]
    whole = kernel.count_texts(pa.array(texts, pa.large_string()), ["the"])
    part = kernel.count_texts(pa.array(texts, pa.large_string()).slice(1, 2), ["the"])

    for name, counts in whole.items():
        assert np.array_equal(counts[1:3], part[name])
