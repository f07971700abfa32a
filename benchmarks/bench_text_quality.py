"""`text_quality` beside datatrove's filters on the same rows: documents a second, and verdicts row by row.

    python benchmarks/bench_text_quality.py [--source FILE.parquet] [--repeats 3] [--python DATATROVE_PYTHON]

Datatrove 0.10.1 runs in a virtual environment of its own, made on the first run in `benchmarks/data`. Its side of the
clock: the Gopher quality filter, then the Gopher repetition filter on what passes, in one process, tokens cached from one
filter to the next as in its pipelines. Ours: every column of every row, also in one process. Reading is on no clock.
Then all four filters judge every row, and each verdict that is not ours is shown with its cause.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from common import DATA

from curate import english
from curate.check import make_check
from curate.checks.text_quality import RULES
from curate.dataset import Roles, Rows
from curate.policy import Policy, as_floats, decide

SAMPLE = Path(__file__).resolve().parents[1] / "sample_data" / "corpus"
WANTED = ("datatrove==0.10.1", "spacy>=3.8,<3.9", "regex", "numpy", "pyarrow")
THEIRS = """
import json, sys, time
import pyarrow.parquet as pq
from datatrove.data import Document
from datatrove.pipeline.filters import C4QualityFilter, FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
texts = pq.read_table(sys.argv[1]).column("text").to_pylist()
quality, repetition = GopherQualityFilter(), GopherRepetitionFilter()
quality.filter(Document(text="The first text loads the tokenizer.", id=""))
def reason(judge, text):
    try:
        found = judge.filter(Document(text=text, id=""))
    except Exception as err:
        return "raised " + type(err).__name__
    return None if found is True else found[1]
seconds = []
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    for text in texts:
        reason(quality, text) is None and reason(repetition, text)
    seconds.append(time.process_time() - start)
judges = {"gopher quality": quality, "gopher repetition": repetition, "c4": C4QualityFilter(), "fineweb": FineWebQualityFilter()}
reasons = {name: [reason(judge, text) for text in texts] for name, judge in judges.items()}
json.dump({"seconds": seconds, "reasons": reasons}, sys.stdout)
"""
QUALITY_RULES = 10
"""the first so many of our gopher rules are those of its quality filter"""


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--source", type=Path)
    given.add_argument("--repeats", type=int, default=3)
    given.add_argument("--python", help="a Python that has datatrove 0.10.1 and spaCy 3.8")
    asked = given.parse_args()
    texts = pq.read_table(asked.source, columns=["text"]).column("text") if asked.source else sample_texts()
    table = pa.table({"text": texts.cast(pa.large_string())})
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, file := Path(folder) / "texts.parquet")
        command = [asked.python or environment(), "-c", THEIRS, str(file), str(asked.repeats)]
        theirs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    seconds, columns = ours(table, asked.repeats)
    show({"datatrove, Gopher": min(theirs["seconds"]), "curate, all columns": seconds}, table)
    compare(table.column("text").to_pylist(), columns, theirs["reasons"])


def sample_texts() -> pa.ChunkedArray:
    """The texts in the Parquet files of the sample corpus."""
    frames = [pl.read_parquet(file).select("text") for file in sorted(SAMPLE.glob("*.parquet"))]
    return pl.concat(frames).drop_nulls().to_arrow().column("text")


def environment() -> str:
    """The Python of datatrove's own environment, made where it is missing."""
    python = DATA / "datatrove" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(DATA / "datatrove")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *WANTED], check=True)
    return str(python)


def ours(table: pa.Table, repeats: int) -> tuple[float, dict[str, np.ndarray]]:
    """The least CPU seconds, and every column."""
    rows = Rows(table, np.arange(len(table), dtype=np.uint64), Roles(text=("text",)))
    check = make_check("text_quality", {})
    check.score(rows)  # compiles
    walls = []
    for _ in range(repeats):
        start = time.process_time()
        scores = check.score(rows)
        walls.append(time.process_time() - start)
    return min(walls), {name: as_floats(values) for name, values in scores.items()}


def show(seconds: dict[str, float], table: pa.Table) -> None:
    megabytes = table.column("text").nbytes / 1e6
    print(f"{len(table)} documents, {megabytes:.1f} MB\n{'':22}{'CPU s':>9}{'docs/s':>10}{'MB/s':>8}{'ratio':>8}")
    base = next(iter(seconds.values()))
    for name, cost in seconds.items():
        print(f"{name:22}{cost:9.2f}{len(table) / cost:10.0f}{megabytes / cost:8.2f}{base / cost:8.1f}")


def compare(texts: list[str], columns: dict[str, np.ndarray], reasons: dict[str, list[str | None]]) -> None:
    gopher = RULES["gopher"]
    presets = {
        "gopher quality": gopher[:QUALITY_RULES],
        "gopher repetition": gopher[QUALITY_RULES:],
        "c4": RULES["c4"],
        "fineweb": RULES["fineweb"],
    }
    print(f"\n{'':22}{'rejected':>9}{'differ':>8}  causes")
    for name, rules in presets.items():
        decision = decide(Policy(rules), columns, tuple(rule.limit(None) for rule in rules), len(texts))
        theirs = np.array([reason is not None for reason in reasons[name]])
        differ = np.flatnonzero((decision.rule >= 0) != theirs)
        causes = Counter(cause(texts[row]) for row in differ)
        print(f"{name:22}{theirs.sum():9}{len(differ):8}  {dict(causes) or ''}")


def cause(text: str) -> str:
    """What a text holds of the differences that `curate.checks.text_quality` lists."""
    blanks = [piece for piece in re.split("\n+", text) if not piece.strip()]
    if not text:
        return "empty text"
    if any(english.kind_of(ord(character)) & english.SPACELESS for character in text):
        return "letters as words"
    if len(blanks) != len(set(blanks)):
        return "blank lines"
    return "returns" if "\r\n" in text else "UNEXPLAINED"


if __name__ == "__main__":
    main()
