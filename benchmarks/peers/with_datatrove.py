"""datatrove: the four stages of its MinHash example on this machine, one task a core (so the corpus is first cut in files)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import ParquetWriter
from datatrove.utils.typeshelper import Languages
from shared import BANDS, ROWS, WORDS_IN_SHINGLE, asked, write


def main() -> None:
    corpus, out = asked()
    config = MinhashConfig(n_grams=WORDS_IN_SHINGLE, num_buckets=BANDS, hashes_per_bucket=ROWS)
    with tempfile.TemporaryDirectory(dir=out.parent) as work:
        tasks = cut(corpus, Path(work, "corpus"))
        reader = ParquetReader(f"{work}/corpus")
        removed = ParquetWriter(f"{work}/removed")
        stages = [
            (tasks, [reader, MinhashDedupSignature(f"{work}/signatures", config, Languages.english)]),
            (BANDS, [MinhashDedupBuckets(f"{work}/signatures", f"{work}/buckets", config=config)]),
            (1, [MinhashDedupCluster(f"{work}/buckets", f"{work}/clusters", config)]),
            (tasks, [reader, MinhashDedupFilter(f"{work}/clusters", removed), ParquetWriter(f"{work}/kept")]),
        ]
        for number, (count, steps) in enumerate(stages):
            LocalPipelineExecutor(steps, tasks=count, workers=tasks, logging_dir=f"{work}/logs-{number}").run()
        write(map(int, pq.read_table(f"{work}/removed", columns=["id"]).column("id").to_pylist()), out)


def cut(corpus: Path, folder: Path) -> int:
    """The number of files, with equally many rows, that the corpus was cut into."""
    folder.mkdir()
    table, parts = pq.read_table(corpus), os.cpu_count() or 1
    table = table.set_column(0, "id", table.column("id").cast("string"))
    rows = -(-len(table) // parts)
    for part in range(parts):
        pq.write_table(table.slice(part * rows, rows), folder / f"{part:05}.parquet")
    return parts


if __name__ == "__main__":
    main()
