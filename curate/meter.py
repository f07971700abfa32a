"""What a task cost: seconds by activity, bytes in and out, peak memory.

A task's costs are stored with its result, so the sum over all results is the true bill of a
run, however often it was interrupted.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import resource
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Activity = Literal["read", "decode", "score", "write"]
ACTIVITIES: tuple[Activity, ...] = ("read", "decode", "score", "write")
Bill = dict[str, dict[str, float]]


@dataclass
class Meter:
    """Adds up costs under step names; `seconds("decode", "near_dup")` is a window.

    A task may work for several steps, as one pass over the data scores several stages.
    """

    bill: Bill = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    cpu_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """CPU seconds in the windows of each step"""
    started: float = field(default_factory=time.perf_counter)
    cpu_started: float = field(default_factory=lambda: cpu_time())

    @contextlib.contextmanager
    def seconds(self, activity: Activity, step: str) -> Iterator[None]:
        """Put the time of the block on the bill; an exception that leaves it is given a note of the step."""
        start, cpu_start = time.perf_counter(), cpu_time()
        try:
            yield
        except Exception as err:
            if not getattr(err, "__notes__", None):
                err.add_note(f"step {step}, {activity}")
            raise
        finally:
            self.bill[step][f"{activity}_s"] += time.perf_counter() - start
            self.cpu_s[step] += cpu_time() - cpu_start

    def add(self, step: str, **amounts: float) -> None:
        for name, amount in amounts.items():
            self.bill[step][name] += amount

    def total(self, step: str) -> Bill:
        """The bill as plain dictionaries: the time of the task goes to `step`, less what was spent in windows of other steps.

        The peak memory is that of the whole task, for each of its steps.
        """
        wall_s, cpu_s, peak = time.perf_counter() - self.started, cpu_time() - self.cpu_started, peak_memory()
        for name in [other for other in self.bill if other != step]:
            own_s = sum(self.bill[name][f"{activity}_s"] for activity in ACTIVITIES)
            self.bill[name] |= {"wall_s": own_s, "cpu_s": self.cpu_s[name], "peak_memory_bytes": peak}
            wall_s, cpu_s = wall_s - own_s, cpu_s - self.cpu_s[name]
        self.bill[step] |= {"wall_s": max(wall_s, 0.0), "cpu_s": max(cpu_s, 0.0), "peak_memory_bytes": peak}
        return {name: dict(costs) for name, costs in self.bill.items()}


def cpu_time() -> float:
    """CPU seconds so far: of the process, or of the thread where tasks run beside each other in threads."""
    return time.process_time() if threading.current_thread() is threading.main_thread() else time.thread_time()


def add_bills(bills: Iterator[Bill]) -> Bill:
    """The sum of bills; peak memory is a maximum, not a sum."""
    out: Bill = defaultdict(lambda: defaultdict(float))
    for bill in bills:
        for step, costs in bill.items():
            for name, amount in costs.items():
                is_peak = name == "peak_memory_bytes"
                out[step][name] = max(out[step][name], amount) if is_peak else out[step][name] + amount
    return {name: dict(costs) for name, costs in out.items()}


def add_counts(counts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sum of counts, name by name."""
    out: dict[str, float] = defaultdict(float)
    for one in counts:
        for name, amount in one.items():
            out[name] += amount
    return dict(out)


def peak_memory() -> int:
    """The most memory this process has held since its meter started (Linux), or ever (elsewhere), in bytes."""
    with contextlib.suppress(OSError, ValueError), Path("/proc/self/status").open() as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak() -> None:
    """Forget the peak so far (Linux), so that a task's peak is its own."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def give_memory_back() -> None:
    """Return freed memory to the system: allocators keep half a gigabyte of it for later."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # glibc alone has it
        ctypes.CDLL(None).malloc_trim(0)


class TimedFile(io.RawIOBase):
    """A read-only local file that puts its time and bytes on a meter."""

    def __init__(self, path: str, meter: Meter, step: str) -> None:
        self._file, self._meter, self._step = open(path, "rb", buffering=0), meter, step
        self._size = os.fstat(self._file.fileno()).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def size(self) -> int:
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        with self._meter.seconds("read", self._step):
            data = self._file.read(-1 if size is None else size)
        self._meter.add(self._step, bytes_read=len(data))
        return data

    def close(self) -> None:
        self._file.close()
        super().close()
