"""Is peak memory flat in the size of the input, and within --memory?

    python benchmarks/bench_memory.py [--mb 1000 2000 4000] [--memory 4GB]

Runs `missing` and `exact_dup` on growing corpora and prints the most memory that the whole
process tree held at once.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from common import corpus, curate, measured, text_megabytes

PIPELINE = "name: bench\nroles: {text: text, id: id}\nstages: [missing, exact_dup]\n"


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--mb", type=int, nargs="+", default=[1000, 2000, 4000])
    given.add_argument("--memory", default="4GB")
    asked = given.parse_args()
    print(f"{'text MB':>8} {'wall s':>8} {'MB/s':>6} {'peak MB':>8}   (--memory {asked.memory})")
    for megabytes in asked.mb:
        source = corpus(megabytes)
        with tempfile.TemporaryDirectory(dir=source.parent) as folder:
            pipeline = Path(folder) / "bench.yaml"
            pipeline.write_text(PIPELINE)
            cost = measured(curate("run", pipeline, "--source", source, "--out", Path(folder) / "run", "--memory", asked.memory))
            text = text_megabytes(source)
            print(f"{text:8.0f} {cost.wall_s:8.1f} {text / cost.wall_s:6.0f} {cost.peak_bytes / 1e6:8.0f}")
            shutil.rmtree(Path(folder) / "run")


if __name__ == "__main__":
    main()
