"""Keys, tokens and passwords: by the prefixes their issuers gave them, and as values assigned to such names."""

from __future__ import annotations

import re
from collections import Counter
from math import log2

from curate.pii_spots import Pattern, Spot

LEAST_BITS = 2.5
"""of entropy a character, for a value assigned to a name such as `password`"""
_PLACEHOLDER = re.compile(
    r"x{3,}|\*{3,}|\.{3,}|your|example|sample|change|placeholder|dummy|redacted|insert|replace|todo|foobar|undefined|null\b|none\b|"
    r"true\b|false\b|process\.env|environ|getenv|required|optional|string\b|test(?:ing)?\b|1234567|abcdef\b|0{6,}",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"^[$<{@(\[]|^%[sd(]|[()\[\]{}<>]|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|->|::|^https?:|^/|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$"
)
_ASSIGNED = re.compile(
    r"""(?P<name>[\w-]+)["'\]]{0,2}[ \t]{0,3}(?::=|=>|[:=])[ \t]{0,3}(?P<quote>["']?)(?P<value>.+)$""", re.DOTALL
)
_OTHER_NAME = re.compile(
    r"hash|sha|md5|_?ids?$|len|size|url|uri|path|file|name|type|count|expir|field|param|regex|policy|prompt|label|reset|hint|"
    r"version|ttl|age|date|time|index|class|kind|pattern|format|list|limit|max|min",
    re.IGNORECASE,
)
_TOKENS = (
    r"(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA)[A-Z0-9]{16}",  # AWS
    r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}",
    r"gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{20,64}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,250}|xapp-[0-9]-[A-Za-z0-9-]{10,250}",  # Slack
    r"hooks\.slack\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{20,32}",
    r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9]{24,64}",  # Stripe
    r"sk-(?:proj-|svcacct-|admin-|ant-[a-z0-9]{2,10}-)?[A-Za-z0-9_-]{20,255}",  # OpenAI, Anthropic
    r"AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,255}|GOCSPX-[0-9A-Za-z_-]{28}",  # Google
    r"npm_[A-Za-z0-9]{36}|pypi-AgEI[A-Za-z0-9_-]{50,255}|hf_[A-Za-z0-9]{34}|dop_v1_[a-f0-9]{64}",
    r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",  # SendGrid
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",  # Telegram
)


def is_token(spot: Spot) -> bool:
    """A token with its issuer's prefix that stands alone and looks drawn at random."""
    if re.search(r"[A-Za-z0-9_-]\Z", spot.before) or re.match(r"[A-Za-z0-9_]", spot.after):
        return False
    body = spot.text[4:]
    words = re.fullmatch(r"[a-z]+(?:[-_][a-z]+)+\d{0,4}", spot.text)  # sk-learn-compatible-estimators
    return not words and len(set(body)) > 6 and "xxxx" not in body.lower()


def stands_alone(spot: Spot) -> bool:
    """Nothing before it that would make it a piece of something longer: for forms that nothing else has."""
    return not re.search(r"[A-Za-z0-9_.]\Z", spot.before)


def is_assigned(spot: Spot) -> bool:
    """A value that nobody would write as prose or code, assigned to a name that promises a secret."""
    found = _ASSIGNED.search(spot.text)
    if not found or _OTHER_NAME.search(found["name"]):
        return False
    quote = found["quote"]
    value = found["value"].split(quote)[0] if quote else found["value"].rstrip(".,;:!?\"'`)")
    if len(value) < 6 or _PLACEHOLDER.search(value) or _CODE.search(value):
        return False
    if spot.after[:1] in ("(", "[") or (not quote and re.fullmatch(r"[\d./:-]+", value)):
        return False
    return _kinds_of_letters(value) >= 2 and bits(value) >= LEAST_BITS and _is_odd(value)


def is_login(spot: Spot) -> bool:
    """A URL that carries a password."""
    password = spot.text.rpartition("@")[0].rpartition(":")[2]
    word = re.fullmatch(r"(?:pass|password|passwd|pw|pwd|secret|token|key|port|\d{1,5})", password, re.IGNORECASE)
    return not word and not _PLACEHOLDER.search(password) and not _CODE.search(password)


def bits(value: str) -> float:
    """The entropy of a text's characters, in bits a character."""
    return -sum(count / len(value) * log2(count / len(value)) for count in Counter(value).values())


def _kinds_of_letters(value: str) -> int:
    tests = (str.islower, str.isupper, str.isdigit, lambda letter: not letter.isalnum())
    return sum(any(test(letter) for letter in value) for test in tests)


def _is_odd(value: str) -> bool:
    """Holds a digit or a sign inside, as words, names in code and hyphenated words do not."""
    if re.fullmatch(r"[A-Za-z]+(?:[-_.'/][A-Za-z]+)*", value):
        return False
    return not re.fullmatch(r"[A-Z]?[a-z]+\d{0,2}|[a-z]+(?:[A-Z][a-z]+)*\d?", value)


_QUOTE = "[\"']"
_NAME = (
    r"(?i)[a-z0-9_-]{0,24}(?:passw(?:or)?d|passwort|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|"
    r"credential)[a-z0-9_-]{0,16}"
)
SECRETS = (
    Pattern(r"-----BEGIN (?:[A-Z0-9]{2,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----", stands_alone),
    Pattern("|".join(_TOKENS), is_token),
    Pattern(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", stands_alone),
    Pattern(r"""[a-z][a-z0-9+.-]{1,14}://[^\s/:@"'<>]{1,64}:[^\s/@"'<>]{3,64}@[A-Za-z0-9]""", is_login),
    Pattern(
        rf"{_NAME}{_QUOTE}?[ \t]{{0,3}}(?::=|=>|[:=])[ \t]{{0,3}}(?:\"[^\"\n]{{6,120}}|'[^'\n]{{6,120}}|[^\s\"'`,;]{{6,120}})",
        is_assigned,
    ),
)
