"""The gate: limits on the report's numbers, and the one answer, yes or no.

Each limit has one of four outcomes:

| outcome         | means                                                                        |
|-----------------|------------------------------------------------------------------------------|
| `passed`        | the number was there and keeps the limit                                     |
| `warned`        | it breaks a limit of severity `warn`                                         |
| `failed`        | it breaks a limit of severity `fail`                                         |
| `not_evaluated` | there was no such number: misspelt, null, its stage not evaluated, no baseline |

The gate says yes only when something was judged and nothing is `failed` or `not_evaluated`. A
limit that could not be held against a number is a no whatever its severity: `warn` makes a
broken limit harmless, never an unanswered question. A stage that was not evaluated, a run of
no rows, a gate without limits: each is a no, with its reason.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from curate.pipeline import Limit

VERSION = 1
Outcome = Literal["passed", "warned", "failed", "not_evaluated"]
_MISSING = object()


@dataclass(frozen=True)
class GateCheck:
    """One limit (or one thing every gate asks for) and how it came out."""

    metric: str
    outcome: Outcome
    reason: str
    severity: str = "fail"
    value: float | None = None
    baseline: float | None = None
    min: float | None = None
    max: float | None = None
    max_increase: float | None = None
    max_decrease: float | None = None


@dataclass(frozen=True)
class GateResult:
    """The answer, and every check behind it."""

    passed: bool
    outcome: Outcome
    checks: tuple[GateCheck, ...]

    @property
    def exit_code(self) -> int:
        return 0 if self.passed else 3

    def to_dict(self) -> dict[str, Any]:
        """What `gate.json` holds."""
        counts = {name: sum(check.outcome == name for check in self.checks) for name in get_args(Outcome)}
        return {
            "version": VERSION,
            "passed": self.passed,
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "counts": counts,
            "checks": [asdict(check) for check in self.checks],
        }


def evaluate(limits: Sequence[Limit] | None, report: Mapping[str, Any], baseline: Mapping[str, Any] | None = None) -> GateResult:
    """Hold the limits against the report, and against a baseline's report where they ask for one.

    Calling this *is* asking for a gate: no limits, None or empty, has nothing to judge and says no.
    """
    checks = [*_asked_of_every_run(report), *(_judge(limit, report, baseline) for limit in limits or ())]
    if not limits:
        checks.append(GateCheck("gate", "not_evaluated", "a gate was asked for and the pipeline states no limits"))
    worst = max((check.outcome for check in checks), key=get_args(Outcome).index)
    failed = any(check.outcome == "failed" for check in checks)
    outcome: Outcome = "failed" if failed else worst
    return GateResult(outcome in ("passed", "warned"), outcome, tuple(checks))


def look_up(report: Mapping[str, Any], metric: str) -> Any:
    """What stands at a dotted path of the report, or of one of its stages; KeyError where nothing does.

    Names that hold dots themselves (files, values of a column) are found too: at every step the
    longest name that fits is tried first. A path is looked up from the top of the report before
    its first step is taken for a stage's name.
    """
    steps = metric.split(".")
    for root in (report, report.get("stages", {})):
        found = _walk(root, steps)
        if found is not _MISSING:
            return found
    raise KeyError(metric)


def metrics_of(report: Mapping[str, Any]) -> list[str]:
    """The path of every number of the report, as a limit may name it."""
    stages = report.get("stages", {})
    rest = {key: value for key, value in report.items() if key != "stages"}
    return [*_paths(rest, ()), *_paths(stages, ())]


def _walk(value: Any, steps: Sequence[str]) -> Any:
    if not steps:
        return value
    if not isinstance(value, Mapping):
        return _MISSING
    for end in range(len(steps), 0, -1):
        name = ".".join(steps[:end])
        if name in value and (found := _walk(value[name], steps[end:])) is not _MISSING:
            return found
    return _MISSING


def _paths(value: Any, steps: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _paths(inner, (*steps, str(key)))
    elif steps and _is_number(value):
        yield ".".join(steps)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _asked_of_every_run(report: Mapping[str, Any]) -> Iterator[GateCheck]:
    """What no gate passes without: a complete run, rows, and every stage evaluated."""
    if report.get("status") != "complete":
        yield GateCheck("status", "not_evaluated", f"the run is not complete: its status is {report.get('status')!r}")
    rows = report.get("rows", {}).get("input")
    if not rows:
        yield GateCheck("rows.input", "not_evaluated", "the run read no rows: there is nothing to judge", value=rows)
    for name, stage in report.get("stages", {}).items():
        if stage.get("status") != "evaluated":
            why = stage.get("reason") or "no reason was recorded"
            yield GateCheck(f"stages.{name}.status", "not_evaluated", f"stage `{name}` was not evaluated: {why}")


def _judge(limit: Limit, report: Mapping[str, Any], baseline: Mapping[str, Any] | None) -> GateCheck:
    value, problem = _number(report, limit.metric, "report")
    if problem:
        return _outcome(limit, "not_evaluated", problem)
    assert value is not None
    before: float | None = None
    if limit.needs_baseline:
        if baseline is None:
            hint = "there is no baseline run to compare with (curate gate RUN --baseline RUN)"
            return _outcome(limit, "not_evaluated", hint, value)
        before, problem = _number(baseline, limit.metric, "baseline's report")
        if problem:
            return _outcome(limit, "not_evaluated", problem, value)
    broken = "; ".join(_broken(limit, value, before))
    if not broken:
        return _outcome(limit, "passed", "", value, before)
    return _outcome(limit, "warned" if limit.severity == "warn" else "failed", broken, value, before)


def _number(report: Mapping[str, Any], metric: str, called: str) -> tuple[float | None, str]:
    """The number a metric names, or the reason why there is none."""
    try:
        value = look_up(report, metric)
    except KeyError:
        known = metrics_of(report)[:5_000]
        near = difflib.get_close_matches(metric, known, n=3, cutoff=0.6) or _same_ending(metric, known)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        return None, f"the {called} has no number `{metric}`{hint}"
    if stage := _stage_of(report, metric):
        details = report["stages"][stage]
        if details.get("status") != "evaluated":
            return None, f"stage `{stage}` was not evaluated: {details.get('reason') or 'no reason was recorded'}"
    if value is None:
        return None, f"`{metric}` has no value in the {called}"
    if not _is_number(value):
        inside = list(_paths(value, (metric,)))[:3]
        hint = f"; it holds {', '.join(inside)}" if inside else ""
        return None, f"`{metric}` is not a number in the {called}{hint}"
    return value, ""


def _stage_of(report: Mapping[str, Any], metric: str) -> str | None:
    steps = metric.split(".")
    if steps[0] == "stages":
        steps = steps[1:]
    elif _walk({key: value for key, value in report.items() if key != "stages"}, steps) is not _MISSING:
        return None
    return steps[0] if steps and steps[0] in report.get("stages", {}) else None


def _same_ending(metric: str, known: Sequence[str]) -> list[str]:
    last = metric.rsplit(".", 1)[-1]
    near = difflib.get_close_matches(last, {name.rsplit(".", 1)[-1] for name in known}, n=1, cutoff=0.6)
    return [name for name in known if near and name.rsplit(".", 1)[-1] == near[0]][:3]


def _broken(limit: Limit, value: float, before: float | None) -> Iterator[str]:
    if limit.min is not None and value < limit.min:
        yield f"{value:.6g} is less than {limit.min:g}"
    if limit.max is not None and value > limit.max:
        yield f"{value:.6g} is more than {limit.max:g}"
    if before is None:
        return
    if limit.max_increase is not None and round(value - before, 12) > limit.max_increase:
        yield f"rose from {before:.6g} to {value:.6g}, by more than {limit.max_increase:g}"
    if limit.max_decrease is not None and round(before - value, 12) > limit.max_decrease:
        yield f"fell from {before:.6g} to {value:.6g}, by more than {limit.max_decrease:g}"


def _outcome(limit: Limit, outcome: Outcome, reason: str, value: float | None = None, before: float | None = None) -> GateCheck:
    bounds = {key: getattr(limit, key) for key in ("min", "max", "max_increase", "max_decrease")}
    return GateCheck(limit.metric, outcome, reason, limit.severity, value, before, **bounds)
