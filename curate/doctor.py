"""What this machine offers a run, and whether a small run works on it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from curate.check import catalogue

PACKAGES = (
    *("polars", "pyarrow", "numpy", "numba", "pydantic", "ruamel.yaml", "typer", "rich", "fsspec", "zstandard", "xxhash"),
    *("jinja2", "orjson", "py3langid"),
)
OPTIONAL = ("pandas", "scikit-learn", "cleanlab", "datasketch", "torch", "ray")
_LOW_DISK_BYTES = 2_000_000_000


def doctor() -> dict[str, Any]:
    """Versions, cores, memory, disk, engines, caches and a self-test; `problems` says what to mend.

    *Cost*: a run of some rows, and the time to compile the kernels where no cache holds them.
    """
    from curate.plan import machine_cores, machine_memory

    temp = _folder(Path(tempfile.gettempdir()))
    facts: dict[str, Any] = {
        "curate": own_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": machine_cores(),
        "memory_bytes": machine_memory(),
        "disk": _folder(Path.cwd()),
        "temp": temp,
        "packages": {name: _version(name) for name in (*PACKAGES, *OPTIONAL)},
        "checks": list(catalogue()),
        "engines": {
            "local": "available",
            "ray": "available" if importlib.util.find_spec("ray") else 'not installed (pip install "curate-data[ray]")',
        },
        "kernel_cache": _kernel_cache(),
        "self_test": _self_test() if temp["writable"] else {"passed": False, "error": "no folder to write to"},
    }
    facts["problems"] = _problems(facts)
    return facts


def own_version() -> str:
    """The version of this package."""
    from curate import __version__

    return __version__


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _folder(path: Path) -> dict[str, Any]:
    return {"path": str(path), "free_bytes": shutil.disk_usage(path).free, "writable": _is_writable(path)}


def _is_writable(path: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def _kernel_cache() -> dict[str, Any]:
    """Where compiled kernels are kept: the named folder, the package's own, or the user's cache, in this order."""
    own = Path(__file__).parent / "kernels"
    named = os.environ.get("NUMBA_CACHE_DIR")
    candidates = [Path(named)] if named else [own, Path.home() / ".cache"]
    found = next((path for path in candidates if path.is_dir() and _is_writable(path)), None)
    if found is None and named:  # numba makes the folder it is told to use
        found = next((parent for parent in Path(named).parents if parent.is_dir() and _is_writable(parent)), None)
    return {"path": str(found or candidates[0]), "writable": found is not None}


def _self_test() -> dict[str, Any]:
    """Run our own checks on four rows in a folder of its own, and compare the ledger with what must come out.

    The kernels of every check are compiled by it, where no cache holds them yet.
    """
    import pyarrow as pa

    from curate import api
    from curate.pipeline import Pipeline

    began = time.perf_counter()
    twin = "the quick brown fox jumps over the lazy dog and runs away from the hungry grey wolf at night"
    table = pa.table({"text": [twin, "nothing like the others at all", twin, twin + " again"]})
    reporting: list[dict[str, Any]] = [{name: {}, "reject": []} for name in ("text_quality", "language", "pii")]
    stages: list[Any] = ["missing", *reporting, "exact_dup", "near_dup"]
    expected = 2
    try:
        with tempfile.TemporaryDirectory(prefix="curate-doctor-") as folder:
            pipeline = Pipeline("doctor", stages, roles={"text": "text"})
            run = api.run(pipeline, source=table, out=Path(folder) / "run", workers=1)
            rejected = run.report["rows"]["rejected"]
    except Exception as err:  # whatever breaks is the finding
        return {"passed": False, "error": f"{type(err).__name__}: {err}"}
    took = round(time.perf_counter() - began, 2)
    if rejected != expected:
        return {"passed": False, "error": f"{rejected} of 4 rows were rejected, not {expected}", "wall_s": took}
    return {"passed": True, "stages": list(run.report["stages"]), "wall_s": took}


def _problems(facts: dict[str, Any]) -> list[str]:
    problems = [f"{name} is not installed: pip install curate-data" for name in PACKAGES if facts["packages"][name] is None]
    for name in ("disk", "temp"):
        folder = facts[name]
        if not folder["writable"]:
            problems.append(f"{folder['path']} cannot be written to")
        elif folder["free_bytes"] < _LOW_DISK_BYTES:
            problems.append(f"{folder['path']} has less than 2 GB free")
    if not facts["kernel_cache"]["writable"]:
        problems.append("compiled kernels cannot be kept, so every start compiles them: set NUMBA_CACHE_DIR to a writable folder")
    if not facts["self_test"]["passed"]:
        problems.append(f"the self-test failed: {facts['self_test']['error']}")
    return problems
