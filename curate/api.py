"""The verbs as functions. The command line and Python call the same ones.

Verbs that a run does without are imported on first use.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from curate import documents, execute
from curate import report as reporting
from curate.dataset import without_views
from curate.engines.base import Engine
from curate.engines.local import InProcess, ProcessPool, Threads
from curate.errors import InputError, RequestError, did_you_mean
from curate.gate import evaluate
from curate.held import Held
from curate.intake import Intake, in_place, intake, intake_memory
from curate.pipeline import Pipeline
from curate.plan import fit_workers, resolve, runs_here, shard_count
from curate.progress import Progress, Several
from curate.reference import compared_with
from curate.render.events import Events
from curate.rerender import report, write_page
from curate.rundir import RunDir, read_document
from curate.source.discover import SourceFile, discover
from curate.source.memory import is_data
from curate.specfile import read_pipeline
from curate.steps.base import Job
from curate.steps.unreadable import unreadable
from curate.store import DamagedError

if TYPE_CHECKING:
    from curate.assume import assume, init
    from curate.describe import checks, schema
    from curate.diff import diff
    from curate.doctor import doctor
    from curate.index import index
    from curate.planning import Plan, plan
    from curate.why import why

__all__ = [
    "Plan",
    "Run",
    "assume",
    "checks",
    "diff",
    "doctor",
    "gate",
    "index",
    "init",
    "load",
    "plan",
    "report",
    "run",
    "schema",
    "why",
]

_HOME = {
    **{"assume": "assume", "init": "assume", "checks": "describe", "schema": "describe", "diff": "diff", "doctor": "doctor"},
    **{"index": "index", "Plan": "planning", "plan": "planning", "why": "why"},
}
ENGINES = ("local",)
PATIENCE_S = 2.0
"""kernels that are not loaded by then are being compiled, which takes about 15 s"""
MENDINGS = 20
"""how often a run starts over because an intermediate was damaged; each time at least one is made anew"""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `curate.api` has no attribute `{name}`")
    return getattr(importlib.import_module(f"curate.{_HOME[name]}"), name)


@dataclass(frozen=True)
class Run:
    """A finished run: where it lies, its report, and its gate's answer (None where no gate was asked for)."""

    path: Path
    report: dict[str, Any]
    gate: dict[str, Any] | None

    @property
    def exit_code(self) -> int:
        """0, or 3 where the gate said no."""
        return 0 if self.gate is None or self.gate["passed"] else 3

    @property
    def kept(self) -> Path:
        """The folder of kept rows, a data set that any reader opens."""
        return self.path / "kept"


def load(path: str | Path, overrides: Sequence[str] = ()) -> Pipeline:
    """A pipeline from its file, with `a.b=c` overrides applied."""
    return read_pipeline(path, list(overrides))[0]


def run(
    pipeline: Pipeline | Mapping[str, Any] | str | os.PathLike[str],
    source: object = None,
    out: str | os.PathLike[str] | None = None,
    *,
    engine: str = "local",
    workers: int | None = 1,
    memory: int | None = None,
    until: str | None = None,
    baseline: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    events: str | os.PathLike[str] | None = None,
) -> Run:
    """Curate a data set and publish a run directory.

    `source` is a path, a glob, an address or a list of them, or data in memory: a pandas,
    polars or pyarrow table, a lazy frame, a record batch reader, or an iterable of tables or
    of dictionaries; by default what the pipeline names. `out` is `runs/NAME` unless given. `workers=1`
    runs in this process; more start worker processes, so a script that asks for them needs
    the usual `if __name__ == "__main__":` guard; None is one a core.
    `memory` is the budget in bytes (60 % of the machine by default), `until` the last stage to run,
    `baseline` the run that relative limits of the gate compare with,
    `events` a file that gets what happens as JSON lines (`events.jsonl` of the run unless given).

    In a directory that already holds this very run the data files are left as they are. Raises `RequestError`,
    `InputError`, `BusyError` or `TemporaryError`; nothing is published then.
    """
    pipeline = _pipeline(pipeline)
    data = pipeline.source if source is None else source
    if data is None:
        raise RequestError(
            "nothing to read: neither the pipeline nor the call names a source",
            hint="give --source, or `source:` in the pipeline",
        )
    if engine not in ENGINES:
        raise RequestError(f"there is no engine `{engine}`", place="--engine", hint=did_you_mean(engine, ENGINES))
    able, budget = fit_workers(workers, memory)
    folder = RunDir(Path(out) if out is not None else default_out(pipeline.name))
    before = None if baseline is None else read_document(Path(baseline), "report.json")
    started, clock = time.time(), time.perf_counter()
    with Events(events) as asked:
        with _loading(pipeline, Several(asked, *([progress] if progress else []))):
            files = _files(data, pipeline, folder.path)
        own = folder.path / "events.jsonl" if events is None else None
        with folder.locked(), Events(own) as log, _engine(able, files, workers, pipeline) as pool:
            for record in (asked, log):
                record.write("run_started", pipeline=pipeline.name)
            listeners = Several(asked, log, *([progress] if progress else []))
            stamps = [_stamp(file) for file in files]
            try:
                unchanged = functools.partial(_unchanged, files, stamps)
                asked_for = _Request(pipeline, data, files, folder, pool, budget, until, unchanged, listeners)
                outcome = _execute(asked_for)
            except Exception:
                _unchanged(files, stamps)  # whatever it was, a file that changed under the run explains it
                raise
            report = reporting.build(pipeline.name, outcome, time.perf_counter() - clock, pool.workers)
            judged = documents.publish(pipeline, outcome, files, folder, until, started, report, before)
            done = Run(folder.path, report, judged)
            for record in (asked, log):
                record.write("run_finished", path=str(done.path), exit_code=done.exit_code, rows=report["rows"])
            return done


def gate(run_dir: str | Path, baseline: str | Path | None = None) -> dict[str, Any]:
    """Judge a finished run again by its pipeline's limits, perhaps against a baseline run.

    Writes `gate.json` and `junit.xml` of the run anew, and `report.html`, which shows the verdict. Raises `BusyError`
    where a run works in the folder.
    """
    path = Path(run_dir)
    with RunDir(path).held():
        numbers, record = read_document(path, "report.json"), read_document(path, "manifest.json")
        pipeline = Pipeline.from_dict(
            {key: record["pipeline"][key] for key in ("name", "gate") if key in record["pipeline"]} | {"stages": ["missing"]}
        )
        before = None if baseline is None else read_document(Path(baseline), "report.json")
        result = evaluate(pipeline.gate, numbers, before).to_dict()
        documents.publish_gate(RunDir(path), result, numbers)
        write_page(run_dir)
        return result


def default_out(name: str) -> Path:
    """`runs/NAME`, whatever the pipeline is called: a name with a slash leads nowhere else."""
    return Path("runs") / (re.sub(r"[^\w.-]+", "-", name)[:60].strip(".-") or "run")


def _pipeline(given: Pipeline | Mapping[str, Any] | str | os.PathLike[str]) -> Pipeline:
    if isinstance(given, Pipeline):
        return given
    return Pipeline.from_dict(given) if isinstance(given, Mapping) else load(Path(given))


@contextlib.contextmanager
def _loading(pipeline: Pipeline, progress: Progress) -> Iterator[None]:
    """Let the checks load what they need in a thread, while the source's digests are made; say so where it takes long."""

    def load() -> None:
        for stage in pipeline.stages:
            stage.check.load()

    work = threading.Thread(target=load, daemon=True)
    work.start()
    yield
    work.join(PATIENCE_S)
    if work.is_alive():
        progress.start("compile kernels, once on a machine", 1, "checks")
        work.join()
        progress.advance()
        progress.finish()


def _files(data: object, pipeline: Pipeline, out: Path) -> tuple[SourceFile, ...]:
    """The files of a source that is named rather than given; none for data in memory."""
    if is_data(data):
        return ()
    files = discover(data, pipeline.read)  # type: ignore[arg-type]
    hint, real = "choose an --out that lies elsewhere", os.path.realpath(out)
    for file in files:
        if not file.remote and Path(os.path.realpath(file.path)).is_relative_to(real):
            raise RequestError("the output folder holds the source", place=file.path, hint=hint)
    for entry in [data] if isinstance(data, str | os.PathLike) else data:  # type: ignore[attr-defined]
        if Path(real).is_relative_to(os.path.realpath(entry)) and os.path.isdir(entry):
            raise RequestError(
                "the output folder lies inside the source: the next run would read it as data", place=str(out), hint=hint
            )
    return files


@contextlib.contextmanager
def _engine(able: int, files: Sequence[SourceFile], workers: int | None, pipeline: Pipeline) -> Iterator[Engine]:
    small = runs_here(workers, sum(file.size for file in files))
    engine: Engine = InProcess() if able == 1 or small else ProcessPool(able)
    if able > 1 and all(map(in_place, files)) and all(stage.check.lets_threads_run for stage in pipeline.stages):
        engine = Threads(able)
    try:
        yield engine
    finally:
        engine.close()


@dataclass(frozen=True)
class _Request:
    """What a run is asked to do, and with what."""

    pipeline: Pipeline
    data: object
    files: Sequence[SourceFile]
    folder: RunDir
    engine: Engine
    memory: int
    until: str | None
    unchanged: Callable[[], None]
    progress: Progress


def _execute(asked: _Request) -> execute.Outcome:
    pipeline = asked.pipeline
    blank = Job(
        asked.folder.root,
        (),
        pipeline.roles,
        pa.schema([]),
        pa.schema([]),
        pipeline.seed,
        pipeline.mode == "audit",
        pipeline.output.format,
        1,
        pipeline.read,
    )
    blank.store.clean()
    given = intake_memory(blank, asked.data) if is_data(asked.data) else None
    for _ in range(MENDINGS):
        with contextlib.suppress(DamagedError):
            return _attempt(asked, blank, given)
    return _attempt(asked, blank, given)


def _attempt(asked: _Request, blank: Job, given: Intake | None) -> execute.Outcome:
    """One way through; an intermediate found damaged was dropped, so the next attempt makes it anew."""
    pipeline = asked.pipeline
    first = execute.Runner(blank, asked.engine, asked.progress)
    taken = given or intake(blank, asked.files, first.run)
    kept = taken.dataset.schema
    schema = pa.schema([field.with_type(without_views(field.type)) for field in kept], metadata=kept.metadata)
    stages = resolve(pipeline, schema, asked.until)
    outside, far = compared_with(stages, taken.dataset, pipeline, first.run, blank)
    shards = shard_count(stages, taken.dataset.rows)
    held = Held(asked.memory) if asked.engine.shares_memory else None
    if held is not None and not held.fits([part.text_bytes for part in taken.dataset.parts]):
        held = None
    job = dataclasses.replace(blank, stages=stages, schema=schema, kept=kept, shards=shards, held=held)
    runner = execute.Runner(job, asked.engine, asked.progress)
    runner.tasks, runner.reused = first.tasks, first.reused
    runner.used = first.used | set(taken.keys) | far
    runner.outside = outside
    if asked.engine.shares_memory and asked.engine.workers > 1:
        threading.Thread(target=documents.foresee, daemon=True).start()
    states = execute.score(runner, taken.dataset)
    bad = sum(unreadable(job, part).num_rows for part in taken.dataset.parts)
    execute.check_quarantine(pipeline, job, taken.dataset.parts, bad)
    asked.unchanged()
    outcome = execute.write(runner, asked.folder, taken, states, asked.unchanged)
    execute.remember(runner, states)
    return outcome


def _stamp(file: SourceFile) -> tuple[int, int] | None:
    """What tells a local file from what it was before: its size and when it was written; None for one that is gone."""
    try:
        found = os.stat(file.path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _unchanged(files: Sequence[SourceFile], stamps: Sequence[tuple[int, int] | None]) -> None:
    for file, stamp in zip(files, stamps, strict=True):
        if not file.remote and (stamp is None or _stamp(file) != stamp or stamp[0] != file.size):
            raise InputError(
                "the file changed while it was being read", place=file.name, hint="let it rest and run the same command again"
            )
