"""Start the real command in a process group of its own, kill all of it at some moment, and look at what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from runs import data_files, numbers

ROOT = Path(__file__).resolve().parents[1]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "curate.cli", *map(str, arguments)]


def start(arguments: Sequence[object]) -> subprocess.Popen[bytes]:
    """The command, as the leader of a new process group."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command(*arguments), cwd=ROOT, env=env, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def run(arguments: Sequence[object]) -> float:
    """Run the command to its end; how long it took."""
    begun = time.monotonic()
    process = start(arguments)
    assert process.wait(timeout=120) == 0
    return time.monotonic() - begun


def kill_after(arguments: Sequence[object], seconds: float) -> bool:
    """Kill the command and its workers, all at once, after some seconds; whether it was still running."""
    process = start(arguments)
    try:
        process.wait(timeout=seconds)
        return False
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.wait(timeout=30)
        return True


def kill_group(leader: int) -> None:
    """Kill -9 every process of a group at the same moment, but Python's resource tracker.

    The tracker does no work of ours: it removes the semaphores of processes that died, which would pile up in memory.
    """
    os.killpg(leader, signal.SIGSTOP)
    for process in group_of(leader):
        if b"resource_tracker" not in Path(f"/proc/{process}/cmdline").read_bytes():
            os.kill(process, signal.SIGKILL)
    os.killpg(leader, signal.SIGCONT)


def group_of(leader: int) -> list[int]:
    """The living processes of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = stat.read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:
            continue
        if int(group) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def finished_work(out: Path) -> dict[str, int]:
    """The finished artefacts of a run's store, with what tells a file from one that was written again."""
    store = out / ".curate" / "store"
    receipts = (path for path in store.rglob("*.json") if path.with_suffix(".arrow").exists())
    return {path.stem: path.stat().st_ino for path in receipts}


def assert_resumed(out: Path, undisturbed: Path, finished: dict[str, int]) -> None:
    """The run is like one that nothing happened to, and finished work was not done again."""
    assert data_files(out) == data_files(undisturbed)
    assert numbers(out) == numbers(undisturbed)
    now = finished_work(out)
    assert {key: now[key] for key in finished if key in now} == {key: node for key, node in finished.items() if key in now}
    assert not (out / ".curate" / "publishing").exists()
    assert not (out / ".curate" / "stage").exists()
