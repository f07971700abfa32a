"""The store consumes nothing that is not exactly what was published."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from runs import assert_accounted, data_files, flag, numbered, numbers, pipeline, write_parquet
from toy_checks import LOG, Amount, Centre, SameValue, calls

from curate import api
from curate.errors import BusyError, RequestError
from curate.rundir import RunDir
from curate.store import DamagedError, Store

KEY = "ab" + 30 * "0"
TABLES = [pa.table({"n": list(range(100))}), pa.table({"t": ["x"] * 50})]


@pytest.fixture
def store(room: Path) -> Store:
    made = Store(room)
    made.put(KEY, TABLES, {"rows": 150})
    return made


def the_file(store: Store, suffix: str = ".arrow") -> Path:
    return store.root / "store" / KEY[:2] / f"{KEY}{suffix}"


def test_what_was_published_comes_back(store: Store) -> None:
    assert store.has(KEY)
    assert store.facts(KEY) == {"rows": 150}
    assert [store.read(KEY, at) for at in (0, 1)] == TABLES
    with pytest.raises(DamagedError):
        store.read(KEY, 2)


@pytest.mark.parametrize("at", [0, 300, -1])
def test_a_flipped_bit_is_found_when_the_segment_is_read_and_the_artefact_is_dropped(store: Store, at: int) -> None:
    data = bytearray(the_file(store).read_bytes())
    data[at] ^= 1
    the_file(store).write_bytes(bytes(data))

    assert store.has(KEY)
    with pytest.raises(DamagedError) as caught:
        store.read(KEY, 1 if at == -1 else 0)

    assert caught.value.exit_code == 75
    assert not store.has(KEY)
    assert not the_file(store).exists()


def test_a_truncated_artefact_is_not_finished(store: Store) -> None:
    data = the_file(store).read_bytes()
    the_file(store).write_bytes(data[:-1])

    assert not store.has(KEY)
    with pytest.raises(DamagedError):
        store.read(KEY, 1)


@pytest.mark.parametrize("receipt", [None, b"", b"{", b"[]", b"7", b'"text"', b"{}", b'{"bytes": 1}', b"\xff\x00", "other facts"])
def test_an_artefact_without_its_own_receipt_is_not_finished(store: Store, receipt: bytes | str | None) -> None:
    path = the_file(store, ".json")
    whole = path.read_text()
    if receipt is None:
        path.unlink()
    elif isinstance(receipt, str):
        path.write_text(whole.replace("150", "151"))
    else:
        path.write_bytes(receipt)

    assert not store.has(KEY)
    with pytest.raises(DamagedError):
        store.facts(KEY)


def test_nothing_is_published_by_a_writer_that_fails_or_does_not_finish(room: Path) -> None:
    store = Store(room)
    with store.writer(KEY) as writer:
        writer.add(TABLES[0])
    with contextlib.suppress(ZeroDivisionError), store.writer(KEY) as writer:
        writer.add(TABLES[0])
        raise ZeroDivisionError

    assert not store.has(KEY)
    assert not list((room / "store").rglob("*.*"))


def test_half_written_files_are_swept_away_and_finished_ones_stay(store: Store) -> None:
    store.aside("99-half").write_bytes(b"half")

    store.clean()

    assert not (store.root / "tmp").exists()
    assert store.read(KEY) == TABLES[0]


def test_foreign_files_in_the_store_do_no_harm(store: Store) -> None:
    (store.root / "store" / "notes.txt").write_text("hello")
    (the_file(store).parent / "zz.json").write_text("{}")

    assert store.has(KEY)
    assert not store.has("zz")


def test_keep_only_drops_the_rest(store: Store) -> None:
    other = "cd" + 30 * "0"
    store.put(other, TABLES)

    store.keep_only({other})

    assert (store.has(KEY), store.has(other)) == (False, True)


def test_processes_that_publish_one_key_at_the_same_time_leave_one_whole_artefact(room: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.map(publish_often, [room, room], chunksize=1)

    store = Store(room)
    assert [store.read(KEY, at) for at in (0, 1)] == TABLES


def test_threads_that_publish_one_key_at_the_same_time_leave_one_whole_artefact(room: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(publish_often, [room] * 4))

    store = Store(room)
    assert [store.read(KEY, at) for at in (0, 1)] == TABLES


def publish_often(root: Path) -> None:
    for _ in range(30):
        Store(root).put(KEY, TABLES, {"by": os.getpid()})


STAGES = [
    "missing",
    flag(Centre(), above=0.3, of="distance"),
    SameValue(),
    "near_dup",
    flag(Amount(), worst_fraction=0.2, of="amount"),
]


@pytest.fixture
def undisturbed(room: Path) -> Path:
    write_parquet(room / "in.parquet", numbered(60), 25)
    return api.run(pipeline(*STAGES), room / "in.parquet", room / "whole").path


def run_again(room: Path, out: Path, stages: list[object] = STAGES) -> tuple[api.Run, int]:
    """Run until it works; how often the store said: damaged, run again."""
    for attempt in range(20):
        try:
            return api.run(pipeline(*stages), room / "in.parquet", out), attempt
        except DamagedError:
            continue
    raise AssertionError("running again never mends the store")


DAMAGES = ["flip", "truncate", "no receipt", "no file", "receipt"]


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in range(1, len(DAMAGES)))])
def test_any_damaged_intermediate_is_made_again_and_changes_nothing(
    room: Path, undisturbed: Path, turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each artefact in turn is damaged, in one way or another; the data files are gone, and one more stage makes the run
    read what it can reuse.
    """
    monkeypatch.setattr("curate.source.parquet.PART_BYTES", 1)
    stages = [*STAGES, flag(Amount(), name="more", above=0.9, of="amount")]
    base = api.run(pipeline(*STAGES), room / "in.parquet", room / "base").path
    expected = data_files(api.run(pipeline(*stages), room / "in.parquet", room / "more").path)
    keys = sorted(path.stem for path in (base / ".curate" / "store").rglob("*.arrow"))
    assert len(keys) > 20

    for at, key in enumerate(keys):
        out, damage = room / "out", DAMAGES[(at + turn) % len(DAMAGES)]
        shutil.copytree(base, out)
        hurt(out / ".curate" / "store" / key[:2] / key, damage)
        for folder in ("kept", "rejected", "verdicts", "scores"):
            shutil.rmtree(out / folder)

        same, _ = run_again(room, out)
        assert_accounted(same.path, numbered(60).to_pylist())
        hurt(out / ".curate" / "store" / key[:2] / key, damage)
        assert data_files(run_again(room, out, stages)[0].path) == expected, key
        shutil.rmtree(out)


def hurt(path: Path, damage: str) -> None:
    file, receipt = path.with_suffix(".arrow"), path.with_suffix(".json")
    data = file.read_bytes()
    if damage == "flip":
        middle = len(data) // 2
        file.write_bytes(data[:middle] + bytes([data[middle] ^ 64]) + data[middle + 1 :])
    elif damage == "truncate":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "no receipt":
        receipt.unlink()
    elif damage == "no file":
        file.unlink()
    else:
        receipt.write_text(json.dumps({**json.loads(receipt.read_text()), "facts": {}}))


def test_damaged_results_are_published_anew_when_the_run_is_repeated(room: Path, undisturbed: Path) -> None:
    before = data_files(undisturbed)
    victim = undisturbed / "kept" / "part-00000.parquet"
    victim.write_bytes(victim.read_bytes()[:-10])
    (undisturbed / "scores" / "part-00000.parquet").unlink()

    api.run(pipeline(*STAGES), room / "in.parquet", undisturbed)

    assert data_files(undisturbed) == before


def test_a_finished_run_is_left_as_it_is(room: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOG, str(room / "log"))
    before = {path: path.stat().st_ino for path in undisturbed.rglob("part-*")}
    told = numbers(undisturbed)

    run = api.run(pipeline(*STAGES), room / "in.parquet", undisturbed)

    assert run.report["costs"]["tasks_reused"] == run.report["costs"]["tasks"] > 0
    assert calls(room / "log") == {}
    assert {path: path.stat().st_ino for path in undisturbed.rglob("part-*")} == before
    assert numbers(undisturbed) == told


def test_the_store_does_not_grow_from_run_to_run(room: Path) -> None:
    write_parquet(room / "in.parquet", numbered(60), 25)
    counts = []
    for limit in (0.1, 0.5, 0.9):
        run = api.run(pipeline("missing", flag(Amount(), above=limit, of="amount")), room / "in.parquet", room / "out")
        counts.append(len(list((run.path / ".curate").rglob("*.*"))))

    assert len(set(counts)) == 1
    assert not (room / "out" / ".curate" / "stage").exists()
    assert not (room / "out" / ".curate" / "tmp").exists() or not list((room / "out" / ".curate" / "tmp").iterdir())


def test_one_run_at_a_time_holds_a_folder(room: Path) -> None:
    with RunDir(room / "out").locked(), pytest.raises(BusyError, match=str(os.getpid())):
        api.run(pipeline("missing"), numbered(5), room / "out")

    assert api.run(pipeline("missing"), numbered(5), room / "out").exit_code == 0


@pytest.mark.parametrize("verb", [api.gate, api.report], ids=["gate", "report"])
def test_a_run_under_way_is_neither_judged_nor_rendered(room: Path, verb: Callable[[Path], Any]) -> None:
    run = api.run(pipeline("missing", gate=[{"metric": "rejected_share", "max": 1.0}]), numbered(5), room / "out").path
    page = (run / "report.html").stat()

    with RunDir(run).locked(), pytest.raises(BusyError, match=str(os.getpid())):
        verb(run)

    assert (run / "report.html").stat() == page
    assert verb(run)


def test_a_folder_of_other_files_is_not_touched(room: Path) -> None:
    (room / "out").mkdir()
    (room / "out" / "thesis.doc").write_text("years of work")

    with pytest.raises(RequestError, match="other files"):
        api.run(pipeline("missing"), numbered(5), room / "out")

    assert [path.name for path in (room / "out").iterdir()] == ["thesis.doc"]


def test_a_gate_that_is_no_longer_asked_for_leaves_no_answer_behind(room: Path) -> None:
    limits = [{"metric": "rejected_share", "max": 1.0}]
    api.run(pipeline("missing", gate=limits), numbered(5), room / "out")
    assert (room / "out" / "gate.json").exists()

    api.run(pipeline("missing"), numbered(5), room / "out")

    assert not (room / "out" / "gate.json").exists()


def test_a_run_that_was_copied_without_its_private_folder_is_judged_and_rendered(room: Path) -> None:
    limits = [{"metric": "rejected_share", "max": 1.0}]
    run = api.run(pipeline("missing", gate=limits), numbered(5), room / "out").path
    copy = room / "copy"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns(".curate"))  # as artefact uploads do
    names = {path.name for path in copy.iterdir()}

    assert api.gate(copy)["passed"]
    assert api.report(copy).stat().st_size > 0
    assert {path.name for path in copy.iterdir()} == names


def test_the_page_shows_the_verdict_of_the_last_judgement(room: Path) -> None:
    limits = [{"metric": "rows.kept", "max_decrease": 0}]
    runs = [api.run(pipeline("missing", gate=limits), numbered(rows), room / str(rows)).path for rows in (15, 5)]
    assert "there is no baseline run" in (runs[1] / "report.html").read_text()

    api.gate(runs[1], baseline=runs[0])

    page = (runs[1] / "report.html").read_text()
    assert "there is no baseline run" not in page
    assert "fell from" in page


def test_data_folders_hold_nothing_but_data(room: Path, undisturbed: Path) -> None:
    names = {path.name for folder in ("kept", "rejected", "verdicts", "scores") for path in (undisturbed / folder).iterdir()}

    assert names == {"part-00000.parquet"}
    assert pl.read_parquet(undisturbed / "kept").height == numbers(undisturbed)["rows"]["kept"]
