"""One machine: in this process, in threads of it, or in a pool of worker processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from curate.engines.base import Facts, run_task
from curate.errors import TemporaryError
from curate.plan import machine_cores

if TYPE_CHECKING:
    from curate.steps.base import Job, Task


class InProcess:
    """Tasks one after the other, here."""

    workers = 1
    shares_memory = True

    def map(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Facts]]:
        for task in tasks:
            yield task, run_task(job, task)

    def close(self) -> None:
        """Nothing runs beside this process."""


class Threads:
    """Tasks in `workers` threads of this process: no start-up, for work that holds no interpreter lock."""

    shares_memory = True

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ThreadPoolExecutor | None = None

    def map(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Facts]]:
        if len(tasks) <= 1:
            yield from InProcess().map(job, tasks)
            return
        self._pool = self._pool or ThreadPoolExecutor(self.workers)
        running = {self._pool.submit(run_task, job, task): task for task in tasks}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        finally:
            for future in running:
                future.cancel()
            wait(running)  # what still runs must end before the same task is begun again

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)  # what runs still writes, so the run's lock must wait
            self._pool = None


class ProcessPool:
    """Tasks in `workers` fresh processes (spawned, so no lock or thread is inherited).

    A worker that is killed ends the run at once with `TemporaryError`; nothing waits for it.
    """

    shares_memory = False

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def map(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Facts]]:
        if len(tasks) <= 1 and self._pool is None:
            yield from InProcess().map(job, tasks)
            return
        pool = self._started()
        waiting = iter(tasks)
        running: dict[Future[Facts], Task] = {}
        try:
            while True:
                while len(running) < 2 * self.workers and (task := next(waiting, None)) is not None:
                    running[pool.submit(run_task, job, task)] = task
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
        except BrokenProcessPool as err:
            pool.shutdown(wait=True, cancel_futures=True)  # the pool has ended the other workers: none is left behind
            self._pool = None
            raise TemporaryError(
                "a worker process was killed (out of memory, or by hand)",
                hint="run the same command again, with fewer --workers or a smaller --memory if memory ran out",
            ) from err

    def close(self) -> None:
        if self._pool is None:
            return
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join(timeout=5)
        self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=context, initializer=_start_worker, initargs=(self.workers,)
            )
        return self._pool


def _leave_with_parent() -> None:
    """A worker whose parent was killed would wait for work, and hold its memory, for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _start_worker(workers: int) -> None:
    """Leave Ctrl-C to the parent, and share the cores instead of having each worker take all."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    threads = max(1, machine_cores() // workers)
    os.environ.setdefault("POLARS_MAX_THREADS", str(threads))
    import pyarrow as pa

    pa.set_cpu_count(threads)
    pa.set_io_thread_count(threads)
