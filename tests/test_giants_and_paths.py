"""Bombs, giant rows, thousands of files, strange paths: bounded memory, time in proportion, every row accounted for."""

from __future__ import annotations

import gzip
import io
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from process import GIB, script
from runs import assert_accounted, quarantined, rows_in

from curate import api
from curate.errors import InputError

TEXT = {"name": "test", "roles": {"text": "text"}, "stages": ["missing"], "quarantine_limit": 1.0}


# ---- bombs and giants -------------------------------------------------------------------------

MEASURED = """
import json, sys
from curate import api
from curate.errors import CurateError
try:
    answer = {"code": 0, "rows": api.run(json.loads(sys.argv[1]), source=sys.argv[2], out=sys.argv[3]).report["rows"]}
except CurateError as err:
    answer = {"code": err.exit_code, "message": str(err)}
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({**answer, "peak_mib": int(peak.split()[1]) >> 10}))
"""


def measured(pipeline: Mapping[str, Any], source: Path, out: Path, memory: int = 4 * GIB) -> dict[str, Any]:
    done = script(MEASURED, json.dumps(pipeline), source, out, memory=memory, timeout=120)
    assert done.code == 0, done.stderr
    return dict(done.document)


@pytest.mark.slow
def test_a_dictionary_bomb_in_parquet_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """Some 80 kB of file decode to 2 GB of text, while its metadata promises 2 MB."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["A" * 100_000]))
    pq.write_table(pa.table({"text": text}).replace_schema_metadata(), tmp_path / "bomb.parquet", store_schema=False)

    answer = measured({**TEXT, "stages": ["missing", "exact_dup"]}, tmp_path / "bomb.parquet", tmp_path / "out")

    assert (tmp_path / "bomb.parquet").stat().st_size < 300_000
    assert answer["rows"] == {"input": 20_000, "kept": 1, "rejected": 19_999, "quarantined": 0}
    assert answer["peak_mib"] < 1000


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_decompression_bomb_is_refused_in_bounded_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"bomb.jsonl.{kind}"
    with gzip.open(path, "wb", 9) if kind == "gz" else zstandard.open(path, "wb") as file:
        for _ in range(300):
            file.write(b'{"text":"' + b"A" * (5 << 20) + b'"}\n')

    answer = measured(TEXT, path, tmp_path / "out")

    assert answer["code"] == 4
    assert "decompression bomb" in answer["message"]
    assert answer["peak_mib"] < 1200


@pytest.mark.parametrize("megabytes", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_a_giant_row_is_a_row(tmp_path: Path, megabytes: int) -> None:
    giant = b'{"text":"' + b"word " * (megabytes * 200_000) + b'"}\n'
    (tmp_path / "data.jsonl").write_bytes(b'{"text":"small"}\n' + giant + b'{"text":"end"}\n')

    answer = measured({**TEXT, "stages": ["missing", "exact_dup"]}, tmp_path / "data.jsonl", tmp_path / "out")

    assert answer["rows"] == {"input": 3, "kept": 3, "rejected": 0, "quarantined": 0}
    assert answer["peak_mib"] < 1500


def test_a_row_over_the_cap_is_quarantined_and_says_that_its_evidence_is_cut(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_bytes(b'{"text":"a"}\n{"text":"' + b"x" * 200_000 + b'"}\n{"text":"b"}\n')

    run = api.run({**TEXT, "read": {"row_bytes": 100_000}}, source=tmp_path / "data.jsonl", out=tmp_path / "out")

    assert_accounted(run.path, [{"text": "a"}, None, {"text": "b"}])
    [record] = quarantined(run.path)
    assert record["reason"] == "the row is longer than 100000 bytes"
    assert (record["line"], record["offset"], record["raw_truncated"]) == (2, 13, True)


# ---- many files, strange paths ------------------------------------------------------------------


def test_a_folder_of_many_tiny_files_takes_time_in_proportion(tmp_path: Path) -> None:
    """Twice the files may not take four times as long."""
    seconds = {}
    for count in (60, 120):
        folder = tmp_path / f"in{count}"
        folder.mkdir()
        for at in range(count):
            (folder / f"{at:05}.jsonl").write_text(f'{{"id":{at},"text":"text number {at % 50}"}}\n')
        begun = time.process_time()
        run = api.run({**TEXT, "stages": ["missing", "exact_dup"]}, source=folder, out=tmp_path / f"out{count}")
        seconds[count] = time.process_time() - begun
        assert run.report["rows"] == {"input": count, "kept": 50, "rejected": count - 50, "quarantined": 0}

    assert seconds[120] < 3 * seconds[60] + 0.2


@pytest.mark.parametrize("name", ["with space", "ünïcode ☃", "per%20cent", "semi;colon", "[brackets]", "star*", "quest?ion"])
def test_a_source_path_may_hold_any_character(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / f"{name}.jsonl").write_text('{"text":"here"}\n')

    for number, source in enumerate((folder, folder / f"{name}.jsonl", f"{folder}/")):
        run = api.run(TEXT, source=source, out=tmp_path / f"out {name} {number}")

        assert run.report["rows"]["kept"] == 1
        assert api.why(run.path, "0")["source_file"] == f"{name}.jsonl"
        assert api.diff(run.path, run.path)["rows"] == {"same": 1, "changed": 0}


def test_relative_paths_links_and_home_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "data.jsonl").write_text('{"text":"here"}\n')
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "again").symlink_to("..")
    (tmp_path / "broken").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    for number, source in enumerate(["link", "./real/data.jsonl", "real/../link/*.jsonl", str(tmp_path / "link"), "~/real"]):
        assert api.run(TEXT, source=source, out=f"out{number}").report["rows"]["kept"] == 1
    with pytest.raises(InputError, match="there is no `broken`"):
        api.run(TEXT, source="broken", out="outb")


def test_hive_folders_become_columns_of_kept_rows(tmp_path: Path) -> None:
    for year, lang in ((2023, "en"), (2024, "de"), (2024, "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / "in" / f"year={year}" / f"lang={lang}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"text": [f"{year} {lang}"]}), folder / "a.parquet")

    run = api.run({**TEXT, "roles": {"text": "text", "group": ["lang", "year"]}}, source=tmp_path / "in", out=tmp_path / "out")

    assert [(row["year"], row["lang"]) for row in rows_in(run.path, "kept")] == [(2023, "en"), (2024, None), (2024, "de")]


def test_a_remote_source_is_read_like_a_local_one(tmp_path: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/bad_data/a.jsonl", b'{"text":"one"}\n{"text":\n')
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": ["two", "three"]}), sink)
    memory.pipe("/bad_data/b.parquet", sink.getvalue())

    run = api.run(TEXT, source="memory://bad_data", out=tmp_path / "out")

    assert_accounted(run.path, [{"text": "one"}, None, {"text": "two"}, {"text": "three"}])
    memory.pipe("/bad_data/b.parquet", sink.getvalue()[:-20])
    with pytest.raises(InputError, match="damaged") as caught:
        api.run(TEXT, source="memory://bad_data", out=tmp_path / "again")
    assert "b.parquet" in str(caught.value)


def test_threads_of_the_caller_are_no_hindrance(tmp_path: Path) -> None:
    """Two runs in two threads of one process, each in its own folder."""
    (tmp_path / "data.jsonl").write_text('{"text":"one"}\n{"text":""}\n')
    done: list[int] = []

    def go(number: int) -> None:
        done.append(api.run(TEXT, source=tmp_path / "data.jsonl", out=tmp_path / f"out{number}").report["rows"]["kept"])

    threads = [threading.Thread(target=go, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert done == [1, 1]
