"""pipelines/labelled_text.yaml on real comments with rule-made labels: what is flagged is mostly wrong by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from curate import api


def test_the_labelled_pipeline_flags_labels_that_people_contradict(root: Path, tmp_path: Path) -> None:
    source = root / "sample_data" / "comments" / "comments.parquet"

    run = api.run(root / "pipelines" / "labelled_text.yaml", source, tmp_path / "out")

    scores = pl.read_parquet(run.path / "scores" / "*.parquet").sort("row_id")
    rows = pl.read_parquet(source)
    wrong = (rows["label"] != rows["gold"]).to_numpy()
    asked = scores["label_noise.suspicion"].is_not_null().to_numpy()
    flagged = scores["label_noise.likely_wrong"].fill_null(False).to_numpy()
    told = run.report["stages"]["label_noise"]["detail"]
    assert run.exit_code == 0
    assert wrong[flagged].mean() >= 0.8
    assert flagged[wrong & asked].mean() >= 0.4
    assert told["regime"] == "structured"
    assert 0.5 <= told["noise_rate"]["value"] / wrong[asked].mean() <= 2
    ranked = np.argsort(-scores["label_noise.suspicion"].fill_null(0.0).to_numpy(), kind="stable")[:30]
    assert wrong[ranked].mean() >= 0.8
