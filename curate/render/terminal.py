"""The console, and what a run says at its end: the funnel, the reasons, the costs, the gate.

Everything here returns rich renderables built from plain text: markup is never parsed, and row
texts and labels pass through `safe`. On anything but a terminal the same lines come without
colour.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from curate.disparity import SOURCES
from curate.render.curve import missed
from curate.render.words import count, number, percent, plural, safe, seconds, size

PLAIN_WIDTH = 110
_BAR_WIDTH = 16
_LEAST_SAMPLE = 30
"""pairs of which none was missed say too little for a line of the terminal where they are fewer"""
_MARKS = {
    "passed": ("yes", "green"),
    "warned": ("warn", "yellow"),
    "failed": ("NO", "bold red"),
    "not_evaluated": ("NO", "bold red"),
}


def console_on(stream: IO[str] | None = None) -> Console:
    """A console for human text, on stderr unless another stream is given."""
    stream = stream or sys.stderr
    width = None if stream.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width, soft_wrap=False)


def show(console: Console, text: RenderableType) -> None:
    """Print a renderable; where nobody looks at a terminal, without the blanks at the ends of lines."""
    if console.is_terminal:
        console.print(text)
        return
    with console.capture() as capture:
        console.print(text)
    console.file.write("\n".join(line.rstrip() for line in capture.get().split("\n")))
    console.file.flush()


def summary(report: Mapping[str, Any], gate: Mapping[str, Any] | None = None, out: object = "") -> RenderableType:
    """A finished run on one screen."""
    parts: list[RenderableType] = [_headline(report), Text(), _funnel(report)]
    parts += [part for part in (_reasons(report), _samples(report), _quarantine(report), _notes(report)) if part is not None]
    parts.append(_costs(report.get("costs", {}), report["rows"]["input"]))
    if gate is not None:
        parts += [Text(), verdict(gate)]
    if out:
        parts += [Text(), _where(out, report)]
    return Group(*parts)


def verdict(gate: Mapping[str, Any]) -> RenderableType:
    """The gate's answer and each of its limits."""
    checks = gate["checks"]
    bad = sum(check["outcome"] in ("failed", "not_evaluated") for check in checks)
    head = Text("Gate: ")
    if gate["passed"]:
        warned = sum(check["outcome"] == "warned" for check in checks)
        head.append("yes", "bold green")
        head.append(f", with {plural(warned, 'warning')}" if warned else "")
    else:
        head.append("NO", "bold red")
        head.append(f": {bad} of {plural(len(checks), 'limit')}")
    table = _table("", "metric", "value", "limit", "why")
    for check in checks:
        mark, style = _MARKS[check["outcome"]]
        why = check["reason"] if check["outcome"] != "not_evaluated" else f"not evaluated: {check['reason']}"
        table.add_row(Text(mark, style), safe(check["metric"]), _value(check), _limits(check), safe(why))
    return Group(head, Padding(table, (0, 0, 0, 2)))


def _headline(report: Mapping[str, Any]) -> Text:
    rows = report["rows"]
    text = Text(f"{safe(report['name'])}: ", style="bold")
    text.append(f"{count(rows['input'])} rows in, ")
    text.append(f"{count(rows['kept'])} kept", "green")
    text.append(f" ({percent(report.get('kept_share'))}), ")
    text.append(f"{count(rows['rejected'])} rejected", "yellow" if rows["rejected"] else "")
    text.append(f" ({percent(report.get('rejected_share'))}), ")
    text.append(f"{count(rows['quarantined'])} quarantined", "red" if rows["quarantined"] else "")
    if report.get("status") != "complete":
        text.append(f"  [{safe(report.get('status'))}]", "bold red")
    return text


def _funnel(report: Mapping[str, Any]) -> RenderableType:
    rows = report["rows"]
    total = rows["input"]
    table = _table("stage", "rows in>", "rejected>", "of input>", "missing>", "left>", "")
    left = total - rows["quarantined"]
    table.add_row(
        "(read)",
        count(total),
        count(rows["quarantined"]),
        percent(_share(rows["quarantined"], total)),
        "",
        count(left),
        _bar(left, total),
    )
    for name, stage in report.get("stages", {}).items():
        if stage.get("status") != "evaluated":
            table.add_row(
                safe(name),
                count(stage.get("rows_in")),
                Text("not evaluated", "bold red"),
                "",
                "",
                "",
                safe(stage.get("reason") or "", 60),
            )
            continue
        missing = count(stage["missing"]) if stage.get("missing") else ""
        share = percent(stage.get("rejected_share"))
        table.add_row(
            safe(name),
            count(stage["rows_in"]),
            count(stage["rejected"]),
            share,
            missing,
            count(stage["kept"]),
            _bar(stage["kept"], total),
        )
    return Padding(table, (0, 0, 0, 2))


def _bar(part: int, whole: int) -> Text:
    filled = round(_BAR_WIDTH * part / whole) if whole else 0
    filled = max(filled, 1) if part else 0
    return Text(no_wrap=True, overflow="crop").append("#" * filled, "green").append("." * (_BAR_WIDTH - filled), "dim")


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _reasons(report: Mapping[str, Any], most: int = 8) -> RenderableType | None:
    found = [
        (name, reason)
        for name, stage in report.get("stages", {}).items()
        for reason in stage.get("reasons") or ()
        if reason["rows"]
    ]
    if not found:
        return None
    found.sort(key=lambda item: -item[1]["rows"])
    table = _table("rows>", "why rejected")
    for name, reason in found[:most]:
        table.add_row(count(reason["rows"]), rule_words(reason, name))
    if len(found) > most:
        rest = found[most:]
        table.add_row(
            count(sum(reason["rows"] for _, reason in rest)), f"for {plural(len(rest), 'other reason')} (see report.json)"
        )
    return Group(Text(), Padding(table, (0, 0, 0, 2)))


def rule_words(rule: Mapping[str, Any], stage: str = "") -> str:
    """A rule as a phrase: `near_dup.similarity at least 0.8`."""
    column = f"{stage}.{rule['column']}" if stage else str(rule["column"])
    word = str(rule["rule"])
    if word == "is_true" or rule.get("limit") is None:
        return safe(f"{column} {word.replace('_', ' ')}")
    return safe(f"{column} {word.replace('_', ' ')} {number(rule['limit'])}")


def _quarantine(report: Mapping[str, Any], most: int = 3) -> RenderableType | None:
    details = report.get("quarantine") or {}
    reasons = details.get("reasons") or {}
    if not reasons:
        return None
    lines = [Text(), Text("  Quarantined (could not be read):", "red")]
    for reason, rows in sorted(reasons.items(), key=lambda item: -item[1])[:most]:
        lines.append(Text(f"    {count(rows)}  {safe(reason, 90)}"))
    if len(reasons) > most:
        lines.append(Text(f"    and {plural(len(reasons) - most, 'other reason')} (see report.json)", "dim"))
    for example in (details.get("examples") or ())[:most]:
        place = f"line {count(example['line'])}" if example.get("line") else f"row {count(example.get('source_row'))}"
        lines.append(Text(f"      {safe(example['source_file'], 70)}, {place}: {safe(example['reason'], 70)}", "dim"))
    return Group(*lines)


def _notes(report: Mapping[str, Any]) -> RenderableType | None:
    notes = [f"cast: {safe(cast, 90)}" for cast in report.get("casts") or ()]
    if report.get("witness_rejected_later"):
        notes.append(f"{plural(report['witness_rejected_later'], 'witness row')} left at a later stage")
    lines = [Text(f"  note: {note}", "yellow") for note in notes[:5]]
    lines += [Text(f"  warning: {warning}", "bold yellow") for warning in _warnings(report)]
    return Group(Text(), *lines) if lines else None


def _warnings(report: Mapping[str, Any], most: int = 3) -> list[str]:
    """Groups that lose more rows than others, and what stages that saw the whole data warn of, a few of each."""
    uneven = [one["text"] for one in report.get("uneven") or () if one["column"] != SOURCES]
    return [safe(text, 400) for text in uneven[:most]] + [
        f"{safe(stage)}: {safe(warning, 400)}"
        for stage, entry in report.get("stages", {}).items()
        for warning in list((entry.get("detail") or {}).get("warnings") or ())[:most]
    ]


def _samples(report: Mapping[str, Any]) -> RenderableType | None:
    """A line for each stage whose sample of pairs says something: how many it missed."""
    found = {name: stage.get("detail") or {} for name, stage in report.get("stages", {}).items()}
    told = [(name, detail) for name, detail in found.items() if _says_something(detail.get("missed") or {})]
    return Group(Text(), *(Text(f"  {safe(name)}: {missed(detail)}") for name, detail in told)) if told else None


def _says_something(sample: Mapping[str, Any]) -> bool:
    return bool(sample.get("not_found")) or sample.get("sampled", 0) >= _LEAST_SAMPLE


def _costs(costs: Mapping[str, Any], rows: int) -> RenderableType:
    wall = costs.get("wall_s")
    text = Text("\n  ")
    text.append(f"{seconds(wall)}" + (f", {count(rows / wall)} rows/s" if wall else ""))
    text.append(f"; peak memory {size(costs.get('peak_memory_bytes'))}")
    text.append(f"; read {size(costs.get('bytes_read'))}, wrote {size(costs.get('bytes_written'))}")
    steps = {name: step.get("wall_s") or 0.0 for name, step in (costs.get("stages") or {}).items()}
    slow = sorted(steps.items(), key=lambda item: -item[1])[:3]
    if sum(steps.values()) > 0:
        text.append("\n  most time in " + ", ".join(f"{safe(name)} {seconds(wall_s)}" for name, wall_s in slow if wall_s > 0))
    return text


def _where(out: object, report: Mapping[str, Any]) -> Text:
    text = Text("Kept rows: ")
    text.append(f"{safe(out)}/kept", "bold cyan")
    text.append("\nReport: ")
    text.append(f"{safe(out)}/report.html", "bold cyan")
    if report["rows"]["rejected"]:
        text.append(f"\nAsk why a row was rejected: curate why {safe(out)} ROW-OR-ID", "dim")
    return text


def _value(check: Mapping[str, Any]) -> str:
    if check.get("baseline") is not None:
        return f"{number(check['value'])} (was {number(check['baseline'])})"
    return "" if check.get("value") is None else number(check["value"])


def _limits(check: Mapping[str, Any]) -> str:
    words = {"min": "min", "max": "max", "max_increase": "rise", "max_decrease": "fall"}
    return ", ".join(f"{word} {number(check[key])}" for key, word in words.items() if check.get(key) is not None)


def _table(*heads: str) -> Table:
    """A table without lines; a head that ends in `>` is aligned right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(heads))
    for head in heads:
        table.add_column(Text(head.rstrip(">")), justify="right" if head.endswith(">") else "left", overflow="fold")
    return table


def table_of(rows: Sequence[Mapping[str, Any]], heads: Sequence[str]) -> Table:
    """Rows of plain values under the named heads."""
    numeric = {head for head in heads if all(isinstance(row.get(head), int | float) or row.get(head) is None for row in rows)}
    table = _table(*(head + ">" if head in numeric else head for head in heads))
    for row in rows:
        table.add_row(*("" if row.get(head) is None else number(row[head]) for head in heads))
    return table
