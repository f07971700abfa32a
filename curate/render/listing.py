"""Plans, checks and the state of the machine as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from curate.render.curve import told
from curate.render.explain import facts
from curate.render.terminal import table_of
from curate.render.words import count, number, percent, plural, safe, size


def plan(found: Mapping[str, Any]) -> RenderableType:
    """What a run will do: the data, the stages, the passes over it, and what it takes."""
    rows = "rows known once they are decoded" if found.get("rows") is None else f"{count(found['rows'])} rows"
    head = Text(f"Plan for {safe(found['name'])}: ", "bold")
    head.append(f"{plural(found['files'], 'file')} of {size(found['source_bytes'])}, {rows}", "not bold")
    stages = [
        {
            "stage": stage["name"],
            "check": "" if stage["check"] == stage["name"] else stage["check"],
            "reads": ", ".join(stage["reads"]),
            "rejects": "; ".join(_rule(rule) for rule in stage["rules"]) or "nothing, it only flags",
            "when": stage.get("when"),
        }
        for stage in found["stages"]
    ]
    heads = [head for head in ("stage", "check", "reads", "rejects", "when") if any(stage[head] for stage in stages)]
    columns = ", ".join(f"{name} {kind}" for name, kind in found["columns"].items())
    works = " | ".join(" + ".join(names) or "(count)" for names in found["passes"])
    memory, disk = found["memory"], found["disk"]
    lines = [
        f"columns: {safe(columns, 2_000)}",
        *(f"cast: {safe(cast, 200)}" for cast in found.get("casts", ())),
        f"{plural(len(found['passes']), 'pass')}: {safe(works)}".replace(" passs:", " passes:"),
        *(_finding(stage, found.get("groups") or {}) for stage in found["stages"] if (stage.get("facts") or {}).get("curve")),
        f"{plural(found['workers'], 'worker')}; memory {size(memory['needed_bytes'])} of {size(memory['budget_bytes'])}",
        f"disk: at most {size(disk['store_bytes'])} while it runs, about {size(disk['output_bytes'])} of output",
    ]
    return Group(head, Text(), _indented(table_of(stages, heads)), Text(), _indented(Text("\n".join(lines))))


def _finding(stage: Mapping[str, Any], needs: Mapping[str, Mapping[str, int]]) -> str:
    """What a stage takes, and the pairs it will find by similarity."""
    facts, need = stage["facts"], needs.get(stage["name"])
    how = f"{facts['bands']} bands of {facts['minima_a_band']} minima over shingles of {safe(facts['shingle'])}"
    takes = f"; at most {size(need['disk_bytes'])} of disk" if need else ""
    points = told(facts)
    at = "".join(f"{number(similarity):>9}" for similarity, _ in points)
    found = "".join(f"{percent(chance):>9}" for _, chance in points)
    return f"{safe(stage['name'])}: {how}{takes}\n  similarity {at}\n  pairs found{found}"


def _rule(rule: Mapping[str, Any]) -> str:
    limit = "" if rule["rule"] == "is_true" or rule.get("limit") is None else f" {number(rule['limit'])}"
    return f"{rule['column']} {str(rule['rule']).replace('_', ' ')}{limit}"


def _indented(inner: RenderableType) -> RenderableType:
    return Padding(inner, (0, 0, 0, 2))


def checks(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """The catalogue as a table."""
    return table_of(found, ("name", "shape", "summary"))


def check(found: Mapping[str, Any]) -> RenderableType:
    """One check: its text and its parameters."""
    parts: list[RenderableType] = [
        Text(f"{safe(found['name'])}", "bold") + Text(f"  a {safe(found['shape'])} check, version {found['version']}", "dim"),
        Text(),
        Padding(Text(safe(found["doc"], lines=True)), (0, 0, 0, 2)),
    ]
    if found["parameters"]:
        parts += [Text(), Text("Parameters:")]
    for parameter in found["parameters"]:
        head = Text(f"  {safe(parameter['name'])}", "bold")
        head.append(f": {safe(parameter['type'])}", "cyan")
        head.append(", required" if parameter["required"] else f", default {_default(parameter['default'])}", "dim")
        parts += [head, Padding(Text(safe(parameter["doc"], lines=True)), (0, 0, 0, 6))]
    return Group(*parts)


def doctor(found: Mapping[str, Any]) -> RenderableType:
    """The facts, then what to mend."""
    shown = _without(found, "problems", "checks")
    parts: list[RenderableType] = [facts(shown), Text(f"checks: {', '.join(found['checks'])}"), Text()]
    if found["problems"]:
        parts.append(Text("To mend:", "bold red"))
        parts += [Text(f"  {safe(problem)}") for problem in found["problems"]]
    else:
        parts.append(Text("All is well.", "bold green"))
    return Group(*parts)


def _default(value: Any) -> str:
    if isinstance(value, list | dict):
        return safe(value) if value else "none"
    return "none" if value is None else number(value)


def _without(found: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in keys}
