from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import flag, pipeline
from toy_checks import Amount

from curate import api
from curate.dataset import Roles
from curate.disparity import EVEN, UNEVEN, UNKNOWN, compared, disparity, warnings, worst_ratio
from curate.gate import evaluate
from curate.intervals import false_discovery, newcombe, p_of_shares, ratio_of_shares, wilson, z_of
from curate.pipeline import Limit
from curate.render.advice import advise
from curate.render.terminal import console_on, show, summary

counts = st.integers(0, 400).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))


def tally(rejected: int, of: int, **stages: tuple[int, int]) -> dict[str, Any]:
    taken = {stage: {"rejected": hit, "rows_in": rows} for stage, (hit, rows) in stages.items()}
    return {"rejected": rejected, "input": of, "stages": taken}


def test_the_difference_of_shares_has_the_interval_of_newcombes_table():
    low, high = newcombe(56, 70, 48, 80)  # his example a: 56/70 and 48/80

    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


def test_the_ratio_of_shares_has_an_interval_near_the_logarithms():
    ratio, low, high = ratio_of_shares(30, 100, 10, 100)

    spread = 1.959964 * math.sqrt(1 / 30 - 1 / 100 + 1 / 10 - 1 / 100)  # Katz
    assert ratio == pytest.approx(3.0)
    assert (low, high) == pytest.approx((3 / math.exp(spread), 3 * math.exp(spread)), rel=0.03)


def test_the_interval_of_a_ratio_holds_the_truth_in_most_samples():
    generator = np.random.default_rng(9)
    drawn = generator.binomial([80, 150], [0.25, 0.1], (2_000, 2))

    ends = [ratio_of_shares(one, 80, two, 150)[1:] for one, two in drawn.tolist()]

    assert 0.93 <= np.mean([low <= 2.5 <= high for low, high in ends]) <= 0.97


def test_the_test_of_two_shares_is_pearsons():
    from scipy.stats import chi2_contingency

    expected = chi2_contingency([[30, 70], [10, 90]], correction=False).pvalue
    assert p_of_shares(30, 100, 10, 100) == pytest.approx(expected)


def test_q_values_are_those_of_benjamini_and_hochberg():
    from scipy.stats import false_discovery_control

    chances = [0.01, 0.02, 0.03, 0.04, 0.2, 0.9, 0.01]
    assert false_discovery(chances) == pytest.approx(false_discovery_control(chances).tolist())
    assert false_discovery([]) == []


@given(counts, counts)
def test_intervals_hold_their_numbers_and_turn_with_the_groups(one: tuple[int, int], two: tuple[int, int]):
    low, high = newcombe(*one, *two)
    ratio, ratio_low, ratio_high = ratio_of_shares(*one, *two)

    assert low <= high
    assert newcombe(*two, *one) == pytest.approx((-high, -low))
    if one[1] and two[1]:
        assert low - 1e-9 <= one[0] / one[1] - two[0] / two[1] <= high + 1e-9
        assert 0 <= ratio_low <= ratio_high
        assert (ratio_low > 1 + 1e-9) == (low > 1e-9) or abs(low) < 1e-6
        assert ratio_of_shares(*two, *one)[0] == pytest.approx(1 / ratio)
    assert 0 <= p_of_shares(*one, *two) <= 1


@given(st.dictionaries(st.text(max_size=3), counts, max_size=6))
def test_the_most_and_the_least_rejected_group_are_named_or_a_reason_is(groups: dict[str, tuple[int, int]]):
    found = compared(groups)

    large = {name: hit / of for name, (hit, of) in groups.items() if of >= 30}
    assert found["groups"] + found["small_groups"] == len(groups)
    if len(large) < 2:
        assert (found["finding"], found["max_ratio"]) == (UNKNOWN, None)
        assert found["reason"]
        return
    assert (found["most_share"], found["least_share"]) == (max(large.values()), min(large.values()))
    assert found["difference_low"] <= found["difference"] <= found["difference_high"]
    assert found["max_ratio_low"] <= found["max_ratio"] <= (found["max_ratio_high"] or math.inf)
    if found["finding"] == UNEVEN:
        assert found["difference_low"] > 0
        assert found["max_ratio_low"] > 1


@pytest.mark.parametrize(
    ("groups", "finding"),
    [
        ({"a": (300, 1000), "b": (100, 1000)}, UNEVEN),
        ({"a": (100, 1000), "b": (100, 1000)}, UNKNOWN),  # the interval still reaches 1.3 times and 2.6 points
        ({"a": (1000, 10000), "b": (1000, 10000)}, EVEN),
        ({"a": (0, 10000), "b": (0, 10000)}, EVEN),
        ({"a": (0, 30), "b": (0, 30)}, UNKNOWN),  # nothing seen in thirty rows proves nothing
        ({"a": (30, 30), "b": (0, 29)}, UNKNOWN),  # one group is too small
        ({"a": (150000, 1000000), "b": (149000, 1000000)}, EVEN),  # beyond chance, and nothing anybody would mind
        ({"a": (4000, 100000), "b": (2000, 100000)}, UNKNOWN),  # twice as many, and two points at most: not clear either way
    ],
)
def test_a_finding_needs_more_than_chance_and_more_than_nothing(groups: dict[str, tuple[int, int]], finding: str):
    assert compared(groups)["finding"] == finding


def test_a_handful_of_rows_against_none_is_no_disparity():
    found = {"sex": compared({"a": (3, 5000), "b": (0, 3000), "c": (0, 40)}) | {"stages": {}}}

    assert (found["sex"]["least"], found["sex"]["max_ratio"] > 1) == ("b", True)
    assert worst_ratio(found) == 1.0


def test_what_is_proven_is_less_than_what_is_seen():
    found = {"sex": compared({"a": (60, 200), "b": (10, 200)})}

    assert worst_ratio(found) == pytest.approx(6.0)
    assert worst_ratio(found, "max_ratio_low") == found["sex"]["max_ratio_low"] < 6.0


def test_intervals_are_wider_the_more_pairs_were_looked_at():
    two = compared({"a": (60, 200), "b": (40, 200)})
    many = compared({"a": (60, 200), "b": (40, 200), **{str(at): (50, 200) for at in range(8)}})

    assert many["difference_high"] > two["difference_high"]
    assert many["max_ratio_low"] < two["max_ratio_low"]
    assert z_of(1) == pytest.approx(1.959964, abs=1e-6)


def test_the_warning_names_the_stage_that_did_it_and_the_group():
    groups = {
        "f": tally(320, 1000, first=(20, 1000), second=(300, 980)),
        "m": tally(70, 1000, first=(20, 1000), second=(50, 980)),
    }

    found = disparity({"sex": groups})
    [warning] = warnings(found)

    assert (warning["column"], warning["stage"]) == ("sex", "second")
    assert warning["text"].startswith(
        "stage second rejects 30.6 % of sex f and 5.1 % of sex m: 6.00 times as many (95 % interval "
    )
    assert worst_ratio(found) == pytest.approx(320 / 70)


def test_stages_that_are_uneven_only_together_are_warned_of():
    one, two = (38, 1000), (20, 1000)
    groups = {
        "f": tally(152, 1000, **{f"s{at}": one for at in range(4)}),
        "m": tally(80, 1000, **{f"s{at}": two for at in range(4)}),
    }

    [warning] = warnings(disparity({"sex": groups}))

    assert (warning["stage"], warning["text"][:34]) == ("", "the stages together reject 15.2 % ")


@pytest.fixture
def run(room: Path) -> api.Run:
    """200 rows of each sex; `second` rejects 60 of the women and 10 of the men, 50 of the yes and 20 of the no."""
    amounts = [0.9] * 60 + [0.1] * 140 + [0.9] * 10 + [0.1] * 190
    table = pa.table(
        {
            "id": [f"r{at}" for at in range(400)],
            "text": [f"text {at}" for at in range(400)],
            "value": amounts,
            "sex": pa.array(["f"] * 200 + ["m"] * 200).dictionary_encode(),
            "label": pa.array([at % 2 == 0 for at in range(400)]),
        }
    )
    roles = Roles(id="id", text="text", group="sex", label="label")
    return api.run(pipeline("missing", flag(Amount(), name="second", above=0.5, of="amount"), roles=roles), table, room)


def test_a_run_says_who_loses_rows_and_to_which_stage(run: api.Run):
    sex = run.report["disparity"]["sex"]

    assert (sex["most"], sex["most_share"], sex["least"], sex["least_share"]) == ("f", 0.3, "m", 0.05)
    assert sex["max_ratio"] == pytest.approx(6.0)
    assert sex["stages"]["second"]["finding"] == UNEVEN
    assert (sex["stages"]["missing"]["max_ratio"], sex["stages"]["missing"]["finding"]) == (1.0, EVEN)
    assert [(one["column"], one["stage"]) for one in run.report["uneven"]] == [("sex", "second")]
    second = sex["stages"]["second"]
    assert (second["difference_low"], second["difference_high"]) == pytest.approx(newcombe(60, 200, 10, 200))


def test_numbers_are_compared_by_quantile_and_listed_by_value(room: Path):
    ages = [at % 50 for at in range(1_000)]
    amounts = [0.9 if age >= 40 and at % 2 else 0.1 for at, age in enumerate(ages)]
    table = pa.table(
        {"id": [f"r{at}" for at in range(1_000)], "text": ["x"] * 1_000, "value": amounts, "age": [*ages[:990], *[None] * 10]}
    )
    rejects = flag(Amount(), name="second", above=0.5, of="amount")

    report = api.run(pipeline(rejects, roles=Roles(id="id", text="text", group="age")), table, room).report

    age = report["disparity"]["age"]
    assert len(report["groups"]["age"]) == 51
    assert (age["groups"], age["small_groups"]) == (5, 1)
    assert (age["most"], age["most_share"], age["least_share"]) == ("above 39 to 49", pytest.approx(0.5, abs=0.03), 0.0)


def test_label_classes_are_judged_like_groups(run: api.Run):
    told = run.report["labels"]["label"]

    assert {name: (one["input"], one["rejected"]) for name, one in told.items()} == {"false": (200, 35), "true": (200, 35)}
    assert (told["true"]["rejected_low"], told["true"]["rejected_high"]) == wilson(35, 200)
    assert run.report["disparity"]["label"]["max_ratio"] == 1.0
    assert "label" not in run.report["groups"]


def test_files_are_compared_and_are_no_group_of_people(run: api.Run):
    assert run.report["disparity"]["(source file)"]["finding"] == UNKNOWN
    assert run.report["max_group_ratio"] == pytest.approx(6.0)


@pytest.mark.parametrize("metric", ["max_group_ratio", "disparity.sex.max_ratio", "disparity.sex.stages.second.max_ratio"])
def test_the_gate_holds_the_ratio_against_a_limit(run: api.Run, metric: str):
    assert evaluate([Limit(metric, max=1.25)], run.report).exit_code == 3
    assert evaluate([Limit(metric, max=6.5)], run.report).exit_code == 0


def test_groups_that_are_too_small_are_never_passed(room: Path):
    table = pa.table({"id": list("ab"), "text": list("xy"), "sex": list("fm")})
    run = api.run(pipeline("missing", roles=Roles(id="id", text="text", group="sex")), table, room)

    result = evaluate([Limit("max_group_ratio", max=99)], run.report)

    assert run.report["max_group_ratio"] is None
    assert result.outcome == "not_evaluated"


def test_the_first_screen_and_the_terminal_name_the_stage_and_the_group(run: api.Run, capsys: pytest.CaptureFixture[str]):
    show(console_on(), summary(run.report))
    first = [one for one in advise(run.report, {}, None, "RUN") if one.stage == "second"]

    assert "warning: stage second rejects 30.0 % of sex f" in capsys.readouterr().err
    assert any(one.title == "sex: one group loses more rows" and one.level == "look" for one in first)


@pytest.mark.parametrize("label", [pa.array([at / 7 for at in range(40)]), pa.array([[at] for at in range(40)])])
def test_a_label_that_names_no_classes_is_no_group(room: Path, label: pa.Array):
    table = pa.table({"id": [f"{at}" for at in range(40)], "text": [f"t{at}" for at in range(40)], "label": label})

    run = api.run(pipeline("missing", roles=Roles(id="id", text="text", label="label")), table, room)

    assert run.report["labels"] == {}
