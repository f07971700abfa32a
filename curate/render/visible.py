"""Any text as a page can hold it: nothing invisible that acts, no half characters."""

from __future__ import annotations

import re

_DIRECTIONS = dict(
    zip(
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
        ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"),
        strict=True,
    )
)
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\uffff]"
)


def visible(text: object) -> str:
    """The text with control and direction characters as signs that can be seen; line breaks and tabs stay."""
    return _ACTING.sub(_sign, str(text))


def name(text: object, limit: int = 120) -> str:
    """A text for one line: breaks and tabs are signs too, and a longer one is cut and ends in an ellipsis."""
    text = str(text)
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


def _sign(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if char in "\u2028\u2029":
        return "\n"
    if char == "\ufeff":
        return "‹BOM›"
    return f"‹{_DIRECTIONS[char]}›" if char in _DIRECTIONS else "\ufffd"
