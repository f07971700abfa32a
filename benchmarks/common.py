"""What the benchmarks share: a corpus, a stopwatch for whole process trees, and a table."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).parent / "data"
SEED = 20_250_101
MEAN_BYTES = 3_300
COPIES = 0.07


@dataclass(frozen=True)
class Cost:
    """One process tree: wall seconds, the most memory all its processes held together, and their CPU seconds."""

    wall_s: float
    peak_bytes: int
    cpu_s: float


class Failed(SystemExit):
    """A command that did not end well, or not in time; uncaught, its message and exit code 1."""


def corpus(megabytes: int, median_bytes: int = 2_000) -> Path:
    """A Parquet file (`id`, `text`) of about this much text, made once."""
    path = DATA / f"corpus-{megabytes}mb-{median_bytes}.parquet"
    if path.exists():
        return path
    DATA.mkdir(exist_ok=True)
    rng = np.random.default_rng(SEED)
    words = _vocabulary(rng, 60_000)
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    aside = path.with_suffix(".tmp")
    written = rows = 0
    with pq.ParquetWriter(aside, schema, compression="zstd") as writer:
        while written < megabytes * 1_000_000:
            texts = _documents(rng, words, 8_192, median_bytes)
            writer.write_table(pa.table({"id": np.arange(rows, rows + len(texts)), "text": texts}, schema=schema))
            rows, written = rows + len(texts), written + sum(map(len, texts))
    aside.rename(path)
    return path


def measured(command: Sequence[str], limit_s: float | None = None) -> Cost:
    """Run a command in a fresh process; raise `Failed` if it fails or takes longer than the limit."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    seen = _Seen()
    watcher = threading.Thread(target=seen.watch, args=(process,))
    watcher.start()
    try:
        _, errors = process.communicate(timeout=limit_s)
    except BaseException as err:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(err, subprocess.TimeoutExpired):
            raise Failed(f"took more than {limit_s:.0f} s") from err
        raise
    finally:
        wall = time.perf_counter() - start
        watcher.join()
    if process.returncode:
        raise Failed(f"exit code {process.returncode}: {' '.join(command)}\n{errors}")
    return Cost(wall, seen.peak_bytes, sum(seen.cpu_s.values()))


def curate(*arguments: str | Path) -> list[str]:
    """The command line of this checkout."""
    return [sys.executable, "-m", "curate.cli", *map(str, arguments)]


def alternate(sides: dict[str, Callable[[], Cost]], repeats: int) -> dict[str, list[Cost]]:
    """Each side in turn, `repeats` times, after one run of each that does not count (caches, compilation)."""
    for run in sides.values():
        run()
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, run in sides.items():
            costs[name].append(run())
    return costs


def show(costs: dict[str, list[Cost]], megabytes: float, against: str) -> None:
    """Medians, spread, rate, memory, and the ratio to one side."""
    base = statistics.median(cost.wall_s for cost in costs[against])
    print(f"{'':28} {'median s':>9} {'min':>7} {'max':>7} {'MB/s':>7} {'peak MB':>8} {'ratio':>6}")
    for name, runs in costs.items():
        walls = [cost.wall_s for cost in runs]
        median, peak = statistics.median(walls), max(cost.peak_bytes for cost in runs) / 1e6
        spread = f"{min(walls):7.2f} {max(walls):7.2f}"
        print(f"{name:28} {median:9.2f} {spread} {megabytes / median:7.0f} {peak:8.0f} {median / base:6.2f}")


def text_megabytes(path: Path) -> float:
    """Megabytes of text in the `text` column of a Parquet file."""
    total = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(8_192, columns=["text"]):
            column = batch.column(0)
            offsets = np.frombuffer(column.buffers()[1], np.int64 if pa.types.is_large_string(column.type) else np.int32)
            total += int(offsets[column.offset + len(column)] - offsets[column.offset])
    return total / 1e6


def _vocabulary(rng: np.random.Generator, size: int) -> list[str]:
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    weights = 1 / np.arange(1, len(letters) + 1)
    lengths = np.clip(rng.poisson(4.5, size), 1, 14)
    flat = rng.choice(letters, int(lengths.sum()), p=weights / weights.sum())
    ends = np.cumsum(lengths)
    return ["".join(flat[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def _documents(rng: np.random.Generator, words: list[str], count: int, median_bytes: int) -> list[str]:
    weights = 1 / (np.arange(1, len(words) + 1) + 2.7)
    lengths = np.clip(rng.lognormal(np.log(median_bytes / 5.5), 1.0, count), 4, 12_000).astype(int)
    ids = rng.choice(len(words), int(lengths.sum()), p=weights / weights.sum())
    ends = np.cumsum(lengths)
    texts = [" ".join([words[at] for at in ids[end - length : end]]) for end, length in zip(ends, lengths, strict=True)]
    for at in np.flatnonzero(rng.random(count) < COPIES):
        texts[at] = texts[int(rng.integers(count))]
    return texts


class _Seen:
    """The most memory of a process tree at one time, and the last known CPU seconds of each process in it."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self.cpu_s: dict[int, float] = {}

    def watch(self, process: subprocess.Popen[str]) -> None:
        while process.poll() is None:
            tree = _tree(process.pid)
            self.peak_bytes = max(self.peak_bytes, sum(map(_resident, tree)))
            self.cpu_s |= {pid: used for pid in tree if (used := _cpu_s(pid)) is not None}
            time.sleep(0.02)


def _tree(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                waiting += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except OSError:
            continue
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _cpu_s(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
