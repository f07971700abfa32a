"""The run record, written last: what was run on what, with which versions, and what came out."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from curate.execute import Outcome
from curate.pipeline import Pipeline
from curate.plan import describe
from curate.policy import finite_or_none
from curate.rundir import VERSION
from curate.source.discover import SourceFile

PACKAGES = (
    *("curate-data", "numpy", "numba", "pandas", "polars", "py3langid", "pyarrow", "pydantic"),
    *("scikit-learn", "cleanlab", "datasketch"),
)


def build(
    pipeline: Pipeline, outcome: Outcome, files: Sequence[SourceFile], *, until: str | None, started: float, costs: dict[str, Any]
) -> dict[str, Any]:
    """`manifest.json`: everything needed to know what a run directory holds, and to make it again."""
    job = outcome.job
    sizes = {name: size for fact in outcome.facts for name, size in fact["sizes"].items()}
    return {
        "version": VERSION,
        "status": "complete",
        "name": pipeline.name,
        "started": _time(started),
        "finished": _time(datetime.now(UTC).timestamp()),
        "pipeline": pipeline.to_dict(),
        "pipeline_key": pipeline.key,
        "until": until,
        "seed": pipeline.seed,
        "roles": dict(_roles(pipeline)),
        "stages": _stages(outcome),
        "sources": [
            {"name": file.name, "path": file.path, "format": file.format, "bytes": file.size, "digest": file.digest}
            for file in files
        ],
        "columns": [{"name": field.name, "type": str(field.type)} for field in job.schema],
        "parts": [
            {
                "name": part.name,
                "source_file": part.source_file,
                "first_source_row": part.first_source_row,
                "rows": part.rows,
                "first_row": part.first_row,
                **fact["counts"],
            }
            for part, fact in zip(outcome.dataset.parts, outcome.facts, strict=True)
        ],
        "output": pipeline.output.format,
        "files": sizes,
        "packages": packages(),
        "python": sys.version.split()[0],
        "unicode": unicodedata.unidata_version,
        "platform": platform.platform(),
        "costs": costs,
    }


@functools.cache
def packages() -> Mapping[str, str | None]:
    """The versions of what a run's numbers may depend on; None for what is not installed."""
    return {name: _installed(name) for name in PACKAGES}


def _stages(outcome: Outcome) -> list[dict[str, Any]]:
    stages = describe(outcome.job.stages)
    for index, limits in outcome.limits.items():
        for rule, limit in zip(stages[index]["rules"], limits, strict=True):
            rule["limit"] = finite_or_none(limit)
    return stages


def _roles(pipeline: Pipeline) -> dict[str, Any]:
    out: dict[str, list[str]] = {}
    for role, column in pipeline.roles:
        out.setdefault(role, []).append(column)
    return out


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
