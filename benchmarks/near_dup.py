"""`near_dup` beside the tools that people use for it: time, CPU, memory, and whether what they remove are duplicates.

    python benchmarks/near_dup.py [--size 255MB 1GB] [--peers daft,rensa] [--repeat 3] [--out near_dup.json]
    python benchmarks/near_dup.py --growth [--memory 1GB]

Makes the corpus (see `near_dup_corpus.py`), installs each peer in an environment of its own below `--cache`, and runs
all in turn, whole processes: `curate run` from start to the published folder with ledger, kept and rejected rows and
report; the peers from the same file to the ids they would remove. Each has run once on 2,000 rows before. Prints medians
as the Markdown table of docs/benchmarks.md.

Every removal is judged by an exact join of the whole corpus (`near_dup_truth.py`): it is right where a row that was kept
has a Jaccard similarity of at least 0.8. A pair counts as found where not both its rows were kept. What cannot be
installed, fails or takes too long stands in the table as `not measured`, with the reason.

`--growth` runs only curate, at four sizes, and prints the exponent of time over size and the peak memory.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import itertools
import json
import math
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from common import Cost, Failed, measured, text_megabytes
from near_dup_corpus import DATA, SIZES, corpus
from near_dup_peers import PEERS, installed, last_line
from near_dup_truth import Ids, Truth, Worth, truth_of, worth

OURS = "curate"
PIPELINE = "name: near_dup\nroles: {id: id, text: text}\nstages: [near_dup]\n"
WARM_ROWS = 2_000
SLOW_S = 60
"""who takes longer is run once, not `--repeat` times"""
LIBRARIES = ("numba", "numpy", "polars", "pyarrow")


@dataclass(frozen=True)
class Side:
    """Who is measured: a command for a corpus and a folder to work in, and the ids removed by what it left there."""

    name: str
    command: Callable[[Path, Path], list[str]]
    removed: Callable[[Path], Ids]


@dataclass
class Result:
    """What became of a side: its costs run by run and what its removals are worth, or why it was not measured."""

    name: str
    version: str
    setting: str
    costs: list[Cost] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    """runnable processes on the machine, averaged over the minute before each run: other work"""
    worth: Worth | None = None
    stage_s: list[float] = field(default_factory=list)
    """ours: seconds from the first step of the stage to its last, without start-up and writing"""
    proven: int | None = None
    """ours: removed rows whose witness was kept and whose value in the ledger is the exact similarity to it"""
    failures: list[str] = field(default_factory=list)

    def median_s(self) -> float:
        return statistics.median(cost.wall_s for cost in self.costs)


def main() -> None:
    asked = _arguments()
    sizes = asked.size or (list(SIZES) if asked.growth else ["255MB"])
    folders = asked.corpus or [corpus(size, asked.packages) for size in sizes]
    found: dict[str, Any] = {"date": datetime.date.today().isoformat(), "machine": machine(), "corpora": []}
    print(f"{found['date']}, {found['machine']}", flush=True)
    with tempfile.TemporaryDirectory(dir=folders[0].parent, prefix="bench-") as work:
        for folder in folders:
            results = compare(folder / "corpus.parquet", Path(work), asked)
            found["corpora"].append(_facts(folder / "corpus.parquet") | {"sides": [asdict(result) for result in results]})
            lines = growth_row(found["corpora"]) if asked.growth else ["", *table(results, found["corpora"][-1])]
            print(*lines, sep="\n", flush=True)
    if asked.growth:
        print(f"\ntime grows with size to the power of {exponent(found['corpora']):.3f}")
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


def compare(source: Path, work: Path, asked: argparse.Namespace) -> list[Result]:
    """Ours and the peers in turn, as often as asked, each first once on a few rows."""
    pipeline, small = work / "near_dup.yaml", work / "small.parquet"
    pipeline.write_text(PIPELINE)
    pq.write_table(pq.ParquetFile(source).read_row_group(0).slice(0, WARM_ROWS), small)
    truth = None if asked.growth else truth_of(source.parent)
    setting = "25 × 5 minima, every pair verified" + (f", `--memory {asked.memory}`" if asked.memory else "")
    sides = [Side(OURS, partial(_our_command, pipeline, asked.memory), _our_removed)]
    results = {OURS: Result(OURS, importlib.metadata.version("curate-data"), setting)}
    for peer in () if asked.growth else [peer for peer in PEERS if not asked.peers or peer.name in asked.peers]:
        results[peer.name] = Result(peer.name, peer.version, peer.setting)
        try:
            sides.append(Side(peer.name, partial(peer.command, installed(peer, asked.cache)), peer.removed))
        except Failed as err:
            results[peer.name].failures.append(str(err))  # it is no side, so this stays
    for turn, side in itertools.product(range(-1, asked.repeat), sides):
        result = results[side.name]
        slow = turn > 0 and side.name != OURS and result.costs and result.costs[0].wall_s > SLOW_S
        if not (slow or (len(result.failures) > 1 and not result.costs)):
            _turn(side, result, small if turn < 0 else source, work / side.name, asked.limit_s, truth if turn >= 0 else None)
        if turn < 0:
            result.costs, result.load, result.stage_s, result.failures = [], [], [], []
    return list(results.values())


def table(results: Sequence[Result], facts: dict[str, Any]) -> list[str]:
    """The lines of a Markdown table; ours comes first, and ratios are of wall seconds to ours."""
    ours = results[0]
    loads = [load for result in results for load in result.load]
    lines = [
        f"{facts['rows']:,} documents, {facts['megabytes']:,.0f} MB of text, {facts['pairs']:,} pairs at 0.8 or more; "
        f"load before a run, the run before it included: median {statistics.median(loads):.1f}, highest {max(loads):.1f}",
        "",
        "| | setting | s | (min–max) | × ours | CPU s | peak MB | removed | precision | recall ≥ 0.82 | 0.80–0.82 | all pairs |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        who = f"| {result.name} {result.version} | {result.setting} |"
        if result.worth is None:
            lines.append(f"{who} not measured: {next(iter(result.failures), 'no run')} |" + " |" * 9)
            continue
        walls = [cost.wall_s for cost in result.costs]
        spread = f"{min(walls):.2f}–{max(walls):.2f}" if len(walls) > 1 else "one run"
        cpu_s = statistics.median(cost.cpu_s for cost in result.costs)
        peak = max(cost.peak_bytes for cost in result.costs) / 1e6
        ratio = result.median_s() / ours.median_s() if ours.costs else math.nan
        shares = (result.worth.precision, result.worth.recall_planted, result.worth.recall_near_limit, result.worth.recall_all)
        lines.append(
            f"{who} {result.median_s():.2f} | {spread} | {ratio:.2f} | {cpu_s:.1f} | {peak:,.0f} | {result.worth.removed:,} | "
            + " | ".join(f"{share:.4f}" for share in shares)
            + " |"
        )
    for result in results:
        if result.failures and result.costs:
            runs = len(result.failures) + len(result.costs)
            lines += ["", f"{result.name}: {len(result.failures)} of {runs} runs failed and are left out ({result.failures[0]})."]
    if ours.stage_s and ours.worth:
        stage_s = statistics.median(ours.stage_s)
        lines += ["", f"The stage near_dup itself: {stage_s:.2f} s, {facts['megabytes'] / stage_s:.0f} MB/s. "]
        lines[-1] += f"Removed rows whose witness was kept and whose similarity in the ledger is exact: {ours.proven:,} "
        lines[-1] += f"of {ours.worth.removed:,}."
    return lines


def growth_row(corpora: Sequence[dict[str, Any]]) -> list[str]:
    """The line of the last corpus, under a head for the first."""
    facts = corpora[-1]
    (ours,) = facts["sides"]
    wall_s = statistics.median(cost["wall_s"] for cost in ours["costs"])
    peak = max(cost["peak_bytes"] for cost in ours["costs"]) / 1e6
    head = [
        "",
        "| MB of text | documents | s | MB/s | stage s | peak MB | exponent from the line above |",
        "|---|---|---|---|---|---|---|",
    ]
    line = f"| {facts['megabytes']:,.0f} | {facts['rows']:,} | {wall_s:.2f} | {facts['megabytes'] / wall_s:.0f} | "
    line += f"{statistics.median(ours['stage_s']):.2f} | {peak:,.0f} | "
    return [*(head if len(corpora) == 1 else []), line + (f"{exponent(corpora[-2:]):.2f} |" if len(corpora) > 1 else "|")]


def exponent(corpora: Sequence[dict[str, Any]]) -> float:
    """The slope of the logarithm of wall seconds over that of megabytes, by least squares; nan for one size."""
    sizes = [math.log(facts["megabytes"]) for facts in corpora]
    walls = [math.log(statistics.median(cost["wall_s"] for cost in facts["sides"][0]["costs"])) for facts in corpora]
    return statistics.linear_regression(sizes, walls).slope if len(sizes) > 1 else math.nan


def machine() -> str:
    """Cores, processor, memory, Python and the libraries that count."""
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    cores = len(os.sched_getaffinity(0))
    processor = next(iter(names), platform.machine())
    return f"{cores} cores of {processor}, {memory:.0f} GiB, Python {platform.python_version()}, {versions}"


def _turn(side: Side, result: Result, source: Path, work: Path, limit_s: float, truth: Truth | None) -> None:
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    load = os.getloadavg()[0]
    try:
        result.costs.append(measured(side.command(source, work), limit_s))
    except Failed as err:
        what, _, said = str(err).partition("\n")
        result.failures.append(what.partition(": ")[0] + (f": {last_line(said)}" if said.strip() else ""))
        return
    result.load.append(load)
    if side.name == OURS:
        result.stage_s.append(_stage_s(work / "run"))
    if truth is not None and result.worth is None:
        result.worth = worth(truth, side.removed(work))
        result.proven = _proven(truth, work / "run") if side.name == OURS else None
    shutil.rmtree(work)


def _our_command(pipeline: Path, memory: str | None, source: Path, work: Path) -> list[str]:
    script = Path(sys.executable).parent / "curate"
    command = [str(script)] if script.exists() else [sys.executable, "-m", "curate.cli"]
    return [*command, *map(str, ("run", pipeline, "--source", source, "--out", work / "run"))] + (
        ["--memory", memory] if memory else []
    )


def _our_removed(work: Path) -> Ids:
    return np.asarray(pq.read_table(work / "run" / "rejected", columns=["id"]).column("id"))


def _proven(truth: Truth, run: Path) -> int:
    """The removed rows whose witness was kept, and whose similarity to it is what the ledger says."""
    exact = {
        (first, second): similarity
        for first, second, similarity in zip(truth.first.tolist(), truth.second.tolist(), truth.similarity.tolist(), strict=True)
    }
    rejected = pq.read_table(run / "rejected", columns=["id", "curate_value", "curate_witness_id"]).to_pylist()
    gone = {row["id"] for row in rejected}
    pairs = [(row["id"], int(row["curate_witness_id"]), row["curate_value"]) for row in rejected]
    return sum(
        witness not in gone and math.isclose(exact.get((min(row, witness), max(row, witness)), -1), value)
        for row, witness, value in pairs
    )


def _stage_s(run: Path) -> float:
    events = map(json.loads, (run / "events.jsonl").read_text().splitlines())
    steps = [event for event in events if event["event"] == "step_finished" and event["step"].startswith("near_dup")]
    return math.fsum(step["wall_s"] for step in steps)


def _facts(source: Path) -> dict[str, Any]:
    pairs = source.with_name("exact_pairs.parquet")
    return {
        "rows": pq.ParquetFile(source).metadata.num_rows,
        "megabytes": text_megabytes(source),
        "pairs": pq.ParquetFile(pairs).metadata.num_rows if pairs.exists() else None,
    }


def _arguments() -> argparse.Namespace:
    given = argparse.ArgumentParser(description="near_dup beside other tools.")
    given.add_argument("--size", nargs="+", choices=SIZES, help="255MB unless given; with --growth all four")
    given.add_argument("--corpus", nargs="+", type=Path, help="folders with a corpus, instead of a size")
    given.add_argument("--packages", type=Path, help="a folder where the Debian packages lie unpacked")
    given.add_argument("--peers", type=lambda names: names.split(","), help="of " + ", ".join(peer.name for peer in PEERS))
    given.add_argument("--cache", type=Path, default=DATA / "peers", help="the folder of the peers' environments")
    given.add_argument("--repeat", type=int, default=3)
    given.add_argument("--limit-s", type=float, default=1_800, help="seconds after which a run is stopped")
    given.add_argument("--memory", help="for curate; 1GB with --growth unless given")
    given.add_argument("--growth", action="store_true")
    given.add_argument("--out", type=Path, help="a JSON file for all figures")
    asked = given.parse_args()
    if unknown := set(asked.peers or ()) - {"none", *(peer.name for peer in PEERS)}:
        given.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(peer.name for peer in PEERS)}")
    if asked.growth and not asked.memory:
        asked.memory = "1GB"
    return asked


if __name__ == "__main__":
    main()
