"""Every exit code of the contract, from a real process; with `--json`, always exactly one document on stdout."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from process import Finished, curate, write_pipeline

GOOD = b'{"id":"a","text":"hello"}\n{"id":"b","text":""}\n{"id":"c","text":"hello"}\n'
MANY = b"".join(b'{"id":"%d","text":"text number %d"}\n' % (at, at * 7919) for at in range(5000))
TABLE = pa.table({"id": [str(at) for at in range(1000)], "text": [f"text number {at}" for at in range(1000)]})


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "data.jsonl").write_bytes(GOOD)
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


# ---- 0 ------------------------------------------------------------------------------------


def test_a_finished_run_exits_0_and_so_does_the_same_run_again(here: Path) -> None:
    first, again = run(here), run(here)

    assert (first.code, again.code) == (0, 0)
    assert first.document["report"]["rows"] == {"input": 3, "kept": 2, "rejected": 1, "quarantined": 0}
    assert first.document["gate"] is None
    assert "3 rows in" in first.stderr


def test_a_broken_limit_of_severity_warn_exits_0(here: Path) -> None:
    write_pipeline(here, gate=[{"metric": "rejected_share", "max": 0, "severity": "warn"}])

    done = run(here)

    assert done.code == 0
    assert done.document["gate"]["outcome"] == "warned"


def test_without_json_stdout_stays_empty(here: Path) -> None:
    done = curate("run", "pipeline.yaml", "--out", "out", cwd=here)

    assert (done.code, done.stdout) == (0, "")


# ---- 1: our bug, or that of a check somebody else wrote -------------------------------------

BROKEN_CHECK = '''
import pyarrow as pa
from curate.check import Column, RowCheck, parameters

@parameters
class Broken(RowCheck):
    """Raises."""
    name = "broken"
    version = 1
    def needs(self, roles, schema): return ("text",)
    def columns(self, roles, schema): return (Column("x", "measure", "nothing"),)
    def score(self, rows): WHAT
'''


@pytest.fixture
def plugged(here: Path) -> Callable[[str], dict[str, str]]:
    """Install a check as an entry point of a package on PYTHONPATH, as a third party would."""

    def plug(score: str) -> dict[str, str]:
        package = here / "site"
        (package / "third_party-1.0.dist-info").mkdir(parents=True)
        (package / "third_party.py").write_text(BROKEN_CHECK.replace("WHAT", score))
        (package / "third_party-1.0.dist-info" / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n"
        )
        points = "[curate.checks]\nbroken = third_party:Broken\n"
        (package / "third_party-1.0.dist-info" / "entry_points.txt").write_text(points)
        write_pipeline(here, stages=["broken"], gate=[{"metric": "rejected_share", "max": 1}])
        return {"PYTHONPATH": str(package)}

    return plug


@pytest.mark.parametrize("score", ["raise ZeroDivisionError('oh no')", "return {'y': pa.array([1.0] * len(rows))}"])
def test_a_check_that_raises_or_breaks_its_word_exits_1_and_publishes_nothing(
    here: Path, plugged: Callable[[str], dict[str, str]], score: str
) -> None:
    done = run(here, env=plugged(score))

    assert done.code == 1
    assert done.error["exit_code"] == 1
    assert "broken" in done.error["place"] + done.error["message"]
    assert "broken" in done.error["message"] or "oh no" in done.error["message"]
    assert not (here / "out" / "manifest.json").exists()
    assert not (here / "out" / "kept").exists()


# ---- 2: the request is wrong ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: t\nstages: [missing\n  - x: {", ("pipeline.yaml, line 3", "not YAML")),
        ("name: t\nstagez: [missing]\n", ("line 2", "stagez", "did you mean `stages`")),
        ("name: t\nstages:\n  - near_dup: {similarty: 0.8}\n", ("line 3", "did you mean `similarity`", "curate checks near_dup")),
        ("name: t\nname: u\nstages: [missing]\n", ("`name`", "line 2", "twice")),
        ("name: t\nstages: [missing]\n", ("names a source", "--source")),
    ],
)
def test_a_wrong_pipeline_file_exits_2_and_names_line_and_nearest_word(here: Path, text: str, words: tuple[str, ...]) -> None:
    (here / "pipeline.yaml").write_text(text)

    assert_error(run(here), 2, *words)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"roles": {"text": "txet"}}, ("`txet`", "did you mean `text`")),
        ({"stages": [{"missing": {"of": ["txet"]}}]}, ("`txet`", "did you mean `text`", "stage 1")),
        ({"stages": [{"missing": {}, "reject": [{"is_true": "text_misssing"}]}]}, ("did you mean `text_missing`",)),
    ],
)
def test_an_unknown_column_exits_2_with_the_nearest_one(here: Path, more: dict[str, Any], words: tuple[str, ...]) -> None:
    write_pipeline(here, **more)

    assert_error(run(here), 2, *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "seed=abc"), ("seed", "'abc'")),
        (("--set", "nope.similarity=3"), ("nope", "missing")),
        (("--until", "exact_dup"), ("exact_dup", "missing")),
        (("--workers", "0"), ("--workers",)),
        (("--memory", "8MB"), ("--memory", "MiB")),
        (("--outt", "x"), ("--outt", "--out")),
    ],
)
def test_a_wrong_argument_exits_2(here: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_error(run(here, *arguments), 2, *words)


def test_an_output_folder_with_other_files_exits_2_and_leaves_them_alone(here: Path) -> None:
    (here / "out").mkdir()
    (here / "out" / "thesis.txt").write_text("mine")

    assert_error(run(here), 2, "other files", "--out")
    assert [path.name for path in (here / "out").iterdir()] == ["thesis.txt"]


def test_an_output_that_is_a_file_exits_2(here: Path) -> None:
    (here / "out").write_text("mine")

    assert_error(run(here), 2, "not a folder", "--out")
    assert_error(run(here, out="out/below"), 2, "out/below")
    assert (here / "out").read_text() == "mine"


def test_source_and_output_inside_each_other_exit_2_even_through_a_link(here: Path) -> None:
    assert run(here, out="first").code == 0
    (here / "link").symlink_to(here / "first")

    assert_error(run(here, "--source", "link/kept", out="first"), 2, "holds the source")
    assert_error(run(here, "--source", "first/kept", out="link"), 2, "holds the source")
    assert_error(run(here, "--source", "first/kept", out="first/kept/out"), 2, "inside the source")
    assert len(list((here / "first" / "kept").iterdir())) == 1


def test_columns_that_cannot_be_written_or_have_our_names_exit_2(here: Path) -> None:
    pq.write_table(TABLE.append_column("tags", pa.array([["a"]] * 1000)), here / "nested.parquet")
    pq.write_table(TABLE.append_column("curate_stage", TABLE["id"]), here / "taken.parquet")
    write_pipeline(here, output={"format": "csv"})

    assert_error(run(here, "--source", "nested.parquet"), 2, "`tags`", "csv", "jsonl")
    assert_error(run(here, "--source", "taken.parquet"), 2, "`curate_stage`", "rename")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gate", "nowhere"), ("report.json", "curate run")),
        (("why", "nowhere", "1"), ("manifest.json",)),
        (("diff", "nowhere", "nowhere"), ("report.json",)),
        (("runn", "pipeline.yaml"), ("runn", "run")),
        (("run", "nowhere.yaml"), ("nowhere.yaml",)),
    ],
)
def test_other_commands_exit_2_for_what_is_not_there(here: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_error(curate(*arguments, "--json", cwd=here), 2, *words)


# ---- 3: the gate says no --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ([{"metric": "rejected_share", "max": 0.1}], "0.333333 is more than 0.1"),
        ([{"metric": "rejected_shar", "max": 1}], "nearest: rejected_share"),
        ([{"metric": "rejected_share", "max": 1, "max_increase": 0.1}], "no baseline"),
        ([], "no limits"),
    ],
)
def test_a_gate_that_says_no_exits_3(here: Path, gate: list[dict[str, Any]], reason: str) -> None:
    write_pipeline(here, gate=gate)

    done = run(here)

    assert done.code == 3
    assert reason in " ".join(check["reason"] for check in done.document["gate"]["checks"])
    assert json.loads((here / "out" / "gate.json").read_bytes())["passed"] is False
    assert (here / "out" / "manifest.json").exists()


def test_a_gate_over_no_rows_or_over_a_stage_nothing_reached_exits_3(here: Path) -> None:
    (here / "head.csv").write_text("id,text\n")
    write_pipeline(here, stages=["missing"], gate=[{"metric": "rows.rejected", "max": 9}])
    nothing = run(here, "--source", "head.csv", out="nothing")
    (here / "empty.jsonl").write_bytes(b'{"id":"a","text":""}\n')
    write_pipeline(here, stages=["missing", "exact_dup"], gate=[{"metric": "rows.rejected", "max": 9}])
    unreached = run(here, "--source", "empty.jsonl", out="unreached")

    assert (nothing.code, unreached.code) == (3, 3)
    assert "read no rows" in nothing.stderr
    assert "`exact_dup` was not evaluated" in " ".join(check["reason"] for check in unreached.document["gate"]["checks"])


def test_a_gate_asked_of_a_run_without_limits_exits_3(here: Path) -> None:
    assert run(here).code == 0

    done = curate("gate", "out", "--json", cwd=here)

    assert done.code == 3
    assert done.document["passed"] is False


def test_a_regression_against_a_baseline_exits_3_and_the_same_numbers_exit_0(here: Path) -> None:
    write_pipeline(here, gate=[{"metric": "rejected_share", "max_increase": 0.01}])
    (here / "worse.jsonl").write_bytes(GOOD + b'{"id":"d","text":""}\n')
    run(here, out="before")
    run(here, out="after")
    run(here, "--source", "worse.jsonl", out="worse")

    worse = curate("gate", "worse", "--baseline", "before", "--json", cwd=here)
    same = curate("gate", "after", "--baseline", "before", "--json", cwd=here)

    assert (worse.code, same.code) == (3, 0)
    assert "rose from" in worse.document["checks"][0]["reason"]


# ---- 4: the input cannot be read ------------------------------------------------------------


def _cut_parquet(path: Path) -> None:
    pq.write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[:-200])


UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "nowhere.jsonl": (lambda path: None, "there is no"),
    "nowhere/*.jsonl": (lambda path: None, "no data files"),
    "folder": (lambda path: path.mkdir(), "no data files"),
    "empty.jsonl": (lambda path: path.write_bytes(b""), "no rows"),
    "blank.jsonl": (lambda path: path.write_bytes(b"\n \n\n"), "no rows"),
    "braces.jsonl": (lambda path: path.write_bytes(b"{}\n{}\n"), "no column"),
    "prose.jsonl": (lambda path: path.write_bytes(b"Dear all,\nplease find\n"), "none of the 2 rows"),
    "text.parquet": (lambda path: path.write_bytes(b"not parquet at all" * 9), "not a readable Parquet file"),
    "cut.parquet": (_cut_parquet, "not a readable Parquet file"),
    "cut.jsonl.gz": (lambda path: path.write_bytes(gzip.compress(MANY)[:-500]), "cut short"),
    "cut.jsonl.zst": (lambda path: path.write_bytes(zstandard.compress(MANY)[:-500]), "cut short"),
    "cut.jsonl": (lambda path: path.write_bytes(MANY[:-9]), "cut short"),
    "plain.jsonl.gz": (lambda path: path.write_bytes(MANY), "plain"),
    "some.jsonl": (lambda path: path.write_bytes(MANY + b'{"id": nope}\n' * 50), "line 5001"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_input_that_cannot_be_read_exits_4_naming_file_and_place_and_publishes_nothing(here: Path, name: str) -> None:
    make, words = UNREADABLE[name]
    make(here / name)

    done = run(here, "--source", name)

    assert_error(done, 4, name, words)
    assert not (here / "out" / "manifest.json").exists()
    assert not (here / "out" / "kept").exists()


def test_rows_quarantined_within_the_limit_exit_0(here: Path) -> None:
    (here / "data.jsonl").write_bytes(MANY + b'{"id": nope}\n')

    assert run(here).document["report"]["rows"] == {"input": 5001, "kept": 5000, "rejected": 0, "quarantined": 1}


def test_an_error_outranks_a_verdict(here: Path) -> None:
    write_pipeline(here, gate=[{"metric": "rejected_share", "max": 0}])
    (here / "data.jsonl").write_bytes(GOOD + b"x\n" * 5)

    done = run(here)

    assert_error(done, 4, "quarantine_limit")
    assert not (here / "out" / "gate.json").exists()
