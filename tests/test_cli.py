from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate import api, cli
from curate.errors import BusyError, CurateError, InputError, InvariantError, RequestError, TemporaryError
from curate.rundir import RunDir

Run = Callable[..., subprocess.CompletedProcess[str]]
TWIN = "the quick brown fox jumps over the lazy dog and then sleeps in the warm afternoon sun"
PIPELINE = """\
name: small
source: data.parquet
roles: {id: id, text: body}
stages:
  - exact_dup
  - near_dup
gate:
  - {metric: rejected_share, max: 0.9}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data and a pipeline, and the current directory."""
    table = pa.table({"id": ["a", "b", "c", "d"], "body": [TWIN, "something else entirely", TWIN, TWIN + " again"]})
    pq.write_table(table, tmp_path / "data.parquet")
    (tmp_path / "small.yaml").write_text(PIPELINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def curate(place: Path, root: Path) -> Run:
    """The command line as a process of its own."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "curate.cli", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=place, env=_env(root), timeout=120, **options)

    return run


def _env(root: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(root)}


def test_a_run_says_what_happened_and_leaves_with_0(curate: Run, place: Path):
    done = curate("run", "small.yaml", "--out", "out", "--events", "events.jsonl")

    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "small: 4 rows in, 2 kept (50.0 %), 2 rejected (50.0 %), 0 quarantined" in done.stderr
    assert "Gate: yes" in done.stderr
    assert "Kept rows: out/kept" in done.stderr
    events = [json.loads(line)["event"] for line in (place / "events.jsonl").read_text().splitlines()]
    assert (events[0], events[-1]) == ("run_started", "run_finished")


def test_a_gate_that_says_no_is_3_with_one_document(curate: Run):
    done = curate("run", "small.yaml", "--out", "out", "--set", "gate.rejected_share.max=0.1", "--json")

    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"]) == (3, 3)
    assert document["gate"]["outcome"] == "failed"
    assert document["report"]["rows"] == {"input": 4, "kept": 2, "rejected": 2, "quarantined": 0}
    assert "Gate: NO" in done.stderr


def test_a_wrong_request_is_2_with_file_line_and_remedy(curate: Run, place: Path):
    (place / "small.yaml").write_text(PIPELINE.replace("- near_dup", "- near_dub"))

    done = curate("run", "small.yaml", "--json")

    error = json.loads(done.stdout)["error"]
    assert done.returncode == error["exit_code"] == 2
    assert error["place"] == "small.yaml, line 6, stage 2"
    assert "did you mean `near_dup`?" in error["hint"]
    assert done.stderr == (
        "error: there is no check `near_dub`\n"
        "  where: small.yaml, line 6, stage 2\n"
        "  try: did you mean `near_dup`? (see: curate checks)\n"
    )
    assert not (place / "runs").exists()


def test_input_that_cannot_be_read_is_4(curate: Run, place: Path):
    (place / "data.parquet").write_bytes((place / "data.parquet").read_bytes()[:-50])

    done = curate("run", "small.yaml", "--out", "out")

    assert done.returncode == 4
    assert "data.parquet" in done.stderr
    assert not (place / "out" / "kept").exists()


def test_a_held_output_is_5(curate: Run, place: Path):
    with RunDir(place / "out").locked():
        done = curate("run", "small.yaml", "--out", "out")

    assert done.returncode == 5
    assert done.stderr.startswith("error: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full on this system")
def test_a_full_disk_is_75(curate: Run):
    done = curate("run", "small.yaml", "--out", "out", "--events", "/dev/full")

    assert done.returncode == 75
    assert "the disk is full" in done.stderr


def test_ctrl_c_is_130_and_says_how_to_go_on(place: Path, root: Path):
    script = (
        "import sys, time\n"
        "from curate import api, cli\n"
        "def work(asked):\n"
        "    asked.progress.start('near_dup', 10, 'parts')\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "api._execute = work\n"
        "sys.exit(cli.main(['run', 'small.yaml', '--events', 'events.jsonl']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_env(root), cwd=place
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    began = time.monotonic()

    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)

    assert process.returncode == 130
    assert time.monotonic() - began < 10
    assert said == "error: stopped; run the same command again to go on\n"
    assert json.loads((place / "events.jsonl").read_text().splitlines()[-1])["event"] == "run_failed"


def test_the_other_commands_answer_from_a_finished_run(curate: Run, place: Path):
    api.run(api.load("small.yaml"), out=place / "a")
    api.run(api.load("small.yaml", ["near_dup.similarity=1.0"]), out=place / "b")

    why = curate("why", "a", "d", "--json")
    gate = curate("gate", "a", "--baseline", "b", "--json")
    diff = curate("diff", "a", "b", "--json")

    answer = json.loads(why.stdout)
    assert (answer["row_id"], answer["stage"], answer["witness"]["id"]) == (3, "near_dup", "a")
    assert (gate.returncode, json.loads(gate.stdout)["passed"]) == (0, True)
    assert json.loads(diff.stdout)["transitions"] == {"rejected->kept": 1}
    assert "Row 3 (d) was rejected by near_dup" in why.stderr


def test_help_is_quick_and_loads_nothing_heavy(root: Path):
    heavy = {"pyarrow", "polars", "pandas", "numpy", "numba", "pydantic", "rich.table", "ruamel.yaml", "sklearn", "torch"}
    script = f"import sys; from curate import cli; cli.main(['--help']); sys.exit(bool({heavy!r} & set(sys.modules)))"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=_env(root), timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert done.returncode == 0, done.stderr
    assert (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5
    )  # of CPU: other work on the machine counts not
    assert all(f"  {command} " in done.stdout for command in ("plan", "run", "gate", "why", "diff", "checks", "schema", "doctor"))


def test_a_reader_that_leaves_early_changes_no_exit_code(place: Path, root: Path):
    process = subprocess.Popen(
        [sys.executable, "-m", "curate.cli", "run", "small.yaml", "--set", "gate.rejected_share.max=0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_env(root),
        cwd=place,
    )
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    said = process.stderr.read().decode()
    process.stderr.close()

    assert process.wait(60) == 3
    assert "Traceback" not in said
    assert "Exception ignored" not in said


def fail_with(monkeypatch: pytest.MonkeyPatch, err: BaseException) -> None:
    def run(*_: object, **__: object) -> None:
        raise err

    monkeypatch.setattr(api, "run", run)


@pytest.mark.parametrize(
    ("err", "code"),
    [
        (InvariantError("a row would be lost"), 1),
        (RequestError("no", place="here", hint="do that"), 2),
        (InputError("cut short"), 4),
        (BusyError("held"), 5),
        (TemporaryError("a worker died"), 75),
        (OSError(28, "No space left on device", "out/kept"), 75),
        (PermissionError(13, "Permission denied", "out"), 2),
        (MemoryError(), 75),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
        (ValueError("[/] oops"), 1),
        (OSError(5, "Input/output error"), 1),
    ],
)
def test_every_error_has_its_exit_code(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], err: BaseException, code: int
):
    fail_with(monkeypatch, err)
    monkeypatch.setattr(cli, "_forget_pipes", lambda *_: None)

    assert cli.main(["run", "small.yaml", "--json"]) == code
    out, said = capsys.readouterr()
    if code != 141:
        assert json.loads(out)["error"]["exit_code"] == code
    assert ("Traceback" in said) == (type(err) is ValueError or (isinstance(err, OSError) and code == 1))
    if isinstance(err, CurateError):
        assert said.startswith(f"error: {err.message}\n")


def test_our_own_bug_says_where_to_report_it(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    fail_with(monkeypatch, ZeroDivisionError("x"))

    assert cli.main(["run", "small.yaml"]) == 1
    out, said = capsys.readouterr()
    assert out == ""
    assert "internal error: ZeroDivisionError: x" in said
    assert "report ours with the text above" in said


def test_row_text_in_an_error_drives_no_terminal(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    fail_with(monkeypatch, InputError("bad row: \x1b[31m[/]", place="a\x07.jsonl"))

    assert cli.main(["run", "small.yaml"]) == 4
    assert capsys.readouterr().err == "error: bad row: [31m[/]\n  where: a.jsonl\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "Missing argument 'PIPELINE'"),
        (["runn", "small.yaml"], "Did you mean 'run'?"),
        (["run", "small.yaml", "--workes", "2"], "--workers"),
        (["run", "small.yaml", "--workers", "two"], "'--workers'"),
        (["run", "small.yaml", "--memory", "lots"], "is not a size"),
        (["run", "small.yaml", "--until", "near_dub"], "near_dup"),
        (["run", "small.yaml", "--engine", "spark"], "spark"),
        (["run", "other.yaml"], "cannot be read"),
        (["run", "small.yaml", "--set", "seed"], "KEY=VALUE"),
        (["why", "nowhere", "1"], "nowhere"),
        (["gate", "nowhere"], "nowhere"),
        (["diff", "nowhere", "nowhere"], "nowhere"),
        (["checks", "near_dub"], "near_dup"),
    ],
)
def test_a_wrong_command_line_is_2(place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str):
    assert cli.main(arguments) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert said.startswith("error: ")
    assert words in said


def test_options_reach_the_api(place: Path, monkeypatch: pytest.MonkeyPatch):
    seen: dict[str, Any] = {}

    def run(pipeline: Any, **options: Any) -> Any:
        seen.update(options, pipeline=pipeline)
        return api_run(pipeline, out=place / "out")

    api_run = api.run
    monkeypatch.setattr(api, "run", run)
    where = "run small.yaml --source a --source b --out o --baseline before --events e.jsonl"
    how = "--workers 3 --memory 1.5GiB --until exact_dup --set seed=9"

    assert cli.main([*where.split(), *how.split()]) == 0
    seen.pop("progress")
    pipeline = seen.pop("pipeline")
    assert pipeline.seed == 9
    assert seen == {
        "source": ["a", "b"],
        "out": Path("o"),
        "engine": "local",
        "workers": 3,
        "memory": 3 << 29,
        "until": "exact_dup",
        "baseline": Path("before"),
        "events": Path("e.jsonl"),
    }


def test_plan_checks_and_schema_print_one_document(place: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["plan", "small.yaml", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert cli.main(["checks", "near_dup", "--json"]) == 0
    check = json.loads(capsys.readouterr().out)
    assert cli.main(["checks", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert cli.main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)

    assert [stage["name"] for stage in plan["stages"]] == ["exact_dup", "near_dup"]
    assert check["parameters"][0]["name"] == "similarity"
    assert check in found
    assert schema["title"] == "curate pipeline"


def test_a_plan_counts_the_workers_that_a_run_will_start(place: Path, capsys: pytest.CaptureFixture[str]):
    def said(*asked: str) -> dict[str, Any]:
        assert cli.main([*asked, "--json"]) == 0
        return dict(json.loads(capsys.readouterr().out))

    assert said("plan", "small.yaml")["workers"] == said("run", "small.yaml")["report"]["costs"]["workers"] == 1
    assert said("plan", "small.yaml", "--workers", "2")["workers"] == 2


def test_plan_reads_well(place: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["plan", "small.yaml"]) == 0

    out, said = capsys.readouterr()
    assert out == ""
    assert said.startswith("Plan for small: 1 file of ")
    assert "similarity at least 0.8" in said
    assert "2 passes: exact_dup | near_dup" in said


def test_doctor_tries_a_small_run(place: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["doctor", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["self_test"]["passed"], found
    assert found["cores"] >= 1
    assert found["packages"]["pyarrow"]


def test_doctor_finds_what_is_broken(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(api, "run", lambda *_, **__: SimpleNamespace(report={"rows": {"rejected": 0}}))

    assert cli.main(["doctor"]) == 1
    assert "the self-test failed: 0 of 4 rows were rejected, not 2" in capsys.readouterr().err


def test_nan_is_null_in_a_document(capsys: pytest.CaptureFixture[str]):
    cli._emit({"a": float("nan"), "b": [float("inf"), 1], "c": "\ud800é"})

    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1], "c": "\ud800é"}


def test_version_and_empty_command_line(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("curate ")
    assert cli.main([]) == 2
    assert "Usage: curate" in capsys.readouterr().err
