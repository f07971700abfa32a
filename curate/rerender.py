"""`curate report`: the page of a finished run, made again from its documents without touching data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from curate.errors import RequestError
from curate.rundir import RunDir, read_document


def report(run_dir: str | Path) -> Path:
    """Write `report.html` of a finished run anew and give its path.

    It is made from `report.json`, `manifest.json`, and `gate.json` and `samples.json` where the
    run has them. Raises `RequestError` where the folder is no finished run, and `BusyError` where a run works in it.
    """
    path = Path(run_dir)
    if not path.is_dir():
        said = "is a file" if path.exists() else "is not there"
        raise RequestError(f"the run folder {said}", place=str(path), hint="give the folder that `curate run --out` wrote")
    with RunDir(path).held():
        return write_page(run_dir)


def write_page(run_dir: str | Path) -> Path:
    """`report`, for who holds the folder."""
    from curate.render.html import render

    path = Path(run_dir)
    record, numbers = read_document(path, "manifest.json"), read_document(path, "report.json")
    page = render(numbers, record, _maybe(path, "gate.json"), _maybe(path, "samples.json"), str(run_dir))
    RunDir(path).write_text("report.html", page)
    return path / "report.html"


def _maybe(path: Path, name: str) -> dict[str, Any] | None:
    return read_document(path, name) if (path / name).exists() else None
