from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# No verdict depends on how busy the machine is; CI draws the same examples every time.
settings.register_profile(
    "curate", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("curate")


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


@pytest.fixture
def room() -> Iterator[Path]:
    """An empty folder for whole runs, in memory where the system has such a place: a run flushes every file to its disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="curate-test-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def _not_on_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's own runs tell a workflow nothing, wherever the suite itself runs."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
