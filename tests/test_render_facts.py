from __future__ import annotations

import re
from typing import Any

import pytest

from curate.render.budget import Budget
from curate.render.facts import facts_view, interval
from curate.render.html import MAX_BYTES, render
from curate.render.terminal import console_on, show, summary

ROWS = [
    {"group": "a", "rows": 1200, "rate": 0.25, "rate_low": 0.2, "rate_high": 0.3, "finding": None},
    {"group": "<b>", "rows": 3, "rate": None, "rate_low": None, "rate_high": None, "finding": "insufficient evidence"},
]


def table(rows: Any, budget: Budget = Budget()) -> dict[str, Any]:  # noqa: B008
    view = facts_view({"label_rates": rows}, budget)
    assert [one["title"] for one in view] == ["label rates"]
    found: dict[str, Any] = view[0]["table"]
    return found


def report(detail: dict[str, Any]) -> dict[str, Any]:
    stage = {
        "check": "bias", "version": 1, "status": "evaluated", "reason": None, "rows_in": 9, "asked": 9, "missing": 0,
        "covered_share": 1.0, "rejected": 0, "rejected_share": 0.0, "reasons": [], "scores": {}, "kept": 9, "detail": detail,
    }  # fmt: skip
    rows = {"input": 9, "kept": 9, "rejected": 0, "quarantined": 0}
    return {"version": 1, "name": "x", "status": "complete", "rows": rows, "kept_share": 1.0, "stages": {"bias": stage}}


def test_a_list_of_objects_is_a_table_with_a_column_a_key():
    found = table(ROWS)

    assert [head["name"] for head in found["heads"]] == ["group", "rows", "rate", "finding"]
    assert [head["numeric"] for head in found["heads"]] == [False, True, False, False]
    assert [cell["words"] for cell in found["first"][0]] == ["a", "1,200", "0.25 [0.2, 0.3]", "–"]


def test_a_value_between_its_ends_is_drawn_and_one_without_them_is_not():
    first, second = table(ROWS)["first"]

    assert 'aria-label="0.25, interval 0.2 to 0.3"' in first[2]["svg"]
    assert second[2] == {"words": "–", "numeric": False, "svg": ""}


def test_a_tiny_chance_is_not_told_more_exactly_than_anybody_needs():
    found = table([{"group": "a", "q": 3e-90}, {"group": "b", "q": 0.04}])

    assert [row[1]["words"] for row in found["first"]] == ["<0.0001", "0.04"]


def test_an_interval_without_an_upper_end_is_told_and_not_drawn():
    found = table([{"ratio": 2.0, "ratio_low": 1.5, "ratio_high": None}, {"ratio": 2.0, "ratio_low": 1.0, "ratio_high": 3.0}])

    assert found["first"][0][0] == {"words": "2 [1.5, ∞)", "numeric": False, "svg": ""}


def test_value_low_and_high_stand_together_too():
    found = table([{"column": "age", "value": 1.5, "low": 1.0, "high": 2.0}])

    assert [head["name"] for head in found["heads"]] == ["column", "value"]
    assert found["heads"][1]["drawn"]


def test_intervals_of_a_column_share_one_axis_and_a_ratio_is_held_against_one():
    found = table([{"ratio": 2.0, "ratio_low": 1.0, "ratio_high": 3.0}, {"ratio": 5.0, "ratio_low": 4.0, "ratio_high": 9.0}])

    starts = [float(re.search(r"M([\d.]+) 6H", row[0]["svg"])[1]) for row in found["first"]]  # type: ignore[index]
    marks = {re.search(r'class="mark" d="M([\d.]+)', row[0]["svg"])[1] for row in found["first"]}  # type: ignore[index]
    assert starts[0] < starts[1]
    assert marks == {"4.0"}


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (-5.0, 5.0), (1e9, 1e10)])
def test_any_interval_is_drawn_inside_its_frame(low: float, high: float):
    drawn = str(interval(low, low, high, (0.0, 1.0), [0.0]))

    numbers = [float(found) for found in re.findall(r'(?:M|H|cx=")(-?[\d.]+)', drawn)]
    assert all(0 <= number <= 120 for number in numbers)


def test_objects_are_facts_and_plain_lists_a_line():
    view = facts_view(
        {"model": {"name": "ridge", "folds": 5}, "dropped": ["x", 2], "rows": 7, "curve": [[1, 2]], "none": []}, Budget()
    )

    assert view == [
        {"title": "model", "facts": [("name", "ridge"), ("folds", "5")], "line": "", "table": None},
        {"title": "dropped", "facts": [], "line": "x, 2", "table": None},
    ]


def test_long_tables_are_folded_and_cut_to_the_budget():
    found = table([{"group": at} for at in range(100)], Budget(rows=50))

    assert (len(found["first"]), len(found["rest"]), found["left"]) == (12, 38, 50)


def test_evidence_stands_on_the_page_escaped_and_within_its_size():
    page = render(report({"label_rates": ROWS * 20_000}), {"stages": []})

    assert "label rates" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page.replace("<b>rejected</b>", "").replace("<b>like</b>", "")
    assert len(page.encode()) <= MAX_BYTES


def test_warnings_of_a_check_stand_first_on_the_page_and_on_the_terminal(capsys: pytest.CaptureFixture[str]):
    told = report({"warnings": ["group x loses most"]})

    page = render(told, {"stages": []})
    show(console_on(), summary(told))

    assert page.index("group x loses most") < page.index('id="stage-1"')
    assert "warning: bias: group x loses most" in capsys.readouterr().err
