"""One decorator for everything a person configures: frozen, validated, self-describing."""

from __future__ import annotations

from typing import TypeVar, dataclass_transform

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True)
def parameters(cls: _Class) -> _Class:
    """Make a class a frozen, validated dataclass that refuses unknown fields; field docstrings become its help.

    `describe` reads the docstrings when somebody asks: to read them here costs every command 0.1 s.
    """
    made = dataclass(frozen=True, config=ConfigDict(extra="forbid"))(cls)
    return made  # type: ignore[return-value]
