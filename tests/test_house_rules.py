from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def rules(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("house_rules", root / ".ci" / "house_rules.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["house_rules"] = module
    spec.loader.exec_module(module)
    return module


def broken(rules: ModuleType, folder: Path, name: str, text: str) -> list[str]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return [str(breach) for breach in rules.breaches(folder)]


def test_the_repository_keeps_its_own_rules(rules: ModuleType, root: Path):
    assert rules.breaches(root) == []


@pytest.mark.parametrize(
    "line",
    [
        "from curate.engines import local",
        "import curate.store",
        "from curate import cli",
        "from ..render import html",
        "from .. import store",
        "def f():\n    import curate.engines.local",
    ],
)
def test_checks_and_kernels_may_not_import_the_rim(rules: ModuleType, tmp_path: Path, line: str):
    found = broken(rules, tmp_path, "curate/checks/near_dup.py", line)

    assert found
    assert found[0].startswith(f"curate/checks/near_dup.py:{1 + line.count(chr(10))}: `checks/` must not know `curate.")
    assert not broken(
        rules, tmp_path, "curate/checks/near_dup.py", "from curate.check import Check\nfrom curate.kernels import union"
    )


@pytest.mark.parametrize(
    "text",
    [
        "import pandas as pd",
        "from sklearn.model_selection import KFold",
        "try:\n    import torch\nexcept ImportError:\n    torch = None",
        "class A:\n    import ray",
        "if True:\n    import datasketch",
        "import numba",
    ],
)
def test_heavy_libraries_are_not_imported_with_the_package(rules: ModuleType, tmp_path: Path, text: str):
    assert "is heavy" in broken(rules, tmp_path, "curate/deep/module.py", text)[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("curate/a.py", "def f():\n    import pandas"),
        ("curate/a.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas as pd"),
        ("curate/kernels/a.py", "import numba"),
        ("curate/a.py", "import polars as pl, pyarrow as pa"),
        ("tests/test_a.py", "import pandas, pickle"),
    ],
)
def test_light_late_and_typing_imports_are_fine(rules: ModuleType, tmp_path: Path, name: str, text: str):
    assert broken(rules, tmp_path, name, text) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from cloudpickle import loads",
        "import yaml",
        "from yaml import load",
        "x = eval('1')",
        "exec('x = 1')",
        "np.load(f, allow_pickle=True)",
        "def f():\n    import pickle",
    ],
)
def test_nothing_reads_pickles_or_runs_text(rules: ModuleType, tmp_path: Path, line: str):
    assert len(broken(rules, tmp_path, "curate/a.py", line)) == 1
    assert (
        broken(rules, tmp_path, "curate/a.py", line + "  # allowed because: the contract suite proves that checks travel") == []
    )
    assert len(broken(rules, tmp_path, "curate/a.py", line + "  # allowed because:")) == 1


def test_names_that_only_look_unsafe_are_fine(rules: ModuleType, tmp_path: Path):
    text = "import re\nre.compile('a')\nframe.eval('a')\nnp.load(f, allow_pickle=False)\n"

    assert broken(rules, tmp_path, "curate/a.py", text) == []


def test_a_long_file_says_why(rules: ModuleType, tmp_path: Path):
    assert broken(rules, tmp_path, "tests/test_a.py", "x = 1\n" * 400) == []
    assert "more than 400 lines" in broken(rules, tmp_path, "tests/test_a.py", "x = 1\n" * 401)[0]
    assert broken(rules, tmp_path, "tests/test_a.py", "# long because: one table\n" + "x = 1\n" * 401) == []


@pytest.mark.parametrize("place", ["work", "root", "home/someone", "Users/someone", "tmp/run"])
def test_no_file_names_a_machine(rules: ModuleType, tmp_path: Path, place: str):
    found = broken(rules, tmp_path, "docs/a.md", f"see\nthe file `/{place}/x`")

    assert len(found) == 1
    assert found[0].startswith("docs/a.md:2: ")


def test_paths_inside_the_project_and_urls_are_fine(rules: ModuleType, tmp_path: Path):
    assert broken(rules, tmp_path, "docs/a.md", "out/work/x, https://example.org/home/page, ./root/x") == []


def test_binary_files_are_passed_over(rules: ModuleType, tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(b"\xff\xfe")

    assert rules.breaches(tmp_path) == []
