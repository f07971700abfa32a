"""What to do next, read off the numbers of a run: the worst first, each with the command to try."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from curate.render.visible import name
from curate.render.words import percent, plural

Level = Literal["act", "look", "note"]
MUCH = 0.2
"""a stage that rejects a larger share of the rows it saw deserves a look"""
_MOST_UNEVEN = 5
_MOST_WARNINGS = 3


@dataclass(frozen=True)
class Advice:
    """One thing to do: why, and how. `stage` is a part of the page to jump to."""

    level: Level
    title: str
    text: str
    commands: tuple[str, ...] = ()
    stage: str | None = None


def advise(report: Mapping[str, Any], manifest: Mapping[str, Any], gate: Mapping[str, Any] | None, run: str) -> list[Advice]:
    """Everything worth doing, what must be done first."""
    found = [
        *_gate(gate, run),
        *_nothing_kept(report),
        *_not_evaluated(report),
        *_quarantined(report, run),
        *_greedy(report, manifest, run),
        *_uneven(report),
        *_warned(report),
        *_uncovered(report),
        *_witnesses(report, run),
        *_casts(report),
        *_warnings(report),
        *_stopped(manifest),
        *_always(report, run),
    ]
    order = {"act": 0, "look": 1, "note": 2}
    return sorted(found, key=lambda one: order[one.level])


def _gate(gate: Mapping[str, Any] | None, run: str) -> Iterator[Advice]:
    if gate is None:
        text = "Write limits on any number of this report under `gate:` in the pipeline; a broken one is exit code 3."
        yield Advice("note", "Ask for a verdict", text, (f"curate gate {run}",))
        return
    checks = gate.get("checks") or ()
    broken = [name(check["metric"]) for check in checks if check["outcome"] in ("failed", "not_evaluated")]
    warned = [name(check["metric"]) for check in checks if check["outcome"] == "warned"]
    if broken:
        text = f"{_listed(broken)}. Look at the parts they name below; if the data is right, change the limit and ask again."
        yield Advice("act", f"{plural(len(broken), 'limit')} said no", text, (f"curate gate {run}",))
    if warned:
        yield Advice("look", f"{plural(len(warned), 'limit')} warned", f"{_listed(warned)}. A warning changes no exit code.")


def _nothing_kept(report: Mapping[str, Any]) -> Iterator[Advice]:
    rows = report["rows"]
    if rows["input"] and not rows["kept"]:
        yield Advice("act", "Nothing was kept", "Find the stage that took the last rows in the table above, and its limit.")
    if not rows["input"]:
        yield Advice("act", "There was nothing to read", "The source holds no rows: is the path, or the glob, right?")


def _not_evaluated(report: Mapping[str, Any]) -> Iterator[Advice]:
    for stage, entry in report.get("stages", {}).items():
        if entry.get("status") != "evaluated":
            why = entry.get("reason") or "no reason was recorded"
            yield Advice("act", f"{name(stage)} judged nothing", f"It was not evaluated: {name(why, 200)}.", stage=stage)


def _quarantined(report: Mapping[str, Any], run: str) -> Iterator[Advice]:
    many = report["rows"]["quarantined"]
    if not many:
        return
    reasons = (report.get("quarantine") or {}).get("reasons") or {}
    common = f"Most often: {name(max(reasons, key=lambda reason: reasons[reason]))}. " if reasons else ""
    text = f"{common}The folder quarantined/ holds each one's file, line, reason and bytes."
    command = f"head -n 3 {run}/quarantined/*.jsonl"
    yield Advice("look", f"{plural(many, 'row')} could not be read", text, (command,))


def _greedy(report: Mapping[str, Any], manifest: Mapping[str, Any], run: str) -> Iterator[Advice]:
    written = {stage.get("name"): stage for stage in manifest.get("stages") or ()}
    for stage, entry in report.get("stages", {}).items():
        share = entry["rejected"] / entry["rows_in"] if entry.get("rows_in") else 0.0
        if share <= MUCH:
            continue
        change = _looser(stage, entry, written.get(stage, {}))
        text = f"It took {percent(share)} of the rows it saw. Read its sample rows below before you trust it"
        commands: tuple[str, ...] = ()
        if change:
            text += "; if good rows are among them, move its limit and compare the two runs"
            setting = shlex.quote(change)
            commands = (f"curate run PIPELINE --out NEW --set {setting}", f"curate diff {run} NEW")
        yield Advice("look", f"{name(stage)} rejects much", f"{text}.", commands, stage)


def _looser(stage: str, entry: Mapping[str, Any], written: Mapping[str, Any]) -> str | None:
    """A `--set` that loosens the rule which took most rows; None where no single key does."""
    reasons = [reason for reason in entry.get("reasons") or () if reason["rows"] and reason.get("limit") is not None]
    if not reasons:
        return None
    top = max(reasons, key=lambda reason: reason["rows"])
    value = _moved(top)
    if value is None:
        return None
    for key, given in (written.get("parameters") or {}).items():
        if isinstance(given, int | float) and not isinstance(given, bool) and given == top["limit"]:
            return f"{stage}.{key}={value}"
    if len(written.get("rules") or ()) == 1:
        return f"{stage}.reject=[{{{top['rule']}: {value}, of: {top['column']}}}]"
    return None


def _moved(reason: Mapping[str, Any]) -> str | None:
    limit = float(reason["limit"])
    if reason["rule"] in ("above", "at_least") and 0 < limit < 1:
        return f"{(1 + limit) / 2:.3g}"
    if reason["rule"] in ("above", "at_least") and limit >= 1:
        return f"{2 * limit:.6g}"
    return f"{limit / 2:.6g}" if reason["rule"] == "below" and limit > 0 else None


def _uneven(report: Mapping[str, Any]) -> Iterator[Advice]:
    """Groups, labels and sources that lose clearly more than others, and the stage that did it."""
    for one in list(report.get("uneven") or ())[:_MOST_UNEVEN]:
        text = name(one["text"], 400)
        text = f"{text[:1].upper()}{text[1:]}. Is that the data, or the check?"
        yield Advice("look", f"{name(one['column'], 60)}: one group loses more rows", text, stage=one["stage"] or None)


def _warned(report: Mapping[str, Any]) -> Iterator[Advice]:
    """What a check that saw the whole data warns of."""
    for stage, entry in report.get("stages", {}).items():
        for warning in list((entry.get("detail") or {}).get("warnings") or ())[:_MOST_WARNINGS]:
            yield Advice("look", f"{name(stage)} warns", name(warning, 400), stage=stage)


def interval(part: int, whole: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    if not whole:
        return 0.0, 1.0
    share = part / whole
    middle = (share + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z / (1 + z * z / whole) * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    return max(0.0, middle - half), min(1.0, middle + half)


def _uncovered(report: Mapping[str, Any]) -> Iterator[Advice]:
    for stage, entry in report.get("stages", {}).items():
        covered = entry.get("covered_share")
        if entry.get("status") == "evaluated" and covered is not None and covered < 0.9:
            text = f"It judged {percent(covered)} of the rows it saw; the others lack a cell, or did not meet its condition."
            yield Advice("look", f"{name(stage)} has no answer for many rows", text, stage=stage)


def _witnesses(report: Mapping[str, Any], run: str) -> Iterator[Advice]:
    lost = report.get("witness_rejected_later")
    if lost:
        text = "These rows stood for their copies and were rejected by a later stage, so no copy is left. "
        text += "To keep one, put the stage that finds copies last."
        yield Advice("look", f"{plural(lost, 'witness row')} left later", text, (f"curate why {run} ROW-OR-ID",))


def _casts(report: Mapping[str, Any]) -> Iterator[Advice]:
    casts = report.get("casts") or ()
    if casts:
        shown = "; ".join(name(cast, 160) for cast in casts[:3]) + (f"; and {len(casts) - 3} more" if len(casts) > 3 else "")
        text = f"The files disagree about types, and one was chosen for all: {shown}."
        yield Advice("look", f"{plural(len(casts), 'column')} changed type", text)


def _warnings(report: Mapping[str, Any]) -> Iterator[Advice]:
    for warning in list(report.get("warnings") or ())[:5]:
        yield Advice("look", "A warning", name(warning, 300))


def _stopped(manifest: Mapping[str, Any]) -> Iterator[Advice]:
    if manifest.get("until"):
        yield Advice(
            "note", "The run stopped early", f"It was told to end after {name(manifest['until'])}; run it without --until."
        )


def _always(report: Mapping[str, Any], run: str) -> Iterator[Advice]:
    if report["rows"]["rejected"]:
        text = "Every score, rule and limit of one row, with the row it was compared to."
        yield Advice("note", "Ask why a row was rejected", text, (f"curate why {run} ROW-OR-ID",))
    if report["rows"]["kept"]:
        text = "The folder kept/ holds the rows with their columns and order unchanged."
        yield Advice("note", f"Use the {plural(report['rows']['kept'], 'row')} that were kept", text)


def _listed(names: list[str], most: int = 4) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
