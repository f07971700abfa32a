"""The index of accepted rows shows what was added and not deleted, after any history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexes import IDENTITY, TOP, Row, expected, files, filled, numbers, planted, shown, table, the_segment

from curate import cli, keyfile, segment
from curate.errors import RequestError
from curate.index import Index, index

WORDS = st.integers(0, 12) | st.sampled_from([2**63, TOP])
ROWS = st.lists(
    st.builds(
        Row,
        st.none() | st.sampled_from(["", "a", "b", "c", "é\n漢", "x" * 40]),
        st.sampled_from(["", "one.jsonl", "zwei.jsonl"]),
        st.integers(0, TOP),
        WORDS,
        st.lists(WORDS, max_size=4).map(tuple),
        st.sets(WORDS, max_size=5).map(sorted).map(tuple),
    ),
    max_size=5,
)
STEPS = st.one_of(
    st.tuples(st.just("add"), ROWS),
    st.tuples(st.just("again"), ROWS),
    st.tuples(st.just("delete"), st.lists(st.sampled_from(["", "a", "b", "é\n漢", "unknown"]), max_size=3)),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
)


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=12))
def test_any_history_shows_what_a_list_would(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]) -> None:
    folder = tmp_path_factory.mktemp("index") / "history"
    made, live, added = Index.open(folder, IDENTITY), [], 0
    for step, value in steps:
        if step == "add":
            assert made.add(str(added), [table(value[:2]), table(value[2:])])
            live, added = live + value, added + 1
        elif step == "again" and added:
            assert not made.add(str(added - 1), [table(value)])
        elif step == "delete":
            assert made.delete(value) == sum(row.id in value for row in live)
            live = [row for row in live if row.id not in value]
        elif step == "compact":
            made.compact()
        elif step == "reopen":
            made = Index.open(folder, IDENTITY)

        every = [*range(13), 2**63, TOP]
        assert made.rows == len(live)
        assert shown(made, every) == expected(live, every)
        assert shown(made, every[1::3]) == expected(live, every[1::3])
        found = made.find(np.array(every[::2], np.uint64))
        assert list(zip(*found.drop_columns("entry").to_pydict().values(), strict=True)) == [
            (row.id, row.source, row.source_row, row.content) for row in live if row.content in every[::2]
        ]


def test_opening_makes_nothing_and_an_empty_index_answers(room: Path) -> None:
    made = Index.open(room / "index", IDENTITY)

    assert (made.rows, made.state) == (0, "")
    assert made.lookup(numbers([1, 2])).num_rows == 0
    assert made.read(numbers([0])).schema == filled(room / "other", planted(1)).read(numbers([0])).schema
    assert made.find(numbers([0])).column_names == ["entry", "id", "source", "source_row", "content"]
    assert made.delete(["id-1"]) == 0
    made.compact()
    assert not (room / "index").exists()


def test_a_batch_without_rows_is_remembered(room: Path) -> None:
    made = filled(room, [])

    assert (made.rows, made.facts()["segments"], made.facts()["batches"]) == (0, 0, 1)
    assert not made.add("batch 0", [table(planted(3))])


def test_the_same_name_twice_is_one_batch_even_after_its_rows_were_deleted_and_compacted(room: Path) -> None:
    made = filled(room, planted(20))
    before = made.state

    assert not made.add("batch 0", [table(planted(20))])
    assert (made.rows, made.state) == (20, before)
    assert made.delete(f"id-{row}" for row in range(20)) == 20
    made.compact()
    assert not made.add("batch 0", [table(planted(20))])
    assert (made.rows, made.facts()["bytes"]) == (0, 0)


def test_batches_jointly_or_one_after_the_other_answer_alike(room: Path) -> None:
    rows, keys = planted(700), numbers([*range(10), *range(1000, 1700, 3), TOP])

    jointly = filled(room / "jointly", rows)
    apart = filled(room / "apart", *(rows[start : start + 30] for start in range(0, 700, 30)))

    assert apart.facts()["segments"] > 1
    assert apart.lookup(keys) == jointly.lookup(keys)
    entries = np.arange(700, dtype=np.uint64)
    assert apart.read(entries) == jointly.read(entries)


def test_a_compacted_index_answers_as_one_made_of_the_rows_that_are_left(room: Path) -> None:
    rows, gone = planted(900), {f"id-{row}" for row in range(0, 900, 7)} | {f"id-{row}" for row in range(100, 300)}
    made = filled(room / "made", rows[:500], rows[500:600], rows[600:])
    keys, entries = numbers([*range(10), *range(1000, 1900), TOP]), np.arange(900, dtype=np.uint64)

    made.delete(gone)
    made.compact()

    plain = filled(room / "plain", [row for row in rows if row.id not in gone])
    assert (made.facts()["segments"], made.facts()["deleted_rows"]) == (1, 0)
    assert made.lookup(keys) == plain.lookup(keys)
    assert made.read(entries) == plain.read(entries)
    assert made.facts()["bytes"] == plain.facts()["bytes"]
    assert files(room / "made") == [path.name for path in (room / "made/segments").iterdir()]


def test_segments_stay_few_however_many_batches_come(room: Path) -> None:
    made = filled(room, *(planted(8, 8 * at) for at in range(100)))

    assert made.facts()["segments"] <= 3 * 5
    assert made.facts()["batches"] == 100
    assert shown(made, [3, TOP]) == expected(planted(800), [3, TOP])


def test_a_limit_gives_the_first_live_entries_of_each_key(room: Path) -> None:
    rows = planted(2000)
    made = filled(room, rows[:1500], rows[1500:])
    made.delete(f"id-{row}" for row in range(0, 700))

    for limit in (0, 1, 3, 200, 1200, 5000):
        found = shown(made, [3, 1001, 1900, TOP], limit)

        whole = [expected(rows[700:], [key])[:limit] for key in (3, 1001, 1900, TOP)]
        assert found == [pair for pairs in whole for pair in pairs]


def test_keys_beyond_what_is_sorted_in_memory_are_sorted_on_disk(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = planted(3000)
    filled(room / "plain", rows)
    monkeypatch.setattr(segment, "SORTED_AT_ONCE", 700)
    monkeypatch.setattr(keyfile, "MERGED_AT_ONCE", 1024)

    made = Index.open(room / "spilled", IDENTITY)
    made.add("batch 0", (table(rows[start : start + 100]) for start in range(0, 3000, 100)))

    assert len(files(room / "spilled")) == 1
    assert [path.read_bytes() for path in (room / "spilled/segments").iterdir()] == [
        path.read_bytes() for path in (room / "plain/segments").iterdir()
    ]


def test_keys_may_be_of_a_fixed_number(room: Path) -> None:
    rows = planted(50)
    fixed = table(rows).set_column(4, "keys", pa.array([row.keys for row in rows], pa.list_(pa.uint64(), 3)))

    made = Index.open(room, IDENTITY)
    made.add("fixed", [fixed, fixed.slice(0, 0)])

    assert shown(made, [4, TOP]) == expected(rows, [4, TOP])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (IDENTITY | {"shingle": 3}, "`shingle` was 5 and is 3 now"),
        (IDENTITY | {"bands": [25, 4]}, "`bands` was [25, 5] and is [25, 4] now"),
        ({"shingle": 5, "bands": [25, 5]}, "`signature` was 2 and is not set now"),
        (IDENTITY | {"tokens": "v1"}, '`tokens` was not set and is "v1" now'),
    ],
)
def test_an_index_of_another_identity_is_refused_by_its_differing_field(room: Path, other: dict[str, Any], said: str) -> None:
    filled(room, planted(3))

    with pytest.raises(RequestError) as caught:
        Index.open(room, other)

    assert said in caught.value.message
    assert caught.value.message.count("` was ") == 1
    assert caught.value.exit_code == 2
    assert "name a new folder" in caught.value.hint


def test_an_index_of_another_format_is_refused(room: Path) -> None:
    filled(room, planted(3))
    document = json.loads((room / "index.json").read_text())
    (room / "index.json").write_text(json.dumps(document | {"format": 99}))

    with pytest.raises(RequestError, match="format 99; this curate reads format 1"):
        Index.open(room, IDENTITY)


def test_a_folder_of_something_else_is_refused_and_left_alone(room: Path) -> None:
    (room / "thesis.txt").write_text("years of work")

    with pytest.raises(RequestError, match=r"thesis\.txt"):
        Index.open(room, IDENTITY)
    with pytest.raises(RequestError, match="a file, not a folder"):
        Index.open(room / "thesis.txt", IDENTITY)

    assert [path.name for path in room.iterdir()] == ["thesis.txt"]


def test_a_merge_reads_no_more_keys_at_once_than_it_must(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most: list[int] = []
    real = keyfile.KeyWriter.add
    monkeypatch.setattr(keyfile, "MERGED_AT_ONCE", 2048)
    made = filled(room, *(planted(1000, 1000 * at) for at in range(3)))

    monkeypatch.setattr(keyfile.KeyWriter, "add", lambda self, keys, places: (most.append(len(keys)), real(self, keys, places)))
    made.compact()

    hot = 3000  # all rows have the greatest key in common
    assert sum(most) == 3 * 3000 + 3000 + 3000
    assert max(most) <= hot + 2 * 2048


def test_the_verb_deletes_the_ids_of_a_file_and_compacts(room: Path) -> None:
    filled(room / "index", planted(50), planted(20, 50))
    (room / "ids.txt").write_bytes("\ufeffid-3\r\nid-60\n\nunknown\n".encode())

    deleted = index(room / "index", delete=room / "ids.txt")
    compacted = index(room / "index", compact=True)

    assert (deleted["rows"], deleted["deleted"], deleted["deleted_rows"], deleted["segments"]) == (68, 2, 2, 2)
    assert (compacted["rows"], compacted["deleted"], compacted["deleted_rows"], compacted["segments"]) == (68, 0, 0, 1)
    assert compacted["identity"] == IDENTITY
    assert compacted["bytes"] < deleted["bytes"]
    for wrong in ({"folder": room / "nothing"}, {"folder": room / "index", "delete": room / "no.txt"}):
        with pytest.raises(RequestError):
            index(**wrong)


def test_the_command_prints_one_document_and_its_exit_codes(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(room / "index", planted(50), planted(20, 50))
    (room / "ids.txt").write_text("id-3\nid-60\n")

    assert cli.main(["index", str(room / "index"), "--delete", str(room / "ids.txt"), "--compact", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == index(room / "index") | {"deleted": 2}
    assert "rows: 68" in said.err
    assert cli.main(["index", str(room), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "RequestError"
    the_segment(room / "index").write_bytes(b"")
    assert cli.main(["index", str(room / "index")]) == 4
