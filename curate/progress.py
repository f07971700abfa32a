"""How a run tells what it is doing; the terminal's version lives in `render`."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """One step at a time: `start`, any number of `advance`, `finish`."""

    def start(self, step: str, total: int, unit: str) -> None: ...

    def advance(self, amount: int = 1) -> None: ...

    def finish(self) -> None: ...


class Both:
    """Tells two listeners the same."""

    def __init__(self, first: Progress, second: Progress) -> None:
        self._all = (first, second)

    def start(self, step: str, total: int, unit: str) -> None:
        for one in self._all:
            one.start(step, total, unit)

    def advance(self, amount: int = 1) -> None:
        for one in self._all:
            one.advance(amount)

    def finish(self) -> None:
        for one in self._all:
            one.finish()
