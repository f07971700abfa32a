"""Words that name groups of people, words that insult, and texts that differ in nothing but who they name.

The lists are short, English, and our own: common nouns, pronouns and adjectives by which people are named in news and
comments, in the groups that the templates of the literature use (Dixon et al., "Measuring and mitigating unintended bias in
text classification", 2018, for identity terms in comments; Zhao et al., "Gender bias in coreference resolution", 2018, for
gendered pairs). The insults are everyday ones; slurs against a group are left out on purpose, since a list of them
is what others would take from here: give your own with `toxic_words`. A word is not a meaning: "black" is a colour
too, "idiot-proof" insults nobody.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    import polars as pl

IDENTITY: dict[str, dict[str, str]] = {
    "gender": {
        "female": "she her hers herself woman women girl girls lady ladies female females mother mothers daughter daughters "
        "sister sisters wife wives aunt niece grandmother mrs ms actress waitress queen",
        "male": "he him his himself man men boy boys gentleman gentlemen male males father fathers son sons "
        "brother brothers husband husbands uncle nephew grandfather mr actor waiter king",
        "trans or nonbinary": "transgender nonbinary non-binary genderqueer",
    },
    "religion": {
        "christian": "christian christians christianity catholic catholics protestant protestants",
        "muslim": "muslim muslims islam islamic",
        "jewish": "jew jews jewish judaism",
        "hindu": "hindu hindus hinduism",
        "buddhist": "buddhist buddhists buddhism",
        "atheist": "atheist atheists atheism",
    },
    "origin": {
        "african or black": "african africans black blacks",
        "asian": "asian asians chinese japanese indian indians korean",
        "european or white": "european europeans white whites caucasian",
        "latin american": "hispanic hispanics latino latinos latina latinas mexican mexicans",
        "arab": "arab arabs arabic",
    },
    "orientation": {
        "gay or bisexual": "gay gays lesbian lesbians homosexual bisexual lgbt lgbtq queer",
        "straight": "straight heterosexual",
    },
    "age": {"old": "elderly senior seniors pensioner pensioners", "young": "teenager teenagers teen teens youngster youngsters"},
    "disability": {"disabled": "disabled blind deaf paralyzed autistic wheelchair"},
}
"""by kind, by group: the words"""
TOXIC = (
    "idiot idiots idiotic moron morons moronic imbecile stupid dumb dumbass fool fools loser losers pathetic scum scumbag trash "
    "garbage filth filthy disgusting vile ugly liar liars crap crappy shit shitty bullshit fuck fucking fucked fucker damn "
    "asshole assholes bastard bastards bitch bitches jerk jerks douchebag dickhead suck sucks sucker worthless hate "
    "die kill vermin parasite parasites subhuman"
).split()
"""everyday insults, curses and threats"""


def terms() -> list[tuple[str, str, list[str]]]:
    """Every group as kind, group and words."""
    return [(kind, group, text.split()) for kind, groups in IDENTITY.items() for group, text in groups.items()]


@functools.cache
def pattern(words: tuple[str, ...]) -> str:
    """An expression that finds any of these words, whole and in any case."""
    return r"(?i)\b(?:" + "|".join(re.escape(word).replace(r"\-", "-") for word in sorted(words)) + r")\b"


def has_word(text: pa.LargeStringArray, words: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether each text has one of the words; a null has none."""
    import polars as pl

    return np.asarray(pl.Series(text).str.contains(pattern(tuple(words))).fill_null(False).to_numpy(), bool)


def count_terms(text: pa.LargeStringArray) -> pa.Array:
    """How many identity terms each text has; null for null."""
    import polars as pl

    every = tuple(word for _, _, words in terms() for word in words)
    return pl.Series(text).str.count_matches(pattern(every)).cast(pl.Float64).to_arrow()


def twin_keys(text: pa.LargeStringArray) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Of each text two hashes: of what it says about whomever it names, and of the whole; equal for texts that name nobody.

    The first has a placeholder for every identity term, one for each kind, and ignores case; so does the second, with the words.
    """
    import polars as pl

    whole = pl.Series(text).fill_null("").str.to_lowercase()
    blank = whole
    for kind, groups in IDENTITY.items():
        words = tuple(word for text_of in groups.values() for word in text_of.split())
        blank = blank.str.replace_all(pattern(words), f"\x00{kind}\x00")
    named = (blank != whole).to_numpy()
    own = _hashes(whole)
    key = own.copy()
    key[named] = _hashes(blank.filter(pl.Series(named)))
    return key, own


def _hashes(texts: pl.Series) -> npt.NDArray[np.uint64]:
    import xxhash

    return np.fromiter((xxhash.xxh3_64_intdigest(one.encode()) for one in texts), np.uint64, len(texts))


def twins(keys: npt.NDArray[np.uint64], own: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The keys under which at least two different texts stand, rising."""
    pairs = np.unique(np.stack([keys, own], axis=1), axis=0) if len(keys) else np.empty((0, 2), np.uint64)
    found, texts = np.unique(pairs[:, 0], return_counts=True)
    return np.asarray(found[texts > 1], np.uint64)
