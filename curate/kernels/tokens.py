"""English tokens at memory speed: one run of characters without whitespace, cut as `curate.english` says.

Each function looks at a piece of text as three arrays, a character each: its code point, its kinds (the
bits of `curate.english`), and `prints`, hashes of all that stands before it, so that the hash of any part
is one subtraction. A part is `low` to `high`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from curate import english
from curate.english import BEFORE_DOT, CURRENCY, LETTER, LOWER, PREFIX, QUOTE, SUFFIX, SYMBOL, UPPER, WORD
from curate.kernels.addresses import is_digit, is_url

Codes = npt.NDArray[np.uint32]
U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

LONGEST = 4096
"""characters of a piece; a longer run without whitespace is cut as several"""
BASE = np.uint64(0x9E3779B97F4A7C15)
"""prints are polynomials in this, modulo 2^64"""
PARTS = 3
"""the most tokens an exception has"""
MOST_PLAIN = 12
"""the most tokens the rules make of an exception"""
LONGEST_UNIT = 5


class Vocabulary(NamedTuple):
    """Hash tables of fixed words: the `slots` hold prints (0: free), beside them where the tokens of each word end.

    `parts` cuts the word as the exception says, `plain` as the rules would.
    """

    slots: U64s
    parts: npt.NDArray[np.int8]
    plain: npt.NDArray[np.int8]
    unit_slots: U64s
    longest: int
    powers: U64s


@functools.cache
def vocabulary() -> Vocabulary:
    """The exceptions with the ends of their tokens, and the units."""
    powers = np.empty(LONGEST + 1, np.uint64)
    fill_powers(powers)
    units = slots_for([print_of(unit) for unit in english.UNITS.split()])
    none = np.zeros((8, 1), np.int8)
    rules = Vocabulary(slots_for([]), none, none, units, 0, powers)
    words = english.exceptions()
    slots = slots_for([print_of(word) for word in words])
    parts, plain = np.zeros((len(slots), PARTS), np.int8), np.zeros((len(slots), MOST_PLAIN), np.int8)
    for word, tokens in words.items():
        at = place_of(slots, print_of(word))
        parts[at, : len(tokens)] = np.cumsum([len(token) for token in tokens])
        ends = token_ends(word, rules)
        plain[at, : len(ends)] = ends
    return Vocabulary(slots, parts, plain, units, max(map(len, words)), powers)


def token_ends(piece: str, words: Vocabulary) -> Int64s:
    """Where each token of a piece without whitespace ends."""
    codes = np.array([ord(character) for character in piece], np.uint32)
    prints = np.array([print_of(piece[:size]) for size in range(len(piece) + 1)], np.uint64)
    kinds = np.array([english.kind_of(code) for code in codes.tolist()], np.uint32)
    ends, tails = np.empty(len(piece) + PARTS, np.int64), np.empty(len(piece) + PARTS, np.int64)
    return ends[: cut(codes, kinds, prints, len(piece), words, ends, tails)]


def print_of(word: str) -> np.uint64:
    """The hash of a word, as the prints of a piece give it for a part."""
    value = 0
    for character in word:
        value = (value * int(BASE) + ord(character) + 1) % 2**64
    return np.uint64(value)


def slots_for(prints: list[np.uint64]) -> U64s:
    """An open-addressing table of these hashes, at most an eighth full."""
    slots = np.zeros(1 << max(3, (8 * len(prints)).bit_length()), np.uint64)
    for one in prints:
        slots[place_of(slots, one)] = one
    return slots


@nb.njit(cache=True, nogil=True)
def fill_powers(powers: U64s) -> None:
    """Write `BASE` to the power of 0, 1, 2, … modulo 2^64."""
    power = np.uint64(1)
    for index in range(powers.size):
        powers[index] = power
        power *= BASE


@nb.njit(cache=True, nogil=True)
def place_of(slots: U64s, one: np.uint64) -> np.int64:
    """The slot that holds a hash, or the free one where it belongs."""
    mask = np.uint64(slots.size - 1)
    at = (one ^ (one >> np.uint64(32))) * BASE >> np.uint64(32) & mask
    while slots[at] != 0 and slots[at] != one:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@nb.njit(cache=True, nogil=True, inline="always")
def part_print(prints: U64s, powers: U64s, low: int, high: int) -> np.uint64:
    """The hash of the characters from `low` to before `high`."""
    return np.uint64(prints[high] - prints[low] * powers[high - low])


@nb.njit(cache=True, nogil=True)
def cut(codes: Codes, kinds: Codes, prints: U64s, count: int, words: Vocabulary, ends: Int64s, tails: Int64s) -> int:
    """Write where each token of the piece ends to `ends`; how many they are. `tails` is scratch of the same size."""
    found = _cut_plain(codes, kinds, prints, count, words, ends)
    if found:
        return found
    low, high, tail, last = 0, count, 0, -1
    while low < high and high - low != last and exception(prints, low, high, words) < 0:
        last = high - low
        before = prefix(codes, kinds, low, high)
        if before and low + before < high and exception(prints, low + before, high, words) >= 0:
            low += before
            ends[found] = low
            found += 1
            break
        behind = suffix(codes, kinds, prints, low + before, high, words)
        if behind and low < high - behind and exception(prints, low, high - behind, words) >= 0:
            tails[tail] = high
            tail += 1
            high -= behind
            break
        if behind and (not before or before + behind <= high - low):
            tails[tail] = high
            tail += 1
            high -= behind
        if before:
            low += before
            ends[found] = low
            found += 1
    if low < high:
        found = _cut_middle(codes, kinds, prints, low, high, words, ends, found)
    while tail > 0:
        tail -= 1
        ends[found] = tails[tail]
        found += 1
    return _join(prints, words, ends, found, tails) if found > 1 else found


@nb.njit(cache=True, nogil=True, inline="always")
def _cut_plain(codes: Codes, kinds: Codes, prints: U64s, count: int, words: Vocabulary, ends: Int64s) -> int:
    """Cut at once, to the same tokens, what is frequent: letters and digits, and letters and a mark. 0 for all else."""
    some, every = np.uint32(0), ~np.uint32(0)
    for at in range(count - 1):
        some |= kinds[at]
        every &= kinds[at]
    last, plain = kinds[count - 1], PREFIX | SUFFIX
    if some & plain or not every & (WORD | LETTER):
        return 0
    word = not last & plain and every & WORD and is_digit(codes[count - 1])
    mark = count > 1 and every & LETTER and (last & SUFFIX or (codes[count - 1] == ord(".") and kinds[count - 2] & BEFORE_DOT))
    body = count - 1 if mark else count
    if not (word or mark) or exception(prints, 0, count, words) >= 0 or exception(prints, 0, body, words) >= 0:
        return 0
    ends[0], ends[1] = body, count
    return 2 if mark else 1


@nb.njit(cache=True, nogil=True, inline="always")
def _join(prints: U64s, words: Vocabulary, ends: Int64s, found: int, state: Int64s) -> int:
    """Make exceptions of neighbouring tokens that the rules alone would cut one into: the longest first, from the left.

    So "(a):" ends with the face "):". Returns how many tokens there are now.
    """
    hits = 0
    state[:found] = -1  # for each token: -1, or -2 where something longer or more to the left fits, or the slot that begins here
    for size in range(min(found, MOST_PLAIN), 1, -1):
        for first in range(found - size + 1):
            low = ends[first - 1] if first else 0
            slot = exception(prints, low, ends[first + size - 1], words)
            if slot < 0 or words.plain[slot, size - 1] == 0 or (size < MOST_PLAIN and words.plain[slot, size]):
                continue
            fits = True
            for index in range(size):
                fits = fits and ends[first + index] == low + words.plain[slot, index]
            if fits:
                free = state[first] == -1 and state[first + size - 1] == -1
                for index in range(first, first + size):
                    state[index] = -2 if state[index] == -1 else state[index]
                if free:
                    state[first] = slot
                    hits += 1
    return _joined(words, ends, found, state) if hits else found


@nb.njit(cache=True, nogil=True)
def _joined(words: Vocabulary, ends: Int64s, found: int, state: Int64s) -> int:
    made, index, high, kept = np.empty(ends.size, np.int64), 0, 0, 0
    while index < found:
        if state[index] < 0:
            high = ends[index]
            made[kept] = high
            kept += 1
            index += 1
            continue
        low = high
        for part in words.parts[state[index]]:
            if part:
                high = low + part
                made[kept] = high
                kept += 1
        while index < found and ends[index] <= high:
            index += 1
    ends[:kept] = made[:kept]
    return kept


@nb.njit(cache=True, nogil=True, inline="always")
def exception(prints: U64s, low: int, high: int, words: Vocabulary) -> np.int64:
    """The slot of a word that is cut in a way of its own, or -1."""
    if high - low > words.longest:
        return np.int64(-1)
    one = part_print(prints, words.powers, low, high)
    at = place_of(words.slots, one)
    return at if words.slots[at] == one else np.int64(-1)


@nb.njit(cache=True, nogil=True, inline="always")
def prefix(codes: Codes, kinds: Codes, low: int, high: int) -> int:
    """The characters of the mark that the part begins with, or 0."""
    code = codes[low]
    if kinds[low] & PREFIX:
        return 1
    if code == ord("+"):
        return 0 if low + 1 < high and is_digit(codes[low + 1]) else 1
    if code == ord("."):
        run = 1
        while low + run < high and codes[low + run] == ord("."):
            run += 1
        return run if run > 1 else 0
    if code == ord("U") and low + 2 < high and codes[low + 1] == ord("S") and codes[low + 2] == ord("$"):
        return 3
    if (code == ord("C") or code == ord("A")) and low + 1 < high and codes[low + 1] == ord("$"):
        return 2
    return 0


@nb.njit(cache=True, nogil=True, inline="always")
def suffix(codes: Codes, kinds: Codes, prints: U64s, low: int, high: int, words: Vocabulary) -> int:
    """The characters of the longest mark, ending or unit that the part ends with, or 0."""
    if low >= high:
        return 0
    size = high - low
    code, kind = codes[high - 1], kinds[high - 1]
    if code == ord("."):
        return _final_dots(codes, kinds, low, high)
    if kind & SUFFIX:
        if code == ord("…") and size > 1 and codes[high - 2] == code:
            return 2
        return 1
    if code == ord("s") or code == ord("S"):
        if size > 1 and (codes[high - 2] == ord("'") or codes[high - 2] == ord("’")):
            return 2
    if code == ord("+"):
        return 1 if size > 1 and is_digit(codes[high - 2]) else 0
    if kind & CURRENCY:
        if not code == ord("$") or size < 3:
            return 1 if size > 1 and is_digit(codes[high - 2]) else 0
        if size > 3 and codes[high - 3] == ord("U") and codes[high - 2] == ord("S") and is_digit(codes[high - 4]):
            return 3
        if (codes[high - 2] == ord("C") or codes[high - 2] == ord("A")) and is_digit(codes[high - 3]):
            return 2
        return 1 if is_digit(codes[high - 2]) else 0
    for length in range(1, min(size - 1, LONGEST_UNIT) + 1):
        if is_digit(codes[high - length - 1]):
            one = part_print(prints, words.powers, high - length, high)
            return length if words.unit_slots[place_of(words.unit_slots, one)] == one else 0
    return 0


@nb.njit(cache=True, nogil=True, inline="always")
def _final_dots(codes: Codes, kinds: Codes, low: int, high: int) -> int:
    run = 1
    while run < high - low and codes[high - 1 - run] == ord("."):
        run += 1
    if run > 1:
        return run
    if high - low > 1 and kinds[high - 2] & BEFORE_DOT:
        return 1
    if high - low > 2:
        if kinds[high - 2] & UPPER and kinds[high - 3] & UPPER:
            return 1
        degree = codes[high - 2]
        if codes[high - 3] == ord("°") and (degree == ord("F") or degree == ord("C") or degree == ord("K")):
            return 1
    return 0


@nb.njit(cache=True, nogil=True, inline="always")
def _cut_middle(
    codes: Codes, kinds: Codes, prints: U64s, low: int, high: int, words: Vocabulary, ends: Int64s, found: int
) -> int:
    """Cut what is left between the marks: an exception, a URL, or words with joints."""
    slot = exception(prints, low, high, words)
    if slot >= 0:
        for part in range(PARTS):
            if words.parts[slot, part]:
                ends[found] = low + words.parts[slot, part]
                found += 1
        return found
    if is_url(codes, kinds, low, high):
        ends[found] = high
        return found + 1
    start, at = low, low
    while at < high:
        if kinds[at] & WORD and not kinds[at] & SYMBOL:
            at += 1
            continue
        length = _joint(codes, kinds, at, low, high)
        if length == 0:
            at += 1
            continue
        if at != low:  # a joint at the very beginning stays with what follows
            if at != start:
                ends[found] = at
                found += 1
            ends[found] = at + length
            found += 1
            start = at + length
        at += length
    if start < high:
        ends[found] = high
        found += 1
    return found


@nb.njit(cache=True, nogil=True, inline="always")
def _joint(codes: Codes, kinds: Codes, at: int, low: int, high: int) -> int:
    """The characters of the mark at `at` that parts two words, or 0."""
    code, kind = codes[at], kinds[at]
    if code == ord("."):
        run = 1
        while at + run < high and codes[at + run] == code:
            run += 1
        if run > 1:
            return run
        inside = low < at < high - 1
        return 1 if inside and kinds[at - 1] & (LOWER | QUOTE) and kinds[at + 1] & (UPPER | QUOTE) else 0
    if kind & SYMBOL or code == ord("…"):
        return 1
    if at == low or at + 1 == high:
        return 0
    if is_digit(codes[at - 1]) and (code == ord("+") or code == ord("-") or code == ord("*") or code == ord("^")):
        if is_digit(codes[at + 1]) or codes[at + 1] == ord("-"):
            return 1
    if code == ord(","):
        return 1 if kinds[at - 1] & LETTER and kinds[at + 1] & LETTER else 0
    if not (kinds[at - 1] & LETTER or is_digit(codes[at - 1])):
        return 0
    if code == ord(":") or code == ord("<") or code == ord(">") or code == ord("=") or code == ord("/"):
        return 1 if kinds[at + 1] & LETTER else 0
    if code == ord("-") or code == ord("–") or code == ord("—") or code == ord("~"):
        length = 1
        most = 3 if code == ord("-") else 2 if code == ord("—") else 1
        while length < most and at + length < high and codes[at + length] == code:
            length += 1
        return length if at + length < high and kinds[at + length] & LETTER else 0
    return 0
