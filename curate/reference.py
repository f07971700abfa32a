"""What the stages of a run compare with from outside the input: files, earlier runs, indexes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from curate.check import GroupCheck
from curate.dataset import Dataset, Part
from curate.errors import RequestError, did_you_mean
from curate.index import Index
from curate.intake import RunTasks, intake
from curate.pipeline import Pipeline
from curate.source.discover import discover
from curate.steps.base import Job, PlannedStage
from curate.steps.outside import Outside


def compared_with(
    stages: Sequence[PlannedStage], dataset: Dataset, pipeline: Pipeline, run: RunTasks, job: Job
) -> tuple[dict[int, Outside], set[str]]:
    """By stage what it compares with, numbered on from the input's rows; and the artefacts that were read from.

    Raises `RequestError` where a reference lacks a column that the stage compares, or an index was made
    by other parameters, and `InputError` for what cannot be read.
    """
    found: dict[int, Outside] = {}
    used: set[str] = set()
    for stage in stages:
        check = stage.check
        if not isinstance(check, GroupCheck) or not (check.references() or check.index_folder()):
            continue
        parts: tuple[Part, ...] = ()
        if check.references():
            files = discover([_kept_rows(one) for one in check.references()], pipeline.read)
            taken = intake(job, files, run)
            used |= set(taken.keys)
            _has_columns(stage.name, check.compares(pipeline.roles), taken.dataset)
            parts = _numbered_on(dataset, taken.dataset)
        folder = check.index_folder()
        state = "" if folder is None else Index.open(Path(folder), check.index_identity()).state
        found[stage.index] = Outside(parts, folder, state)
    return found, used


def _kept_rows(reference: str) -> str:
    """Of a run its kept rows; anything else as it is."""
    path = Path(reference)
    return str(path / "kept") if (path / "manifest.json").exists() and (path / "kept").is_dir() else reference


def _has_columns(stage: str, columns: Sequence[str], reference: Dataset) -> None:
    for column in columns:
        if column not in reference.schema.names:
            raise RequestError(
                f"`{stage}` compares `{column}`, a column that what it is compared with does not have",
                place="against",
                hint=did_you_mean(column, reference.schema.names),
            )


def _numbered_on(dataset: Dataset, reference: Dataset) -> tuple[Part, ...]:
    parts, rows = len(dataset.parts), dataset.rows
    return tuple(dataclasses.replace(part, index=parts + part.index, first_row=rows + part.first_row) for part in reference.parts)
