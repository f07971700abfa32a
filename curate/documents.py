"""The documents of a run: numbers, sample rows, the gate's answer, the page, and last of all the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from curate import manifest
from curate.execute import Outcome
from curate.gate import evaluate
from curate.pipeline import Pipeline
from curate.rundir import RunDir
from curate.source.discover import SourceFile
from curate.steps.outside import NAMED
from curate.steps.sample import samples
from curate.steps.write import SHOWN_SEGMENT


def publish(
    pipeline: Pipeline,
    outcome: Outcome,
    files: Sequence[SourceFile],
    folder: RunDir,
    until: str | None,
    started: float,
    report: dict[str, Any],
    baseline: dict[str, Any] | None,
) -> dict[str, Any] | None:
    """Write report.json, samples.json, gate.json, report.html and manifest.json, and give the gate's answer.

    An older manifest goes first: with one, all the documents of a directory belong together.
    """
    from curate.render.html import render

    judged = None if pipeline.gate is None else evaluate(pipeline.gate, report, baseline).to_dict()
    store = outcome.job.store
    far = pa.concat_tables([NAMED.empty_table(), *(store.read(key) for key in outcome.outside)])
    shown = pa.concat_tables([*(store.read(task.key, SHOWN_SEGMENT) for task in outcome.writes), far], promote_options="default")
    _name_witnesses(folder.path, report, {row["row"]: row for row in far.to_pylist()})
    rows = samples(outcome.job, outcome.dataset, outcome.choose, shown, report)
    folder.unfinish()
    folder.write_document("report.json", report)
    folder.write_document("samples.json", rows)
    publish_gate(folder, judged, report)
    record = manifest.build(pipeline, outcome, files, until=until, started=started, costs=report["costs"])
    folder.write_text("report.html", render(report, record, judged, rows, folder.given))
    folder.write_document("manifest.json", record)
    return judged


def publish_gate(folder: RunDir, judged: dict[str, Any] | None, report: dict[str, Any]) -> None:
    """Write gate.json and junit.xml; neither where no gate was asked for."""
    if judged is None:
        for name in ("gate.json", "junit.xml"):
            (folder.path / name).unlink(missing_ok=True)
        return
    from curate.render.junit import junit

    folder.write_document("gate.json", judged)
    folder.write_text("junit.xml", junit(judged, report))


def foresee() -> None:
    """Load what `publish` needs, in a thread, while others do work before it that holds no interpreter lock."""
    import polars  # noqa: F401

    from curate.render.html import template

    template()
    manifest.packages()


def _name_witnesses(path: Path, report: dict[str, Any], far: Mapping[int, Mapping[str, Any]]) -> None:
    """Give the rows that lead the largest groups the caller's ids; those from outside have no number and a place."""
    import polars as pl

    leaders = [row for stage in report["stages"].values() for row in stage.get("groups", {}).get("largest", ())]
    wanted = [row["witness_row"] for row in leaders]
    ids: dict[int, str | None] = {}
    if wanted:
        verdicts = pl.scan_parquet(sorted(map(str, (path / "verdicts").glob("*.parquet"))), glob=False)
        found = verdicts.filter(pl.col("row_id").is_in(wanted)).select("row_id", "id").collect()
        ids = dict(found.iter_rows())
    for row in leaders:
        row["witness_id"] = ids.get(row["witness_row"])
        if row["witness_row"] in far:
            known = far[row["witness_row"]]
            row |= {"witness_row": None, "witness_id": known["id"], "witness_source": known["source"]}
