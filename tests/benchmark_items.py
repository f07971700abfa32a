"""A benchmark of our own, rows that give its items away, and rows that only look like it: the answer is known for each."""

from __future__ import annotations

import numpy as np

QUOTES = (
    "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer the slings and arrows of outrageous",
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.",
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness",
    "Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in Liberty",
    "We hold these truths to be self-evident, that all men are created equal, that they are endowed by their Creator",
    "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse",
)
HEADER = (
    "# Permission is hereby granted, free of charge, to any person obtaining a copy of this software, to deal in the software\n"
    "# without restriction, subject to the following conditions: the above notice shall be included in all copies.\n"
    "# The software is provided as is, without warranty of any kind, express or implied.\n"
)
TEMPLATE = "Read the question below carefully and answer with one of the letters A, B, C or D, and nothing else. Question:"


class Words:
    """Sentences and functions of words that nobody has, drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        made = self.rng.choice(syllables, (3000, 3))
        self.rare = ["".join(row[: 2 + at % 2]) for at, row in enumerate(made)]
        self.common = "the of and a to in is that for it was on as with be by at this from or an are which".split()

    def sentence(self, words: int) -> str:
        """So many words, every third an everyday one, with a full stop."""
        rare, common = self.rng.integers(0, len(self.rare), words), self.rng.integers(0, len(self.common), words)
        return " ".join(self.common[common[at]] if at % 3 == 0 else self.rare[rare[at]] for at in range(words)).capitalize() + "."

    def function(self) -> str:
        """A few lines of Python with a docstring."""
        a, b, c, d = (self.rare[at] for at in self.rng.integers(0, len(self.rare), 4))
        first, second, add = self.sentence(14), self.sentence(9), self.rng.integers(9)
        return (
            f"def {a}_{b}({c}, {d}):\n    '''{first}\n\n    {second}\n    '''\n    total = {self.rng.integers(99)}\n"
            f"    for {a} in {c}:\n        if {a} > {d}:\n            total += {a} * {add}\n    return total - {d}\n"
        )


def benchmark(words: Words) -> list[str]:
    """Items: short ones, questions behind a template, passages with a quotation, functions under a licence header."""
    short = [words.sentence(int(words.rng.integers(5, 12))) for _ in range(20)]
    asked = [f"{TEMPLATE} {words.sentence(30)} A) {words.sentence(3)} B) {words.sentence(3)}" for _ in range(20)]
    quoting = [f"{words.sentence(25)} {QUOTES[at % len(QUOTES)]} {words.sentence(25)}" for at in range(20)]
    coded = [HEADER + words.function() for _ in range(20)]
    return [*short, *asked, *quoting, *coded]


def background(words: Words, rows: int) -> list[str]:
    """Documents that have nothing to do with the benchmark."""
    return [
        "\n".join(words.sentence(int(words.rng.integers(5, 25))) for _ in range(int(words.rng.integers(1, 12))))
        for _ in range(rows)
    ]


def verbatim(item: str, words: Words) -> str:
    """The item."""
    return item


def wrapped(item: str, words: Words) -> str:
    """In other lines, in capitals, in a block of a Markdown quotation."""
    pieces = item.split()
    lines = [" ".join(pieces[at : at + 7]) for at in range(0, len(pieces), 7)]
    return "```text\n> " + "  \n> ".join(lines).upper() + "\n```"


def embedded(item: str, words: Words) -> str:
    """In the middle of a long document."""
    before, after = background(words, 2)
    return f"{before * 3}\n{item}\n{after * 3}"


def indented(item: str, words: Words) -> str:
    """Every line further in, with a blank line between."""
    return "class Holder:\n\n" + "\n\n".join("\t" + line for line in item.splitlines())


GIVEN_AWAY = (verbatim, wrapped, embedded, indented)


def look_alikes(words: Words) -> list[str]:
    """Rows with a quotation, the licence header or the template of the benchmark, and none of its items."""
    quoting = [
        f"{words.sentence(20)} {QUOTES[at % len(QUOTES)]} {words.sentence(int(words.rng.integers(5, 40)))}" for at in range(100)
    ]
    bare = [QUOTES[at % len(QUOTES)] for at in range(60)]
    coded = [HEADER + words.function() for _ in range(100)]
    asked = [f"{TEMPLATE} {words.sentence(25)} A) {words.sentence(3)} B) {words.sentence(3)}" for _ in range(100)]
    return [*quoting, *bare, *coded, *asked]
