"""Reading -> exact_dup -> writing, against polars alone doing the same to the same file.

    python benchmarks/bench_exact_dup.py [--mb 1000] [--repeats 5] [--source FILE.parquet]

Polars reads, hashes the text, drops rows with an equal hash (keeping order) and writes. Curate
does that with a 128-bit digest, and also writes the rejected rows, the ledger and the scores,
each published by rename after a flush. Whole processes, start-up included.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from common import Cost, alternate, corpus, curate, measured, show, text_megabytes

STREAMED = """
import polars as pl, sys
rows = pl.scan_parquet(sys.argv[1]).with_columns(h=pl.col("text").hash())
rows.unique(subset="h", keep="first", maintain_order=True).drop("h").sink_parquet(sys.argv[2])
"""
EAGER = """
import polars as pl, sys
rows = pl.read_parquet(sys.argv[1]).with_columns(h=pl.col("text").hash())
rows.unique(subset="h", keep="first", maintain_order=True).drop("h").write_parquet(sys.argv[2])
"""
PIPELINE = "name: bench\nroles: {{text: text}}\nstages: [{{exact_dup: {{normalise: {}}}}}]\n"


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--mb", type=int, default=1000)
    given.add_argument("--repeats", type=int, default=5)
    given.add_argument("--source", type=Path)
    asked = given.parse_args()
    source = asked.source or corpus(asked.mb)
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        work = Path(folder)
        sides = {
            "polars, streaming": lambda: polars(STREAMED, source, work),
            "polars, eager": lambda: polars(EAGER, source, work),
            "curate, raw text": lambda: ours("false", source, work),
            "curate, normalised text": lambda: ours("true", source, work),
        }
        megabytes = text_megabytes(source)
        print(f"{source.name}: {megabytes:.0f} MB of text")
        show(alternate(sides, asked.repeats), megabytes, "polars, streaming")


def polars(code: str, source: Path, work: Path) -> Cost:
    return measured([sys.executable, "-c", code, str(source), str(work / "out.parquet")])


def ours(normalise: str, source: Path, work: Path) -> Cost:
    pipeline = work / f"{normalise}.yaml"
    pipeline.write_text(PIPELINE.format(normalise))
    shutil.rmtree(work / "run", ignore_errors=True)
    return measured(curate("run", pipeline, "--source", source, "--out", work / "run"))


if __name__ == "__main__":
    main()
