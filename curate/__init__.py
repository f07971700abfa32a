"""Curate a data set: score its rows, keep the good ones, account for every one of them.

    import curate
    run = curate.run("pipelines/corpus.yaml", out="runs/corpus")
    run.report["rows"], run.kept

Everything is imported on first use, so that importing `curate` costs nothing. The other verbs
(`plan`, `gate`, `why`, `diff`, `checks`, `schema`, `doctor`) are functions of `curate.api`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curate.api import load, run
    from curate.check import FitCheck, GroupCheck, RowCheck
    from curate.dataset import Roles, Rows
    from curate.errors import CurateError
    from curate.pipeline import Limit, Pipeline, Stage

__version__ = "0.1.0"
__all__ = ["CurateError", "FitCheck", "GroupCheck", "Limit", "Pipeline", "Roles", "RowCheck", "Rows", "Stage", "load", "run"]

_HOME = {
    "load": "curate.api",
    "run": "curate.api",
    "FitCheck": "curate.check",
    "GroupCheck": "curate.check",
    "RowCheck": "curate.check",
    "Roles": "curate.dataset",
    "Rows": "curate.dataset",
    "CurateError": "curate.errors",
    "Limit": "curate.pipeline",
    "Pipeline": "curate.pipeline",
    "Stage": "curate.pipeline",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `curate` has no attribute `{name}`")
    return getattr(importlib.import_module(_HOME[name]), name)
