"""The engine protocol: run idempotent tasks that read files and publish files.

Arguments and results are small (keys, counts, digests); tables travel through the store. How
work is cut is fixed by the plan, never by the engine, so every engine writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from curate.errors import CurateError, TemporaryError
from curate.meter import reset_peak
from curate.store import is_disk_full

if TYPE_CHECKING:
    from curate.steps.base import Job, Task

Facts = dict[str, Any]


class Engine(Protocol):
    """Runs tasks of one step in any order and yields each with its facts as it finishes."""

    workers: int
    shares_memory: bool
    """whether tasks run in the command's own process, one after the other or in threads"""

    def map(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Facts]]:
        """Raises the first error of a task; tasks already finished stay finished."""
        ...

    def close(self) -> None:
        """Stop the workers now; a task under way is abandoned and will be done again."""
        ...


def run_task(job: Job, task: Task) -> Facts:
    """Run one task unless its result is in the store, and return the facts it published."""
    try:
        if not task.is_done(job):
            reset_peak()
            task.run(job)
        return job.store.facts(task.key)
    except CurateError:
        raise
    except Exception as err:
        if is_disk_full(err):
            raise TemporaryError(
                "the disk is full", hint="make room and run the same command again: it goes on where it stopped"
            ) from err
        raise
