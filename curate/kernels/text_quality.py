"""The numbers of `text_quality`: what is counted of every text of a column, in three passes over its bytes.

The first takes a text apart into tokens, and into lines as `str.splitlines` sees them; the other two
(`curate.kernels.repeats`) find what comes again among lines, paragraphs and runs of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.english import (
    ALPHABETIC,
    LETTER,
    MARK,
    PREFIX,
    PUNCTUATION,
    SENTENCE_END,
    SPACE,
    SPACELESS,
    SUFFIX,
    kinds,
)
from curate.kernels.phrases import (
    CITATION,
    CURLY,
    JAVASCRIPT,
    LOREM,
    POLICY,
    find_phrases,
    has_ellipsis,
    is_finished,
    without_citations,
)
from curate.kernels.reader import MOST_TOKENS, Pad, Reader, StopWords, make_pad, read_only
from curate.kernels.repeats import NEWLINE, RETURN, LineNumbers, count_filled, mix, read_grams, read_lines
from curate.kernels.tokens import (
    BASE,
    LONGEST,
    Vocabulary,
    cut,
    exception,
    part_print,
    place_of,
    print_of,
    slots_for,
    vocabulary,
)
from curate.kernels.utf8 import character_at, is_line_break, kind_of

Bytes = npt.NDArray[np.uint8]
Kinds = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]
U64s = npt.NDArray[np.uint64]

LONG_WORD, FEW_WORDS = 1000, 3
"""characters of a word that C4 takes for none, and words of a line that it takes for one"""

WORD_COUNTS = (
    *("characters", "tokens", "words", "spaced_words", "spaced_characters", "hashes", "ellipses", "alphabetic", "stop_words"),
    *("split_lines", "bullet_lines", "ellipsis_lines", "full_lines", "kept_lines", "sentences", "unfinished", "few", "long"),
    *("javascript", "policy", "lorem", "curly", "grams", "gram_characters"),
)
(CHARACTERS, TOKENS, WORDS, SPACED_WORDS, SPACED_CHARACTERS, HASHES, ELLIPSES, ALPHABETICS, STOP_WORDS) = range(9)
(SPLIT_LINES, BULLETS, ELLIPSIS_LINES, FULL_LINES, KEPT_LINES, SENTENCES, UNFINISHED, FEW, LONG) = range(9, 18)
(JAVASCRIPTS, POLICIES, LOREMS, CURLIES, GRAMS, GRAM_CHARACTERS, ALL_COUNTS) = range(18, 25)
"""places in a tally of a text"""
(FIRST, LAST, RUNS, OPEN, BULLET, HAS_LONG, ENDED, STARTED, DOTS, SPACELESS_BEFORE, ALL_MARKS) = range(11)
"""places in what is known of the line being read: its first and last byte that are no whitespace, its words, …"""


def count_texts(text: pa.LargeStringArray, stop_words: Sequence[str]) -> dict[str, Int64s]:
    """Each count by name, one number a row; a null counts as an empty text.

    Cost: three passes, and up to 120 MB of scratch memory for a text of a million tokens and more.
    """
    rows = len(text)
    words, lines, grams = (np.zeros((rows, size), np.int64) for size in (ALL_COUNTS, len(LineNumbers._fields), 11))
    if rows:
        offsets = read_only(text.buffers()[1], np.int64)[text.offset : text.offset + rows + 1]
        data = read_only(text.buffers()[2], np.uint8)
        stops = slots_for([print_of(word) for word in stop_words])
        known = StopWords(stops, np.full(len(stops), -1, np.int64), max(map(len, stop_words), default=0))
        pad = make_pad(int(np.diff(offsets).max()))
        _count_texts(data, offsets, kinds(), vocabulary(), known, pad, words, lines, grams)
    made = dict(zip(WORD_COUNTS, words.T, strict=True)) | dict(zip(LineNumbers._fields, lines.T, strict=True))
    return made | {f"gram_{size}": grams[:, size] for size in range(2, 11)}


@nb.njit(cache=True, nogil=True)
def _count_texts(
    data: Bytes,
    offsets: Int64s,
    table: Kinds,
    words: Vocabulary,
    stops: StopWords,
    pad: Pad,
    word_counts: Int64s,
    line_counts: Int64s,
    gram_counts: Int64s,
) -> None:
    line, lone = np.zeros(ALL_MARKS, np.int64), np.zeros(ALL_COUNTS, np.int64)
    for row in range(offsets.size - 1):
        start, stop = offsets[row], offsets[row + 1]
        tally = word_counts[row]
        _read_words(data, start, stop, Reader(table, words, stops, pad, tally, line, row), lone)
        _count_lines(data, start, stop, table, pad.slots, line_counts[row])
        read_grams(
            pad.marks, pad.lengths, pad.joined, tally[GRAMS], pad.slots, pad.counts, pad.firsts, pad.grams, gram_counts[row]
        )


@nb.njit(cache=True, nogil=True)
def _count_lines(data: Bytes, start: int, stop: int, table: Kinds, slots: U64s, out: Int64s) -> None:
    entries, size = count_filled(data, start, stop), slots.size
    while size < 2 * entries:
        size *= 2
    found = read_lines(data, start, stop, table, slots if size == slots.size else np.empty(size, np.uint64), entries)
    for index, number in enumerate(found):
        out[index] = number


@nb.njit(cache=True, nogil=True)
def _read_words(data: Bytes, start: int, stop: int, r: Reader, lone: Int64s) -> None:
    """Add up what is asked of tokens and of lines. A return before a newline belongs to it."""
    tally, line = r.tally, r.line
    at = start
    line[:] = 0
    while at < stop:
        if data[at] != NEWLINE and data[at] != RETURN:
            at = _read_line(data, at, stop, r)
        first = at
        while at < stop and data[at] == RETURN:
            at += 1
        breaks = at - first  # returns are line breaks, unless a newline follows
        if at < stop and (breaks == 0 or data[at] == NEWLINE):
            at += character_at(data, at, stop)[1]
            breaks = 1
            tally[CHARACTERS] += 1
        else:
            tally[CHARACTERS] += breaks
        for _ in range(breaks):
            if line[RUNS]:
                _end_line(data, r, lone)
            tally[SPLIT_LINES] += 1
            line[OPEN] = 0
    if line[RUNS]:
        _end_line(data, r, lone)
    tally[SPLIT_LINES] += line[OPEN]
    if tally[TOKENS] <= MOST_TOKENS:
        tally[GRAM_CHARACTERS] = tally[CHARACTERS]


@nb.njit(cache=True, nogil=True)
def _read_line(data: Bytes, start: int, stop: int, r: Reader) -> int:
    """Take in the characters from `start` to the next line break; where that is.

    A row below zero: only the sentences of the line are counted.
    """
    pad, words = r.pad, r.words
    table, tally, line, codes, kinds_, prints = r.table, r.tally, r.line, pad.codes, pad.kinds, pad.prints
    ends, tails, marks, lengths, joined = pad.ends, pad.tails, pad.marks, pad.lengths, pad.joined
    slots, seen, powers = r.stops.slots, r.stops.seen, words.powers
    longest, row = r.stops.longest, r.row
    at, length, size, some, all_, value = start, 0, 0, np.uint32(0), ~np.uint32(0), np.uint64(0)
    while True:
        kind, width, code = np.uint32(SPACE), 0, np.uint32(0)
        if at < stop:
            code, width = character_at(data, at, stop)
            kind = kind_of(table, code)
        space = (kind & SPACE) != 0
        if not space:
            if length == 0:
                _start_run(data, at, line, code)
            at += width
            length += 1
            codes[size], kinds_[size] = code, kind
            some |= kind
            all_ &= kind
            size += 1
            value = value * BASE + np.uint64(code) + np.uint64(1)
            prints[size] = value
        if size == LONGEST or (space and size):
            tally[CHARACTERS] += size
            if some & MARK:
                _count_symbols(codes, size, tally, line)
            else:
                line[DOTS] = 0
            if all_ & LETTER and not some & (PREFIX | SUFFIX) and exception(prints, 0, size, words) < 0:
                ends[0] = size  # nothing but letters, and no exception: most pieces
                found = 1
            else:
                found = cut(codes, kinds_, prints, size, words, ends, tails)
            if some & SPACELESS:
                found = _cut_letters(kinds_, ends, found, tails)
            low = 0
            for index in range(found):
                high = ends[index]
                any_, every = some, all_
                if found > 1:
                    any_, every = np.uint32(0), ~np.uint32(0)
                    for place in range(low, high):
                        any_ |= kinds_[place]
                        every &= kinds_[place]
                _read_mark(line, (every & PUNCTUATION) != 0, high - low == 1 and (every & SENTENCE_END) != 0)
                if row >= 0:
                    one = part_print(prints, powers, low, high)
                    _count_token(high - low, any_, every, tally)
                    if high - low <= longest:
                        slot = place_of(slots, one)
                        if slots[slot] == one and seen[slot] != row:
                            seen[slot] = row
                            tally[STOP_WORDS] += 1
                    _keep_token(one, high - low, every, tally, line, marks, lengths, joined)
                low = high
            size, some, all_, value = 0, np.uint32(0), ~np.uint32(0), np.uint64(0)
        if space:
            if length:
                line[DOTS] = 0
                line[RUNS] += 1
                line[LAST] = at
                line[HAS_LONG] |= length > LONG_WORD
                length = 0
            if at == stop or is_line_break(code):
                return at
            tally[CHARACTERS] += 1
            line[OPEN] = 1
            at += width


@nb.njit(cache=True, nogil=True, inline="always")
def _start_run(data: Bytes, at: int, line: Int64s, code: np.uint32) -> None:
    """The first character of a run without whitespace; before it, other whitespace than one space is a token."""
    line[OPEN] = 1
    if line[RUNS] == 0:
        line[FIRST] = at
        line[BULLET] = code == ord("•") or code == ord("-")
    elif at - line[LAST] != 1 or data[at - 1] != 0x20:
        _read_mark(line, False, False)


@nb.njit(cache=True, nogil=True, inline="always")
def _count_symbols(codes: Kinds, size: int, tally: Int64s, line: Int64s) -> None:
    """`#`, `…` and each three dots in a row."""
    for place in range(size):
        code = codes[place]
        tally[HASHES] += code == ord("#")
        tally[ELLIPSES] += code == ord("…")
        line[DOTS] = line[DOTS] + 1 if code == ord(".") else 0
        if line[DOTS] == 3:
            tally[ELLIPSES] += 1
            line[DOTS] = 0


@nb.njit(cache=True, nogil=True)
def _cut_letters(kinds_: Kinds, ends: Int64s, found: int, tails: Int64s) -> int:
    """Make each letter of a script without spaces a token; how many tokens there are."""
    low, made = 0, 0
    for index in range(found):
        for place in range(low, ends[index]):
            last = place + 1 == ends[index]
            if last or kinds_[place] & SPACELESS or kinds_[place + 1] & SPACELESS:
                tails[made] = place + 1
                made += 1
        low = ends[index]
    for index in range(made):
        ends[index] = tails[index]
    return made


@nb.njit(cache=True, nogil=True, inline="always")
def _count_token(length: int, some: np.uint32, every: np.uint32, tally: Int64s) -> None:
    tally[TOKENS] += 1
    tally[ALPHABETICS] += (some & ALPHABETIC) != 0
    if not every & MARK:
        tally[WORDS] += 1
        if not every & SPACELESS:
            tally[SPACED_WORDS] += 1
            tally[SPACED_CHARACTERS] += length


@nb.njit(cache=True, nogil=True, inline="always")
def _keep_token(
    one: np.uint64, length: int, every: np.uint32, tally: Int64s, line: Int64s, marks: U64s, lengths: Int64s, joined: Int64s
) -> None:
    """Remember a token for the search of repeated runs."""
    at = tally[TOKENS] - 1
    if at < MOST_TOKENS:
        spaceless = np.int64((every & SPACELESS) != 0)
        marks[at] = mix(one)
        lengths[at + 1] = lengths[at] + length
        if at:
            joined[at] = joined[at - 1] + lengths[at] - lengths[at - 1] + 1 - (spaceless & line[SPACELESS_BEFORE])
        line[SPACELESS_BEFORE] = spaceless
        tally[GRAMS] = at + 1
        tally[GRAM_CHARACTERS] = tally[CHARACTERS]


@nb.njit(cache=True, nogil=True, inline="always")
def _read_mark(line: Int64s, is_mark: bool, is_end: bool) -> None:
    """Another token of the line: what follows an end and is no mark starts a sentence."""
    if line[ENDED] and not is_mark and not is_end:
        line[STARTED] += 1
        line[ENDED] = 0
    elif is_end:
        line[ENDED] = 1


@nb.njit(cache=True, nogil=True)
def _end_line(data: Bytes, r: Reader, lone: Int64s) -> None:
    """Judge the line that was read, as Gopher and C4 do, and begin another."""
    line, tally = r.line, r.tally
    spaceless = line[SPACELESS_BEFORE]
    first, last = line[FIRST], line[LAST]
    few, long = line[RUNS] < FEW_WORDS, line[HAS_LONG] > 0
    tally[FULL_LINES] += 1
    tally[BULLETS] += line[BULLET]
    tally[ELLIPSIS_LINES] += has_ellipsis(data, first, last)
    held = find_phrases(data, first, last)
    finished, sentences = is_finished(data, first, last), line[STARTED] + 1
    if held & CITATION:
        size = without_citations(data, first, last, r.pad.line)
        held = find_phrases(r.pad.line_again, size - size, size)  # a literal 0 would compile it once more
        finished = is_finished(r.pad.line_again, 0, size)
        sentences = _sentences(size, Reader(r.table, r.words, r.stops, r.pad, lone, line, -1 - r.row)) if finished else 0
    tally[FEW] += few
    tally[LONG] += long
    tally[UNFINISHED] += not finished
    tally[JAVASCRIPTS] += (held & JAVASCRIPT) > 0
    tally[POLICIES] += (held & POLICY) > 0
    if finished and not few and not long:
        tally[LOREMS] += (held & LOREM) > 0
        tally[CURLIES] += (held & (CURLY | JAVASCRIPT)) == CURLY
        if not held & (JAVASCRIPT | CURLY | LOREM | POLICY):
            tally[KEPT_LINES] += 1
            tally[SENTENCES] += sentences
    line[:] = 0
    line[OPEN], line[SPACELESS_BEFORE] = 1, spaceless


@nb.njit(cache=True, nogil=True)
def _sentences(size: int, r: Reader) -> int:
    """The sentences of the line on the pad."""
    r.line[:] = 0
    at = size - size  # a literal 0 would compile `_read_line` once more
    while at < size:
        at = _read_line(r.pad.line_again, at, size, r) + 1
    return int(r.line[STARTED] + 1)
