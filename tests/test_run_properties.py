"""Whole runs keep their promises on any data and any pipeline."""

from __future__ import annotations

import functools
import itertools
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import (
    Row,
    assert_accounted,
    by_id,
    data_files,
    flag,
    numbered,
    numbers,
    pipeline,
    run_all,
    scores,
    verdicts,
    write_jsonl,
    write_parquet,
)
from toy_checks import Amount, Centre, Length, Lottery, SameValue

from curate import api
from curate.check import make_check
from curate.pipeline import Stage
from curate.source import lines as lines_module

WORDS = st.sampled_from(["the", "route", "eleven", "is", "closed", "today", "and", "open", "tomorrow", "again", "Über"])
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(["", " ", "same text", "Same  text", "\u200b", "1", "null", 'a,b\n"c"']),
    st.lists(WORDS, min_size=1, max_size=12).map(" ".join),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
)
VALUES = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 0.5, 1.0, float("nan"), float("inf"), -1e300]), st.floats(0, 1))
BROKEN = (b"{", b'{"id": "x", "text": "\xff"}', b"NaN", b'{"id": 1, "id": 2}')
STAGES = (
    "missing",
    "exact_dup",
    Stage("exact_dup", name="raw", reject=[{"is_true": "is_copy"}]),
    "near_dup",
    Amount(),
    flag(Amount(), name="worst", worst_fraction=0.3, of="amount"),
    Stage(Amount(), name="strict", on_missing="reject"),
    Length(most=12),
    flag(Lottery(), above=0.7, of="ticket"),
    flag(Centre(), above=0.4, of="distance"),
    SameValue(),
    Stage(SameValue(), name="some_same", when="value > 0.4"),
    Stage(Length(most=0), name="all_long", when='text != "same text"'),
)
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    cells = draw(st.lists(st.tuples(TEXTS, VALUES), max_size=40))
    return [{"id": f"r{at:02}", "text": text, "value": value} for at, (text, value) in enumerate(cells)]


def as_table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([("id", pa.string()), ("text", pa.string()), ("value", pa.float64())]))


def pipelines(most: int = 4) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(STAGES), min_size=1, max_size=most, unique_by=lambda s: getattr(s, "name", s))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one row group, many batches, several shards."""
    monkeypatch.setattr("curate.source.parquet.PART_BYTES", 1)
    monkeypatch.setattr("curate.source.parquet.BATCH_BYTES", 16)
    monkeypatch.setattr("curate.plan.SHARD_KEYS", 16)


def fresh(room: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=room))


@settings(max_examples=60, deadline=None, suppress_health_check=QUIET)
@given(rows=tables(), stages=pipelines(), mode=st.sampled_from(["staged", "audit"]), groups=st.integers(1, 20))
def test_every_row_of_any_parquet_is_accounted_for(
    rows: list[Row], stages: list[Any], mode: str, groups: int, room: Path, small_parts: None
) -> None:
    here = fresh(room)
    write_parquet(here / "in.parquet", as_table(rows), groups)

    api.run(pipeline(*stages, mode=mode), here / "in.parquet", here / "out")

    assert_accounted(here / "out", rows)


@settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
@given(rows=tables(), stages=pipelines(), cuts=st.lists(st.integers(0, 40), max_size=3), data=st.data())
def test_every_line_of_any_files_is_accounted_for_broken_ones_too(
    rows: list[Row], stages: list[Any], cuts: list[int], data: st.DataObject, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curate.source.jsonl.blocks_of", functools.partial(lines_module.blocks_of, block_bytes=150))
    monkeypatch.setattr(sys.modules["curate.source.ingest"], "PIECE_BYTES", 700)
    here = fresh(room)
    finite = [{**row, "value": 0.25 if row["value"] is None or row["value"] - row["value"] else row["value"]} for row in rows]
    lines: list[Row | bytes] = list(finite)
    for _ in range(data.draw(st.integers(0, 3))):
        lines.insert(data.draw(st.integers(0, len(lines))), data.draw(st.sampled_from(BROKEN)))
    bounds = [0, *sorted(min(cut, len(lines)) for cut in cuts), len(lines)]
    first = {"id": "first", "text": "a text that gives the columns their types", "value": 0.5}
    write_jsonl(here / "in" / "a.jsonl", [first])
    for at, (start, stop) in enumerate(itertools.pairwise(bounds)):
        write_jsonl(here / "in" / f"b{at}.jsonl", lines[start:stop])

    api.run(pipeline(*stages), here / "in", here / "out")

    assert_accounted(here / "out", [first, *(None if isinstance(line, bytes) else line for line in lines)])


@settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
@given(rows=tables(), stages=pipelines(), groups=st.integers(1, 20), batch=st.sampled_from([1, 1000]))
def test_the_cut_into_files_row_groups_and_batches_changes_no_verdict(
    rows: list[Row], stages: list[Any], groups: int, batch: int, room: Path
) -> None:
    here, table = fresh(room), as_table(rows)
    whole = write_parquet(here / "whole" / "in.parquet", table, 1000)
    half = len(rows) // 2
    write_parquet(here / "cut" / "a.parquet", table.slice(0, half), groups)
    write_parquet(here / "cut" / "b.parquet", table.slice(half), groups)

    api.run(pipeline(*stages), whole, here / "one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("curate.source.parquet.PART_BYTES", 1)
        patch.setattr("curate.source.parquet.BATCH_BYTES", batch)
        patch.setattr("curate.plan.SHARD_KEYS", 5)
        api.run(pipeline(*stages), here / "cut", here / "many")

    assert by_id(here / "one") == by_id(here / "many")
    assert scores(here / "one").equals(scores(here / "many"))


@settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
@given(texts=st.lists(TEXTS, min_size=1, max_size=30), seed=st.integers(0, 99))
def test_the_order_of_rows_changes_no_verdict_where_the_preference_tells_all_rows_apart(
    texts: list[str | None], seed: int, room: Path
) -> None:
    here = fresh(room)
    rows = [{"id": f"r{at:02}", "text": text, "value": float(at * 31 % 97)} for at, text in enumerate(texts)]
    mixed = random.Random(seed).sample(rows, len(rows))
    prefer = {"prefer": {"highest": "value"}}
    stages = ["missing", make_check("exact_dup", prefer), make_check("near_dup", {**prefer, "similarity": 0.5})]

    for name, order in (("sorted", rows), ("mixed", mixed)):
        write_parquet(here / f"{name}.parquet", as_table(order))
        api.run(pipeline(*stages), here / f"{name}.parquet", here / name)

    assert by_id(here / "sorted") == by_id(here / "mixed")


@settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
@given(rows=tables(), before=pipelines(2), limits=st.tuples(st.floats(0, 1), st.floats(0, 1)), group=st.booleans())
def test_tightening_the_last_limit_never_unrejects(
    rows: list[Row], before: list[Any], limits: tuple[float, float], group: bool, room: Path
) -> None:
    here = fresh(room)
    write_parquet(here / "in.parquet", as_table(rows), 7)
    loose, tight = max(limits), min(limits)
    last = (
        (lambda limit: flag(make_check("near_dup", {"similarity": 0.1}), name="last", at_least=limit, of="similarity"))
        if group
        else (lambda limit: flag(Amount(), name="last", above=limit, of="amount"))
    )

    outs = [rejected(here, [*before, last(limit)]) for limit in (loose, tight)]

    assert outs[0] <= outs[1]


@settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
@given(rows=tables(), limits=st.tuples(st.floats(0, 1), st.floats(0, 1)), at=st.integers(0, 3))
def test_in_audit_mode_tightening_any_limit_never_unrejects(
    rows: list[Row], limits: tuple[float, float], at: int, room: Path
) -> None:
    here = fresh(room)
    write_parquet(here / "in.parquet", as_table(rows), 7)
    others: list[Any] = ["missing", flag(Centre(), above=0.4, of="distance"), SameValue(), Length(most=12)]

    outs = []
    for limit in (max(limits), min(limits)):
        stages = [*others[:at], flag(Amount(), name="moved", above=limit, of="amount"), *others[at:]]
        outs.append(rejected(here, stages, mode="audit"))

    assert outs[0] <= outs[1]


def rejected(here: Path, stages: list[Any], **more: Any) -> set[str]:
    api.run(pipeline(*stages, **more), here / "in.parquet", here / "out")
    return set(verdicts(here / "out").filter(pl.col("verdict") == "rejected")["id"].to_list())


def test_in_audit_mode_every_check_sees_every_readable_row(room: Path) -> None:
    table = numbered(60)
    stages = ["missing", "exact_dup", flag(Centre(), above=0.2, of="distance"), Amount(), SameValue()]
    forms = dict(run_all(stages, {"staged": table}, room)) | dict(run_all(stages, {"audit": table}, room, mode="audit"))

    asked = {name: [stage["asked"] for stage in run.report["stages"].values()] for name, run in forms.items()}
    first = {name: verdicts(run.path).filter(pl.col("stage") == "missing")["id"].to_list() for name, run in forms.items()}

    assert asked["audit"] == [60] * 5
    assert asked["staged"][1:] < [60] * 4
    assert first["audit"] == first["staged"] != []
    assert scores(room / "audit")["amount.amount"].null_count() == table.column("value").null_count


def test_the_hash_seed_and_the_process_change_no_byte(room: Path, root: Path) -> None:
    write_parquet(room / "in.parquet", numbered(90), 20)
    script = (
        "import sys; from pathlib import Path; from runs import pipeline, flag; from toy_checks import Centre, SameValue\n"
        "from curate import api\n"
        "stages = ['missing', flag(Centre(), above=0.3, of='distance'), SameValue(), 'exact_dup', 'near_dup']\n"
        "api.run(pipeline(*stages), Path(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join((str(root), str(root / "tests")))}
        command = [sys.executable, "-c", script, str(room / "in.parquet"), str(room / seed)]
        subprocess.run(command, check=True, env=env, timeout=60)

    assert data_files(room / "0") == data_files(room / "1")
    assert numbers(room / "0") == numbers(room / "1")
