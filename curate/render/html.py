"""The report as one HTML page that stands alone: no script, no request, never more than two megabytes.

Escaping is on for everything (`autoescape`), every text passes `visible` on its way out, and the
only markup that is not a template's own is SVG made of numbers and escaped labels.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from curate.render.budget import Budget
from curate.render.provenance import provenance
from curate.render.samples import least_bytes, prepare
from curate.render.view import build
from curate.render.visible import name, visible

MAX_BYTES = 2_000_000
BUDGETS = (
    Budget(),
    Budget(chars=600),
    Budget(samples=10, chars=500),
    Budget(samples=5, chars=400, rows=100, scores=60),
    Budget(samples=2, chars=300, rows=50, scores=40, stages=60),
    Budget(samples=0, chars=0, rows=20, scores=10, stages=40),
    Budget(samples=0, chars=0, rows=10, scores=0, stages=10),
)
"""what a page shows, most first: the first that fits is taken"""


def render(
    report: Mapping[str, Any],
    manifest: Mapping[str, Any],
    gate: Mapping[str, Any] | None = None,
    samples: Mapping[str, Any] | None = None,
    out: str | None = None,
) -> str:
    """A run's `report.html`: a pure function of what its JSON documents hold.

    `out` is the run directory as the commands on the page shall name it; `RUN` unless given.
    Where everything would take more than `MAX_BYTES`, samples, then tables and charts, are cut
    step by step until it fits, and the page says so.
    """
    run = "RUN" if out is None else shlex.quote(name(out, 1_000))
    drawn = prepare(samples)
    text = ""
    for level, budget in enumerate(BUDGETS):
        if least_bytes(drawn, budget.samples, budget.chars) > MAX_BYTES:
            continue
        page = {
            **build(report, manifest, gate, drawn, run, budget),
            "provenance": provenance(manifest, budget.rows),
            "version": name((manifest.get("packages") or {}).get("curate-data") or "", 40),
            "note": _note(budget) if level else "",
        }
        text = template().render(page=page)
        if len(text.encode()) <= MAX_BYTES:
            break
    return text


def _note(budget: Budget) -> str:
    shown = f"{budget.samples} sample rows a reason and {budget.chars} characters a text" if budget.samples else "no sample rows"
    return (
        f"To stay under 2 MB this page shows {shown}, {budget.rows} rows a table and {budget.scores} scores a stage at most. "
        "The run directory holds everything: report.json the numbers, rejected/ the rows."
    )


@functools.cache
def template() -> Template:
    """The page, compiled once."""
    environment = Environment(
        loader=PackageLoader("curate.render"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


def _shown(value: Any) -> Any:
    """Whatever a template prints; only markup made by `svg` and by macros passes unchanged."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)
