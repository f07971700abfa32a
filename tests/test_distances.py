from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.checks.bias import Bias
from curate.dataset import Roles, Rows
from curate.distances import cddl, class_imbalance, distances, js, kl, ks, lp, redrawn, tvd
from curate.grouping import Grouping, crossed, cut

counts = st.lists(st.integers(0, 60), min_size=2, max_size=5)


def test_the_measures_of_adult_are_those_of_clarifys_formulas(shared: Path):
    table = pq.read_table(shared / "data" / "bias_adult" / "adult.parquet")
    roles, check = Roles(label="income-per-year", group="sex"), Bias(within="education")
    label = [one == ">50K" for one in table["income-per-year"].to_pylist()]
    frame = pl.DataFrame({"sex": table["sex"], "y": label, "e": table["education"]})
    d, a = frame.filter(pl.col("sex") == "Female")["y"].to_numpy(), frame.filter(pl.col("sex") != "Female")["y"].to_numpy()
    p_a, p_d = np.array([a.mean(), 1 - a.mean()]), np.array([d.mean(), 1 - d.mean()])
    mean = (p_a + p_d) / 2
    total = weight = 0.0
    for _, part in frame.group_by("e"):
        good, own = part["y"].to_numpy(), (part["sex"] == "Female").to_numpy()
        if 0 < good.sum() < len(good):
            total += len(good) * ((own & ~good).sum() / (~good).sum() - (own & good).sum() / good.sum())
            weight += len(good)

    rows = Rows(table.select(list(check.needs(roles, table.schema))), np.arange(len(table), dtype=np.uint64), roles)
    [found] = [one for one in check.evidence(check.fit(rows))["distances"] if one["group"] == "Female"]

    expected = {
        "ci": (len(a) - len(d)) / len(frame),
        "dpl": a.mean() - d.mean(),
        "kl": (p_a * np.log(p_a / p_d)).sum(),
        "js": ((p_a * np.log(p_a / mean)).sum() + (p_d * np.log(p_d / mean)).sum()) / 2,
        "lp": np.sqrt(((p_a - p_d) ** 2).sum()),
        "tvd": np.abs(p_a - p_d).sum() / 2,
        "ks": np.abs(p_a - p_d).max(),
        "cddl": total / weight,
        "cddl_rows_share": weight / len(frame),
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected)


def test_the_most_extreme_difference_has_the_largest_distance():
    found = distances(np.array([50, 0]), np.array([0, 50]), seed=1)

    assert (found["tvd"], found["ks"], found["js"], found["lp"]) == pytest.approx((1.0, 1.0, math.log(2), math.sqrt(2)))
    assert found["kl"] is None


@given(counts, counts, st.integers(0, 2**60))
def test_distances_keep_their_ranges_and_the_side_does_not_matter(one: list[int], other: list[int], seed: int):
    width = max(len(one), len(other))
    own, rest = (np.array(side + [0] * (width - len(side))) for side in (one, other))

    found, turned = distances(own, rest, seed), distances(rest, own, seed)

    if not own.sum() or not rest.sum():
        assert set(found.values()) == {None}
        return
    for name, top in (("js", math.log(2)), ("lp", math.sqrt(2)), ("tvd", 1.0), ("ks", 1.0)):
        assert -1e-12 <= found[name] <= top + 1e-12
        assert found[name] == pytest.approx(turned[name])
        assert 0 <= found[f"{name}_low"] <= found[f"{name}_high"]
    assert found["kl"] is None or found["kl"] >= -1e-12
    shares = own / own.sum(), rest / rest.sum()
    assert tvd(*shares) <= ks(*shares) * width / 2 + 1e-12
    assert js(*shares) <= math.log(2) * tvd(*shares) + 1e-12
    assert lp(*shares) <= math.sqrt(2) * tvd(*shares) * math.sqrt(2) + 1e-12
    assert kl(shares[0], shares[0]) == 0
    assert class_imbalance(int(own.sum()), int(rest.sum())) == -class_imbalance(int(rest.sum()), int(own.sum()))  # type: ignore[operator]


def test_equal_groups_have_intervals_that_reach_zero():
    generator = np.random.default_rng(11)
    drawn = [generator.multinomial(200, [0.5, 0.3, 0.2], 2) for _ in range(60)]

    reached = [distances(own, rest, at)["tvd_low"] == 0.0 for at, (own, rest) in enumerate(drawn)]

    assert np.mean(reached) >= 0.9


def test_redrawn_counts_are_the_seeds_and_around_the_counts():
    counts = np.array([0, 3, 4000])

    drawn = redrawn(counts, 7, 2000)

    assert np.array_equal(drawn, redrawn(counts, 7, 2000))
    assert not np.array_equal(drawn, redrawn(counts, 8, 2000))
    assert drawn.mean(axis=0) == pytest.approx([0, 3, 4000], rel=0.05)
    assert drawn.std(axis=0)[2] == pytest.approx(math.sqrt(4000), rel=0.05)


def test_strata_of_one_kind_of_label_are_left_out_of_cddl():
    inside = np.array([1, 0, 1, 0, 1, 0], bool)
    good = np.array([1, 0, 0, 1, 1, 1], bool)

    assert cddl(inside, good, np.array([0, 0, 0, 0, 1, 1])) == (0.0, pytest.approx(4 / 6))
    assert cddl(inside, np.ones(6, bool), np.zeros(6, np.int64)) == (None, 0.0)


def test_numbers_are_groups_by_quantile_and_few_numbers_by_value():
    parts = cut("age", pa.array([*range(100), None]), 4, 50)
    values = cut("code", pa.array([1, 2, 2, 1, 3]), 4, 50)

    assert parts.groups == ("0 to 24", "above 24 to 49", "above 49 to 74", "above 74 to 99", "(other values)", "(missing)")
    assert np.bincount(parts.codes(pa.array([*range(100), None]))).tolist() == [25, 25, 25, 25, 0, 1]
    assert parts.codes(pa.array([-5, 24, 25, 1000])).tolist() == [0, 0, 1, 3]
    assert values.groups == ("1", "2", "3", "(other values)", "(missing)")


def test_intersections_have_lines_and_small_ones_are_one():
    one = Grouping("sex", ("f", "m"), np.array([0] * 50 + [1] * 50))
    two = Grouping("race", ("a", "b"), np.array([0] * 45 + [1] * 5 + [0] * 3 + [1] * 47))

    both, small = crossed(one, two, 30)

    assert (both.name, both.groups, small) == ("sex × race", ("f, a", "m, b", "(other values)"), 2)
    assert both.sizes.tolist() == [45, 47, 8]
