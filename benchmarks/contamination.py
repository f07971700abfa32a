r"""How much contamination is found: rephrased and translated problems, beside any run of 13 words in common.

    python benchmarks/contamination.py FOLDER      FOLDER holds benchmark.parquet and contaminated.parquet

The data is that of Yang et al., "Rethinking Benchmark and Contamination with Rephrased Samples" (2023). What is clean:
functions with docstrings of Python's standard library, the sample corpus of this repository, and, for problems of the same
kind that are no item, the same rows against the half of the benchmark that they were not made from. `plain` is a text with
any run of 13 words (`\w+`, lower case) of an item, as in Brown et al. (2020).
"""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curate.check import make_check
from curate.dataset import Roles
from curate.intervals import wilson
from curate.testing import run_check

SAMPLE = Path(__file__).parents[1] / "sample_data" / "corpus" / "en-0004.parquet"
FALSE_FLAGS = 0.01
LIMITS = (0.3, 0.4, 0.5, 0.6, 0.7)


def main() -> None:
    """Print the tables."""
    folder = Path(sys.argv[1])
    items = pq.read_table(folder / "benchmark.parquet")
    made = pq.read_table(folder / "contaminated.parquet")
    kinds = np.array(made["kind"].to_pylist())
    corpus = [text for text in pq.read_table(SAMPLE)["text"].drop_null().to_pylist() if re.search(r"\w", text)]
    clean = [*functions(), *corpus]
    suspicion, named = scored(items, made["text"].to_pylist() + clean)
    dirty, negative = suspicion[: len(kinds)], suspicion[len(kinds) :]
    alike = other_half(items, made)
    own = [str(one) for one in made["bench_id"].to_pylist()]
    print(f"{len(items)} items, {len(kinds)} contaminated rows, {len(clean)} clean rows\n")
    grams = {run for text in items["text"].to_pylist() for run in runs(text)}
    plain = np.array([bool(grams & runs(text)) for text in made["text"].to_pylist() + clean])
    limit = float(np.quantile(negative, 1 - FALSE_FLAGS))
    print(f"at 1 % false flags (suspicion above {limit:.3f}):")
    for kind in ("all", *dict.fromkeys(kinds.tolist())):
        of = (kinds == kind) | (kind == "all")
        print(f"  {kind:24} curate {share(dirty[of] > limit)}   plain {share(plain[: len(kinds)][of])}")
    print(f"  false flags, plain       {share(plain[len(kinds) :])}\n")
    right = [name == mine for name, mine in zip(named, own, strict=False) if name is not None]
    print(f"right item named, of rows flagged at the default limit: {share(np.array(right))}")
    heads = ("recall", "clean rows flagged", "problems of the other half flagged")
    print("limit   " + "   ".join(f"{head:34}" for head in heads) + "   precision at 1 % contaminated")
    for at in LIMITS:
        hit, wrong = (dirty >= at).mean(), (negative >= at).mean()
        precision = 0.01 * hit / (0.01 * hit + 0.99 * wrong) if hit else float("nan")
        cells = (share(dirty >= at), share(negative >= at), share(alike >= at))
        print(f"{at:.1f}     " + "   ".join(f"{cell:34}" for cell in cells) + f"   {precision:.3f}")


def scored(items: pa.Table, texts: list[str]) -> tuple[np.ndarray, list[str | None]]:
    """Suspicion and named item of each text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.parquet"
        pq.write_table(items, path)
        check = make_check("contamination", {"against": str(path), "id": "bench_id"})
        found = run_check(check, pa.table({"text": texts}), Roles(text=("text",)))
    return found["suspicion"].to_numpy(), found["item"].to_pylist()


def other_half(items: pa.Table, made: pa.Table) -> np.ndarray:
    """Suspicion of each contaminated row against the half of the items that its own is not in."""
    out = np.zeros(len(made))
    texts = made["text"].to_pylist() + list(functions())
    half = np.array(made["bench_id"].to_pylist()) % 2
    for side in (0, 1):
        mine = items.filter(pa.array(np.array(items["bench_id"].to_pylist()) % 2 != side))
        out[half == side] = scored(mine, texts)[0][: len(made)][half == side]
    return out


def functions() -> Iterator[str]:
    """Functions of 6 to 80 lines with a docstring, from the standard library of this Python."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        source = path.read_text("utf-8", "replace")
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) and 5 <= (node.end_lineno or 0) - node.lineno < 80:
                yield "\n".join(lines[node.lineno - 1 : node.end_lineno])


def runs(text: str) -> set[tuple[str, ...]]:
    """Runs of 13 words."""
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + 13]) for at in range(len(words) - 12)}


def share(hits: np.ndarray) -> str:
    """A share with its Wilson interval at 95 %."""
    low, high = wilson(int(hits.sum()), len(hits))
    return f"{hits.mean():.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
