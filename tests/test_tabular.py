"""pipelines/tabular.yaml on a real table with protected attributes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from curate import api
from curate.hashing import mix64


@pytest.fixture(scope="module")
def sample(root: Path) -> pl.DataFrame:
    return pl.read_parquet(root / "sample_data" / "adult" / "adult.parquet")


@pytest.mark.slow
def test_the_tabular_pipeline_says_what_the_data_does_to_groups(root: Path, tmp_path: Path, sample: pl.DataFrame) -> None:
    source = root / "sample_data" / "adult" / "adult.parquet"

    run = api.run(root / "pipelines" / "tabular.yaml", source, tmp_path / "out")

    detail = run.report["stages"]["bias"]["detail"]
    kept = sample.filter(pl.Series(pl.read_parquet(run.path / "verdicts" / "*.parquet").sort("row_id")["verdict"] == "kept"))
    rates = dict(kept.group_by("sex").agg((pl.col("income_per_year") == ">50K").mean()).iter_rows())
    gap = next(line for line in detail["label_gaps"] if line["column"] == "sex")
    assert run.exit_code == 0
    assert gap["parity_difference"] == pytest.approx(rates["Male"] - rates["Female"])
    assert {line["found"].split(".")[0] for line in detail["found_by_earlier_stages"]} == {"label_noise"}
    assert any("below four fifths" in warning for warning in detail["warnings"])
    assert run.report["rows"]["rejected"] == 3
    assert run.report["max_group_ratio_low"] == 1.0


def test_the_sample_is_the_published_rows_chosen_by_their_number(shared: Path, sample: pl.DataFrame) -> None:
    table = pq.read_table(shared / "data" / "bias_adult" / "adult.parquet")
    rows = np.sort(np.argsort(mix64(np.arange(len(table), dtype=np.uint64), 2026), kind="stable")[:8_000])

    published = pl.DataFrame(pl.from_arrow(table.take(rows)))

    names = {name: name.replace("-", "_") for name in published.columns}
    expected = published.rename(names).with_columns(pl.col(pl.String).replace("?", None))
    assert sample["id"].to_list() == [f"a{row:05d}" for row in rows]
    assert sample.drop("id").equals(expected)
