"""Resume is running again: after a crash at any moment, a plain re-run gives the same bytes and repeats no finished work."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kill_harness
import pytest
from kill_harness import assert_resumed, finished_work
from runs import data_files, document, flag, numbered, numbers, pipeline, verdicts, write_jsonl, write_parquet
from toy_checks import LOG, Amount, Centre, Length, SameValue, Twice, calls

from curate import api
from curate.check import make_check
from curate.pipeline import Stage

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a crash closes no file


class Crash(BaseException):
    """The power went out."""


@contextmanager
def crash_at(moment: int | None) -> Iterator[list[str]]:
    """Every change of the file system that others could see is counted; before number `moment` everything stops."""
    seen: list[str] = []

    def counted(name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **more: Any) -> Any:
            if moment is not None and len(seen) >= moment:
                raise Crash
            seen.append(name)
            return change(*args, **more)

        return instead

    with pytest.MonkeyPatch.context() as patch:
        for name in ("rename", "unlink", "rmdir"):
            patch.setattr(os, name, counted(name, getattr(os, name)))
        yield seen


STAGES = ["missing", flag(Centre(), above=0.3, of="distance"), SameValue(), make_check("near_dup", {"similarity": 0.5})]


@pytest.fixture
def source(room: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A part read in place and one decoded, with a broken line."""
    table = numbered(36)
    write_parquet(room / "in" / "a.parquet", table.slice(0, 24))
    write_jsonl(room / "in" / "b.jsonl", [*table.slice(24).to_pylist(), b"{"])
    return room / "in"


def test_a_crash_before_any_change_on_disk_leaves_a_run_that_running_again_completes(room: Path, source: Path) -> None:
    undisturbed = api.run(pipeline(*STAGES), source, room / "undisturbed").path
    with crash_at(None) as changes:
        api.run(pipeline(*STAGES), source, room / "counted")
    assert len(changes) > 80

    for moment in range(len(changes)):
        out = room / "out"
        with crash_at(moment), pytest.raises(Crash):
            api.run(pipeline(*STAGES), source, out)
        finished = finished_work(out)

        api.run(pipeline(*STAGES), source, out)

        assert_resumed(out, undisturbed, finished)
        shutil.rmtree(out)


def test_a_crash_while_one_output_replaces_another_leaves_one_or_the_other(room: Path, source: Path) -> None:
    """And never the manifest of one with the files of the other."""
    older, newer = pipeline(*STAGES), pipeline(*STAGES, flag(Amount(), above=0.4, of="amount"))
    before = api.run(older, source, room / "base").path
    undisturbed = api.run(newer, source, room / "undisturbed").path
    old, new = data_files(before), data_files(undisturbed)
    shutil.copytree(before, room / "counted")
    with crash_at(None) as changes:
        api.run(newer, source, room / "counted")

    for moment in range(len(changes)):
        out = room / "out"
        shutil.copytree(before, out)
        with crash_at(moment), pytest.raises(Crash):
            api.run(newer, source, out)
        finished = finished_work(out)
        if (out / "manifest.json").exists():
            expected = {4: old, 5: new}[len(document(out, "manifest.json")["stages"])]
            assert data_files(out) == expected

        if moment % 2:
            api.run(newer, source, out)
            assert_resumed(out, undisturbed, finished)
        else:
            api.run(older, source, out)
            assert data_files(out) == old
            assert numbers(out) == numbers(before)
        shutil.rmtree(out)


def test_a_crash_while_only_the_gate_changes_leaves_no_manifest_beside_the_answer_of_another_gate(
    room: Path, source: Path
) -> None:
    strict, loose = (pipeline("missing", gate=[{"metric": "rejected_share", "max": most}]) for most in (0.0, 1.0))
    before = api.run(strict, source, room / "base").path
    answers = {0.0: document(before, "gate.json")}
    shutil.copytree(before, room / "counted")
    with crash_at(None) as changes:
        answers[1.0] = document(api.run(loose, source, room / "counted").path, "gate.json")

    for moment in range(len(changes)):
        out = room / "out"
        shutil.copytree(before, out)
        with crash_at(moment), pytest.raises(Crash):
            api.run(loose, source, out)
        if (out / "manifest.json").exists():
            limit = document(out, "manifest.json")["pipeline"]["gate"][0]["max"]
            assert document(out, "gate.json") == answers[limit]

        assert api.run(loose, source, out).gate == answers[1.0]
        shutil.rmtree(out)


def test_two_crashes_in_a_row_are_no_worse_than_one(room: Path, source: Path) -> None:
    undisturbed = api.run(pipeline(*STAGES), source, room / "undisturbed").path
    moments = random.Random(7)

    for _ in range(10):
        out = room / "out"
        for _ in range(3):
            with crash_at(moments.randrange(2, 40)), pytest.raises(Crash):
                api.run(pipeline(*STAGES), source, out)
        finished = finished_work(out)
        api.run(pipeline(*STAGES), source, out)
        assert_resumed(out, undisturbed, finished)
        shutil.rmtree(out)


def test_the_bill_of_an_interrupted_run_is_the_whole_bill(room: Path, source: Path) -> None:
    whole = api.run(pipeline(*STAGES), source, room / "whole").report["costs"]
    with crash_at(40), pytest.raises(Crash):
        api.run(pipeline(*STAGES), source, room / "out")

    costs = api.run(pipeline(*STAGES), source, room / "out").report["costs"]

    assert costs["tasks"] == whole["tasks"]
    assert 0 < costs["tasks_reused"] < costs["tasks"]
    assert {name: step["rows"] for name, step in costs["stages"].items()} == {
        name: step["rows"] for name, step in whole["stages"].items()
    }
    assert costs["bytes_read"] >= whole["bytes_read"]  # what was held in memory is read again


# Deciding again.


@pytest.fixture
def log(room: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LOG, str(room / "log"))
    return room / "log"


def emptied(log: Path) -> None:
    log.unlink(missing_ok=True)


LAST = {
    "row": lambda limit: flag(Amount(), name="last", above=limit, of="amount"),
    "fraction": lambda limit: flag(Amount(), name="last", worst_fraction=limit, of="amount"),
    "fit": lambda limit: flag(Centre(), name="last", above=limit, of="distance"),
    "group": lambda limit: flag(SameValue(), name="last", at_least=limit, of="same"),
    "near": lambda limit: flag(make_check("near_dup", {"similarity": 0.1}), name="last", at_least=limit, of="similarity"),
}


@pytest.mark.parametrize("kind", LAST)
@pytest.mark.parametrize("mode", ["staged", "audit"])
def test_a_changed_limit_scores_nothing_and_reads_the_data_only_to_write(
    room: Path, source: Path, log: Path, kind: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ["missing", Length(most=21), SameValue()]
    api.run(pipeline(*first, LAST[kind](0.2), mode=mode), source, room / "out")
    fresh = api.run(pipeline(*first, LAST[kind](0.6), mode=mode), source, room / "fresh").path
    emptied(log)
    readers = count_readers(monkeypatch)

    run = api.run(pipeline(*first, LAST[kind](0.6), mode=mode), source, room / "out")

    assert calls(log) == {}
    assert set(readers) <= {"write"}
    assert data_files(run.path) == data_files(fresh)
    assert numbers(run.path) == numbers(fresh)


@pytest.mark.parametrize("changed", [False, True])
def test_a_check_of_earlier_columns_is_scored_anew_only_when_those_change(room: Path, log: Path, changed: bool) -> None:
    def stages(of: str) -> list[Stage]:
        return [Stage(Amount(of=of), reject=[]), flag(Twice(), above=0.4, of="twice")]

    table = numbered(36)
    source = write_parquet(room / "more.parquet", table.append_column("other", table.column("value")))
    api.run(pipeline(*stages("value")), source, room / "out")
    emptied(log)

    api.run(pipeline(*stages("other" if changed else "value")), source, room / "out")

    assert set(calls(log)) == ({"amount.score", "twice.fit", "twice.score"} if changed else set())


def count_readers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that read the data from here on."""
    from curate.steps import fit, group, scan, write
    from curate.steps.base import read_part

    readers: list[str] = []

    def counted(job: Any, part: Any, columns: Any, meter: Any, step: str) -> Any:
        readers.append(step)
        return read_part(job, part, columns, meter, step)

    for module in (fit, group, scan, write):
        monkeypatch.setattr(module, "read_part", counted)
    return readers


@pytest.mark.parametrize("at", range(4))
def test_in_audit_mode_any_changed_limit_scores_nothing(room: Path, source: Path, log: Path, at: int) -> None:
    def stages(limit: float) -> list[Stage]:
        limits = [0.9] * 4
        limits[at] = limit
        made = [
            flag(Amount(), name="a", above=limits[0], of="amount"),
            flag(SameValue(), name="b", at_least=limits[1], of="same"),
            flag(Centre(), name="c", above=limits[2], of="distance"),
            flag(Amount(tag="d"), name="d", worst_fraction=limits[3], of="amount"),
        ]
        return made

    api.run(pipeline(*stages(0.9), mode="audit"), source, room / "out")
    emptied(log)
    again = api.run(pipeline(*stages(0.3), mode="audit"), source, room / "out").path
    assert calls(log) == {}

    fresh = api.run(pipeline(*stages(0.3), mode="audit"), source, room / "fresh").path
    assert data_files(again) == data_files(fresh)


@pytest.mark.parametrize("added", [LAST["row"](0.5), LAST["fit"](0.5), LAST["group"](1.0), LAST["near"](0.5)], ids=list("rfgn"))
@pytest.mark.parametrize("before", [1, 2, 3])
def test_a_stage_added_at_the_end_scores_no_earlier_stage_again(
    room: Path, source: Path, log: Path, added: Stage, before: int
) -> None:
    first = [flag(Amount(tag="first"), name="first", above=0.8, of="amount"), SameValue(of="value"), Length(most=21)][:before]
    api.run(pipeline(*first), source, room / "out")
    told = set(calls(log))
    emptied(log)

    run = api.run(pipeline(*first, added), source, room / "out")

    assert "first.score" not in calls(log)
    assert "length.score" not in calls(log)
    rows = calls(log).get("same_value.keys", 0)
    assert rows == 0 or "same_value" in added.check.name
    assert told >= {"first.score"}
    assert run.report["stages"]["last"]["status"] == "evaluated"
    fresh = api.run(pipeline(*first, added), source, room / "fresh").path
    assert data_files(run.path) == data_files(fresh)


def test_a_new_part_scores_the_new_part_only(room: Path, source: Path, log: Path) -> None:
    stages = [flag(Amount(), above=0.8, of="amount"), Length(most=21)]
    api.run(pipeline(*stages), source, room / "out")
    emptied(log)
    write_parquet(source / "c.parquet", numbered(5))

    run = api.run(pipeline(*stages), source, room / "out")

    assert calls(log)["amount.score"] <= 5
    assert run.report["rows"]["input"] == 42


def test_a_loosened_limit_asks_later_stages_about_the_rows_that_came_back(room: Path, source: Path) -> None:
    for limit in (0.1, 0.9, 0.1):
        stages = [flag(Amount(), name="first", above=limit, of="amount"), Length(most=21), SameValue()]
        again = api.run(pipeline(*stages), source, room / "out").path
        fresh = api.run(pipeline(*stages), source, room / str(limit)).path
        assert data_files(again) == data_files(fresh)
        assert verdicts(again).height == 37
        shutil.rmtree(fresh)


# The real thing.


@pytest.fixture
def corpus(root: Path, room: Path) -> list[object]:
    return ["run", root / "pipelines" / "corpus.yaml", "--source", root / "sample_data" / "corpus", "--workers", 2, "--out"]


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_kill_9_at_random_moments(room: Path, corpus: list[object], kills: int) -> None:
    took = kill_harness.run([*corpus, room / "undisturbed"])
    moments, struck, progress = random.Random(kills), 0, set()

    while struck < kills:
        out = room / "out"
        if kill_harness.kill_after([*corpus, out], moments.uniform(0.4 * took, 0.97 * took)):
            struck += 1
            finished = finished_work(out)
            progress.add(len(finished))
            kill_harness.run([*corpus, out])
            assert_resumed(out, room / "undisturbed", finished)
        shutil.rmtree(out, ignore_errors=True)

    assert max(progress) > 0


@pytest.mark.slow
def test_kill_9_again_and_again_on_the_way_to_one_result(room: Path, corpus: list[object]) -> None:
    kill_harness.run([*corpus, room / "undisturbed"])
    moments = random.Random(1)

    finished: dict[str, int] = {}
    for _ in range(4):
        kill_harness.kill_after([*corpus, room / "out"], moments.uniform(0.8, 2.0))
        finished |= {key: node for key, node in finished_work(room / "out").items() if key not in finished}
    kill_harness.run([*corpus, room / "out"])

    assert_resumed(room / "out", room / "undisturbed", finished)
