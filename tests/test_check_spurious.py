from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curate.association import auroc, chi_square, cramers_v, mid_ranks
from curate.check import make_check
from curate.checks.spurious import Spurious
from curate.dataset import Roles, Rows
from curate.errors import RequestError
from curate.testing import run_check

ROLES = Roles(id="id", text="text", label="label", group="group")
FILLER = ["rain", "stone", "river", "cloud", "table", "window", "garden", "street", "letter", "music"]


def planted(rows: int = 600) -> pa.Table:
    """Two labels; `zebra` is in a fifth of the texts and always yes, `giraffe` as often with both; the group tells the label."""
    at = np.arange(rows)
    mixed = np.random.default_rng(7).permutation(rows)
    label = np.where(at % 2 == 0, "yes", "no")
    group = np.where(mixed % 10 == 0, "x", np.where(at % 2 == 0, "g", "h"))
    texts = []
    for row in range(rows):
        words = [FILLER[(row * 7 + step * 3) % 10] for step in range(4)]
        words += ["Zebra"] if row % 10 in (0, 2) else []
        words += ["giraffe"] if row % 5 == 0 else []
        texts.append(" ".join(words) + ".")
    columns = {
        "id": [f"r{one}" for one in at],
        "text": texts,
        "label": label,
        "group": group,
        "noise": (mixed % 97) / 7,
        "same": [1] * rows,
    }
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def evidence(table: pa.Table, roles: Roles = ROLES, **parameters: Any) -> dict[str, Any]:
    check = make_check("spurious", parameters)
    assert isinstance(check, Spurious)
    needed = table.select(list(check.needs(roles, table.schema)))
    return dict(check.evidence(check.fit(Rows(needed, np.arange(len(table), dtype=np.uint64), roles))))


def test_the_planted_word_is_a_shortcut_and_the_other_is_none():
    told = evidence(planted())

    assert [(line["word"], line["label"], line["rows"]) for line in told["shortcuts"]] == [("zebra", "yes", 120)]
    assert told["shortcuts"][0]["share_low"] > 0.9
    assert told["warnings"][-1] == "1 words give the label away, in most rows zebra (yes)"


def test_rows_with_the_word_have_the_flag_and_no_others():
    table = planted()

    found = run_check(Spurious(), table, ROLES).column("has_shortcut").to_pylist()

    assert [row for row, flag in enumerate(found) if flag] == [row for row in range(600) if row % 10 in (0, 2)]


def test_a_word_of_too_few_rows_proves_nothing():
    table = planted()

    assert evidence(table, min_rows=121)["shortcuts"] == []
    assert evidence(table.slice(0, 100))["shortcuts"] == []  # zebra in 20 texts, all yes: the interval reaches below 0.9


def test_the_group_that_goes_with_the_label_is_first_and_warned_of():
    told = evidence(planted())

    columns = {line["column"]: line for line in told["columns"]}
    assert told["columns"][0]["column"] == "group"
    assert columns["group"]["cramers_v_low"] > 0.8
    assert columns["noise"]["cramers_v_low"] == 0.0
    assert told["not_assessed"] == [{"what": "same", "reason": "it, or the label, has one value only"}]
    assert told["warnings"][0].startswith("the group column group goes with the label: Cramér's V 0.9")


def test_a_label_that_nearly_all_rows_have_makes_no_word_a_shortcut():
    table = planted()
    labels = pa.array(["yes"] * 590 + ["no"] * 10)

    told = evidence(table.set_column(2, "label", labels))

    assert told["shortcuts"] == []


def test_without_text_there_is_no_column_and_no_word():
    table = planted()

    told = evidence(table, Roles(id="id", label="label", group="group"))

    assert "shortcuts" not in told
    assert run_check(Spurious(), table, Roles(label="label")).column_names == ["row"]


def test_an_unknown_column_is_a_request_error_with_the_nearest_name():
    with pytest.raises(RequestError, match="`nose`") as caught:
        make_check("spurious", {"of": ["nose"]}).needs(ROLES, planted().schema)

    assert "noise" in str(caught.value.hint)


def test_cramers_v_of_a_table_is_bergsmas():
    table = np.array([[30, 10, 5], [5, 25, 10]])
    from scipy.stats import chi2_contingency

    statistic = chi2_contingency(table, correction=False).statistic
    total, sides = table.sum(), min(2 - 1 / (85 - 1), 3 - 4 / (85 - 1)) - 1
    value, low, high = cramers_v(table) or (0.0, 0.0, 0.0)

    assert chi_square(table) == pytest.approx(statistic)
    assert value == pytest.approx(np.sqrt((statistic / total - 2 / (total - 1)) / sides))
    assert 0 < low < value < high < 1


@pytest.mark.parametrize(("rows", "value"), [(40, 1.0), (4000, 1.0)])
def test_columns_that_tell_each_other_have_a_v_of_one(rows: int, value: float):
    found = cramers_v(np.diag([rows, rows, rows]))

    assert found is not None
    assert found[0] == pytest.approx(value)
    assert found[1] > 0.7


def test_the_interval_of_v_holds_the_truth_in_most_samples():
    generator = np.random.default_rng(3)
    shares = np.array([[0.3, 0.2], [0.15, 0.35]])
    truth = np.sqrt(chi_square(np.round(shares * 10**9).astype(np.int64)) / 10**9)

    drawn = generator.multinomial(300, shares.ravel(), 300).reshape(-1, 2, 2)
    ends = [found[1:] for table in drawn if (found := cramers_v(table))]

    held = [low <= truth <= high for low, high in ends]
    assert 0.91 <= np.mean(held) <= 0.99


def test_auroc_is_the_chance_of_a_pair_and_delongs_interval_holds_it():
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(5)
    inside = np.arange(200) % 4 == 0
    values = np.round(generator.normal(inside * 1.0), 1)

    area, low, high = auroc(values, inside) or (0.0, 0.0, 0.0)

    assert area == pytest.approx(roc_auc_score(inside, values))
    assert low < area < high
    assert auroc(values, np.zeros(200, bool)) is None
    assert mid_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_a_perfect_auroc_has_an_interval_all_the_same():
    area, low, high = auroc(np.arange(40.0), np.arange(40) >= 20) or (0.0, 0.0, 0.0)

    assert (area, high) == (1.0, 1.0)
    assert 0.8 < low < 0.9
