"""`contamination`: planted items are found and named, look-alikes are not flagged, and the state survives every order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate import api
from curate.check import make_check
from curate.dataset import Roles
from curate.errors import InputError, RequestError
from curate.testing import PROMISES, run_check, sample
from tests.benchmark_items import GIVEN_AWAY, Words, background, benchmark, look_alikes
from tests.runs import document, pipeline, scores

ROLES = Roles(text=("text",))
HUMANEVAL = Path(__file__).parents[2] / "shared" / "data" / "contamination_humaneval"


def written(folder: Path, items: list[str | None], name: str = "items.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps({"id": f"q{at}", "text": item}) + "\n" for at, item in enumerate(items)), "utf-8")
    return path


def found(path: Path, rows: list[str | None], **parameters: Any) -> pa.Table:
    check = make_check("contamination", {"against": [str(path)], "id": "id", **parameters})
    return run_check(check, pa.table({"text": pa.array(rows, pa.string())}), ROLES)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The benchmark of `tests.benchmark_items` against rows that give its items away, look-alikes and other documents."""
    words = Words(7)
    items = benchmark(words)
    given_away = {make.__name__: [make(item, words) for item in items] for make in GIVEN_AWAY}
    rest = {"look_alike": look_alikes(words), "other": background(words, 1500)}
    kinds = [kind for kind, rows in {**given_away, **rest}.items() for _ in rows]
    rows = [row for some in (given_away, rest) for kind in some.values() for row in kind]
    table = found(written(tmp_path_factory.mktemp("planted"), items), rows)
    return {"table": table, "kind": np.array(kinds), "items": len(items)}


@pytest.mark.parametrize("kind", [make.__name__ for make in GIVEN_AWAY])
def test_items_that_are_copied_wrapped_embedded_or_indented_are_found_and_named(planted: dict[str, Any], kind: str):
    rows = np.flatnonzero(planted["kind"] == kind)

    flagged = planted["table"]["contaminated"].to_numpy(zero_copy_only=False)[rows]
    named = planted["table"]["item"].take(pa.array(rows)).to_pylist()

    assert flagged.mean() >= 0.98
    assert [name for name, hit in zip(named, flagged, strict=True) if hit] == [f"q{at}" for at in np.flatnonzero(flagged)]


@pytest.mark.parametrize("kind", ["look_alike", "other"])
def test_quotations_headers_and_templates_are_not_flagged(planted: dict[str, Any], kind: str):
    flagged = planted["table"]["contaminated"].to_numpy(zero_copy_only=False)[planted["kind"] == kind]

    assert len(flagged) >= 300
    assert flagged.mean() < 0.01


def test_a_function_with_other_names_and_most_words_changed_is_more_suspect_than_any_other(tmp_path: Path):
    words = Words(3)
    items = [words.function() for _ in range(30)]
    renamed = items[4].replace("total", "result").replace("for ", "for each ").replace("if ", "when ")
    rows = [*background(words, 300), *(words.function() for _ in range(100)), renamed]

    suspicion = found(written(tmp_path, items), rows)["suspicion"].to_numpy()

    assert suspicion.argmax() == len(rows) - 1
    assert suspicion[-1] >= 0.5


def test_short_items_are_looked_for_whole(tmp_path: Path):
    path = written(tmp_path, ["What is the capital of France?", "Who?", "Name the largest moon of Saturn"])

    table = found(
        path, ["Quiz: what is the capital of FRANCE", "What is the capital of Spain?", "the largest moon of Saturn", "who is it"]
    )

    assert table["contaminated"].to_pylist() == [True, False, False, False]
    assert table["item"].to_pylist() == ["q0", None, None, None]


def test_a_short_item_that_many_rows_say_in_passing_is_common(tmp_path: Path):
    words = Words(5)
    path = written(tmp_path, ["the rest of the world", words.sentence(40)])
    passing = [f"{words.sentence(12)} The rest of the world. {words.sentence(12)}" for _ in range(20)]

    table = found(path, [*passing, *background(words, 50)])

    assert not any(table["contaminated"].to_pylist())


def test_an_item_that_fills_many_rows_is_still_found(tmp_path: Path):
    words = Words(6)
    item = words.sentence(50)

    table = found(written(tmp_path, [item, "some other item of no interest"]), [item] * 300 + background(words, 100))

    assert table["contaminated"].to_pylist() == [True] * 300 + [False] * 100


def test_rows_without_words_are_missing_and_items_without_text_are_left_out(tmp_path: Path):
    path = written(tmp_path, [None, "", "one two three four five six"])

    table = found(path, [None, "", "?!", "One two three four five six"])

    assert table["suspicion"].to_pylist() == [None, None, None, 1.0]
    assert table["item"].to_pylist() == [None, None, None, "q2"]


def test_several_columns_of_an_item_are_one_text_and_unnamed_items_are_called_by_their_row(tmp_path: Path):
    rows = [{"q": "which of these", "a": "is it the first one"}, {"q": "another thing", "a": "altogether unlike it"}]
    path = tmp_path / "b.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    check = make_check("contamination", {"against": str(path), "text": ["q", "a"]})

    table = run_check(check, pa.table({"text": ["Another thing: altogether unlike it!"]}), ROLES)

    assert table["item"].to_pylist() == ["row 1"]
    assert table["source"].to_pylist() == ["b.jsonl"]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_the_contract_holds_with_a_benchmark(promise: Any, tmp_path: Path):
    table, roles = sample()
    path = written(tmp_path, [*table["body"].to_pylist()[::7], "word1 word2 word3 word4"])

    promise(make_check("contamination", {"against": [str(path)], "text": "text", "id": "id", "common_rows": 2}), table, roles)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=6), st.lists(st.text(max_size=60), max_size=6))
def test_any_items_and_any_rows_get_scores_from_0_to_1(
    tmp_path_factory: pytest.TempPathFactory, items: list[str], rows: list[str]
):
    path = written(tmp_path_factory.mktemp("any"), [*items, "at least one item is here"])

    table = found(path, rows)

    for name in ("suspicion", "overlap", "likeness"):
        values = table[name].drop_null().to_numpy()
        assert ((values >= 0) & (values <= 1)).all()


def test_what_is_asked_wrongly_is_said(tmp_path: Path):
    path = written(tmp_path, ["an item of some words"])
    schema = pa.schema([("text", pa.string())])
    for given_, error, words in [
        ({}, RequestError, "nothing to compare with"),
        ({"against": [str(path)], "text": "txt"}, RequestError, "did you mean `text`"),
        ({"against": [str(path)], "id": "name"}, RequestError, "no column `name`"),
        ({"against": [str(tmp_path / "none.jsonl")]}, InputError, "there is no"),
    ]:
        with pytest.raises(error) as raised:
            make_check("contamination", given_).needs(ROLES, schema)
        assert words in str(raised.value)


def test_a_broken_item_stops_the_run(tmp_path: Path):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"text": "good item of some words"}\n{"text": "bad \xff"}\n')

    with pytest.raises(InputError, match="cannot be read") as raised:
        found(path, ["a row"], id=None)

    assert "record 2" in raised.value.place


def test_a_run_reports_the_benchmark_and_reads_a_changed_one_again(tmp_path: Path):
    words = Words(9)
    rows = background(words, 40)
    source = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [f"r{at}" for at in range(40)], "text": rows}), source)
    path = written(tmp_path, [rows[3], "hm", words.sentence(30)])
    stage = {"contamination": {"against": [str(path)], "id": "id"}, "reject": [{"is_true": "contaminated"}]}

    api.run(pipeline(stage), source, tmp_path / "out")
    detail = document(tmp_path / "out")["stages"]["contamination"]["detail"]
    first = scores(tmp_path / "out")["contamination.contaminated"].to_list()
    written(tmp_path, [rows[5], "hm", words.sentence(30)])
    api.run(pipeline(stage), source, tmp_path / "out")
    second = scores(tmp_path / "out")["contamination.contaminated"].to_list()

    assert np.flatnonzero(first).tolist() == [3]
    assert np.flatnonzero(second).tolist() == [5]
    assert detail["benchmark"] == [{"file": "items.jsonl", "items": 3, "too_short": 1, "common": 0, "in_fitted_rows": 1}]
    assert detail["items_in_fitted_rows"] == [{"item": "q0", "file": "items.jsonl", "rows": 1}]
    assert detail["items_not_looked_for"] == [{"item": "q1", "file": "items.jsonl", "words": 1, "why": "too short"}]
    assert detail["warnings"] == [
        "1 of 3 benchmark items cannot be looked for: 1 have fewer than 4 words, 0 are common in the data"
    ]


@pytest.mark.skipif(not HUMANEVAL.exists(), reason="the shared data is not here")
def test_rephrased_and_translated_problems_are_found_where_runs_of_13_words_are_not():
    planted_rows = pq.read_table(HUMANEVAL / "contaminated.parquet")
    words = Words(2)
    others = [*background(words, 400), *(words.function() for _ in range(400))]
    check = make_check("contamination", {"against": [str(HUMANEVAL / "benchmark.parquet")], "id": "bench_id"})

    table = run_check(check, pa.table({"text": planted_rows["text"].to_pylist() + others}), ROLES)

    suspicion, overlap = table["suspicion"].to_numpy(), table["overlap"].to_numpy()
    limit = np.quantile(suspicion[len(planted_rows) :], 0.99)
    assert (suspicion[: len(planted_rows)] > limit).mean() >= 0.8
    assert (overlap[: len(planted_rows)] > 0).mean() < 0.1
