"""The command starts lean, and a process that does other work is left as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import numbered, write_parquet
from toy_checks import Amount

from curate.check import make_check
from curate.lean import can_do_without

SCRIPT = """
import json, sys
from curate import cli

code = cli.main(json.loads(sys.argv[1]), alone=json.loads(sys.argv[2]))
loaded = [name for name in ("pandas", "scipy.linalg") if name in sys.modules]

import pandas as pd
import pyarrow as pa
import scipy.linalg

numbers = pd.Series([1.0, float("nan")])
before = pa.array(numbers).null_count
pa.array([1]).to_pandas()
print(json.dumps({"code": code, "loaded": loaded, "nulls": [before, pa.array(numbers).null_count]}))
"""


def told(room: Path, root: Path, stages: list[str], alone: bool) -> dict[str, Any]:
    """What a process that ran the command had loaded, and what pyarrow made of pandas afterwards."""
    write_parquet(room / "in.parquet", numbered(30))
    spec = {"name": "t", "source": str(room / "in.parquet"), "roles": {"id": "id", "text": "text"}, "stages": stages}
    (room / "p.json").write_text(json.dumps(spec))
    command = ["run", str(room / "p.json"), "--out", str(room / "out")]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(command), json.dumps(alone)],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("stages", [["missing"], ["near_dup"]])
def test_a_run_of_compiled_stages_loads_neither_pandas_nor_linear_algebra(room: Path, root: Path, stages: list[str]) -> None:
    found = told(room, root, stages, alone=True)

    assert (found["code"], found["loaded"]) == (0, [])
    assert found["nulls"][1] == 1  # pandas is known again once it was asked for


def test_a_process_of_somebody_elses_knows_pandas_all_along(room: Path, root: Path) -> None:
    assert told(room, root, ["missing"], alone=False)["nulls"] == [1, 1]


def test_checks_of_others_find_all_that_is_installed() -> None:
    ours = [make_check(name, {}) for name in ("missing", "near_dup")]

    assert can_do_without(ours)
    assert not can_do_without([*ours, make_check("pii", {})])
    assert not can_do_without([*ours, Amount()])
