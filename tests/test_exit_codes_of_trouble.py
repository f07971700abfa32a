"""Exit codes 5, 75 and 130 from real processes: others at work, no room left, a worker or a run killed, Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from process import Finished, curate, group_members, start, wait_for, write_pipeline

MANY = b"".join(b'{"id":"%d","text":"text number %d"}\n' % (at, at * 7919) for at in range(5000))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "data.jsonl").write_bytes(MANY)
    write_pipeline(tmp_path)
    return tmp_path


def run(here: Path, *arguments: object, out: str = "out", **more: Any) -> Finished:
    done = curate("run", "pipeline.yaml", "--out", out, "--json", *arguments, cwd=here, **more)
    assert isinstance(done.document, dict)
    return done


def assert_error(done: Finished, code: int, *words: str) -> None:
    """One document that says what, where and what next; the same for people on stderr, and no traceback."""
    assert done.code == code, done.stderr
    error = done.error
    assert error["exit_code"] == code
    assert error["message"]
    said = " ".join((error["message"], error["place"], error["hint"]))
    for word in words:
        assert word in said
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def _long(here: Path, files: int = 6, rows: int = 20_000) -> None:
    """Input that keeps two workers busy for seconds."""
    words = [f"word{at}" for at in range(2000)]
    (here / "many").mkdir()
    for file in range(files):
        texts = [" ".join(words[(at * at + step * (7 + file) + at) % 2000] for step in range(40)) for at in range(rows)]
        pq.write_table(pa.table({"id": [f"{file}-{at}" for at in range(rows)], "text": texts}), here / "many" / f"{file}.parquet")
    write_pipeline(here, source="many", stages=["missing", "exact_dup", "near_dup"])


def test_a_folder_that_another_live_run_holds_exits_5_and_a_dead_one_is_no_hindrance(here: Path) -> None:
    holder = "import fcntl, os, sys, time; f = open(sys.argv[1], 'a+'); fcntl.flock(f, fcntl.LOCK_EX); f.write(str(os.getpid()))"
    assert run(here).code == 0
    lock = here / "out" / ".curate" / "lock"
    lock.write_text("")
    other = os.posix_spawn(sys.executable, [sys.executable, "-c", f"{holder}; f.flush(); time.sleep(60)", str(lock)], os.environ)
    try:
        wait_for(lock.read_text)
        busy = run(here)
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)

    assert_error(busy, 5, f"process {other}", "--out")
    assert run(here).code == 0


def test_a_full_disk_exits_75_leaves_no_half_output_and_the_next_run_completes(here: Path) -> None:
    """A limit on the size of files stands in for the disk's end: it strikes at a write in the same way."""
    (here / "data.jsonl").write_bytes(MANY * 20)
    write_pipeline(here, roles={"text": "text"}, stages=["missing"])

    full = run(here, file_size=1 << 20)

    assert_error(full, 75, "the disk is full")
    assert not (here / "out" / "kept").exists()
    assert run(here).document["report"]["rows"]["kept"] == 100_000


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_small_file_system_exits_75_and_the_next_run_completes(here: Path) -> None:
    (here / "data.jsonl").write_bytes(MANY * 20)
    small = here / "small"
    small.mkdir()
    if os.system(f"mount -t tmpfs -o size=2m tmpfs {small} 2>/dev/null") != 0:
        pytest.skip("mounting is not permitted here")
    try:
        full = run(here, out="small/out")
        assert_error(full, 75, "the disk is full", "again")
        assert not (small / "out" / "kept").exists()
        os.system(f"mount -o remount,size=64m {small}")
        assert run(here, out="small/out").code == 0
    finally:
        os.system(f"umount {small}")


def _workers(leader: int) -> list[int]:
    found = []
    for process in group_members(leader):
        try:
            if b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(process)
        except OSError:
            continue
    return found


def test_ctrl_c_stops_within_10_s_leaves_no_process_and_running_again_completes(here: Path) -> None:
    _long(here)
    running = start("run", "pipeline.yaml", "--out", "out", "--workers", "2", "--json", cwd=here)
    wait_for(lambda: len(_workers(running.pid)) >= 2)
    time.sleep(0.5)

    begun = time.monotonic()
    running.send_signal(signal.SIGINT)
    stdout, _ = running.communicate(timeout=30)

    assert running.returncode == 130
    assert time.monotonic() - begun < 10
    assert json.loads(stdout)["error"]["exit_code"] == 130
    wait_for(lambda: not group_members(running.pid), 3)
    assert not (here / "out" / "manifest.json").exists()
    assert run(here, "--workers", "2").document["report"]["rows"]["input"] == 120_000


def test_a_killed_worker_exits_75_and_a_killed_run_leaves_no_worker_behind(here: Path) -> None:
    _long(here)
    first = start("run", "pipeline.yaml", "--out", "out", "--workers", "2", "--json", cwd=here)
    wait_for(lambda: len(_workers(first.pid)) >= 2)
    os.kill(_workers(first.pid)[0], signal.SIGKILL)
    stdout, _ = first.communicate(timeout=30)
    second = start("run", "pipeline.yaml", "--out", "out", "--workers", "2", cwd=here)
    wait_for(lambda: len(_workers(second.pid)) >= 2)
    second.kill()
    second.communicate(timeout=30)

    assert first.returncode == 75
    assert "worker" in json.loads(stdout)["error"]["message"]
    wait_for(lambda: not group_members(first.pid) and not group_members(second.pid), 5)
    shutil.rmtree(here / "out")
