"""`label_noise`: planted errors are found, the count is right, and nobody is eaten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given as given_rows
from hypothesis import strategies as st
from labelled import ROLES, TOPICS, average_precision, evidence, flipped, judged, labelled, texts

from curate import api
from curate.check import make_check
from curate.dataset import Roles
from curate.errors import RequestError
from curate.noise import assess, looks_in_sample, within_budget
from curate.testing import run_check


def test_random_flips_rank_first_and_are_counted() -> None:
    body, topics = texts(1200)
    labels = flipped(topics, 0.2)
    wrong = labels != topics
    table = labelled(body, labels)

    found, told = judged(table), evidence(table)

    assert average_precision(wrong, found.column("suspicion")) >= 0.98
    assert told["regime"] == "random"
    assert told["noise_rate"]["value"] == pytest.approx(wrong.mean(), abs=0.02)
    assert told["noise_rate"]["low"] <= wrong.mean() <= told["noise_rate"]["high"]
    flagged = found.column("likely_wrong").to_numpy(zero_copy_only=False).astype(bool)
    assert wrong[flagged].mean() >= 0.95
    assert wrong[flagged].mean() == pytest.approx(told["estimated_precision"], abs=0.08)
    assert flagged[wrong].mean() >= 0.9


def test_the_suggested_label_is_the_true_one() -> None:
    body, topics = texts(800)
    labels = flipped(topics, 0.1)
    names = np.array(list(TOPICS))

    found = judged(labelled(body, labels))

    flagged = found.column("likely_wrong").to_numpy(zero_copy_only=False).astype(bool) & (labels != topics)
    suggested = np.array(found.column("suggested").to_pylist())
    assert (suggested[flagged] == names[topics[flagged]]).mean() >= 0.97
    assert found.column("given").to_pylist() == names[labels].tolist()


def test_edited_copies_with_the_same_wrong_label_do_not_vouch_for_each_other() -> None:
    body, topics = texts(600)
    labels = flipped(topics, 0.15)
    rng = np.random.default_rng(4)
    grouped = rng.permutation(600)[:60]
    copies = [(at, edit) for at in grouped.tolist() for edit in range(int(rng.integers(1, 5)))]
    edited = [f"{body[at]} {'indeed' if edit % 2 else 'so'}" for at, edit in copies]
    of = np.array([at for at, _ in copies])
    table = labelled([*body, *edited], np.concatenate([labels, labels[of]]))
    wrong = np.concatenate([labels != topics, labels[of] != topics[of]])

    found = judged(table)

    assert average_precision(wrong, found.column("suspicion")) >= 0.98
    assert not any(found.column("copies_conflict").to_pylist())


def test_copies_with_different_labels_are_said_to_conflict() -> None:
    body, topics = texts(300)
    labels = topics.copy()
    labels[0] = (topics[0] + 1) % 4
    table = labelled([*body, body[0]], np.append(labels, topics[0]))

    conflict = judged(table).column("copies_conflict").to_pylist()

    assert [at for at, one in enumerate(conflict) if one] == [0, 300]


@pytest.mark.parametrize("kind", ["gaps", "bool", "category", "floats"])
def test_labels_of_every_type_are_judged_alike(kind: str) -> None:
    body, topics = texts(200)
    topics, labels = topics % 2, flipped(topics, 0.1) % 2
    plain = judged(labelled(body, labels))
    written: Any = {
        "gaps": pa.array([(7, 9)[one] for one in labels]),
        "bool": pa.array([(False, True)[one] for one in labels]),
        "category": pa.array([("a", "b")[one] for one in labels]).dictionary_encode(),
        "floats": pa.array([(0.5, 1.5)[one] for one in labels]),
    }[kind]

    other = judged(labelled(body, labels).set_column(2, "label", written))

    assert other.column("suspicion").equals(plain.column("suspicion"))
    assert other.column("likely_wrong").equals(plain.column("likely_wrong"))


def test_the_order_of_the_rows_changes_no_answer() -> None:
    body, topics = texts(300)
    table = labelled(body, flipped(topics, 0.1))
    order = np.random.default_rng(2).permutation(300)

    one, other = judged(table), judged(table.take(pa.array(order)))

    for column in ("suspicion", "suggested", "kind", "likely_wrong", "confident_learning"):
        assert other.column(column).to_pylist() == one.column(column).take(pa.array(order)).to_pylist()


def test_rows_without_a_label_are_missing_and_a_class_of_one_row_is_not_assessable() -> None:
    body, topics = texts(200)
    table = labelled(body, topics)
    labels = table.column("label").to_pylist()
    labels[3], labels[5] = None, "only here"

    found = judged(table.set_column(2, "label", pa.array(labels)))

    assert found.column("kind")[3].as_py() is None
    assert found.column("suspicion")[3].as_py() is None
    assert found.column("kind")[5].as_py() == "not assessable"
    assert found.column("suspicion")[5].as_py() is None
    assert found.column("likely_wrong")[5].as_py() is None


def test_a_single_class_has_a_documented_answer() -> None:
    body, topics = texts(50)
    table = labelled(body, topics * 0)

    found, told = judged(table), evidence(table)

    assert found.column("suspicion").null_count == 50
    assert told["reason"] == "no row has a label and probabilities"


def test_a_minority_whose_labels_follow_another_rule_keeps_within_its_budget() -> None:
    """No label is wrong: in a tenth of the rows the topics merely have other names."""
    body, topics = texts(1500)
    minority = np.arange(1500) % 10 == 0
    labels = np.where(minority, (topics + 1) % 4, topics)
    table = labelled(body, labels, place=np.where(minority, "island", "mainland"))
    roles = Roles(id="id", text=("text",), label="label", group=("place",))

    kept, free = judged(table, roles), judged(table, roles, budget="none")

    share = {name: flags(one)[minority].mean() for name, one in (("kept", kept), ("free", free))}
    assert share["free"] >= 0.5
    assert share["kept"] <= max(2 * flags(kept).mean() + 0.001, 0.05)
    spared = np.array(kept.column("kind").to_pylist()) == "spared"
    assert spared[minority].sum() == flags(free)[minority].sum() - flags(kept)[minority].sum()


def flags(found: pa.Table) -> Any:
    return found.column("likely_wrong").to_numpy(zero_copy_only=False).astype(bool)


def test_a_rare_clean_class_keeps_within_the_given_budget() -> None:
    body, topics = texts(1000)
    rare = np.random.default_rng(0).permutation(1000)[:20]
    labels = [list(TOPICS)[topic] for topic in topics.tolist()]
    for at in rare.tolist():
        labels[at] = "rare"
    table = labelled(body, topics).set_column(2, "label", pa.array(labels))

    found = judged(table, budget=0.1)

    assert flags(found)[rare].sum() <= 2


def test_confident_learning_is_cleanlabs_own_on_given_probabilities(rng: np.random.Generator) -> None:
    from cleanlab.filter import find_label_issues

    shares, labels = probabilities(rng, 2000, 5)
    table = given(shares, labels)

    found = judged(table, Roles(label="label"), {"probabilities": "p"})

    expected = find_label_issues(labels, shares, filter_by="prune_by_noise_rate")
    assert found.column("confident_learning").to_pylist() == expected.tolist()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def probabilities(rng: np.random.Generator, rows: int, classes: int) -> tuple[Any, Any]:
    truth = rng.integers(0, classes, rows)
    logits = rng.normal(size=(rows, classes)) + 3 * np.eye(classes)[truth]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.where(rng.random(rows) < 0.1, rng.integers(0, classes, rows), truth)
    return shares.astype(np.float32), labels


def given(shares: Any, labels: Any) -> pa.Table:
    return pa.table({"label": [f"c{one}" for one in labels], "p": pa.array(shares.tolist(), pa.list_(pa.float32()))})


def test_a_row_of_broken_probabilities_is_missing_and_the_others_are_judged(rng: np.random.Generator) -> None:
    shares, labels = probabilities(rng, 400, 3)
    table = given(shares, labels)
    cells = table.column("p").to_pylist()
    cells[1], cells[2], cells[3] = [0.5, 0.5], [0.5, 0.6, 0.2], [0.2, None, 0.8]

    found = judged(
        table.set_column(1, "p", pa.array(cells, pa.list_(pa.float32()))), Roles(label="label"), {"probabilities": "p"}
    )

    assert [at for at, one in enumerate(found.column("suspicion").to_pylist()) if one is None] == [1, 2, 3]


def test_in_sample_probabilities_are_refused(rng: np.random.Generator) -> None:
    labels = rng.integers(0, 3, 1000)
    shares = 0.97 * np.eye(3)[labels] + 0.01

    with pytest.raises(RequestError, match="look in-sample"):
        judged(given(shares, labels), Roles(label="label"), {"probabilities": "p"})
    assert not looks_in_sample(labels[:199], shares[:199])


def test_structured_noise_is_not_called_counted() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 2000)
    leaning = np.clip(rng.normal(0.62, 0.14, 2000), 0.02, 0.98)
    shares = np.where(truth[:, None] == np.arange(2), leaning[:, None], 1 - leaning[:, None])

    found = assess(truth, shares)

    assert found.regime == "structured"
    assert (found.low, found.high) == (None, None)
    assert found.likely.tolist() == (found.suspicion >= 0.5).tolist()


def test_reviewed_rows_sharpen_the_estimate(tmp_path: Path) -> None:
    body, topics = texts(600)
    labels = flipped(topics, 0.2)
    table = labelled(body, labels)
    flagged = np.flatnonzero(flags(judged(table)))
    reviewed = [(at, bool(labels[at] != topics[at])) for at in flagged[:40].tolist()]
    lines = ["id,wrong,probability", *(f"r{at},{str(wrong).lower()},0.5" for at, wrong in reviewed), "unknown,true,0.5"]
    (tmp_path / "audit.csv").write_text("\n".join(lines) + "\n")

    told = evidence(table, audit=str(tmp_path / "audit.csv"))["audit"]

    share = np.mean([wrong for _, wrong in reviewed])
    assert told["flagged"]["reviewed"] == 40
    assert told["flagged"]["share"] == pytest.approx(share)
    assert told["flagged"]["low"] < share <= told["flagged"]["high"]
    assert told["not_flagged"]["share"] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "no such file"), ("id,right\na,true\n", "no column `wrong`"), ("id,wrong\nr1,perhaps\n", "true or false"),
     ("id,wrong,probability\nr1,true,0\n", "not above 0")],
)  # fmt: skip
def test_an_audit_that_cannot_be_used_says_why(tmp_path: Path, text: str | None, words: str) -> None:
    body, topics = texts(200)
    if text is not None:
        (tmp_path / "audit.csv").write_text(text)

    with pytest.raises(RequestError) as caught:
        judged(labelled(body, flipped(topics, 0.2)), audit=str(tmp_path / "audit.csv"))
    assert words in caught.value.message + caught.value.hint


def test_without_oof_probs_before_it_says_what_to_do(tmp_path: Path) -> None:
    body, topics = texts(20)
    pipeline = {"name": "t", "roles": {"id": "id", "text": "text", "label": "label"}, "stages": ["label_noise"]}

    with pytest.raises(RequestError, match="reads what `oof_probs` says"):
        api.run(pipeline, labelled(body, topics), tmp_path / "out")


def test_rejected_rows_and_their_reasons_reach_the_ledger(tmp_path: Path) -> None:
    import polars as pl

    body, topics = texts(400)
    labels = flipped(topics, 0.2)
    table = labelled(body, labels)
    stages = [{"oof_probs": {"fast": True}}, {"label_noise": {}, "reject": [{"is_true": "likely_wrong"}]}]
    pipeline = {"name": "t", "roles": {"id": "id", "text": "text", "label": "label"}, "stages": stages}

    run = api.run(pipeline, table, tmp_path / "out")

    rejected = pl.read_parquet(run.path / "rejected" / "*.parquet")
    assert rejected["id"].to_list() == [f"r{at}" for at in np.flatnonzero(flags(judged(table)))]
    assert set(rejected["curate_column"]) == {"likely_wrong"}
    assert run.report["stages"]["label_noise"]["detail"]["regime"] == "random"
    why = api.why(run.path, rejected["id"][0])
    assert "likely wrong" in str(why)


def test_the_same_check_by_hand_and_in_a_run() -> None:
    body, topics = texts(100)
    table = labelled(body, flipped(topics, 0.1))

    found = run_check(make_check("oof_probs", {"fast": True}), table, ROLES)

    shares = np.array(found.column("probabilities").to_pylist())
    assert shares.shape == (100, 4)
    assert np.allclose(shares.sum(axis=1), 1, atol=1e-5)
    assert (np.array(sorted(TOPICS))[shares.argmax(axis=1)] == np.array(found.column("predicted").to_pylist())).all()


@given_rows(
    likely=st.lists(st.booleans(), min_size=1, max_size=60),
    budget=st.floats(0.01, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_member_loses_more_than_its_budget_and_the_most_suspicious_go_first(
    likely: list[bool], budget: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    flagged, member = np.array(likely), rng.integers(-1, 4, len(likely))
    suspicion = rng.integers(0, 9, len(likely)) / 8

    limits = within_budget(flagged, suspicion, member, budget)

    for one in range(4):
        mine = member == one
        lost = flagged & mine & (suspicion >= limits.get(one, 0.0))
        spared = flagged & mine & ~lost
        assert lost.sum() <= budget * mine.sum()
        assert not (lost.any() and spared.any()) or suspicion[lost].min() > suspicion[spared].max()
        assert not spared.any() or (flagged & mine).sum() > int(budget * mine.sum())


@pytest.mark.parametrize("kind", [pa.string(), pa.int16(), pa.bool_(), pa.float64()])
def test_relabel_gives_kept_rows_the_suggested_label_in_the_type_of_theirs(tmp_path: Path, kind: pa.DataType) -> None:
    import polars as pl

    body, topics = texts(300)
    topics, labels = topics % 2, flipped(topics, 0.1) % 2
    table = labelled(body, labels).set_column(2, "label", pa.array(labels.tolist()).cast(pa.int64()).cast(kind))
    table = table.set_column(2, "label", pa.array([None, *table.column("label").to_pylist()[1:]], kind))
    stages = ["exact_dup", {"oof_probs": {"fast": True}}, {"label_noise": {"relabel": "better"}}]
    pipeline = {"name": "t", "roles": {"id": "id", "text": "text", "label": "label"}, "stages": stages}

    run = api.run(pipeline, table, tmp_path / "out")

    kept = pl.read_parquet(run.path / "kept" / "*.parquet")
    likely = pl.read_parquet(run.path / "scores" / "*.parquet")["label_noise.likely_wrong"].fill_null(False)
    assert kept.columns == ["id", "text", "label", "better"]
    assert kept["better"].dtype == kept["label"].dtype
    assert 5 <= likely.sum() == (kept["better"] != kept["label"]).sum()
    truth = pl.from_arrow(pa.array(topics.tolist()).cast(kind))
    assert (kept["better"] == truth).mean() > (kept["label"] == truth).mean() + 0.03
    assert kept["better"][0] is None


def test_relabel_takes_no_name_that_is_there(tmp_path: Path) -> None:
    body, topics = texts(20)
    stages = ["oof_probs", {"label_noise": {"relabel": "text"}}]
    pipeline = {"name": "t", "roles": {"id": "id", "text": "text", "label": "label"}, "stages": stages}

    with pytest.raises(RequestError, match="cannot get a column `text`"):
        api.run(pipeline, labelled(body, topics), tmp_path / "out")


def test_a_label_column_called_like_those_of_oof_probs_is_not_taken_for_one() -> None:
    body, topics = texts(200)
    table = labelled(body, flipped(topics, 0.1))
    dotted = table.rename_columns(["id", "text", "my.label"])

    found = judged(dotted, Roles(id="id", text=("text",), label="my.label"))

    assert found.column("suspicion").equals(judged(table).column("suspicion"))
