"""near_dup against rows from outside the input: other files, an earlier run, and an index of all accepted before."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from runs import verdicts

from curate import api
from curate.errors import InputError, RequestError
from curate.index import Index

ROLES = {"id": "id", "text": "text"}


def sentence(seed: int, length: int = 60) -> list[str]:
    pick = random.Random(seed)
    return [f"w{pick.randrange(10**6)}" for _ in range(length)]


def edited(words: list[str], at: int) -> str:
    return " ".join([*words[:at], "edited", *words[at + 1 :]])


def table(rows: list[tuple[str, str]]) -> pa.Table:
    return pa.table({"id": [name for name, _ in rows], "text": [text for _, text in rows]})


def run(source: Any, out: Path, **parameters: Any) -> api.Run:
    return api.run({"name": "x", "roles": ROLES, "stages": [{"near_dup": parameters}]}, source=source, out=out)


def collection(rows: int, seed: int = 5) -> pl.DataFrame:
    """Texts of which many are copies, or copies with a word or two changed, of each other."""
    pick = random.Random(seed)
    texts = []
    for _ in range(rows):
        words = sentence(pick.randrange(rows // 3))
        for _ in range(pick.choice([0, 0, 1, 2])):
            words[pick.randrange(len(words))] = f"e{pick.randrange(999)}"
        texts.append(" ".join(words))
    return pl.DataFrame({"id": [f"d{number}" for number in range(rows)], "text": texts})


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    path = tmp_path / "base.parquet"
    table([(f"r{seed}", " ".join(sentence(seed))) for seed in range(10)]).to_pandas().to_parquet(path)
    return path


def test_rows_like_the_reference_go_and_name_its_row(tmp_path: Path, reference: Path) -> None:
    source = table([("a", "something quite different"), ("b", edited(sentence(3), 30)), ("c", " ".join(sentence(7)))])

    done = run(source, tmp_path / "out", against=str(reference))

    ledger = verdicts(done.path).select("id", "verdict", "value", "witness_row", "witness_id", "witness_source")
    assert ledger.rows() == [
        ("a", "kept", None, None, None, None),
        ("b", "rejected", 51 / 61, None, "r3", "base.parquet:3"),
        ("c", "rejected", 1.0, None, "r7", "base.parquet:7"),
    ]
    rejected = pl.read_parquet(done.path / "rejected")
    assert rejected["curate_witness_source"].to_list() == ["base.parquet:3", "base.parquet:7"]
    assert rejected["curate_witness_row"].to_list() == [None, None]
    assert pl.read_parquet(done.path / "scores")["near_dup.near_copy_of"].to_list() == [None, None, None]
    largest = done.report["stages"]["near_dup"]["groups"]["largest"]
    assert [(one["witness_row"], one["witness_id"], one["witness_source"]) for one in largest] == [
        (None, "r3", "base.parquet:3"),
        (None, "r7", "base.parquet:7"),
    ]
    assert api.why(done.path, "b")["witness"] == {"row_id": None, "id": "r3", "source": "base.parquet:3", "row": None}
    assert "base.parquet:3" in (done.path / "report.html").read_text()


def test_no_preference_puts_a_row_before_the_reference(tmp_path: Path, reference: Path) -> None:
    longer = " ".join([*sentence(3), "and", "more"])

    done = run(table([("a", longer)]), tmp_path / "out", against=str(reference), prefer="longest")

    assert verdicts(done.path)["witness_id"].to_list() == ["r3"]


def test_a_document_is_no_copy_of_itself_and_its_copies_still_are(tmp_path: Path, reference: Path) -> None:
    source = table([("x", edited(sentence(3), 30)), ("r3", " ".join(sentence(3))), ("y", edited(sentence(3), 10))])

    ledger = verdicts(run(source, tmp_path / "out", against=str(reference)).path)

    assert ledger["verdict"].to_list() == ["rejected", "kept", "rejected"]
    assert ledger["witness_id"].to_list() == ["r3", None, "r3"]
    assert ledger["witness_row"].to_list() == [None, None, 1]  # of the two that are one document, the input's where it can be


def test_a_run_stands_for_the_rows_it_kept(tmp_path: Path) -> None:
    first = run(table([("a", " ".join(sentence(1))), ("b", edited(sentence(1), 30))]), tmp_path / "first")

    second = run(
        table([("c", edited(sentence(1), 20)), ("d", " ".join(sentence(2)))]), tmp_path / "second", against=str(first.path)
    )

    assert verdicts(second.path)["witness_id"].to_list() == ["a", None]


def test_what_cannot_be_compared_with_is_refused(tmp_path: Path, reference: Path) -> None:
    other = tmp_path / "other.parquet"
    pl.DataFrame({"id": ["a"], "texts": ["b"]}).write_parquet(other)

    with pytest.raises(RequestError, match="does not have"):
        run(table([("a", "b")]), tmp_path / "out", against=str(other))
    with pytest.raises(InputError):
        run(table([("a", "b")]), tmp_path / "out", against=str(tmp_path / "nothing.parquet"))
    with pytest.raises(RequestError, match="role `id`"):
        api.run(
            {"name": "x", "roles": {"text": "text"}, "stages": [{"near_dup": {"index": str(tmp_path / "index")}}]},
            source=table([("a", "b")]),
            out=tmp_path / "out",
        )


def test_batches_one_after_the_other_get_the_verdicts_of_all_at_once(tmp_path: Path) -> None:
    rows = collection(600)
    cuts = [rows[:150], rows[150:151], rows[151:400], rows[400:]]
    joint = verdicts(run(rows, tmp_path / "joint").path)

    found = [run(cut, tmp_path / f"night-{at}", index=str(tmp_path / "index")).path for at, cut in enumerate(cuts)]

    one_by_one = pl.concat([verdicts(path) for path in found])
    same = ["id", "verdict", "value", "witness_id"]
    assert one_by_one.select(same).rows() == joint.select(same).rows()
    assert joint["verdict"].value_counts().height == 2
    kept = joint.filter(pl.col("verdict") == "kept").height
    assert Index.open(tmp_path / "index", None).rows == kept


def test_a_batch_met_again_loses_nothing_and_adds_nothing(tmp_path: Path) -> None:
    rows, index = collection(300), tmp_path / "index"
    first = verdicts(run(rows, tmp_path / "first", index=str(index)).path)
    state = Index.open(index, None).rows

    again = verdicts(run(rows, tmp_path / "first", index=str(index)).path)
    elsewhere = verdicts(run(rows.sample(fraction=1, shuffle=True, seed=1), tmp_path / "second", index=str(index)).path)

    assert again.equals(first)
    assert Index.open(index, None).rows == state
    kept = set(first.filter(pl.col("verdict") == "kept")["id"])
    assert kept <= set(elsewhere.filter(pl.col("verdict") == "kept")["id"])


def test_a_deleted_row_is_compared_with_no_more(tmp_path: Path) -> None:
    index = tmp_path / "index"
    run(table([("a", " ".join(sentence(1)))]), tmp_path / "first", index=str(index))
    assert Index.open(index, None).delete(["a"]) == 1

    second = run(table([("b", edited(sentence(1), 5))]), tmp_path / "second", index=str(index))

    assert verdicts(second.path)["verdict"].to_list() == ["kept"]


def test_an_index_of_other_signatures_is_refused(tmp_path: Path) -> None:
    run(table([("a", " ".join(sentence(1)))]), tmp_path / "first", index=str(tmp_path / "index"))

    with pytest.raises(RequestError, match="bands"):
        run(table([("b", " ".join(sentence(2)))]), tmp_path / "second", index=str(tmp_path / "index"), similarity=0.5)


def test_a_row_without_words_enters_no_index(tmp_path: Path) -> None:
    run(table([("a", "..."), ("b", "")]), tmp_path / "first", index=str(tmp_path / "index"))

    assert Index.open(tmp_path / "index", None).rows == 0
