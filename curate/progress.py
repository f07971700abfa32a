"""How a run tells what it is doing; the terminal's version lives in `render`."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """One step at a time: `start`, any number of `advance`, `finish`."""

    def start(self, step: str, total: int, unit: str) -> None: ...

    def advance(self, amount: int = 1) -> None: ...

    def finish(self) -> None: ...


class Several:
    """Tells more than one what is done."""

    def __init__(self, *others: Progress) -> None:
        self._others = others

    def start(self, step: str, total: int, unit: str) -> None:
        for other in self._others:
            other.start(step, total, unit)

    def advance(self, amount: int = 1) -> None:
        for other in self._others:
            other.advance(amount)

    def finish(self) -> None:
        for other in self._others:
            other.finish()
