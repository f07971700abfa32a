from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The developers' folder of data with known truth, beside the repository; most checkouts have none."""
    folder = ROOT.parent / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("there is no folder ../shared/data beside this checkout")
    return folder


@pytest.fixture(autouse=True)
def _not_on_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's own runs tell a workflow nothing, wherever the suite itself runs."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
