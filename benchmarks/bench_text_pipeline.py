"""The whole text pipeline, stage by stage: megabytes of text a second and a core.

    python benchmarks/bench_text_pipeline.py [--mb 255] [--source FILE.parquet]

Runs missing, text_quality, language, pii, exact_dup and near_dup once to compile and once to
measure, with one worker, and prints what the run's own report says of each stage: seconds of
scoring (reading and writing have lines of their own), and text over those seconds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from common import corpus, curate, measured, text_megabytes

PIPELINE = """
name: bench
roles: {text: text}
stages: [missing, {text_quality: {}, reject: []}, language, pii, exact_dup, near_dup]
"""


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--mb", type=int, default=255)
    given.add_argument("--source", type=Path)
    asked = given.parse_args()
    source = asked.source or corpus(asked.mb)
    megabytes = text_megabytes(source)
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        work = Path(folder)
        (work / "bench.yaml").write_text(PIPELINE)
        for _ in range(2):
            shutil.rmtree(work / "run", ignore_errors=True)
            cost = measured(curate("run", work / "bench.yaml", "--source", source, "--out", work / "run", "--workers", "1"))
        costs = json.loads((work / "run" / "report.json").read_bytes())["costs"]
    print(f"{source.name}: {megabytes:.0f} MB of text, one worker, {cost.wall_s:.1f} s, peak {cost.peak_bytes / 1e6:.0f} MB")
    for stage, step in costs["stages"].items():
        if step["score_s"] > 0.005:
            print(f"  {stage:14} {step['score_s']:7.2f} s scoring {megabytes / step['score_s']:8.0f} MB/s")
    for activity, doing in (("read", "reading"), ("decode", "decoding"), ("write", "writing")):
        print(f"  {f'({doing})':14} {costs[f'{activity}_s']:7.2f} s")


if __name__ == "__main__":
    main()
