"""How long does `curate why RUN ROW` take, as a whole process, on a run of many rows?

    python benchmarks/bench_why.py [--rows 10000000] [--repeats 5]

Makes a run of short rows (7 % copies) once below benchmarks/data/, then asks for a kept row, a
copy by row number, and a row by the caller's own id.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from common import DATA, curate, measured

PIPELINE = "name: bench\nroles: {text: text, id: id}\nstages: [missing, exact_dup]\n"


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--rows", type=int, default=10_000_000)
    given.add_argument("--repeats", type=int, default=5)
    asked = given.parse_args()
    run = made(asked.rows)
    copies = pl.scan_parquet(run / "verdicts" / "*.parquet").filter(pl.col("verdict") == "rejected").select("row_id")
    copy = copies.tail(1).collect().item()
    print(f"{asked.rows} rows; curate why takes")
    for name, row in (("a kept row", "12345"), ("a copy, by row number", str(copy)), ("a row, by id", f"doc-{copy}")):
        walls = [measured(curate("why", run, row, "--json")).wall_s for _ in range(asked.repeats + 1)][1:]
        print(f"{name:24} median {statistics.median(walls):.2f} s, worst {max(walls):.2f} s")


def made(rows: int) -> Path:
    run, source = DATA / f"why-{rows}", DATA / f"why-{rows}.parquet"
    if (run / "manifest.json").exists():
        return run
    DATA.mkdir(exist_ok=True)
    rng = np.random.default_rng(7)
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    with pq.ParquetWriter(source, schema) as writer:
        for start in range(0, rows, 500_000):
            ids = np.arange(start, min(start + 500_000, rows))
            of = np.where(rng.random(len(ids)) < 0.07, rng.integers(0, start + 1, len(ids)), ids)
            texts = [f"text number {at} of a corpus with many short rows, {at * 7919 % 104729}" for at in of]
            writer.write_table(pa.table({"id": [f"doc-{at}" for at in ids], "text": texts}, schema=schema))
    pipeline = DATA / "why.yaml"
    pipeline.write_text(PIPELINE)
    cost = measured(curate("run", pipeline, "--source", source, "--out", run))
    print(f"the run itself took {cost.wall_s:.0f} s, {rows / cost.wall_s:,.0f} rows/s, {cost.peak_bytes / 1e6:.0f} MB")
    return run


if __name__ == "__main__":
    main()
