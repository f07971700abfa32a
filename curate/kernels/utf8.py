"""Characters out of UTF-8 bytes, and their kinds."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from curate.english import HAN, LAST_HAN, TABLE

Bytes = npt.NDArray[np.uint8]
Kinds = npt.NDArray[np.uint32]


@nb.njit(cache=True, nogil=True, inline="always")
def character_at(data: Bytes, place: int, stop: int) -> tuple[np.uint32, int]:
    """The code point at `place` and its bytes; what is cut short counts as a character of the bytes that are there."""
    lead = np.uint32(data[np.uint64(place)])
    if lead < 0x80:
        return lead, 1
    width = min(2 if lead < 0xE0 else 3 if lead < 0xF0 else 4, stop - place)
    code = lead & np.uint32(0x7F >> width)
    for index in range(1, width):
        code = code << np.uint32(6) | np.uint32(data[np.uint64(place + index)]) & np.uint32(0x3F)
    return code, width


@nb.njit(cache=True, nogil=True, inline="always")
def character_before(data: Bytes, place: int, start: int) -> tuple[np.uint32, int]:
    """The code point that ends at `place`, no sooner than `start`, and its bytes."""
    first = place - 1
    while first > start and data[first] & 0xC0 == 0x80:
        first -= 1
    return character_at(data, first, place)


@nb.njit(cache=True, nogil=True, inline="always")
def kind_of(table: Kinds, code: np.uint32) -> np.uint32:
    """The kinds of a code point (see `curate.english`)."""
    if code < TABLE:
        return np.uint32(table[code])
    return np.uint32(HAN) if code <= LAST_HAN else np.uint32(0)


@nb.njit(cache=True, nogil=True, inline="always")
def is_line_break(code: np.uint32) -> bool:
    """True for what `str.splitlines` parts lines at."""
    return bool(0x0A <= code <= 0x0D or 0x1C <= code <= 0x1E or code == 0x85 or code == 0x2028 or code == 0x2029)
