"""One stage of the report page as plain data: its facts, its reasons with sample rows, and how its scores lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curate.render import curve as curves
from curate.render import samples as sample_rows
from curate.render.budget import Budget, View, folded, width
from curate.render.facts import facts_view
from curate.render.svg import bin_words, histogram
from curate.render.visible import name
from curate.render.words import count, number, percent, plural

_OPEN_CHARTS, _FEW_CHARTS, _MOST_CHARTS = 6, 3, 12
"""so many charts are all shown at once; of more, those whose rules took rows, within these bounds"""

_MOST_WORDS = 6
"""words of a category that are named in a line"""
_REMARKS = {
    "short": "shorter than a shingle: only exact partners are found",
    "wordless": "without a word: compared with nothing",
}


def stage_view(
    stage: str,
    entry: Mapping[str, Any],
    anchor: str,
    written: Mapping[str, Any],
    drawn: Sequence[Mapping[str, Any]],
    budget: Budget,
) -> View:
    """One stage: its facts, reasons with sample rows, and how its scores lie."""
    reasons = sorted(entry.get("reasons") or (), key=lambda reason: -reason["rows"])
    scores = list((entry.get("scores") or {}).items())
    ruled: dict[str, list[Mapping[str, Any]]] = {}
    for reason in reasons:
        ruled.setdefault(reason["column"], []).append(reason)
    taken = {column: sum(rule["rows"] for rule in rules) for column, rules in ruled.items()}
    scores.sort(key=lambda item: (item[0] not in ruled, -taken.get(item[0], 0)))
    shown = scores[: budget.scores]
    numeric = [_chart(column, score, ruled.get(column, ())) for column, score in shown if _is_numeric(score)]
    telling = sum(bool(taken.get(column)) for column, score in shown if _is_numeric(score))
    open_charts = len(numeric) if len(numeric) <= _OPEN_CHARTS else min(max(telling, _FEW_CHARTS), _MOST_CHARTS)
    return {
        "anchor": anchor,
        "name": name(stage, 80),
        "check": f"{name(entry.get('check', ''), 80)} {name(entry.get('version', ''), 20)}",
        "evaluated": entry.get("status") == "evaluated",
        "reason": name(entry.get("reason") or "", 300),
        "facts": _facts(entry),
        "reasons": [_reason(reason, entry, drawn, budget) for reason in reasons if reason["rows"]][: budget.rows],
        "quiet": [rule_words(reason) for reason in reasons if not reason["rows"]][: budget.rows],
        "charts": numeric[:open_charts],
        "more_charts": numeric[open_charts:],
        "flags": _flags(shown, reasons),
        "never": [name(column, 80) for column, score in shown if _never(score) and column not in ruled][: budget.rows],
        "words": [_category(column, score, budget) for column, score in shown if score.get("kind") == "category"],
        "scores_left": max(0, len(scores) - len(shown)),
        "largest": _largest(entry.get("groups"), budget),
        "curve": _curve(entry),
        "remarks": _remarks(entry.get("detail") or {}),
        "found": facts_view(entry.get("detail") or {}, budget),
        "details": _pairs({**(written.get("parameters") or {}), **_simple(entry.get("detail") or {})}, budget),
    }


def _curve(entry: Mapping[str, Any]) -> View | None:
    detail = entry.get("detail") or {}
    if not detail.get("curve"):
        return None
    limit = next((reason["limit"] for reason in entry["reasons"] if reason["rule"] == "at_least"), None)
    return {
        "svg": curves.curve(detail, limit),
        "copies": curves.copies(detail, limit),
        "said": [f"{curves.words(detail)}.", curves.missed(detail), curves.cut(detail)],
    }


def _remarks(detail: Mapping[str, Any]) -> list[View]:
    """Rows a check had something to say about: how many, and by word and by category."""
    return [
        {"name": _REMARKS.get(remark, name(remark, 60)), "rows": count(said["rows"]), "of_which": _of_which_remarked(said)}
        for remark, said in detail.items()
        if isinstance(said, Mapping) and said.get("rows") and "words" in said
    ]


def _of_which_remarked(said: Mapping[str, Any]) -> str:
    lists = [("", said["words"]), *(said.get("by") or {}).items()]
    return "; ".join(f"{name(of, 80)}: {_most(words)}" if of else _most(words) for of, words in lists if words)


def _most(words: Mapping[str, int]) -> str:
    """The most frequent words with their numbers."""
    listed = ", ".join(f"{name(word, 40)} {count(rows)}" for word, rows in list(words.items())[:_MOST_WORDS])
    return listed + (f", {count(len(words) - _MOST_WORDS)} more" if len(words) > _MOST_WORDS else "")


def _simple(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers and words of a stage's evidence; what has a shape is drawn elsewhere."""
    return {key: value for key, value in detail.items() if not isinstance(value, dict | list)}


def _facts(entry: Mapping[str, Any]) -> list[str]:
    facts = [f"{count(entry['rows_in'])} rows in", f"{count(entry['rejected'])} rejected"]
    if entry["rows_in"] and entry["rejected"]:
        facts[-1] += f" ({percent(entry['rejected'] / entry['rows_in'])} of them)"
    if entry.get("asked") not in (None, entry["rows_in"]):
        facts.append(f"{count(entry['rows_in'] - entry['asked'])} not asked")
    if entry.get("missing"):
        facts.append(f"{count(entry['missing'])} without an answer{_of_which(entry.get('missing_by') or {})}")
    return [*facts, f"{count(entry['kept'])} left"]


def _of_which(missing_by: Mapping[str, Mapping[str, int]]) -> str:
    """The most frequent categories of rows without an answer."""
    told = [f"{name(column, 80)}: {_most(words)}" for column, words in missing_by.items()]
    return f" ({'; '.join(told)})" if told else ""


def rule_words(rule: Mapping[str, Any]) -> str:
    """A rule as a phrase: `similarity at least 0.8`."""
    words = f"{name(rule['column'], 80)} {name(rule['rule'], 40).replace('_', ' ')}"
    return words if rule["rule"] == "is_true" or rule.get("limit") is None else f"{words} {number(rule['limit'])}"


def _reason(reason: Mapping[str, Any], entry: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]], budget: Budget) -> View:
    keys = ("rule", "column", "limit")
    mine = next((one for one in drawn if all(one.get(key, reason[key]) == reason[key] for key in keys)), None)
    given = list((mine or {}).get("samples") or ())
    share = reason["rows"] / entry["rows_in"] if entry["rows_in"] else 0.0
    return {
        "words": rule_words(reason),
        "rows": count(reason["rows"]),
        "share": percent(share),
        "width": width(share),
        "samples": [sample_rows.view(one, budget.chars, reason["rule"]) for one in given[: budget.samples]],
    }


def _is_numeric(score: Mapping[str, Any]) -> bool:
    return score.get("kind") not in ("flag", "category")


def _never(score: Mapping[str, Any]) -> bool:
    return score.get("kind") == "flag" and not score.get("true")


def _chart(column: str, score: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> View:
    facts = [plural(score["count"], "value")]
    if score.get("min") is not None:
        ends = f"{number(score['min'])} to {number(score['max'])}"
        facts.append(ends if score["min"] != score["max"] else f"all {number(score['min'])}")
    if score.get("mean") is not None and score["min"] != score["max"]:
        mean = score["mean"]
        facts.append(f"mean {count(mean) if abs(mean) >= 1_000 else f'{mean:.4g}'}")
    if score.get("missing"):
        facts.append(f"{count(score['missing'])} missing")
    return {
        "name": name(column, 80),
        "unit": "" if score.get("unit") == column else name(score.get("unit") or "", 40),
        "doc": _doc(score),
        "facts": facts,
        "ruled": bool(rules),
        "svg": histogram(column, score, rules),
        "bins": [[bin_words(low, high), count(rows)] for low, high, rows in score.get("bins") or ()],
    }


def _doc(score: Mapping[str, Any]) -> str:
    return name(score.get("doc") or "", 200).replace("`", "")


def _flags(scores: Sequence[tuple[str, Mapping[str, Any]]], reasons: Sequence[Mapping[str, Any]]) -> list[View]:
    """Flags that are true of some row, without those whose number stands among the reasons already."""
    told = {(reason["column"], reason["rows"]) for reason in reasons if reason["rule"] == "is_true"}
    ruled = {column for column, _ in told}
    flags = [(column, score) for column, score in scores if score.get("kind") == "flag" and score.get("true")]
    flags = [(column, score) for column, score in flags if (column, score["true"]) not in told]
    return [
        {
            "name": name(column, 80),
            "doc": _doc(score),
            "ruled": column in ruled,
            "rows": count(score["true"]),
            "share": percent(score["true"] / score["count"]) if score["count"] else "?",
            "width": width(score["true"] / score["count"] if score["count"] else 0),
        }
        for column, score in sorted(flags, key=lambda item: (item[0] not in ruled, -item[1]["true"]))
    ]


def _category(column: str, score: Mapping[str, Any], budget: Budget) -> View:
    values = dict(score.get("words") or score.get("values") or {})
    ranked = sorted(values.items(), key=lambda item: -item[1])[: min(budget.scores, budget.rows)]
    rest = score["count"] - sum(rows for _, rows in ranked)
    rows = [(name(value, 60), many) for value, many in ranked] + ([("(others)", rest)] if rest > 0 else [])
    most = max((many for _, many in rows), default=0)
    bars = [
        {"name": value, "rows": count(many), "share": percent(many / score["count"]), "width": width(many / most)}
        for value, many in rows
        if most
    ]
    return {"name": name(column, 80), "doc": _doc(score), **folded(bars)}


def _largest(groups: Mapping[str, Any] | None, budget: Budget) -> View | None:
    if not groups or not groups.get("largest"):
        return None
    most = max(one["rows"] for one in groups["largest"])
    rows = [
        {
            "id": name(one["witness_id"], 80) if one.get("witness_id") is not None else "",
            "row": count(one["witness_row"]),
            "rows": count(one["rows"]),
            "width": width(one["rows"] / most),
        }
        for one in groups["largest"][: budget.rows]
    ]
    return {"text": f"{plural(groups['groups'], 'group')} of {plural(groups['rows'], 'row')} in all", "rows": rows}


def _pairs(values: Mapping[str, Any], budget: Budget) -> list[tuple[str, str]]:
    return [(name(key, 60).replace("_", " "), _plain(value)) for key, value in list(values.items())[: budget.rows]]


def _plain(value: Any) -> str:
    if value is None or value == [] or value == {}:
        return "–"
    return number(value) if isinstance(value, bool | int | float) else name(value, 200)
