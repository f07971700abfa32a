"""How alike two texts are: the exact Jaccard similarity of their word 5-grams."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

SPACELESS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
)
MARKS = "".join(chr(code) for code in range(0x300, 0x1F000) if unicodedata.category(chr(code))[0] == "M")
LETTER = rf"[^\W{SPACELESS}]"
TOKEN = re.compile(rf"{LETTER}+(?:[{MARKS}]+{LETTER}*)*|(?=[\w{MARKS}])[{SPACELESS}]")
Shingles = frozenset[tuple[str, ...]]


def tokens(text: str) -> list[str]:
    """Case-folded words of the NFC form, marks with their letter; each character of a script without spaces is a token."""
    return TOKEN.findall(unicodedata.normalize("NFC", text).casefold())


def shingles(text: str) -> Shingles:
    """The set of token 5-grams; a text with fewer tokens is one shingle, one without tokens has none."""
    words = tokens(text)
    if not words:
        return frozenset()
    return frozenset(tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4)))


def jaccard(a: Shingles, b: Shingles) -> Fraction:
    """The exact share of shingles that two texts have in common."""
    return Fraction(len(a & b), len(a | b))


def all_pairs(texts: Sequence[str], least: float) -> list[tuple[int, int, float]]:
    """Every pair (i < j) whose Jaccard similarity is at least `least`, by one sparse product."""
    sets = [shingles(text) for text in texts]
    number: dict[tuple[str, ...], int] = {}
    columns = [number.setdefault(shingle, len(number)) for one in sets for shingle in sorted(one)]
    starts = np.cumsum([0] + [len(one) for one in sets])
    table = sp.csr_matrix((np.ones(len(columns), np.int32), columns, starts), shape=(len(sets), len(number)))
    common = sp.triu(table @ table.T, k=1).tocoo()
    out = []
    for i, j, shared in zip(common.row.tolist(), common.col.tolist(), common.data.tolist(), strict=True):
        similarity = shared / (len(sets[i]) + len(sets[j]) - shared)
        if similarity >= least:
            out.append((i, j, similarity))
    return sorted(out)
