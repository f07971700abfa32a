# long because: the tables of one check share their planted groups, and each measure stands beside its formula
"""`bias`: planted differences between groups are told with their sign, and nothing is called fair for lack of rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import pipeline
from toy_checks import Length

from curate import api
from curate.check import make_check
from curate.checks.bias import Bias
from curate.dataset import Roles, Rows
from curate.errors import RequestError
from curate.intervals import wilson
from curate.pipeline import Stage
from curate.testing import run_check

ROLES = Roles(label="label", group="sex")


def evidence(table: pa.Table, roles: Roles = ROLES, **parameters: Any) -> dict[str, Any]:
    check = make_check("bias", parameters)
    assert isinstance(check, Bias)
    needed = table.select(list(check.needs(roles, table.schema)))
    return dict(check.evidence(check.fit(Rows(needed, np.arange(len(table), dtype=np.uint64), roles))))


def planted() -> pa.Table:
    """300 women of whom 60 have the label yes, 700 men of whom 350 have it, 40 rows without sex of whom 10 have it."""
    sex = ["f"] * 300 + ["m"] * 700 + [None] * 40
    label = ["yes"] * 60 + ["no"] * 240 + ["yes"] * 350 + ["no"] * 350 + ["yes"] * 10 + ["no"] * 30
    age = [None if at % 3 == 0 and at < 300 else at % 50 for at in range(1040)]
    height = [160 + at % 9 if one == "f" else 175 + at % 9 for at, one in enumerate(sex)]
    columns = {"sex": pa.array(sex), "label": pa.array(label), "age": pa.array(age), "height": pa.array(height)}
    return pa.table({**columns, "tag": pa.array([f"t{at}" for at in range(1040)])})


def line(lines: list[dict[str, Any]], **where: Any) -> dict[str, Any]:
    [found] = [one for one in lines if all(one[key] == value for key, value in where.items())]
    return found


@pytest.fixture(scope="module")
def adult(shared: Path) -> pa.Table:
    return pq.read_table(shared / "data" / "bias_adult" / "adult.parquet")


@pytest.fixture(scope="module")
def of_adult(adult: pa.Table) -> dict[str, Any]:
    return evidence(adult, Roles(label="income-per-year", group=("sex", "race")))


def test_planted_rates_are_told_against_the_rest_with_their_sign():
    rates = evidence(planted())["label_rates"]

    women = line(rates, group="f")
    assert (women["rows"], women["share"], women["rest_share"]) == (300, 0.2, 360 / 740)
    assert (women["share_low"], women["share_high"]) == wilson(60, 300)
    assert women["rest_less_group"] == pytest.approx(360 / 740 - 0.2)  # positive: the others get the label more often
    assert (women["impact_ratio"], women["compared_with"], women["four_fifths"]) == (0.4, "m", "below")
    assert women["finding"] == "differs"


def test_rows_without_a_group_are_a_group():
    told = evidence(planted())

    assert line(told["representation"], group="(missing)")["rows"] == 40
    assert line(told["label_rates"], group="(missing)")["share"] == 0.25


def test_the_gap_of_a_column_is_that_of_its_two_farthest_groups():
    gap = line(evidence(planted())["label_gaps"], column="sex")

    assert (gap["most"], gap["least"], gap["parity_ratio"]) == ("m", "f", 0.4)
    assert gap["parity_difference"] == pytest.approx(0.3)
    assert gap["parity_difference_low"] < 0.3 < gap["parity_difference_high"]


def test_a_group_too_small_is_insufficient_evidence_and_never_fair():
    table = pa.table({"sex": ["f"] * 29 + ["m"] * 500, "label": ["yes", "no"] * 264 + ["yes"]})

    told = evidence(table)

    assert line(told["label_rates"], group="f")["finding"] == "insufficient evidence"
    assert line(told["label_rates"], group="f")["four_fifths"] == "insufficient evidence"
    assert told["label_gaps"][0]["finding"] == "insufficient evidence"


def test_equal_rates_are_within_the_margin_only_where_the_interval_shows_it():
    few = pa.table({"sex": ["f", "f", "m", "m"] * 50, "label": ["yes", "no"] * 100})
    many = pa.concat_tables([few] * 50)

    assert line(evidence(few)["label_rates"], group="f")["finding"] == "insufficient evidence"
    assert line(evidence(many)["label_rates"], group="f")["finding"] == "within margin"


def test_beyond_chance_and_too_small_to_matter_is_within_the_margin():
    labels = ["yes"] * 51_000 + ["no"] * 49_000
    labels += ["yes"] * 50_000 + ["no"] * 50_000
    table = pa.table({"sex": ["f"] * 100_000 + ["m"] * 100_000, "label": labels})

    women = line(evidence(table)["label_rates"], group="f")

    assert women["q"] < 0.001
    assert women["finding"] == "within margin"


def test_missing_cells_are_told_by_group():
    told = evidence(planted())["missing_cells"]

    women = line(told, group="f", of="age")
    assert (women["share"], women["rest_share"], women["finding"]) == (100 / 300, 0.0, "differs")
    assert {one["of"] for one in told} == {"age"}


def test_the_planted_proxy_is_first_and_an_id_is_no_proxy():
    told = evidence(planted())

    first = told["proxies"][0]
    assert (first["column"], first["tells"], first["auroc"]) == ("height", "f", 1.0)
    assert first["cramers_v_low"] > 0.6
    assert any(note["what"] == "proxy tag" for note in told["not_assessed"])


def test_representation_is_held_against_a_given_reference():
    told = evidence(planted(), reference={"sex": {"f": 0.5, "m": 0.49, "x": 0.01}})["representation"]

    women, nobody, missing = (line(told, group=name) for name in ("f", "x", "(missing)"))
    assert (women["expected"], women["reference"], women["finding"]) == (0.5, "given", "differs")
    assert women["share_of_expected"] == pytest.approx(300 / 1040 / 0.5)
    assert women["class_imbalance"] == pytest.approx(440 / 1040)
    assert (nobody["rows"], nobody["expected"]) == (0, 0.01)
    assert (missing["expected"], missing["finding"]) == (None, "insufficient evidence")


def test_without_a_reference_every_group_should_have_the_same_share():
    told = evidence(planted())["representation"]

    assert {one["expected"] for one in told} == {1 / 3}
    assert {one["reference"] for one in told} == {"equal shares"}


def test_of_two_labels_the_rarer_is_favourable_unless_said():
    assert evidence(planted())["favourable"] == "label = yes"
    assert evidence(planted(), favourable="no")["favourable"] == "label = no"
    even = pa.table({"sex": list("fmfm"), "label": list("abba")})
    assert evidence(even)["favourable"] == "label = b"


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["a", "b", "c"] * 20, "it has 3 labels, and `favourable` does not say which of them people want"),
        (["a"] * 60, "it has 1 labels, and `favourable` does not say which of them people want"),
    ],
)
def test_what_cannot_be_judged_is_listed_with_its_reason(labels: list[str], reason: str):
    table = pa.table({"sex": ["f", "m"] * 30, "label": labels})

    told = evidence(table)

    assert {"what": "label rates of label", "reason": reason} in told["not_assessed"]
    assert "label_rates" not in told
    assert told["distances"]


def test_a_favourable_label_that_no_row_has_is_listed():
    told = evidence(planted(), favourable="maybe")

    assert "no row has the favourable label 'maybe'; there are no, yes" in told["not_assessed"][0]["reason"]


def test_a_label_of_many_numbers_is_held_against_its_median():
    table = pa.table({"sex": ["f"] * 100 + ["m"] * 100, "label": [at / 3 for at in range(200)]})

    told = evidence(table)

    assert told["favourable"] == "label above its median, 33.1667"
    assert line(told["label_rates"], group="f")["share"] == 0.0


def test_rows_get_the_group_of_all_columns_together():
    table = pa.table({"sex": ["f", "m", None], "race": ["a", "a", "b"]})

    found = run_check(Bias(), table, Roles(group=("sex", "race"))).column("group").to_pylist()

    assert found == ["f, a", "m, a", "(missing), b"]


def test_adult_has_the_published_gaps(of_adult: dict[str, Any]):
    sex, race = (line(of_adult["label_gaps"], column=name) for name in ("sex", "race"))

    assert (round(sex["parity_difference"], 6), round(sex["parity_ratio"], 6)) == (0.196276, 0.358023)
    assert (round(race["parity_difference"], 6), round(race["parity_ratio"], 6)) == (0.173389, 0.347278)
    assert line(of_adult["label_gaps"], column="sex × race")["groups"] == 10


def test_groups_and_labels_that_are_written_as_numbers_count_alike(shared: Path):
    table = pq.read_table(shared / "data" / "bias_credit_default" / "credit_default.parquet")

    told = evidence(table, Roles(id="ID", label="default_next_month", group="SEX"))

    rates = {one["group"]: round(one["share"], 3) for one in told["label_rates"]}
    assert (rates, told["favourable"]) == ({"1": 0.242, "2": 0.208}, "default_next_month = 1")


@pytest.mark.parametrize("column", ["sex", "race"])
def test_gaps_are_fairlearns(adult: pa.Table, of_adult: dict[str, Any], column: str):
    metrics = pytest.importorskip("fairlearn.metrics", reason="fairlearn is not installed")
    label = np.array([one == ">50K" for one in adult.column("income-per-year").to_pylist()], int)
    groups = adult.column(column).to_pylist()

    gap = line(of_adult["label_gaps"], column=column)

    difference = metrics.demographic_parity_difference(label, label, sensitive_features=groups)
    ratio = metrics.demographic_parity_ratio(label, label, sensitive_features=groups)
    rates = metrics.MetricFrame(metrics=metrics.selection_rate, y_true=label, y_pred=label, sensitive_features=groups).by_group
    assert (gap["parity_difference"], gap["parity_ratio"]) == pytest.approx((difference, ratio), abs=1e-6)
    told = {one["group"]: one["share"] for one in of_adult["label_rates"] if one["column"] == column}
    assert told == pytest.approx(dict(rates), abs=1e-6)


def test_an_infinite_divergence_says_so():
    table = pa.table({"sex": ["f"] * 50 + ["m"] * 50, "label": ["yes"] * 50 + ["yes", "no"] * 25})

    found = line(evidence(table)["distances"], group="f")

    assert (found["kl"], found["kl_is"]) == (None, "infinite: a label the others have is never the group's")
    assert line(evidence(table)["distances"], group="m")["kl"] == pytest.approx(math.log(2))


def test_findings_of_earlier_stages_are_counted_by_group_and_warned_of(room: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("curate.checks.bias.JUDGES", ("length",))
    texts = ["a long text"] * 60 + ["a"] * 140 + ["a long text"] * 4 + ["a"] * 196
    table = pa.table({"id": [f"r{at}" for at in range(400)], "text": texts, "sex": ["f"] * 200 + ["m"] * 200})

    run = api.run(pipeline(Stage(Length(most=3), reject=[]), Bias(), roles=Roles(id="id", text="text", group="sex")), table, room)

    detail = run.report["stages"]["bias"]["detail"]
    women = line(detail["found_by_earlier_stages"], group="f")
    assert (women["found"], women["share"], women["rest_share"]) == ("length.too_long", 0.3, 0.02)
    assert detail["warnings"] == ["length.too_long for 30.0 % of sex f and 2.0 % of the others"]
    assert "proxies" not in detail
    assert detail["warnings"][0] in (room / "report.html").read_text()


def test_twins_that_differ_only_in_whom_they_name_are_found(room: Path):
    texts = [
        "The nurse said he left.",
        "The nurse said she left.",
        "The nurse said she stayed.",
        "THE NURSE SAID SHE LEFT.",
        "Nobody came.",
        "Nobody came.",
    ]
    table = pa.table({"id": list("abcdef"), "text": texts})
    roles = Roles(id="id", text="text")

    found = run_check(Bias(), table, roles)

    assert found.column("has_twin").to_pylist() == [True, True, False, True, False, False]
    assert found.column("identity_terms").to_pylist() == [1, 1, 1, 1, 0, 0]
    assert evidence(table, roles)["counterfactual_twins"] == {"sets": 1, "rows": 3}


def test_insults_are_counted_beside_the_groups_that_are_named():
    texts = (
        ["the muslim is an idiot"] * 30
        + ["a muslim came"] * 20
        + ["a christian came"] * 50
        + ["nobody came"] * 100
        + ["you zorb"]
    )
    table = pa.table({"text": texts})

    told = evidence(table, Roles(text="text"), toxic_words=["zorb"])

    assert told["toxicity"][0]["with_toxic_word"] == 31
    named = line(told["identity_terms"], group="muslim")
    assert (named["rows"], named["toxic_share"], named["finding"]) == (50, 0.6, "differs")
    assert line(told["identity_terms"], group="christian")["toxic_share"] == 0.0


def test_the_twins_of_winobias_are_found(shared: Path):
    table = pq.read_table(shared / "data" / "winobias" / "winobias.parquet")

    found = run_check(Bias(), table, Roles(text="text", group="stereotype"))

    frame = pl.DataFrame(pl.from_arrow(table)).with_columns(twin=pl.Series(found.column("has_twin")))
    pairs = frame.group_by("type", "split", "pair_id").agg(pl.col("twin").all(), pl.len()).filter(pl.col("len") == 2)
    assert len(pairs) == 1584
    assert pairs["twin"].mean() >= 0.985  # 1565; the others differ in more than the pronoun


def test_why_tells_what_each_stage_says_of_a_row(room: Path):
    api.run(pipeline("class_balance", "spurious", "bias", roles=ROLES), planted(), room)

    stages = {stage["name"]: stage for stage in api.why(room, "0")["stages"]}

    assert stages["bias"]["scores"] == {"group": "f"}
    assert stages["class_balance"]["scores"] == {"class_share": pytest.approx(420 / 1040)}
    assert (stages["spurious"]["scores"], stages["spurious"]["status"]) == ({}, "scored")


def test_the_evidence_stands_in_the_report_and_on_the_page(room: Path):
    run = api.run(pipeline("bias", roles=ROLES, mode="staged"), planted(), room)

    page = (room / "report.html").read_text()
    assert run.report["stages"]["bias"]["detail"]["label_gaps"][0]["most"] == "m"
    assert "<h3><bdi>label rates</bdi></h3>" in page
    assert 'class="span"' in page
    assert json.dumps(run.report)


@pytest.mark.parametrize(
    ("parameters", "roles", "message"),
    [
        ({}, Roles(label="label"), "no column has the role `group`"),
        ({"within": "hight"}, ROLES, "`within` names the column `hight`"),
        ({"of": ["hight"]}, ROLES, "`of` names the column `hight`"),
        ({"reference": {"age": {"1": 1.0}}}, ROLES, "has not the role `group`"),
    ],
)
def test_a_wrong_request_says_what_and_what_there_is(parameters: dict[str, Any], roles: Roles, message: str):
    with pytest.raises(RequestError, match=message):
        make_check("bias", parameters).needs(roles, planted().schema)


def test_any_order_of_rows_gives_the_same_evidence():
    table = planted()
    mixed = np.random.default_rng(1).permutation(len(table))
    check = Bias()
    needed = table.select(list(check.needs(ROLES, table.schema)))

    # the runner sorts what a check is fitted on; here only the values' order differs, and no table depends on it
    told = check.evidence(check.fit(Rows(needed.take(pa.array(mixed)), mixed.astype(np.uint64), ROLES)))

    assert told == check.evidence(check.fit(Rows(needed, np.arange(len(table), dtype=np.uint64), ROLES)))
