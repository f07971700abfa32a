"""How fast are JSON lines decoded strictly, against what polars and pyarrow take to read the same file?

    python benchmarks/bench_ingest.py [--mb 250] [--repeats 5] [--source FILE.parquet]

All three turn one uncompressed JSON-lines file into Arrow tables in memory, one process, one
thread. Curate's reader refuses what the others change in silence (invalid UTF-8, lone surrogates,
numbers that do not fit, keys given twice) and says where; that is what the difference buys.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import orjson
import pyarrow.parquet as pq
from common import alternate, corpus, measured, show, text_megabytes

POLARS = "import polars as pl, sys; pl.read_ndjson(sys.argv[1])"
PYARROW = """
import pyarrow as pa, pyarrow.json as pj, sys
pa.set_cpu_count(1)
pj.read_json(sys.argv[1], read_options=pj.ReadOptions(use_threads=False, block_size=64 << 20))
"""
OURS = """
import sys
from curate.source import ReadOptions, discover, ingest, pieces
options = ReadOptions()
for file in discover(sys.argv[1], options):
    for piece in pieces(file, options):
        for chunk in ingest(piece, options, None):
            assert not chunk.quarantined
"""


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--mb", type=int, default=250)
    given.add_argument("--repeats", type=int, default=5)
    given.add_argument("--source", type=Path)
    asked = given.parse_args()
    source = asked.source or corpus(asked.mb)
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        lines = Path(folder) / "corpus.jsonl"
        with lines.open("wb") as out, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(8_192, columns=["text"]):
                out.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in batch.to_pylist())
        sides = {
            name: lambda code=code: measured(["env", "POLARS_MAX_THREADS=1", sys.executable, "-c", code, str(lines)])
            for name, code in (("polars", POLARS), ("pyarrow", PYARROW), ("curate", OURS))
        }
        show(alternate(sides, asked.repeats), text_megabytes(source), "pyarrow")


if __name__ == "__main__":
    main()
