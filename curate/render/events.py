"""What happens in a run as JSON lines, for machines that watch it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from curate.errors import RequestError

_PROGRESS_EVERY_S = 1.0


class Events:
    """Appends one JSON object a line: `time_s` since the epoch, `event`, and the event's own fields.

    Also a `curate.progress.Progress`: steps become `step_started`, `step_progress` (at most one a
    second) and `step_finished`. Every line is whole and flushed before the call returns.
    An error that leaves the `with` block becomes `run_failed`. Without a path nothing is written.
    """

    def __init__(self, path: str | os.PathLike[str] | None, clock: Callable[[], float] = time.time) -> None:
        try:
            self._stream = None if path is None else open(path, "a", encoding="utf-8")
        except OSError as err:
            raise RequestError(f"the events file cannot be written: {err.strerror}", place=str(path)) from err
        self._clock = clock
        self._step: dict[str, Any] = {}
        self._began = self._said = 0.0

    def __enter__(self) -> Events:
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(OSError):  # what stopped the run is the news, not that nothing more can be written
            if err is not None:
                self.write("run_failed", kind=type(err).__name__, message=str(err))
        if self._stream:
            with contextlib.suppress(OSError):
                self._stream.close()

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        if self._stream is None:
            return
        line = json.dumps({"time_s": round(self._clock(), 3), "event": event, **fields}, default=str)
        self._stream.write(line + "\n")
        self._stream.flush()

    def start(self, step: str, total: int, unit: str) -> None:
        """As `Progress.start`."""
        self._step = {"step": step, "total": total, "unit": unit, "done": 0}
        self._began = self._said = self._clock()
        self.write("step_started", step=step, total=total, unit=unit)

    def advance(self, amount: int = 1) -> None:
        """As `Progress.advance`."""
        if not self._step:
            return
        self._step["done"] += amount
        if self._clock() - self._said >= _PROGRESS_EVERY_S:
            self._said = self._clock()
            self.write("step_progress", **self._step)

    def finish(self) -> None:
        """As `Progress.finish`."""
        if self._step:
            self.write("step_finished", **self._step, wall_s=round(self._clock() - self._began, 3))
            self._step = {}
