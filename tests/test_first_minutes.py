from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import junitparser
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate import api, cli
from curate.check import catalogue
from curate.errors import InputError, RequestError
from curate.guess import STAGES
from curate.specfile import is_pipeline, read_mapping, read_pipeline

TWIN = "the quick brown fox jumps over the lazy dog and then sleeps in the warm afternoon sun"
Main = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data of which nobody knows anything."""
    texts = [TWIN, "something else entirely", TWIN, TWIN + " again", "", "one", "two of them", "and number three", "four at last"]
    pq.write_table(pa.table({"Doc-ID": list("abcdefghi"), "body": texts, "lang": ["en"] * 9}), tmp_path / "data.parquet")
    pq.write_table(pa.table({"a": [1, 2, 2, 3], "b": ["x", "y", "y", "y"]}), tmp_path / "table.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def curate(place: Path, capsys: pytest.CaptureFixture[str]) -> Main:
    """The command line in this process: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        return (code, *capsys.readouterr())

    return run


def test_from_a_file_to_a_run_without_a_word(place: Path, root: Path):
    command = [sys.executable, "-m", "curate.cli", "run", "data.parquet", "--json"]
    environment = os.environ | {"PYTHONPATH": str(root)}

    done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=environment, timeout=120)

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["report"]["rows"]["input"] == 9
    assert document["assumed"]["roles"]["text"]["columns"] == ["body"]
    lines = done.stderr.splitlines()
    assert lines[0] == "data.parquet is data, not a pipeline; from 9 rows of it curate assumes:"
    assert "  curate init data.parquet --out data.yaml" in lines
    assert (place / "runs" / "data" / "kept").is_dir()
    manifest = json.loads((place / "runs" / "data" / "manifest.json").read_text())
    assert manifest["pipeline"]["source"] == "data.parquet"
    assert manifest["roles"] == {"id": ["Doc-ID"], "text": ["body"], "group": ["lang"]}


def test_the_default_pipeline_is_what_the_catalogue_has_of_it_rows_before_groups(place: Path):
    pipeline, _ = api.assume("data.parquet")

    assert [stage.name for stage in pipeline.stages] == [name for name in STAGES if name in catalogue()]
    assert {"missing", "exact_dup", "near_dup"} <= set(catalogue())


def test_what_is_set_wins_over_what_is_guessed(curate: Main):
    code, out, err = curate(
        "run", "data.parquet", "--json", "--set", "roles.text=lang", "--set", "stages=[exact_dup]", "--set", "seed=7"
    )

    document = json.loads(out)
    assert code == 0
    assert document["assumed"]["stages"] == list(document["report"]["stages"]) == ["exact_dup"]
    assert re.search(r"text +lang +--set says so", err)
    assert "curate init data.parquet --set roles.text=lang --out data.yaml" in err


@pytest.mark.skipif("text_quality" not in catalogue(), reason="there is no text_quality")
@pytest.mark.parametrize(
    ("texts", "rejects"),
    [
        ([f"turn on the light number {index}" for index in range(20)], False),
        ([f"Das Wetter ist heute schön und wir gehen {index} Mal um den See. " * 10 for index in range(20)], False),
        (
            [f"The weather is fine and we have to go {index} times around the lake with the dog. " * 10 for index in range(20)],
            True,
        ),
    ],
)
def test_rules_for_web_pages_reject_nothing_of_other_texts(place: Path, texts: list[str], rejects: bool):
    pq.write_table(pa.table({"text": texts}), "texts.parquet")

    pipeline, told = api.assume("texts.parquet")
    api.init("texts.parquet")

    stage = next(stage for stage in pipeline.stages if stage.name == "text_quality")
    assert ("none" not in stage.check.preset) is rejects  # type: ignore[attr-defined]
    assert (told["notes"] == []) is rejects
    written = read_pipeline("pipeline.yaml")[0]
    assert stage == next(stage for stage in written.stages if stage.name == "text_quality")


def test_a_plan_can_be_asked_for_data_too(curate: Main):
    code, out, err = curate("plan", "data.parquet", "--json")

    assert code == 0
    assert json.loads(out)["rows"] == 9
    assert "is data, not a pipeline" in err


def test_no_text_is_2_with_the_columns_and_the_next_commands(curate: Main, place: Path):
    code, out, err = curate("run", "table.parquet", "--json")

    assert code == 2
    assert json.loads(out)["error"]["exit_code"] == 2
    assert re.search(r"^ +a +int64, 3 distinct in 4$", err, re.MULTILINE)
    assert "--set roles.text=COLUMN" in err
    assert "curate init table.parquet" in err
    assert not (place / "runs").exists()
    assert curate("run", "table.parquet", "--set", "roles.text=b")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("run data.parket", 4, "did you mean `data.parquet`?"),
        ("run data.parquet --set roles.text=boby", 2, "did you mean `body`?"),
        ("run data.parquet other.parquet", 2, "quote the glob"),
        ("run data.parquet --set stages=[near_dub]", 2, "did you mean `near_dup`?"),
        ("init nothing/here.csv", 4, "there is no `nothing/here.csv`"),
        ("init data.parquet --set near_dup.similarity=0.9", 2, "init takes only `roles.` and `read.`"),
        ("report nowhere", 2, "give the folder that `curate run --out` wrote"),
        ("report data.parquet", 2, "the run folder is a file"),
    ],
)
def test_every_error_names_the_way_on(curate: Main, arguments: str, code: int, words: str):
    found, _, err = curate(*arguments.split())

    assert found == code
    assert words in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.yaml", None, True),
        ("a.YML", None, True),
        ("a.json", None, True),
        ("a.jsonl", None, False),
        ("s3://bucket/x", None, False),
        ("data/*.csv", None, False),
        ("a.json", b'{"name": "x", "stages": ["missing"]}', True),
        ("a.json", b'{\n\t"stages": [', True),  # a pipeline with a mistake in it
        ("a.json", b'{"text": "stages"}\n{"text": "b"}', False),
        ("pipeline", b"name: x\nstages: [missing]\n", True),
        ("pipeline", b"\x00\xff\x00 stages", False),
        ("a.parquet", b"PAR1stages: []", False),
        ("a.txt", b"some text", False),
    ],
)
def test_pipelines_and_data_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes | None, expected: bool
):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)

    assert is_pipeline(name) is expected


def test_a_folder_is_data(tmp_path: Path):
    assert not is_pipeline(str(tmp_path))


@pytest.mark.parametrize("data", ["data.parquet", "table.parquet"])
def test_what_init_writes_loads_and_runs_as_it_is(curate: Main, place: Path, data: str):
    code, out, err = curate("init", data, "--json")

    told = json.loads(out)
    assert code == 0
    assert told["path"] == "pipeline.yaml"
    assert "curate run pipeline.yaml" in err
    text = (place / "pipeline.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=curate.schema.json\n")
    assert json.loads((place / "curate.schema.json").read_text()) == api.schema()
    assert curate("run", "pipeline.yaml")[0] == 0
    assert (place / "runs" / Path(data).stem / "junit.xml").exists()


def test_what_init_comments_out_is_valid_and_means_the_same(place: Path):
    api.init("data.parquet")
    text = (place / "pipeline.yaml").read_text()
    parameters = re.compile(r"^      # (?=\w+: )", re.MULTILINE)

    (place / "whole.yaml").write_text(
        parameters.sub("      ", text).replace("allowed: [en]", "allowed: []").replace("of: [body]", "of: []")
    )

    assert len(parameters.findall(text)) >= 6
    assert read_pipeline("whole.yaml")[0] == read_pipeline("pipeline.yaml")[0]
    assert read_pipeline("pipeline.yaml")[0].gate is not None


def test_init_and_run_assume_the_same(place: Path):
    api.init("data.parquet")

    assumed, written = api.assume("data.parquet")[0], read_pipeline("pipeline.yaml")[0]
    assert written.roles.text == ("body",)
    assert (written.source, written.roles, written.stages) == (assumed.source, assumed.roles, assumed.stages)


def test_init_replaces_nothing_unasked(curate: Main, place: Path):
    (place / "pipeline.yaml").write_text("mine")

    code, _, err = curate("init", "data.parquet")

    assert code == 2
    assert "--force" in err
    assert (place / "pipeline.yaml").read_text() == "mine"
    assert not (place / "curate.schema.json").exists()
    assert curate("init", "data.parquet", "--force")[0] == 0
    assert curate("init", "data.parquet", "--out", "other.yaml")[0] == 0  # the schema beside is our own


def test_init_leaves_a_schema_that_is_not_ours(place: Path):
    (place / "curate.schema.json").write_text('{"title": "mine"}')

    with pytest.raises(RequestError, match="did not write"):
        api.init("data.parquet")

    assert not (place / "pipeline.yaml").exists()


def test_how_to_read_goes_into_the_file(curate: Main, place: Path):
    (place / "a.csv").write_text("id;text\n1;one two three\n2;four five six\n")

    assert curate("run", "a.csv")[0] == 2
    code, _, err = curate("run", "a.csv", "--set", 'read.delimiter=";"')
    assert code == 0
    assert "curate init a.csv --set 'read.delimiter=\";\"' --out a.yaml" in err
    assert curate("init", "a.csv", "--set", 'read.delimiter=";"')[0] == 0
    assert read_mapping("pipeline.yaml")[0]["read"] == {"delimiter": ";"}
    assert curate("run", "pipeline.yaml")[0] == 0


def test_names_of_columns_break_out_of_no_comment(place: Path):
    names = ["a\n- evil: [x", "[b]: {#", "\u202eid", 'it\'s "q"', "no", "x # y", "\u2028z"]
    columns = {name: [f"one two three four five {index}" for index in range(9)] for name in names}
    pq.write_table(
        pa.table({**columns, "a\n- evil: [x": [f"{TWIN} {index}" for index in range(9)]}), place / "odd ' $(x).parquet"
    )

    api.init("odd ' $(x).parquet")

    pipeline = read_pipeline("pipeline.yaml")[0]
    assert pipeline.roles.text == ("a\n- evil: [x",)
    assert pipeline.source == "odd ' $(x).parquet"
    assert api.run(pipeline).report["rows"]["input"] == 9


@pytest.mark.parametrize("mode", ["run", "gate"])
def test_junit_is_written_whenever_a_gate_was_judged(curate: Main, place: Path, mode: str):
    api.init("data.parquet")
    curate("run", "pipeline.yaml", "--out", "out", "--set", "gate.rejected_share.max=0.1")
    if mode == "gate":
        (place / "out" / "junit.xml").unlink()
        assert curate("gate", "out")[0] == 3

    suites = {suite.name: suite for suite in junitparser.JUnitXml.fromfile(str(place / "out" / "junit.xml"))}

    assert suites["data: gate"].failures == 1
    curate("run", "data.parquet", "--out", "out")
    assert not (place / "out" / "junit.xml").exists()  # no gate was asked for
    assert not (place / "out" / "gate.json").exists()


def test_a_run_on_github_is_annotated_and_summed_up(place: Path, root: Path):
    api.init("data.parquet")
    command = [sys.executable, "-m", "curate.cli", "run", "pipeline.yaml", "--set", "gate.rejected_share.max=0.1", "--json"]
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(place / "summary.md"), "PYTHONPATH": str(root)}

    done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=os.environ | github, timeout=120)

    assert done.returncode == 3
    assert json.loads(done.stdout)["exit_code"] == 3
    assert [line for line in done.stderr.splitlines() if line.startswith("::error")] == [
        "::error title=curate gate%3A data::rejected_share (max 0.1): 0.333333 is more than 0.1"
    ]
    assert (place / "summary.md").read_text().startswith("### ❌ curate <code>data</code>: the gate says NO")


def test_an_error_on_github_is_annotated(curate: Main, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    code, out, err = curate("run", "data.parket", "--json")

    assert (code, json.loads(out)["error"]["exit_code"]) == (4, 4)
    assert err.splitlines()[-1].startswith("::error title=curate::there is no `data.parket`%0Awhere: ")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the renderer was given."""
    seen: list[tuple[Any, ...]] = []
    module = ModuleType("curate.render.html")
    module.render = lambda *given: seen.append(given) or "<!doctype html>\n"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "curate.render.html", module)
    return seen


def test_a_report_is_made_again_from_the_documents_alone(curate: Main, place: Path, page: list[tuple[Any, ...]]):
    api.run(api.assume("data.parquet")[0], out="out")
    (place / "data.parquet").unlink()
    for folder in ("kept", "rejected", "verdicts", "scores", ".curate"):
        shutil.rmtree(place / "out" / folder)
    (place / "out" / ".curate").mkdir()
    (place / "out" / "report.html").unlink(missing_ok=True)
    page.clear()

    code, out, err = curate("report", "out", "--json")

    assert code == 0
    assert json.loads(out) == {"path": str(place / "out" / "report.html")}
    assert "out/report.html" in err
    assert (place / "out" / "report.html").read_text() == "<!doctype html>\n"
    report, manifest, gate, _, out = page[0]
    assert (report["name"], manifest["status"], gate, out) == ("data", "complete", None, "out")


def test_a_run_that_is_not_finished_has_no_report(curate: Main, place: Path, page: list[tuple[Any, ...]]):
    api.run(api.assume("data.parquet")[0], out="out")
    (place / "out" / "manifest.json").unlink()

    code, _, err = curate("report", "out")

    assert code == 2
    assert "run the same command again" in err


def test_an_empty_source_is_4(place: Path):
    (place / "empty.jsonl").write_text("")

    with pytest.raises(InputError):
        api.assume("empty.jsonl")
