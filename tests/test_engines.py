"""Every engine keeps one contract: the same bytes, a clean error, and no hanging."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kill_harness import group_of
from runs import assert_accounted, data_files, flag, numbered, numbers, pipeline, write_jsonl, write_parquet
from toy_checks import LOG, Amount, Centre, SameValue, Trouble, Twice, calls

from curate import api
from curate.engines.local import InProcess, ProcessPool, Threads
from curate.errors import InvariantError, TemporaryError
from curate.pipeline import Stage
from curate.plan import SMALL_BYTES
from curate.source.discover import SourceFile
from curate.store import Store

STAGES = [
    "missing",
    flag(Centre(), above=0.3, of="distance"),
    SameValue(),
    "near_dup",
    flag(Amount(), worst_fraction=0.2, of="amount"),
    flag(Twice(), above=0.8, of="twice"),
    "exact_dup",
]
Run = Callable[..., api.Run]


@pytest.fixture(params=["in process", "threads", "pool"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`api.run` on one engine, with two workers where it can; every engine is held to the same tests."""
    if request.param == "threads":
        monkeypatch.setattr(api, "ProcessPool", Threads)  # whatever the stages are

    def run(stages: Sequence[Any], source: object, out: Path, **more: Any) -> api.Run:
        return api.run(pipeline(*stages, **more), source, out, workers=1 if request.param == "in process" else 2)

    return run


@pytest.fixture
def source(room: Path) -> Path:
    """Parts enough for two workers, of two formats."""
    table = numbered(80)
    for at in range(4):
        write_parquet(room / "in" / f"{at}.parquet", table.slice(15 * at, 15))
    write_jsonl(room / "in" / "5.jsonl", [*table.slice(60).to_pylist(), b"{"])
    return room / "in"


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """What the first engine made of it: all others are compared with that."""
    return {}


@pytest.mark.parametrize("mode", ["staged", "audit"])
def test_engines_write_the_same_bytes(engine: Run, source: Path, room: Path, mode: str, expected: dict[str, Any]) -> None:
    run = engine(STAGES, source, room / "out", mode=mode)

    assert_accounted(run.path, [*numbered(80).to_pylist(), None])
    files, told = expected.setdefault(mode, (data_files(run.path), numbers(run.path)))
    assert data_files(run.path) == files
    assert numbers(run.path) == told


def test_an_engine_goes_on_where_another_one_stopped(engine: Run, source: Path, room: Path) -> None:
    stages = [flag(Amount(), above=0.5, of="amount"), Trouble(how="raise", at="number 7 ")]
    with pytest.raises(ZeroDivisionError):
        api.run(pipeline(*stages), source, room / "out")

    mended = [stages[0], flag(Amount(), name="more", below=0.1, of="amount")]
    assert data_files(engine(mended, source, room / "out").path) == data_files(
        api.run(pipeline(*mended), source, room / "fresh").path
    )


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("raise", ZeroDivisionError, "divided by zero"),
        ("short", InvariantError, r"trouble\.level.* values for \d+ rows"),
        ("undeclared", InvariantError, r"trouble.* declared \['level'\] and emitted \['level', 'more'\]"),
        ("range", InvariantError, "leaves the range 0 to 1"),
    ],
)
def test_a_check_that_breaks_its_word_stops_the_run_and_nothing_is_published(
    engine: Run, source: Path, room: Path, how: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        engine(["missing", Trouble(how=how)], source, room / "out")

    assert sorted(path.name for path in (room / "out").iterdir()) == [".curate", "events.jsonl"]


def test_a_failed_run_leaves_the_results_of_the_one_before(engine: Run, source: Path, room: Path) -> None:
    before = data_files(engine(["missing"], source, room / "out").path)

    with pytest.raises(ZeroDivisionError):
        engine(["missing", Trouble()], source, room / "out")

    assert data_files(room / "out") == before
    assert (room / "out" / "manifest.json").exists()


def test_a_killed_worker_ends_the_run_at_once_and_running_again_completes_it(source: Path, room: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv(LOG, str(room / "log"))
    stages = [flag(Amount(), above=0.9, of="amount"), flag(Centre(), above=0.9, of="distance")]
    begun = time.monotonic()

    with pytest.raises(TemporaryError, match="worker process was killed") as caught:
        api.run(pipeline(*stages, Trouble(how="kill", at="text")), source, room / "out", workers=2)

    assert time.monotonic() - begun < 20
    assert caught.value.exit_code == 75
    assert multiprocessing.active_children() == []
    scored = calls(room / "log")["amount.score"]
    again = api.run(pipeline(*stages), source, room / "out", workers=2)
    assert calls(room / "log")["amount.score"] == scored == 80 - numbered(80).column("value").null_count
    assert_accounted(again.path, [*numbered(80).to_pylist(), None])


def test_closing_a_pool_stops_a_task_under_way(source: Path, room: Path) -> None:
    """The first part sleeps for a minute while the second one fails."""
    stages = [Trouble(how="slow", at="text number 0 ", after_s=60.0), Stage(Trouble(how="raise", at="text number 39 "), name="t")]
    begun = time.monotonic()

    with pytest.raises(ZeroDivisionError):
        api.run(pipeline(*stages), source, room / "out", workers=2)

    assert time.monotonic() - begun < 20
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted in /proc")
def test_workers_do_not_outlive_a_killed_run(source: Path, room: Path, root: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from runs import pipeline; from toy_checks import Trouble\n"
        "from curate import api\n"
        "if __name__ == '__main__':\n"
        "    stages = [Trouble(how='slow', at='text', after_s=60.0)]\n"
        "    api.run(pipeline(*stages), Path(sys.argv[1]), Path(sys.argv[2]), workers=2)\n"
    )
    (room / "script.py").write_text(script)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "tests"))), LOG: str(room / "log")}
    command = [sys.executable, str(room / "script.py"), str(source), str(room / "out")]
    process = subprocess.Popen(command, env=env, start_new_session=True)
    try:
        wait_for(lambda: "trouble.score" in calls(room / "log"))
        assert len(group_of(process.pid)) > 1

        process.kill()
        process.wait(timeout=10)

        wait_for(lambda: not group_of(process.pid))
    finally:
        for left in group_of(process.pid):
            os.kill(left, signal.SIGKILL)


def wait_for(claim: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@dataclass(frozen=True)
class Step:
    """A task that takes its time, or fails."""

    key: str
    after_s: float
    fails: bool = False

    def is_done(self, job: Any) -> bool:
        return False

    def run(self, job: Any) -> None:
        time.sleep(self.after_s)
        if self.fails:
            raise ZeroDivisionError
        job.store.put(self.key, [], {"by": threading.get_ident()})


@dataclass(frozen=True)
class Place:
    """As much of a job as a `Step` asks for."""

    store: Store


def test_threads_leave_no_task_under_way_when_one_fails(room: Path) -> None:
    """The next attempt would begin the same task beside it."""
    place, threads = Place(Store(room)), Threads(2)
    steps = [Step("slow", 0.3), Step("bad", 0.0, fails=True), Step("third", 0.3), Step("never begun", 0.0)]

    with pytest.raises(ZeroDivisionError):
        list(threads.map(place, steps))  # type: ignore[arg-type]

    assert place.store.has("slow")
    assert not place.store.has("never begun")
    threads.close()


def test_threads_work_beside_each_other_in_the_commands_own_process(room: Path) -> None:
    place, threads = Place(Store(room)), Threads(2)
    begun = time.monotonic()

    done = list(threads.map(place, [Step(f"step {at}", 0.2) for at in range(4)]))  # type: ignore[arg-type]

    assert time.monotonic() - begun < 0.75
    assert {task.key for task, _ in done} == {f"step {at}" for at in range(4)}
    assert len({facts["by"] for _, facts in done}) == 2
    assert multiprocessing.active_children() == []
    threads.close()


def test_compiled_stages_on_local_parquet_run_in_threads_and_others_in_processes(room: Path) -> None:
    files = [SourceFile(str(room / "a.parquet"), "a.parquet", "parquet", "none", SMALL_BYTES, "0", False)]
    decoded = [SourceFile(str(room / "a.jsonl"), "a.jsonl", "jsonl", "none", SMALL_BYTES, "0", False)]

    def kind(able: int, stages: list[str], files: list[SourceFile]) -> type:
        with api._engine(able, files, None, pipeline(*stages)) as engine:
            return type(engine)

    assert kind(2, ["missing", "near_dup"], files) is Threads
    assert kind(2, ["near_dup", "pii"], files) is ProcessPool
    assert kind(2, ["near_dup"], decoded) is ProcessPool
    assert kind(1, ["near_dup"], files) is InProcess


def test_the_same_file_twice_is_two_parts_whatever_works_on_them(engine: Run, room: Path) -> None:
    """What is known of a part's bytes has one key, and both parts may publish it at the same moment."""
    for name in ("a", "b"):
        write_parquet(room / "in" / f"{name}.parquet", numbered(40))

    run = engine(["missing"], room / "in", room / "out")

    assert_accounted(run.path, [*numbered(40).to_pylist(), *numbered(40).to_pylist()])


def test_one_task_starts_no_worker() -> None:
    pool = ProcessPool(2)

    assert list(pool.map(None, [])) == []  # type: ignore[arg-type]
    assert pool._pool is None
    pool.close()
    InProcess().close()
