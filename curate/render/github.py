"""What GitHub Actions shows of a run: a step summary in Markdown, and annotations.

Their limits: a step has at most 1 MiB of summary (more, and none is shown), and of each kind of
annotation the first 10 are shown and the rest dropped without a word. So the tables here are cut with
a line that says how much is left out, and the tenth annotation stands for all that follow.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curate.render.junit import limit_words
from curate.render.terminal import rule_words
from curate.render.words import count, number, percent, plural, safe, seconds, size

SUMMARY_BYTES = 1 << 20
ANNOTATIONS = 10
"""of each kind, in a step"""
MOST_ROWS = 100
"""of one table"""
_LONGEST_CELL = 200
_LONGEST_MESSAGE = 1_000
_MARKS = {"passed": "✅ yes", "warned": "⚠️ warning", "failed": "❌ **no**", "not_evaluated": "❌ **not evaluated**"}
_WORST_FIRST = ("failed", "not_evaluated", "warned", "passed")
_SPECIAL = re.compile(r"[!-/:-@\[-`{-~]")


def summary(report: Mapping[str, Any], gate: Mapping[str, Any] | None, out: str = "", room: int = SUMMARY_BYTES) -> str:
    """A run on one page of GitHub's Markdown, of at most `room` bytes; empty where not even the verdict fits.

    Every name and reason is written so that no character of it is Markdown, HTML or a mention.
    """
    parts = [_head(report, gate), _funnel(report)]
    parts += [] if gate is None else [_limits(gate)]
    parts += [_reasons(report), _foot(report, out)]
    page, used = "", 0
    for part in filter(None, parts):
        used += len(part.encode()) + 1
        if used > room:
            break
        page += part + "\n"
    return page


def annotate(gate: Mapping[str, Any], name: str = "") -> list[str]:
    """Workflow commands: an error for each limit that is a no, a warning for each one broken harmlessly; 10 of each kind."""
    called = {"error": ("failed", "not_evaluated"), "warning": ("warned",)}
    return [
        line
        for kind, outcomes in called.items()
        for line in _some(kind, [check for check in gate.get("checks") or () if check["outcome"] in outcomes], name)
    ]


def command(kind: str, title: str, message: str) -> str:
    """One workflow command, such as `::error title=...::...`, on one line whatever the texts hold."""
    text, head = safe(message, _LONGEST_MESSAGE, lines=True), safe(title, _LONGEST_CELL)
    return f"::{kind} title={_property(head)}::{_data(text)}"


def _some(kind: str, checks: Sequence[Mapping[str, Any]], name: str) -> Iterator[str]:
    title = f"curate gate: {name}" if name else "curate gate"
    shown = checks if len(checks) <= ANNOTATIONS else checks[: ANNOTATIONS - 1]
    for check in shown:
        said = "not evaluated: " if check["outcome"] == "not_evaluated" else ""
        limits = f" ({limit_words(check)})" if limit_words(check) else ""
        yield command(kind, title, f"{check['metric']}{limits}: {said}{check['reason']}")
    if rest := len(checks) - len(shown):
        yield command(kind, title, f"and {count(rest)} more: all of them are in gate.json and junit.xml of the run")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _head(report: Mapping[str, Any], gate: Mapping[str, Any] | None) -> str:
    rows = report.get("rows") or {}
    answer = "" if gate is None else (": the gate says yes" if gate["passed"] else ": the gate says NO")
    mark = "" if gate is None else ("✅ " if gate["passed"] else "❌ ")
    told = [f"{count(rows.get('input'))} rows in"]
    for verdict in ("kept", "rejected", "quarantined"):
        told.append(f"{count(rows.get(verdict))} {verdict} ({percent(report.get(f'{verdict}_share'))})")
    return f"### {mark}curate {_text(report.get('name'))}{answer}\n\n{', '.join(told)}.\n"


def _funnel(report: Mapping[str, Any]) -> str:
    stages = report.get("stages") or {}
    rows = [_stage(name, stage) for name, stage in itertools.islice(stages.items(), MOST_ROWS)]
    return _table(["stage", "rows in:", "rejected:", "of input:", "left:"], rows, len(stages))


def _stage(name: str, stage: Mapping[str, Any]) -> list[str]:
    if stage.get("status") == "evaluated":
        share = percent(stage.get("rejected_share"))
        return [_text(name), count(stage["rows_in"]), count(stage["rejected"]), share, count(stage["kept"])]
    return [_text(name), count(stage.get("rows_in")), f"not evaluated: {_text(stage.get('reason'))}", "", ""]


def _limits(gate: Mapping[str, Any]) -> str:
    """The limits, the broken ones first."""
    rows = [
        [
            _MARKS[check["outcome"]],
            _text(check["metric"]),
            _text(_value(check)),
            _text(limit_words(check)),
            _text(check["reason"]),
        ]
        for check in sorted(gate.get("checks") or (), key=lambda check: _WORST_FIRST.index(check["outcome"]))[:MOST_ROWS]
    ]
    told = ", ".join(f"{count(amount)} {word.replace('_', ' ')}" for word, amount in (gate.get("counts") or {}).items() if amount)
    total = len(gate.get("checks") or ())
    return f"**Gate**: {told}\n\n" + _table(["", "metric", "value:", "limit", "why"], rows, total)


def _value(check: Mapping[str, Any]) -> str:
    if check.get("value") is None:
        return ""
    was = "" if check.get("baseline") is None else f" (was {number(check['baseline'])})"
    return number(check["value"]) + was


def _reasons(report: Mapping[str, Any]) -> str:
    found = [
        (reason, name)
        for name, stage in (report.get("stages") or {}).items()
        for reason in stage.get("reasons") or ()
        if reason["rows"]
    ]
    found.sort(key=lambda one: -one[0]["rows"])
    rows = [[count(reason["rows"]), _text(rule_words(reason, name))] for reason, name in found[:MOST_ROWS]]
    return _table(["rows:", "why rejected"], rows, len(found))


def _foot(report: Mapping[str, Any], out: str) -> str:
    costs = report.get("costs") or {}
    told = f"{seconds(costs.get('wall_s'))}, peak memory {size(costs.get('peak_memory_bytes'))}."
    where = f" Run folder: {_text(out)}. Why a row went: {_text(f'curate why {out} ROW-OR-ID')}" if out else ""
    return f"<sub>{told}{where}</sub>\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> str:
    """The first rows of a table of `total`; a head that ends in `:` is aligned right."""
    if not rows:
        return ""
    lines = ["| " + " | ".join(head.rstrip(":") for head in heads) + " |"]
    lines.append("|" + "|".join("--:" if head.endswith(":") else "---" for head in heads) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    rest = total - len(rows)
    more = f"\nand {plural(rest, 'more line')}: see gate.json and report.json of the run\n" if rest else ""
    return "\n".join(lines) + "\n" + more


def _text(text: object) -> str:
    """Code, with every sign as a character reference: references are never Markdown, and nothing in code is a mention."""
    clean = safe("" if text is None else text, _LONGEST_CELL)
    if not clean.strip():
        return ""
    return "<code>" + _SPECIAL.sub(lambda sign: f"&#{ord(sign[0])};", clean) + "</code>"
