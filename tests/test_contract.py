"""Every check of the catalogue keeps every promise of `curate.testing`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curate.check import Check, catalogue, make_check
from curate.dataset import Roles
from curate.testing import PROMISES, after, sample

BEFORE = {"label_noise": ("oof_probs",)}
CORPUS = Path(__file__).parents[1] / "sample_data" / "corpus" / "en-0004.parquet"
NEEDED: dict[str, dict[str, Any]] = {"contamination": {"against": [str(CORPUS)], "text": "text"}}
"""parameters without which a check has nothing to do"""
GIVEN: list[tuple[str, dict[str, Any]]] = [(name, NEEDED.get(name, {})) for name in catalogue()]
GIVEN += [
    ("missing", {"of": ["body", "width"]}),
    ("exact_dup", {"prefer": ["longest", {"lowest": "width"}], "empty": "match"}),
    ("exact_dup", {"of": ["label", "width"], "normalise": False, "prefer": {"order": ["test", "train"], "of": "part"}}),
    ("near_dup", {"similarity": 0.5, "prefer": [{"highest": "width"}, {"newest": "name"}]}),
    ("near_dup", {"similarity": 0.1, "words": 1, "max_bucket_rows": 2}),
    ("near_dup", {"record": {"body": 2, "name": {"weight": 1, "chars": 4}}, "similarity": 0.4}),
    ("near_dup", {"similarity": 0.6, "words": 3, "prefer": ["longest", {"order": ["test", "train"], "of": "part"}]}),
    ("near_dup", {"similarity": 0.6, "chars": 8, "bands": 40, "rows": 2, "prefer": ["longest", {"newest": "width"}]}),
    ("oof_probs", {"fast": True, "folds": 3, "group_key": "country"}),
    ("label_noise", {"budget": "none"}),
    ("language", {"allowed": ["en", "jpn", "Thai"], "min_confidence": 0.1, "sample_bytes": 96}),
]


@pytest.fixture(params=GIVEN, ids=[f"{name}-{index}" for index, (name, _) in enumerate(GIVEN)])
def check(request: pytest.FixtureRequest) -> Check:
    return make_check(*request.param)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_every_check_keeps(promise: Any, check: Check) -> None:
    promise(check, *seen_by(check, 60))


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_every_check_keeps_on_one_row(promise: Any, check: Check) -> None:
    promise(check, *seen_by(check, 1))


def seen_by(check: Check, rows: int) -> tuple[pa.Table, Roles]:
    """The sample, with the columns of the stages that the check reads."""
    table, roles = sample(rows)
    for name in BEFORE.get(check.name, ()):
        table = after(make_check(name, {"fast": True}), table, roles)
    return table, roles
