"""Web and mail addresses in a piece of text without whitespace: a token each.

Source: the pattern spaCy uses, after Diego Perini's (MIT licence). Each function looks at characters
`low` to `high` of two arrays: code points, and kinds (the bits of `curate.english`).
"""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from curate.english import LOWER, WORD

Codes = npt.NDArray[np.uint32]


@nb.njit(cache=True, nogil=True)
def is_url(codes: Codes, kinds: Codes, low: int, high: int) -> bool:
    """True for a web or mail address, with or without a scheme, a user, a port and a path."""
    dots = 0
    for at in range(low + 1, high - 1):
        dots += codes[at] == ord(".")
    if dots == 0:
        return False
    if _is_host(codes, kinds, low, high):
        return True
    at = low
    while at < high and (kinds[at] & WORD or codes[at] == ord("+") or codes[at] == ord("-") or codes[at] == ord(".")):
        at += 1
    if at - low > 1 and at + 3 < high and codes[at] == ord(":") and codes[at + 1] == ord("/") and codes[at + 2] == ord("/"):
        if _is_host(codes, kinds, at + 3, high):
            return True
    for at in range(low + 1, high - 1):
        if codes[at] == ord("@") and _is_host(codes, kinds, at + 1, high):
            return True
    return False


@nb.njit(cache=True, nogil=True)
def _is_host(codes: Codes, kinds: Codes, low: int, high: int) -> bool:
    """True for a public address in four numbers or a name with a lower-case last label, and what may follow it."""
    if _is_numbers(codes, low, high):
        return True
    start = low
    for at in range(low, high + 1):
        if at < high and (_is_host_character(codes[at]) or codes[at] == ord("_") or codes[at] == ord("-")):
            continue
        if at == high or codes[at] != ord("."):
            return start > low and _is_top_level(codes, kinds, start, high)
        if at == start or at - start > 64 or not (_is_host_character(codes[start]) and _is_host_character(codes[at - 1])):
            return False
        start = at + 1
    return False


@nb.njit(cache=True, nogil=True)
def _is_top_level(codes: Codes, kinds: Codes, low: int, high: int) -> bool:
    at = low
    while at < high and kinds[at] & LOWER:
        at += 1
    return 2 <= at - low <= 63 and _is_tail(codes, at, high)


@nb.njit(cache=True, nogil=True)
def _is_tail(codes: Codes, low: int, high: int) -> bool:
    """True for nothing, a port, a path, or both."""
    at = low
    if at < high and codes[at] == ord(":"):
        at += 1
        while at < high and is_digit(codes[at]):
            at += 1
        if not 2 <= at - low - 1 <= 5:
            return False
    return at == high or codes[at] == ord("/") or codes[at] == ord("?") or codes[at] == ord("#")


@nb.njit(cache=True, nogil=True)
def _is_numbers(codes: Codes, low: int, high: int) -> bool:
    """True for an IPv4 address that is public, and what may follow it."""
    at, first, second = low, 0, 0
    for place in range(4):
        value, start = 0, at
        while at < high and at - start < 4 and is_digit(codes[at]):
            value = value * 10 + int(codes[at]) - ord("0")
            at += 1
        leading_zero = codes[start] == ord("0") if start < high else False
        if at == start or at - start > 3 or value > 255 or (at - start == 3 and leading_zero):
            return False
        if (place == 0 and (leading_zero or value > 223)) or (place == 3 and (leading_zero or value > 254)):
            return False
        if place == 0:
            first = value
        elif place == 1:
            second = value
        if place < 3:
            if at == high or codes[at] != ord("."):
                return False
            at += 1
    if first == 10 or first == 127 or (first == 169 and second == 254) or (first == 192 and second == 168):
        return False
    return not (first == 172 and 16 <= second <= 31) and _is_tail(codes, at, high)


@nb.njit(cache=True, nogil=True, inline="always")
def _is_host_character(code: np.uint32) -> bool:
    return bool(0x61 <= code <= 0x7A or 0x41 <= code <= 0x5A or 0x30 <= code <= 0x39 or 0xA1 <= code <= 0xFFFF)


@nb.njit(cache=True, nogil=True, inline="always")
def is_digit(code: np.uint32) -> bool:
    """True for 0 to 9."""
    return bool(0x30 <= code <= 0x39)
