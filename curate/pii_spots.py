"""How a detector of personal data is written: a pattern that finds candidates, then a function that believes or not.

The patterns run in polars' engine (Rust), which takes time linear in the text whatever the text is; it knows
no look-around, so what stands before and after a candidate is judged by the function. A function
sees one bounded candidate at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

AROUND = 40
"""characters of context before and after a candidate"""


@dataclass(frozen=True)
class Spot:
    """A candidate: its text, and what stands before and after it."""

    text: str
    before: str
    after: str

    @property
    def alone(self) -> bool:
        """No letter or digit touches it, nor a dot, dash or underscore that ties it to one."""
        return not _TIED_BEFORE.search(self.before) and not _TIED_AFTER.match(self.after)

    def follows(self, words: re.Pattern[str]) -> bool:
        """Whether one of these words stands shortly before it, in the same line."""
        return bool(words.search(self.before.rpartition("\n")[2]))


@dataclass(frozen=True)
class Pattern:
    """One way a kind is written. `find` and `needs` are in the dialect of polars."""

    find: str
    believe: Callable[[Spot], bool]
    needs: str = ""
    """what every text with a candidate has, where that is quicker to look for or shared by several patterns"""


SEVEN_DIGITS = r"[0-9](?:[^A-Za-z0-9]{0,3}[0-9]){6}"


_TIED_BEFORE = re.compile(r"(?:\w|\w[._/\\=+-]|[#$€£.])\Z")
_TIED_AFTER = re.compile(r"\w|[._/\\=+-]\w|%")


def digits_of(text: str) -> str:
    """The ASCII digits of a text."""
    return "".join(letter for letter in text if "0" <= letter <= "9")
