"""Why one row was kept or rejected, and what changed between two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from curate.render.highlight import Piece, compare
from curate.render.terminal import rule_words, table_of
from curate.render.words import count, number, safe, seconds, size

_MAX_WORDS = 600
"""words of a text that are compared and shown: some screens"""
_STYLE = {"kept": "green", "rejected": "yellow", "quarantined": "red"}


def why(answer: Mapping[str, Any]) -> RenderableType:
    """Every score, rule and limit of one row, and the row next to its witness."""
    parts: list[RenderableType] = [_head(answer)]
    if answer.get("stages"):
        parts += [Text(), Padding(_stages(answer["stages"]), (0, 0, 0, 2))]
    witness = answer.get("witness")
    row = answer.get("row") or {}
    if witness:
        other = witness.get("row", witness) or {}
        name = f"witness {_name(witness)}" if "row_id" in witness else "its witness"
        parts += [Text(), _side_by_side(row, other, f"row {_name(answer)}", name)]
    elif row:
        parts += [Text(), Padding(_fields(row), (0, 0, 0, 2))]
    return Group(*parts)


def _name(row: Mapping[str, Any]) -> str:
    own = f" ({safe(row['id'], 60)})" if row.get("id") not in (None, "") else ""
    where = safe(row["source"], 200) if row.get("source") else number(row.get("row_id"))
    return f"{where}{own}"


def _head(answer: Mapping[str, Any]) -> Text:
    text = Text(f"Row {_name(answer)} was ")
    text.append(str(answer["verdict"]), f"bold {_STYLE.get(answer['verdict'], '')}".strip())
    if answer["verdict"] == "rejected":
        text.append(f" by {safe(answer['stage'])}: {rule_words(answer)}")
        text.append(f" (its value: {number(answer.get('value'))})")
    elif answer.get("rule"):
        text.append(f": {safe(answer['rule'], 120)}")
    place = f"{safe(answer.get('source_file'), 200)}, row {number(answer.get('source_row'))}"
    return text.append(f"\n  from {place}", "dim")


def _stages(stages: list[Mapping[str, Any]]) -> RenderableType:
    lines: list[RenderableType] = []
    for stage in stages:
        title = Text(safe(stage["name"]), "bold")
        if stage.get("status") not in (None, "scored", "evaluated"):
            title.append(f"  {safe(stage['status'])}", "dim")
        lines.append(title)
        if stage.get("status") == "not asked":
            continue
        rules = stage.get("rules") or ()
        ruled = {rule.get("column") for rule in rules}
        scores = dict(stage.get("scores") or {})
        quiet = [column for column, value in scores.items() if value is False and column not in ruled]
        told = [column for column in scores if column not in quiet]
        wide = max([24, *(len(safe(column)) for column in told)])
        for column in told:
            lines.append(_score(column, scores[column], [rule for rule in rules if rule.get("column") == column], wide))
        if quiet:
            lines.append(Text(f"  false: {safe(', '.join(quiet))}", "dim"))
    return Group(*lines)


def _score(column: str, value: Any, rules: list[Mapping[str, Any]], wide: int) -> Text:
    line = Text(f"  {safe(column):<{wide}} {number(value):>12}")
    for rule in rules:
        limit = "" if rule["rule"] == "is_true" else f" {number(rule.get('limit'))}"
        fires = bool(rule.get("fires"))
        words = f"{safe(rule['rule']).replace('_', ' ')}{limit}: {'rejects' if fires else 'does not reject'}"
        line.append(f"   {words}", "bold yellow" if fires else "dim")
    return line


def _fields(row: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for column, value in row.items():
        table.add_row(Text(safe(column), "dim"), Text(safe(_shown(value), 2_000, lines=True)))
    return table


def _side_by_side(row: Mapping[str, Any], other: Mapping[str, Any], left: str, right: str) -> Table:
    """Two rows, column by column; words that differ stand between [- -] and {+ +}."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("", no_wrap=True, max_width=20)
    table.add_column(Text(left), ratio=1, overflow="fold")
    table.add_column(Text(right), ratio=1, overflow="fold")
    for column in [*row, *(name for name in other if name not in row)]:
        a, b = marked(_shown(row.get(column)), _shown(other.get(column)))
        table.add_row(Text(safe(column), "dim"), a, b)
    return table


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "(null)" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def marked(a: str, b: str) -> tuple[Text, Text]:
    """Two texts with the words that only one of them has marked, in signs and in colour."""
    found = compare(a, b, _MAX_WORDS)
    left = _marked(found.left, "[- -]", "bold red", len(a))
    right = _marked(found.right, "{+ +}", "bold green", len(b))
    if not found.compared:
        right.append(" (too unlike to compare word by word)", "dim")
    return left, right


def _marked(pieces: Sequence[Piece], signs: str, style: str, whole: int) -> Text:
    before, after = signs.split()
    text = Text()
    for piece in pieces:
        if piece.differs:
            text.append(safe(before + piece.text + after, lines=True), style)
        else:
            text.append(safe(piece.text, lines=True))
    if (rest := whole - sum(len(piece.text) for piece in pieces)) > 0:
        text.append(f" ... {count(rest)} characters more", "dim")
    return text


def diff(answer: Mapping[str, Any]) -> RenderableType:
    """What two runs decided differently."""
    rows = answer.get("rows") or {}
    text = Text()
    text.append(f"{count(rows.get('same'))} rows were decided alike, ")
    text.append(f"{count(rows.get('changed'))} differently", "bold yellow" if rows.get("changed") else "green")
    parts: list[RenderableType] = [text]
    moves = [{"rows": rows, "change": safe(change).replace("->", " -> ")} for change, rows in answer["transitions"].items()]
    numbers = [
        {"number": name, "before": pair["a"], "after": pair["b"]}
        for name, pair in (answer.get("report") or {}).items()
        if pair["a"] != pair["b"]
    ]
    examples = [
        {
            "row": number(one.get("row_id")),
            "id": one.get("id"),
            "before": _decision(one.get("a")),
            "after": _decision(one.get("b")),
        }
        for one in (answer.get("examples") or ())[:10]
    ]
    for listed in (moves, numbers, examples):
        if listed:
            parts += [Text(), Padding(table_of(listed, list(listed[0])), (0, 0, 0, 2))]
    return Group(*parts)


def _decision(given: Mapping[str, Any] | None) -> str:
    if not given:
        return "absent"
    if not given.get("stage"):
        return str(given["verdict"])
    reason = ".".join(filter(None, (given["stage"], given.get("column"))))
    witness = given.get("witness_id") or given.get("witness_row")
    like = "" if witness is None else f", like {witness}"
    return f"{given['verdict']}: {reason} {number(given.get('value'))}{like}"


def facts(value: Any) -> RenderableType:
    """Any plain data as indented lines: mappings by key, lists of mappings as tables."""
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        heads = list(dict.fromkeys(key for item in value for key in item))
        if all(not isinstance(item.get(head), Mapping | list) for item in value for head in heads):
            return table_of(value, heads)
    if isinstance(value, Mapping):
        lines: list[RenderableType] = []
        for key, inner in value.items():
            if not _is_short(inner):
                lines += [Text(f"{safe(key)}:"), Padding(facts(inner), (0, 0, 0, 2))]
            elif inner not in ({}, []):
                lines.append(Text(f"{safe(key)}: {_inline(key, inner)}"))
        return Group(*lines)
    if isinstance(value, list):
        return Group(*(Text(f"- {_inline('', item)}") if _is_short(item) else facts(item) for item in value))
    return Text(number(value))


def _is_short(value: Any) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return not any(isinstance(item, Mapping | list) for item in inner)


def _inline(key: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_label(name)} {_fact(name, item)}" for name, item in value.items())
    return ", ".join(_fact(key, item) for item in value) if isinstance(value, list) else _fact(key, value)


def _label(name: str) -> str:
    return safe(name).removesuffix("_bytes").removesuffix("_s").replace("_", " ")


def _fact(key: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "bytes" in str(key):
            return size(value)
        if str(key).endswith("_s"):
            return seconds(value)
    return "none" if value is None else number(value)
