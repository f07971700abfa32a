"""How far a run is: bars with rate and time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from curate.render.words import count, percent, safe, seconds, size

LINE_EVERY_S = 5.0


class TerminalProgress:
    """Progress for people: one bar a step where the console is a terminal, plain lines where not.

    A context manager, so that the terminal is itself again after an error or Ctrl-C.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._bars = _bars(console) if console.is_terminal else None
        self._task: TaskID | None = None
        self._step, self._unit, self._total, self._done = "", "", 0, 0
        self._began = self._said = clock()
        self._open = self._spoke = False

    def __enter__(self) -> TerminalProgress:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None) -> None:
        if self._bars:
            self._bars.stop()

    def start(self, step: str, total: int, unit: str) -> None:
        """Begin a step; one that is still open is finished first."""
        if self._open:
            self.finish()
        self._step, self._total, self._unit, self._done = safe(step, 40), total, safe(unit, 20), 0
        self._began, self._open, self._spoke = self._clock(), True, False
        if self._bars:
            self._task = self._bars.add_task(self._step, total=total or None, unit=self._unit)

    def advance(self, amount: int = 1) -> None:
        """Count so much more."""
        self._done += amount
        if self._bars and self._task is not None:
            self._bars.advance(self._task, amount)
        elif self._clock() - self._said >= LINE_EVERY_S:
            self._say(self._line())

    def finish(self) -> None:
        """End the step."""
        if not self._open:
            return
        self._open = False
        if self._bars and self._task is not None:
            self._bars.update(self._task, total=max(self._done, 1), completed=max(self._done, 1))
        elif self._spoke or self._clock() - self._said >= LINE_EVERY_S:
            took = self._clock() - self._began
            self._say(f"{self._step}: done, {amount_words(self._done, self._unit)} in {seconds(took)}", always=self._spoke)

    def _line(self) -> str:
        took = self._clock() - self._began
        rate = self._done / took if took > 0 else 0.0
        parts = [f"{self._step}: {amount_words(self._done, self._unit)}"]
        if self._total:
            parts[0] += f" of {amount_words(self._total, self._unit)} ({percent(min(1.0, self._done / self._total))})"
        parts.append(f"{amount_words(rate, self._unit)}/s")
        if self._total and rate > 0:
            parts.append(f"{seconds(max(0.0, self._total - self._done) / rate)} left")
        return ", ".join(parts)

    def _say(self, line: str, always: bool = False) -> None:
        now = self._clock()
        if not always and now - self._said < LINE_EVERY_S:
            return
        self._said, self._spoke = now, True
        self._console.print(Text(line), soft_wrap=True)


def amount_words(number: float, unit: str) -> str:
    """A number with its unit; bytes are scaled."""
    if unit == "bytes":
        return size(number)
    return f"{number:.1f} {unit}" if isinstance(number, float) and number < 10 else f"{count(number)} {unit}"


def _bars(console: Console) -> Bars:
    return Bars(
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=28),
        _Amounts(),
        console=console,
        refresh_per_second=5,
    )


class _Amounts(ProgressColumn):
    """Done, of how many, how fast, how long still."""

    def render(self, task: Task) -> Text:
        unit = str(task.fields["unit"])
        text = amount_words(int(task.completed), unit)
        if task.total and not task.finished:
            text += f" of {amount_words(int(task.total), unit)}"
        rate = task.finished_speed if task.finished else task.speed
        if rate:
            text += f", {amount_words(rate, unit)}/s"
        if task.finished:
            text += f", {seconds(task.finished_time)}"
        elif task.time_remaining is not None:
            text += f", {seconds(task.time_remaining)} left"
        return Text(text, "dim")
