"""One line of JSON, read strictly: its row, or the reason why it is none.

Speed comes from orjson; strictness from what is asked beside it: no key twice, no number beyond
a double, no nesting deeper than 128. What the fast parser cannot say is read again with the
standard library, which keeps numbers as written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import orjson

from curate.source.infer import Huge, Number

MAX_DEPTH = 128
_RUN = 256
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_SPACED_COLON = re.compile(rb'"[ \t\r]+:')


class BadLineError(Exception):
    """A line that is no row, and why."""


def parse_lines(
    lines: list[bytes], spaced: bool, row_bytes: int
) -> tuple[list[dict[str, Any]], list[int], dict[int, str], list[int]]:
    """(rows, their line numbers, reasons of the unreadable lines, blank lines), lines counted from 0.

    `spaced` says that some key may have white space before its colon. Lines are tried in short
    runs, so that a bad one costs only its neighbours the quick way.
    """
    rows: list[dict[str, Any]] = []
    kept: list[int] = []
    lost: dict[int, str] = {}
    blank: list[int] = []
    for start in range(0, len(lines), _RUN):
        run = lines[start : start + _RUN]
        quick = _parse_run(run, spaced, row_bytes)
        if quick is not None:
            rows += quick
            kept += range(start, start + len(run))
            continue
        for index, line in enumerate(run, start):
            try:
                row = _parse_line(line, spaced, row_bytes)
            except BadLineError as bad:
                lost[index] = str(bad)
                continue
            if row is None:
                blank.append(index)
            else:
                rows.append(row)
                kept.append(index)
    return rows, kept, lost, blank


def _parse_run(lines: list[bytes], spaced: bool, row_bytes: int) -> list[dict[str, Any]] | None:
    """The rows of lines that are all faultless, else None."""
    try:
        rows = list(map(orjson.loads, lines))
    except orjson.JSONDecodeError:
        return None
    if set(map(type, rows)) != {dict} or max(map(len, lines)) > row_bytes:
        return None
    try:
        for line, row in zip(lines, rows, strict=True):
            if line.count(b'":') != len(row) or spaced or line.count(b"[") >= MAX_DEPTH:
                _refuse_depth(line)
                _refuse_twins(line, row)
    except BadLineError:
        return None
    return rows


def _parse_line(line: bytes, spaced: bool, row_bytes: int) -> dict[str, Any] | None:
    """The row of one line, None for a blank one; raises `BadLineError` with the reason why it is neither."""
    if len(line) > row_bytes:
        raise BadLineError(f"the row is longer than {row_bytes} bytes")
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as err:
        if "Not enough memory" in str(err):
            raise MemoryError(f"a row of {len(line)} bytes does not fit into memory") from err
        return _second_opinion(line, err) if line.strip() else None
    if type(row) is not dict:
        raise BadLineError(f"not a JSON object but {_kind(row)}")
    _refuse_depth(line)
    _refuse_twins(line, row)
    return row


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _refuse_twins(line: bytes, row: dict[str, Any]) -> None:
    """Raise where an object has a key twice.

    Every key ends in `":`, and so may pieces of text; a count equal to the number of keys
    therefore proves that all keys are different, unless white space or a backslash hides a colon.
    """
    colons = line.count(b'":') - line.count(b'\\":')
    if colons == _keys(row) and b'\\\\":' not in line and not has_spaced_colon(line):
        return
    json.loads(line, object_pairs_hook=_distinct, parse_int=Number, parse_float=Number)


def has_spaced_colon(data: bytes) -> bool:
    """True where white space may stand between a key and its colon; an escaped quote ends no key."""
    before = (data[max(found.start() - 2, 0) : found.start()] for found in _SPACED_COLON.finditer(data))
    return any(last[-1:] != b"\\" or last == b"\\\\" for last in before)


def _keys(value: Any) -> int:
    """How many keys all objects inside a value have together."""
    total, open_ = 0, [value]
    while open_:
        item = open_.pop()
        if type(item) is dict:
            total += len(item)
            open_ += item.values()
        elif type(item) is list:
            open_ += item
    return total


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise BadLineError(f"the key {json.dumps(key)} stands twice in one object")
        seen.add(key)


def _refuse_depth(line: bytes) -> None:
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for byte in _STRING.sub(b"", line):
        depth += (byte in b"[{") - (byte in b"]}")
        if depth > MAX_DEPTH:
            raise BadLineError(f"nested deeper than {MAX_DEPTH} levels")


def _second_opinion(line: bytes, err: orjson.JSONDecodeError) -> dict[str, Any]:
    """The row of a line whose only fault is a number beyond a double; else the reason why there is none."""
    try:
        line.decode()
    except UnicodeDecodeError as broken:
        raise BadLineError(f"invalid UTF-8 at byte {broken.start} of the row") from None
    message = str(err).split(": line 1 column")[0]
    if "infinity" not in message:
        if "depth" in message:
            raise BadLineError(f"nested deeper than {MAX_DEPTH} levels")
        if "surrogate" in message:
            raise BadLineError(f"a lone surrogate, which is no character (byte {err.pos} of the row)")
        raise BadLineError(f"not valid JSON: {message} (byte {err.pos} of the row)")
    _refuse_depth(line)
    try:
        row = exact(line, fitting)
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadLineError("a lone surrogate, which is no character") from None
    except ValueError as wrong:
        raise BadLineError(f"not valid JSON: {wrong}") from None
    if type(row) is not dict:
        raise BadLineError(f"not a JSON object but {_kind(row)}")
    json.loads(line, object_pairs_hook=_distinct, parse_int=Number)
    return row


def exact(line: bytes, number: Callable[[str], Any]) -> Any:
    """The value of a line that is valid JSON, each number made by `number` from its digits."""
    return json.loads(line, parse_int=number, parse_float=number, parse_constant=_no_constant)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON value")


def fitting(digits: str) -> Any:
    """A number as `int` or `float` where these hold it, else as it was written."""
    if digits.lstrip("-").isdigit():
        return int(digits) if len(digits) <= 20 and -(2**63) <= int(digits) < 2**64 else Huge(digits)
    value = float(digits)
    return value if abs(value) != float("inf") else Huge(digits)
