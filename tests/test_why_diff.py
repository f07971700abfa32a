"""`why` tells the whole story of a row, and `diff` what changed, as a person would count it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from runs import flag, numbered, pipeline, rows_in, verdicts, write_jsonl, write_parquet
from toy_checks import Amount, Length, SameValue

from curate import api
from curate.dataset import Roles
from curate.errors import RequestError
from curate.pipeline import Stage

ROWS = [
    {"id": "10", "text": "the same text", "value": 0.9},
    {"id": "0", "text": "another text", "value": 0.1},
    {"id": "2", "text": "The same  text", "value": 0.2},
    {"id": "x", "text": None, "value": 0.3},
    {"id": "y", "text": "a fine text", "value": None},
]
STAGES = ["missing", "exact_dup", Stage(Amount(), reject=[{"below": 0.15, "of": "amount"}], on_missing="reject")]


@pytest.fixture
def run(room: Path) -> Path:
    write_jsonl(room / "in.jsonl", [ROWS[0], b"{", *ROWS[1:]])
    return api.run(pipeline(*STAGES), room / "in.jsonl", room / "out").path


def test_a_rejected_row_is_told_with_its_reason_scores_and_cells(run: Path) -> None:
    told = api.why(run, 2)

    assert {name: told[name] for name in ("row_id", "id", "source_file", "source_row", "verdict", "stage", "check")} == {
        "row_id": 2, "id": "0", "source_file": "in.jsonl", "source_row": 2, "verdict": "rejected", "stage": "amount",
        "check": "amount",
    }  # fmt: skip
    assert (told["column"], told["rule"], told["value"], told["limit"]) == ("amount", "below", 0.1, 0.15)
    assert told["row"] == ROWS[1]
    assert told["witness"] is None
    assert [(stage["name"], stage["status"]) for stage in told["stages"]] == [
        ("missing", "scored"), ("exact_dup", "scored"), ("amount", "scored"),
    ]  # fmt: skip
    assert told["stages"][2]["rules"] == [{"rule": "below", "column": "amount", "limit": 0.15, "value": 0.1, "fires": True}]
    assert told["stages"][1]["scores"] == {"is_copy": False, "copy_of": None, "group_size": 1.0}


def test_a_copy_is_told_with_the_row_that_stays(run: Path) -> None:
    told = api.why(run, "2")

    assert (told["row_id"], told["stage"], told["witness_row"], told["witness_id"]) == (3, "exact_dup", 0, "10")
    assert told["row"] == ROWS[2]
    assert told["witness"]["verdict"] == "kept"
    assert told["witness"]["row"] == ROWS[0]
    assert told["stages"][1]["scores"] == {"is_copy": True, "copy_of": 0, "group_size": 2.0}
    assert told["stages"][2]["status"] == "not asked"


def test_a_kept_row_fired_no_rule(run: Path) -> None:
    told = api.why(run, 0)

    assert (told["verdict"], told["stage"], told["row"]) == ("kept", None, ROWS[0])
    assert not any(rule["fires"] for stage in told["stages"] for rule in stage["rules"])


def test_a_row_rejected_for_a_missing_cell_says_so(run: Path) -> None:
    told = api.why(run, "y")

    assert (told["stage"], told["rule"], told["value"]) == ("amount", "on_missing", None)
    assert told["stages"][2]["status"] == "missing"
    assert told["stages"][2]["rules"][0]["fires"]


@pytest.mark.parametrize(("row", "fires"), [("x", [True, False]), ("10", [True, False]), ("2", [False, True])])
def test_of_two_rules_over_one_column_the_one_that_rejected_is_told(room: Path, row: str, fires: list[bool]) -> None:
    rules = [{"above": 0.8, "of": "amount"}, {"above": 0.15, "of": "amount"}]
    rows = [dict(one, value=None) if one["id"] == "x" else one for one in ROWS]
    run = api.run(pipeline(Stage(Amount(), reject=rules, on_missing="reject")), pa.Table.from_pylist(rows), room / "out").path

    assert [rule["fires"] for rule in api.why(run, row)["stages"][0]["rules"]] == fires


def test_a_row_that_could_not_be_read_has_no_cells_and_was_asked_nothing(run: Path) -> None:
    told = api.why(run, 1)

    assert (told["verdict"], told["row"], told["id"]) == ("quarantined", None, None)
    assert {stage["status"] for stage in told["stages"]} == {"not asked"}


@pytest.mark.parametrize(
    ("asked", "row"),
    [("10", 0), ("0", 2), (0, 0), (2, 2), ("2", 3), ("x", 4), ("3", 3), ("1", 1), (5, 5), ("5", 5)],
)
def test_text_is_an_id_where_the_data_has_it_and_a_number_is_a_row(run: Path, asked: Any, row: int) -> None:
    assert api.why(run, asked)["row_id"] == row


@pytest.mark.parametrize("asked", ["nobody", "", "6", 6, -1, "-1", "1.0", "99999999999999999999999", 10**30, "٣", "1\n"])
def test_a_row_that_is_not_there_is_a_request_error_that_names_it(run: Path, asked: Any) -> None:
    with pytest.raises(RequestError, match="there is no row"):
        api.why(run, asked)


def test_an_id_of_several_rows_asks_for_a_row_number(room: Path) -> None:
    table = pa.table({"id": ["a", "a"], "text": ["one", "two"]})
    run = api.run(pipeline("missing"), table, room / "out").path

    with pytest.raises(RequestError, match="several rows") as caught:
        api.why(run, "a")

    assert "0 or 1" in caught.value.hint


def test_ids_that_are_numbers_are_found_as_they_are_written(room: Path) -> None:
    table = pa.table({"id": pa.array([5, 2**60, -3], pa.int64()), "text": ["one", "two", "three"]})
    run = api.run(pipeline("missing"), table, room / "out").path

    assert [api.why(run, str(name))["row_id"] for name in (5, 2**60, -3)] == [0, 1, 2]
    assert api.why(run, 1)["id"] == str(2**60)


def test_without_ids_rows_are_named_by_number(room: Path) -> None:
    run = api.run(pipeline("exact_dup", roles=Roles(text="text")), numbered(20), room / "out").path

    assert api.why(run, "7")["row_id"] == 7
    assert verdicts(run)["id"].null_count() == 20


def test_input_columns_with_our_prefix_are_shown_too(room: Path) -> None:
    table = pa.table({"id": ["a", "b"], "text": ["", "two"], "curate_note": ["mine", "yours"]})
    run = api.run(pipeline("missing"), table, room / "out").path

    assert [api.why(run, at)["row"]["curate_note"] for at in (0, 1)] == ["mine", "yours"]


@pytest.mark.parametrize("form", ["parquet", "jsonl", "jsonl.zst", "csv"])
def test_every_row_is_found_again_in_every_output_format(room: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curate.source.parquet.PART_BYTES", 1)
    table = numbered(25)
    write_parquet(room / "in.parquet", table, 10)
    run = api.run(pipeline("missing", SameValue(), output={"format": form}), room / "in.parquet", room / "out").path

    for at, row in enumerate(table.to_pylist()):
        told = api.why(run, at)
        assert (told["row_id"], told["row"]["id"]) == (at, row["id"])
        if form != "csv":
            assert told["row"] == row


def test_in_audit_mode_a_rejected_row_was_asked_everything(room: Path) -> None:
    run = api.run(pipeline("exact_dup", Amount(), mode="audit"), pa.Table.from_pylist(ROWS), room / "out").path

    told = api.why(run, "2")

    assert told["stage"] == "exact_dup"
    assert [stage["status"] for stage in told["stages"]] == ["scored", "scored"]
    assert told["stages"][1]["scores"] == {"amount": 0.2}


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
@pytest.mark.parametrize("mode", ["staged", "audit"])
def test_a_stage_whose_condition_a_row_does_not_meet_was_not_asked(room: Path, form: str, mode: str) -> None:
    rows = [{"id": name, "text": "of some length", "value": value} for name, value in (("a", 0.1), ("b", None), ("c", 0.9))]
    unlike_a = Stage(Amount(), name="unlike_a", when='id != "a"', reject=[{"above": 0.5, "of": "amount"}])
    plan = pipeline(unlike_a, Length(most=100), mode=mode, output={"format": form})
    run = api.run(plan, pa.Table.from_pylist(rows), room / "out").path

    told = [api.why(run, name)["stages"][0]["status"] for name in ("a", "b", "c")]

    assert told == ["not asked", "missing", "scored"]


@pytest.mark.parametrize("folder", ["nothing", "unfinished"])
def test_a_folder_without_a_finished_run_is_a_request_error(room: Path, folder: str) -> None:
    (room / "unfinished" / ".curate").mkdir(parents=True)

    for ask in (lambda path: api.why(path, 0), lambda path: api.diff(path, path)):
        with pytest.raises(RequestError, match=r"manifest\.json|report\.json") as caught:
            ask(room / folder)
        assert ("not finished" in caught.value.hint) == (folder == "unfinished")


# Differences.


def test_a_run_does_not_differ_from_itself(run: Path, room: Path) -> None:
    told = api.diff(run, run)

    assert told["rows"] == {"same": 6, "changed": 0}
    assert told["matched_by"] == ["id"]
    assert (told["transitions"], told["examples"]) == ({}, [])
    assert told["report"]["rows.kept"] == {"a": 1, "b": 1}


def test_moved_rows_are_counted_and_shown(room: Path) -> None:
    values = [at / 10 for at in range(10)]
    table = numbered(10, values)
    runs = [
        api.run(pipeline(flag(Amount(), name="limit", above=limit, of="amount"), Length(most=100)), table, room / str(limit)).path
        for limit in (0.75, 0.45)
    ]

    told = api.diff(*runs)

    assert told["rows"] == {"same": 7, "changed": 3}
    assert told["transitions"] == {"kept->rejected": 3}
    assert [row["id"] for row in told["examples"]] == ["r005", "r006", "r007"]
    assert told["examples"][0]["a"]["verdict"] == "kept"
    assert told["examples"][0]["b"] | {"verdict": "rejected", "stage": "limit", "value": 0.5} == told["examples"][0]["b"]
    assert told["report"]["limit.rejected"] == {"a": 2, "b": 5}
    assert api.diff(*reversed(runs))["transitions"] == {"rejected->kept": 3}


def test_a_row_rejected_for_another_reason_has_changed(room: Path) -> None:
    table = numbered(10, [at / 10 for at in range(10)])
    one, other = flag(Amount(), name="one", above=0.75, of="amount"), flag(Amount(), name="other", above=0.75, of="amount")
    runs = [api.run(pipeline(*stages), table, room / str(at)).path for at, stages in enumerate([(one, other), (other, one)])]

    told = api.diff(*runs)

    assert told["rows"] == {"same": 8, "changed": 2}
    assert told["transitions"] == {}
    assert [row["a"]["stage"] for row in told["examples"]] == ["one", "one"]


def test_another_rule_of_the_same_stage_is_another_reason(room: Path) -> None:
    table = numbered(10, [at / 10 for at in range(10)])
    low, high = {"below": 0.95, "of": "amount"}, {"above": 0.75, "of": "amount"}
    runs = [
        api.run(pipeline(Stage(Amount(), reject=rules)), table, room / str(at)).path
        for at, rules in enumerate([(low, high), (high, low)])
    ]

    told = api.diff(*runs)

    assert told["rows"] == {"same": 8, "changed": 2}
    assert told["transitions"] == {}


def test_rows_are_matched_by_id_wherever_they_stand(room: Path) -> None:
    table = numbered(12)
    mixed = table.take([11, 3, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10])
    runs = [api.run(pipeline("missing"), data, room / name).path for name, data in (("a", table), ("b", mixed))]

    assert api.diff(*runs)["rows"] == {"same": 12, "changed": 0}


def test_rows_that_only_one_run_has_are_absent_from_the_other(room: Path) -> None:
    table = numbered(12)
    runs = [api.run(pipeline("missing"), data, room / name).path for name, data in (("a", table), ("b", table.slice(2)))]

    told = api.diff(*runs)

    assert told["rows"] == {"same": 10, "changed": 2}
    assert told["transitions"] == {"kept->absent": 2}
    assert [row["id"] for row in told["examples"]] == ["r000", "r001"]


@pytest.mark.parametrize("ids", [None, "twice", "null"])
def test_rows_without_names_of_their_own_are_matched_by_place(room: Path, ids: str | None) -> None:
    rows = numbered(10, [at / 10 for at in range(10)]).to_pylist()
    for row in rows[:2]:
        row["id"] = {"twice": "same", "null": None, None: row["id"]}[ids]
    write_jsonl(room / "in.jsonl", [*rows, b"{"])
    roles = Roles(id="id" if ids else None, text="text")
    runs = [
        api.run(pipeline(flag(Amount(), above=limit, of="amount"), roles=roles), room / "in.jsonl", room / str(limit)).path
        for limit in (0.75, 0.45)
    ]

    told = api.diff(*runs)

    assert told["matched_by"] == ["source_file", "source_row"]
    assert told["rows"] == {"same": 8, "changed": 3}
    assert told["transitions"] == {"kept->rejected": 3}


def test_a_row_that_was_mended_moved_out_of_quarantine(room: Path) -> None:
    write_jsonl(room / "a" / "in.jsonl", [ROWS[0], b"{", ROWS[2]])
    write_jsonl(room / "b" / "in.jsonl", ROWS[:3])
    runs = [api.run(pipeline("missing"), room / name / "in.jsonl", room / f"{name}-out").path for name in ("a", "b")]

    told = api.diff(*runs)

    assert told["transitions"] in ({"absent->kept": 1, "quarantined->absent": 1}, {"quarantined->kept": 1})
    assert rows_in(runs[1], "kept") == ROWS[:3]
