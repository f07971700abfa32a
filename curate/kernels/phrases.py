"""What C4 and Gopher look for in a line: phrases, in one pass over its bytes, and how it ends."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

LOREM, JAVASCRIPT, CURLY, POLICY, CITATION = (1 << bit for bit in range(5))
"""what a line holds, one bit each"""

WORDED = (
    ("lorem ipsum", LOREM),
    ("javascript", JAVASCRIPT),
    ("terms of use", POLICY),
    ("privacy policy", POLICY),
    ("cookie policy", POLICY),
    ("uses cookies", POLICY),
    ("use of cookies", POLICY),
    ("use cookies", POLICY),
)
CITATIONS = ("[edit]", "[citation needed]")
"""what encyclopedias print in brackets, beside numbers and nothing"""

LETTERS = np.frombuffer("".join([*(phrase for phrase, _ in WORDED), *CITATIONS]).encode(), np.uint8)
BOUNDS = np.cumsum([0, *(len(phrase) for phrase, _ in WORDED), *map(len, CITATIONS)])
BITS = np.array([bit for _, bit in WORDED])
FIRST = np.zeros(256, np.bool_)
for _phrase, _ in WORDED:
    FIRST[[ord(_phrase[0]), ord(_phrase[0].upper())]] = True
FIRST[[ord("{"), ord("[")]] = True


@nb.njit(cache=True, nogil=True)
def find_phrases(data: Bytes, start: int, stop: int) -> int:
    """The bits of all that stands between two places; ASCII letters of either case."""
    found = 0
    for at in range(start, stop):
        byte = data[np.uint64(at)]
        if not FIRST[byte]:
            continue
        if byte == ord("{"):
            found |= CURLY
        elif byte == ord("["):
            found |= CITATION if citation_length(data, at, stop) else 0
        else:
            for phrase in range(BITS.size):
                if _stands(data, at, stop, phrase, 0x20):
                    found |= BITS[phrase]
    return found


@nb.njit(cache=True, nogil=True)
def without_citations(data: Bytes, start: int, stop: int, out: Bytes) -> int:
    """Copy the bytes between two places to `out`, citations left out; how many they are."""
    at, size = start, 0
    while at < stop:
        length = citation_length(data, at, stop) if data[at] == ord("[") else 0
        if length == 0:
            out[size] = data[at]
            size += 1
        at += max(length, 1)
    return size


@nb.njit(cache=True, nogil=True)
def citation_length(data: Bytes, start: int, stop: int) -> int:
    """The bytes of the citation that begins with the bracket at `start`, or 0: "[12]", "[]", "[edit]"."""
    at = start + 1
    while at < stop and ord("0") <= data[at] <= ord("9"):
        at += 1
    if at < stop and data[at] == ord("]"):
        return at + 1 - start
    for phrase in range(BITS.size, BOUNDS.size - 1):
        if _stands(data, start, stop, phrase, 0):
            return int(BOUNDS[phrase + 1] - BOUNDS[phrase])
    return 0


@nb.njit(cache=True, nogil=True, inline="always")
def _stands(data: Bytes, at: int, stop: int, phrase: int, case: int) -> bool:
    """True where a phrase begins at `at`; `case` is the bit in which letters may differ."""
    low, high = BOUNDS[phrase], BOUNDS[phrase + 1]
    if at + high - low > stop:
        return False
    for index in range(low, high):
        byte = data[at + index - low]
        if byte != LETTERS[index] and (byte | case != LETTERS[index] or byte < ord("A")):
            return False
    return True


@nb.njit(cache=True, nogil=True, inline="always")
def _has_dots(data: Bytes, first: int, last: int) -> bool:
    return bool(last - first > 2 and data[last - 1] == ord(".") and data[last - 2] == ord(".") and data[last - 3] == ord("."))


@nb.njit(cache=True, nogil=True, inline="always")
def has_ellipsis(data: Bytes, first: int, last: int) -> bool:
    """True for a line that ends with three dots, or with one character of three."""
    if _has_dots(data, first, last):
        return True
    return bool(last - first > 2 and data[last - 1] == 0xA6 and data[last - 2] == 0x80 and data[last - 3] == 0xE2)


@nb.njit(cache=True, nogil=True, inline="always")
def is_finished(data: Bytes, first: int, last: int) -> bool:
    """True for a line that ends like a sentence: . ? ! or a straight quote, and not three dots."""
    if last <= first or _has_dots(data, first, last):
        return False
    byte = data[last - 1]
    return bool(byte == ord(".") or byte == ord("?") or byte == ord("!") or byte == ord('"') or byte == ord("'"))
