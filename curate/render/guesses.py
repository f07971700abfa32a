"""What a guess assumed, and how to change it, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from curate.render.words import plural, safe


def assumed(told: Mapping[str, Any]) -> RenderableType:
    """The roles and stages of a run that was given data instead of a pipeline."""
    head = Text(
        f"{safe(told['source'], 200)} is data, not a pipeline; from {plural(told['rows_seen'], 'row')} of it curate assumes:"
    )
    foot = Text("Another column: ")
    foot.append("--set roles.text=COLUMN", "bold")
    foot.append(". To change anything, have it written down and edit it:\n  ")
    return Group(head, Padding(_roles(told), (0, 0, 0, 2)), foot.append_text(_command(told["init"])), Text())


def written(told: Mapping[str, Any]) -> RenderableType:
    """What `curate init` wrote, what it assumed in it, and the next command."""
    head = Text("Wrote ")
    head.append(safe(told["path"]), "bold cyan")
    head.append(f" and {safe(told['schema'])} for editors; from {plural(told['rows_seen'], 'row')} of the data it assumes:")
    parts: list[RenderableType] = [head, Padding(_roles(told), (0, 0, 0, 2))]
    if "text" not in told["roles"]:
        parts.append(Text("No column looks like text: the stages are those for tables.", "yellow"))
    return Group(*parts, Text("Look into it, then:\n  ").append_text(_command(told["run"])))


def _command(text: str) -> Text:
    """A command on one line however long it is, to be copied."""
    return Text(safe(text), "bold", no_wrap=True, overflow="ignore")


def _roles(told: Mapping[str, Any]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    for role, one in told["roles"].items():
        others = f"; or {', '.join(safe(other, 60) for other in one['others'])}" if one["others"] else ""
        table.add_row(Text(role, "dim"), safe(", ".join(one["columns"]), 120), Text(f"{safe(one['because'])}{others}", "dim"))
    table.add_row(Text("stages", "dim"), safe(", ".join(told["stages"])), "")
    return Group(table, *(Text(f"note: {safe(note)}", "yellow") for note in told["notes"]))
