"""Conditions on a row's columns, as `when:` and `holdout:` write them.

    split == "train" and stars >= 4 and not country in ["DE", "FR"]
    `review text` is not null or stars < other_stars

Columns are bare names, or any name between backticks; literals are "text", numbers, true and
false. A comparison with a missing cell is false, and `not` turns that into true; `is null` asks
for missing cells by name. Text compares with dates and times as `"2024-01-31"`.

The parser is our own: there is no call, no attribute and no arithmetic to misuse, and its
length and depth are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from curate.condition import COMPARE, MIRROR, Bools, Both, Compare, ComparePair, Either, IsNull, IsTrue, Literal, Node, Not, OneOf
from curate.errors import RequestError, did_you_mean

MAX_LENGTH = 10_000
MAX_DEPTH = 50
_WORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false"})
_HINTS = {"=": "write `==`", "&": "write `and`", "|": "write `or`", "!": "write `not` or `!=`", "~": "write `not`"}


@dataclass(frozen=True)
class Expression:
    """A parsed condition. `columns` are the columns it reads, in order of first use."""

    text: str
    root: Node
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def mask(self, table: pa.Table) -> Bools:
        """True for the rows that meet the condition.

        Raises `RequestError` for a column the table does not have and for a comparison its
        type does not allow; both also show on an empty table.
        """
        for column in self.columns:
            if column not in table.column_names:
                raise RequestError(
                    f"`{self.text}` names the column `{column}`, which the data does not have",
                    hint=did_you_mean(column, table.column_names),
                )
        return self.root.mask(table)

    def check_against(self, schema: pa.Schema, place: str = "") -> None:
        """Raise `RequestError`, before any row is read, where the condition does not fit the columns."""
        try:
            self.mask(schema.empty_table())
        except RequestError as err:
            err.place = err.place or place
            raise


def parse(text: str) -> Expression:
    """The condition a text writes; `RequestError` says at which character it goes wrong."""
    if not isinstance(text, str):
        raise RequestError(f"a condition is text, not {text!r}", hint='such as: split == "train"')
    if len(text) > MAX_LENGTH:
        raise RequestError(f"the condition has {len(text):,} characters; at most {MAX_LENGTH:,} are read")
    return _Parser(text).parse()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


_TOKENS = re.compile(
    r"""\s*(?:
      (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w))
    | (?P<quoted>`[^`]+`)
    | (?P<name>[^\W\d]\w*)
    | (?P<sign>==|!=|<=|>=|<|>|\(|\)|\[|\]|,)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class _Parser:
    """Recursive descent: or, and, not, comparison."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._tokens())
        self.next = 0
        self.columns: dict[str, None] = {}

    def parse(self) -> Expression:
        root = self._either(0)
        if self._peek().kind != "end":
            self._fail(self._peek(), "expected `and`, `or` or the end")
        return Expression(self.text, root, tuple(self.columns))

    def _tokens(self) -> Iterator[_Token]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            found = _TOKENS.match(self.text, at)
            if found is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                sign = self.text[at]
                hint = _HINTS.get(sign, "a text or a backticked name is not closed" if sign in "\"'`" else "")
                self._fail(_Token("sign", sign, at), "is not understood", hint)
            kind = str(found.lastgroup)
            yield _Token(kind, found[kind], found.start(kind))
            at = found.end()
        yield _Token("end", "", end)

    def _either(self, depth: int) -> Node:
        parts = [self._both(depth)]
        while self._take("or"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self, depth: int) -> Node:
        parts = [self._not(depth)]
        while self._take("and"):
            parts.append(self._not(depth))
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _not(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self._fail(self._peek(), f"is nested more than {MAX_DEPTH} deep")
        if self._take("not"):
            return Not(self._not(depth + 1))
        if self._take("("):
            inside = self._either(depth + 1)
            self._expect(")")
            return inside
        return self._comparison()

    def _comparison(self) -> Node:
        token = self._peek()
        column, literal = self._operand()
        if column is None:
            sign = self._pop()
            if sign.text not in COMPARE:
                self._fail(sign, "expected a comparison such as `==`")
            other = self._column(self._pop())
            assert literal is not None
            return Compare(other, MIRROR[sign.text], literal)
        if self._take("is"):
            negated = self._take("not")
            self._expect("null")
            return Not(IsNull(column)) if negated else IsNull(column)
        if self._take("not"):
            self._expect("in")
            return Not(OneOf(column, self._list()))
        if self._take("in"):
            return OneOf(column, self._list())
        if self._peek().text in COMPARE and self._peek().kind == "sign":
            word = self._pop().text
            other_column, value = self._operand(column)
            if other_column is not None:
                return ComparePair(column, word, other_column)
            assert value is not None
            return Compare(column, word, value)
        if token.kind == "name" and self._peek().kind in ("name", "quoted", "text", "number") and self._peek().text not in _WORDS:
            self._fail(self._peek(), "expected a comparison such as `==`", "names with spaces stand between backticks")
        return IsTrue(column)

    def _operand(self, against: str = "") -> tuple[str | None, Literal | None]:
        token = self._pop()
        if token.text == "null" and token.kind == "name":
            self._fail(token, "is not a value", f"write `{against or 'COLUMN'} is null`")
        if token.kind in ("text", "number") or (token.kind == "name" and token.text in ("true", "false")):
            return None, self._literal(token)
        return self._column(token), None

    def _list(self) -> tuple[Literal, ...]:
        self._expect("[")
        out: list[Literal] = []
        while not self._take("]"):
            token = self._pop()
            if token.text == "null" and token.kind == "name":
                self._fail(token, "is not a value", "add `or COLUMN is null`")
            out.append(self._literal(token))
            if self._peek().text != "]":
                self._expect(",")
        return tuple(out)

    def _column(self, token: _Token) -> str:
        if token.kind == "quoted":
            name = token.text[1:-1]
        elif token.kind == "name" and token.text not in _WORDS:
            name = token.text
        else:
            hint = f"a column called `{token.text}` stands between backticks" if token.kind == "name" else ""
            self._fail(token, "expected a column's name", hint)
        self.columns.setdefault(name)
        return name

    def _literal(self, token: _Token) -> Literal:
        if token.kind == "text":
            return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token.text[1:-1], flags=re.DOTALL)
        if token.kind == "number" and len(token.text) <= 40:
            number = float(token.text)
            if abs(number) == float("inf"):
                self._fail(token, "is too large a number")
            return int(token.text) if token.text.lstrip("-").isdigit() else number
        if token.kind == "name" and token.text in ("true", "false"):
            return token.text == "true"
        self._fail(token, "expected text, a number, true or false", 'text stands between quotes, such as "DE"')

    def _peek(self) -> _Token:
        return self.tokens[self.next]

    def _pop(self) -> _Token:
        token = self.tokens[self.next]
        self.next = min(self.next + 1, len(self.tokens) - 1)
        return token

    def _take(self, word: str) -> bool:
        token = self._peek()
        if token.text == word and token.kind in ("name", "sign"):
            self.next += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self._fail(self._peek(), f"expected `{word}`")

    def _fail(self, token: _Token, problem: str, hint: str = "") -> NoReturn:
        message = f"`{token.text}` {problem}"
        if problem.startswith("expected"):
            message = f"got `{token.text}`, {problem}" if token.kind != "end" else f"the condition ends early: {problem}"
        shown = self.text if len(self.text) <= 80 else self.text[:77] + "..."
        raise RequestError(f"{message}, at character {token.at + 1} of `{shown}`", hint=hint)
