"""What the `curate` command does without: packages that libraries look for on their way, and that no work of ours needs.

pyarrow imports pandas with the first array it makes, to know a series when it is given one; numba imports SciPy's
linear algebra with the first kernel it loads, to compile `dot`. Together they take 0.3 s, a third of the start.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator

from curate.check import Check


def can_do_without(checks: Iterable[Check]) -> bool:
    """Whether these checks are ours and compiled: what others make of arrays, or compile, is not known here."""
    return all(check.lets_threads_run and type(check).__module__.startswith("curate.checks.") for check in checks)


@contextlib.contextmanager
def lean() -> Iterator[None]:
    """Work without pandas and SciPy's linear algebra, unless they are loaded already.

    For a process that does nothing else: from here on pyarrow knows a pandas object only once something was
    converted to pandas, and kernels that numba compiles have no `dot`.
    """
    import pyarrow as pa

    with _hidden("pandas"):
        pa.array([0])
    with _hidden("scipy.linalg"):
        yield


class _Hidden:
    """A finder of modules that says of one that it is not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Found by the next finder, unless it is the hidden one."""
        if name == self._name:
            raise ModuleNotFoundError(f"no module named {name!r} is wanted here", name=name)


@contextlib.contextmanager
def _hidden(name: str) -> Iterator[None]:
    """A module that is not loaded yet cannot be imported."""
    finder = _Hidden(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
