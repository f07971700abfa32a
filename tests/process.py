"""Run the command line as a user does: in a process of its own, with a clock and perhaps a memory limit."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
GIB = 1 << 30


@dataclass(frozen=True)
class Finished:
    """What a process left behind."""

    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def document(self) -> Any:
        """The one JSON document on stdout; fails where there is none, or more than one."""
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, Any]:
        return dict(self.document["error"])


def environment(**more: str) -> dict[str, str]:
    """This process' environment, with the checkout importable from any folder."""
    path = os.pathsep.join([str(ROOT), *filter(None, [more.pop("PYTHONPATH", ""), os.environ.get("PYTHONPATH", "")])])
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "120", **more}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "curate.cli", *map(str, arguments)]


def limited(memory: int | None = None, file_size: int | None = None) -> Callable[[], None] | None:
    """What a child does before it becomes the command: take limits on address space and on the size of files."""
    if memory is None and file_size is None:
        return None

    def limit() -> None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if file_size is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

    return limit


def curate(
    *arguments: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60,
    memory: int | None = None,
    file_size: int | None = None,
) -> Finished:
    """`curate ARGUMENTS` in a fresh process; a command that outlives `timeout` fails the test."""
    begun = time.perf_counter()
    done = subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        preexec_fn=limited(memory, file_size),
        check=False,
    )
    seconds = time.perf_counter() - begun
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"), seconds)


def script(source: str, *arguments: object, timeout: float = 60, memory: int | None = None, cwd: Path | None = None) -> Finished:
    """A Python script in a fresh process."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", source, *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        timeout=timeout,
        preexec_fn=limited(memory),
        check=False,
    )
    seconds = time.perf_counter() - begun
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"), seconds)


def start(*arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """`curate ARGUMENTS` left running, leader of a process group of its own."""
    return subprocess.Popen(
        command(*arguments),
        cwd=cwd,
        env=environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def wait_for(claim: Callable[[], object], seconds: float = 30) -> None:
    """Return once `claim()` is true; fail when it does not become so in time."""
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.02)


def group_members(leader: int) -> list[int]:
    """The live processes of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def write_pipeline(folder: Path, stages: Sequence[Any] = ("missing",), **more: Any) -> Path:
    """A pipeline file (JSON is YAML) with id and text roles unless told otherwise."""
    pipeline = {"name": "test", "source": "data.jsonl", "roles": {"id": "id", "text": "text"}, "stages": list(stages), **more}
    path = folder / "pipeline.yaml"
    path.write_text(json.dumps({key: value for key, value in pipeline.items() if value is not None}))
    return path


BATCH = """
import json, sys, traceback
from curate import api
from curate.errors import CurateError

jobs, answers = json.load(open(sys.argv[1])), open(sys.argv[2], "a")
for job in jobs:
    print(json.dumps({"begun": job["name"]}), file=answers, flush=True)
    answer = {"name": job["name"], "code": 0}
    try:
        answer["rows"] = api.run(job["pipeline"], source=job["source"], out=job["out"]).report["rows"]
    except CurateError as err:
        answer |= {"code": err.exit_code, "message": err.message, "place": err.place, "hint": err.hint}
    except BaseException:
        answer |= {"code": 1, "message": traceback.format_exc()}
    print(json.dumps(answer), file=answers, flush=True)
"""


def run_many(jobs: Sequence[Mapping[str, Any]], folder: Path, memory: int = 4 * GIB, seconds: float = 60) -> dict[str, Any]:
    """What became of each run (name, pipeline, source, out), many in one process with a memory limit.

    A run that kills the process or outlives `seconds` gets the process' exit status as its code;
    the runs behind it go on in a new process.
    """
    todo, answers, ended = folder / "jobs.json", folder / "answers.jsonl", dict[str, Any]()
    while len(ended) < len(jobs):
        todo.write_text(json.dumps([job for job in jobs if job["name"] not in ended]))
        answers.write_text("")
        worker = subprocess.Popen(
            [sys.executable, "-c", BATCH, str(todo), str(answers)],
            env=environment(),
            stderr=subprocess.PIPE,
            preexec_fn=limited(memory),
        )
        last, since = 0, time.monotonic()
        while worker.poll() is None:
            time.sleep(0.02)
            if answers.stat().st_size != last:
                last, since = answers.stat().st_size, time.monotonic()
            if time.monotonic() - since > seconds:
                worker.kill()
        said = worker.communicate()[1].decode(errors="replace")
        begun = ""
        for answer in map(json.loads, answers.read_text().splitlines()):
            begun = answer.get("begun", "")
            if not begun:
                ended[answer["name"]] = answer
        if begun:
            ended[begun] = {"code": worker.returncode, "message": f"the process died: {said[-300:]}"}
        assert begun or worker.returncode == 0, said
    return ended
