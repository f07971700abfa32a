"""The report page as plain data: what each part shows, cut to a budget. The templates only place it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curate.render.advice import advise, interval
from curate.render.budget import Budget, View, folded, width
from curate.render.facts import table
from curate.render.stage import rule_words, stage_view
from curate.render.visible import name
from curate.render.words import count, number, percent, plural, seconds, size

ACTIVITIES = {"read": "reading", "decode": "decoding", "score": "scoring", "write": "writing"}
_COMPARED = "most most_share least least_share difference difference_low difference_high".split()
_COMPARED += ["max_ratio", "max_ratio_low", "max_ratio_high", "finding"]
_OUTCOMES = {"passed": "kept", "warned": "warning", "failed": "broken", "not_evaluated": "not evaluated"}


def build(
    report: Mapping[str, Any],
    manifest: Mapping[str, Any],
    gate: Mapping[str, Any] | None,
    drawn: Mapping[str, list[dict[str, Any]]],
    run: str,
    budget: Budget,
) -> View:
    """Everything the page says, in words and numbers ready to be placed."""
    stages = list(report.get("stages", {}).items())
    anchors = {stage: f"stage-{at + 1}" for at, (stage, _) in enumerate(stages[: budget.stages])}
    written = {stage.get("name"): stage for stage in manifest.get("stages") or ()}
    advice = advise(report, manifest, gate, run)[: budget.stages]
    return {
        "name": name(report.get("name", "")),
        "status": name(report.get("status", "complete")),
        "when": name(manifest.get("finished") or "").replace("T", " ").replace("+00:00", " UTC"),
        "run": run,
        "verdict": verdict(gate, budget.rows),
        "tiles": _tiles(report),
        "funnel": funnel(report, anchors, budget),
        "reasons": _reasons(report, anchors),
        "advice": folded([{"one": one, "anchor": anchors.get(one.stage or "")} for one in advice], 5),
        "stages": [
            stage_view(stage, entry, anchors[stage], written.get(stage, {}), drawn.get(stage) or (), budget)
            for stage, entry in stages[: budget.stages]
        ],
        "stages_left": max(0, len(stages) - budget.stages),
        "tables": _tables(report, budget),
        "disparity": _disparity(report, budget),
        "overall": width(report.get("rejected_share")),
        "quarantine": _quarantine(report, budget),
        "costs": costs(report, budget),
    }


def verdict(gate: Mapping[str, Any] | None, most: int) -> View:
    """The gate's answer in one sentence, and at most so many limits; the broken ones first."""
    if gate is None:
        return {
            "state": "none",
            "title": "No gate was asked for",
            "text": "Nothing here was held against a limit.",
            "limits": [],
            "left": 0,
        }
    checks = list(gate.get("checks") or ())
    bad = [check for check in checks if check["outcome"] in ("failed", "not_evaluated")]
    warned = [check for check in checks if check["outcome"] == "warned"]
    rank = {"failed": 0, "not_evaluated": 1, "warned": 2}
    limits = [_limit(check) for check in sorted(checks, key=lambda check: rank.get(check["outcome"], 3))[:most]]
    if not gate.get("passed"):
        return {
            "state": "no",
            "title": "The gate says no",
            "text": f"{len(bad)} of {plural(len(checks), 'limit')} said no.",
            "limits": limits,
            "left": len(checks) - len(limits),
        }
    text = f"{len(checks) - len(warned)} of {plural(len(checks), 'limit')} kept"
    text += f", {plural(len(warned), 'warning')}." if warned else "."
    return {
        "state": "warn" if warned else "yes",
        "title": "The gate says yes",
        "text": text,
        "limits": limits,
        "left": len(checks) - len(limits),
    }


def _limit(check: Mapping[str, Any]) -> View:
    bounds = {"min": "at least", "max": "at most", "max_increase": "rise at most", "max_decrease": "fall at most"}
    value = "" if check.get("value") is None else number(check["value"])
    if check.get("baseline") is not None:
        value += f" (was {number(check['baseline'])})"
    return {
        "outcome": check["outcome"],
        "word": _OUTCOMES.get(check["outcome"], name(check["outcome"])),
        "metric": name(check["metric"]),
        "value": value,
        "bounds": ", ".join(f"{word} {number(check[key])}" for key, word in bounds.items() if check.get(key) is not None),
        "severity": name(check.get("severity") or "fail"),
        "reason": name(check.get("reason") or "", 300).replace("`", ""),
    }


def _tiles(report: Mapping[str, Any]) -> list[View]:
    rows = report["rows"]
    words = [("input", "rows in"), ("kept", "kept"), ("rejected", "rejected"), ("quarantined", "quarantined")]
    return [
        {
            "key": key,
            "label": label,
            "number": count(rows[key]),
            "share": "" if key == "input" or not rows["input"] else percent(report.get(f"{key}_share")),
        }
        for key, label in words
    ]


def funnel(report: Mapping[str, Any], anchors: Mapping[str, str], budget: Budget) -> View:
    """Rows in, what each stage took, what was left; widths are per cent of the rows in."""
    rows, total = report["rows"], report["rows"]["input"]
    left = total - rows["quarantined"]
    steps = [_step("read", None, total, rows["quarantined"], left, total, "quarantined")]
    stages = list(report.get("stages", {}).items())
    for stage, entry in stages[: budget.stages]:
        step = _step(name(stage, 60), anchors.get(stage), entry["rows_in"], entry["rejected"], entry["kept"], total, "rejected")
        if entry.get("status") != "evaluated":
            step["reason"] = name(entry.get("reason") or "", 200)
        steps.append(step)
    return {"steps": steps, "kept": count(rows["kept"]), "kept_share": percent(report.get("kept_share")) if total else ""}


def _step(label: str, anchor: str | None, rows_in: int, taken: int, left: int, total: int, kind: str) -> View:
    return {
        "label": label,
        "anchor": anchor,
        "rows_in": count(rows_in),
        "taken": count(taken) if taken else "–",
        "share": percent(taken / total) if taken and total else "",
        "left": count(left),
        "kind": kind,
        "left_any": bool(left and total),
        "taken_any": bool(taken and total),
        "left_width": width(left / total if total else 0),
        "taken_width": width(taken / total if total else 0),
        "reason": None,
    }


def _reasons(report: Mapping[str, Any], anchors: Mapping[str, str], most: int = 6) -> View:
    """The rules that took most rows, over all stages."""
    found = [
        (stage, reason)
        for stage, entry in report.get("stages", {}).items()
        for reason in entry.get("reasons") or ()
        if reason["rows"]
    ]
    found.sort(key=lambda item: -item[1]["rows"])
    total = sum(reason["rows"] for _, reason in found)
    top = [
        {
            "anchor": anchors.get(stage),
            "stage": name(stage, 60),
            "words": rule_words(reason),
            "rows": count(reason["rows"]),
            "share": percent(reason["rows"] / total),
            "width": width(reason["rows"] / found[0][1]["rows"]),
        }
        for stage, reason in found[:most]
    ]
    return {"top": top, "others": len(found) - len(top), "others_rows": count(sum(one["rows"] for _, one in found[most:]))}


def _tables(report: Mapping[str, Any], budget: Budget) -> list[View]:
    """Removal by source file, by value of every group column, and by label."""
    groups = {**(report.get("groups") or {}), **(report.get("labels") or {})}
    tables = [("source file", report.get("sources") or {}), *groups.items()]
    out = []
    for column, values in tables[: budget.stages]:
        ranked = list(values.items())
        if column == "source file":
            ranked.sort(key=lambda item: -item[1]["input"])
        out.append(
            {
                "name": name(column, 80),
                "quarantined": any(tally["quarantined"] for tally in values.values()),
                **folded([_removal(value, tally) for value, tally in ranked[: budget.rows]]),
                "left": max(0, len(ranked) - budget.rows),
            }
        )
    return out


def _disparity(report: Mapping[str, Any], budget: Budget) -> View | None:
    """For each column the most and the least rejected group, by the whole run and by each stage that rejected a row."""
    rows = []
    for column, whole in (report.get("disparity") or {}).items():
        for stage, one in (("all stages", whole), *whole["stages"].items()):
            if stage == "all stages" or one["most_share"]:
                rows.append({"column": column, "stage": stage, **{key: one[key] for key in _COMPARED}})
    return table(rows, budget) if rows else None


def _removal(value: str, tally: Mapping[str, Any]) -> View:
    low, high = interval(tally["rejected"], tally["input"])
    return {
        "name": name(value, 100),
        **{key: count(tally[key]) for key in ("input", "kept", "rejected", "quarantined")},
        "share": percent(tally.get("rejected_share")),
        "width": width(tally.get("rejected_share")),
        "low": width(low),
        "span": width(high - low),
        "interval": f"95 % interval {percent(low)} to {percent(high)}",
    }


def _quarantine(report: Mapping[str, Any], budget: Budget) -> View | None:
    found = report.get("quarantine") or {}
    reasons = sorted((found.get("reasons") or {}).items(), key=lambda item: -item[1])
    if not reasons:
        return None
    examples = [
        {
            "file": name(one["source_file"], 100),
            "place": f"line {count(one['line'])}" if one.get("line") is not None else f"row {count(one['source_row'])}",
            "reason": name(one["reason"], 200),
        }
        for one in (found.get("examples") or ())[: budget.rows]
    ]
    return {"reasons": [(name(reason, 200), count(rows)) for reason, rows in reasons[: budget.rows]], "examples": examples}


def costs(report: Mapping[str, Any], budget: Budget) -> View | None:
    """Where the time went: by activity for the whole run and for every step."""
    bill = report.get("costs") or {}
    if not bill:
        return None
    wall, rows = bill.get("wall_s"), report["rows"]["input"]
    facts = [
        seconds(wall),
        f"{count(rows / wall) if wall else '?'} rows a second",
        f"peak memory of a process {size(bill.get('peak_memory_bytes'))}",
        f"read {size(bill.get('bytes_read'))}",
        f"wrote {size(bill.get('bytes_written'))}",
        "1 process" if bill.get("workers") == 1 else f"{count(bill.get('workers'))} processes",
        plural(bill.get("tasks") or 0, "task"),
    ]
    if bill.get("tasks_reused"):
        facts.append(f"{count(bill['tasks_reused'])} of them from an earlier session")
    steps = list((bill.get("stages") or {}).items())[: budget.stages]
    longest = max((sum(_activities(step).values()) for _, step in steps), default=0.0)
    total = {**_activities(bill), "wait": bill.get("waiting_s") or 0.0}
    return {
        "facts": facts,
        "total": _segments(total, sum(total.values())),
        "waiting_known": bill.get("waiting_s") is not None,
        "steps": [
            {
                "name": name(step, 60),
                "segments": _segments(_activities(one), longest),
                "seconds": seconds(sum(_activities(one).values())),
                "rows_per_s": count(one["rows"] / sum(_activities(one).values())) if any(_activities(one).values()) else "–",
                "memory": size(one.get("peak_memory_bytes")) if one.get("peak_memory_bytes") else "–",
                "read": size(one.get("bytes_read")),
                "written": size(one.get("bytes_written")),
            }
            for step, one in steps
        ],
    }


def _activities(step: Mapping[str, Any]) -> dict[str, float]:
    return {activity: step.get(f"{activity}_s") or 0.0 for activity in ACTIVITIES}


def _segments(spent: Mapping[str, float], whole: float) -> list[View]:
    return [
        {
            "key": key,
            "words": f"{ACTIVITIES.get(key, 'waiting')} {seconds(value)}",
            "share": percent(value / whole) if whole else "?",
            "width": width(value / whole if whole else 0),
        }
        for key, value in spent.items()
        if value > 0
    ]
