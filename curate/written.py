"""From what a person wrote (a mapping, a list, a name) to a validated value, with errors that point.

Every helper takes the place of what it reads as a *key path* such as `("stages", 1, "near_dup")`,
and a function that puts a path into words: the key alone for Python, the file and the line as
well for a file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from curate.errors import RequestError, did_you_mean

KeyPath = tuple[str | int, ...]
Where = Callable[[KeyPath], str]
_T = TypeVar("_T")
_COUNTED = {"stages": "stage", "gate": "gate limit"}


def spell(path: KeyPath) -> str:
    """A key path in words: `("stages", 1, "near_dup")` is "stage 2, near_dup"."""
    if len(path) > 1 and path[0] in _COUNTED and isinstance(path[1], int):
        first = f"{_COUNTED[str(path[0])]} {path[1] + 1}"
        return ", ".join(filter(None, (first, ".".join(map(str, path[2:])))))
    return ".".join(map(str, path))


def refuse(message: str, place: str = "", hint: str = "", cause: BaseException | None = None) -> NoReturn:
    """Raise `RequestError`."""
    raise RequestError(message, place=place, hint=hint) from cause


def refuse_unknown(given: Mapping[str, Any], known: Sequence[str], path: KeyPath, where: Where, what: str) -> None:
    """Raise `RequestError` with the nearest name for the first key that is not known."""
    for key in given:
        if key not in known:
            refuse(f"`{key}` is not a key of {what}", where((*path, key)), did_you_mean(str(key), known))


def build(cls: type[_T], given: Any, path: KeyPath, where: Where, what: str) -> _T:
    """A validated dataclass from its written form; an instance passes through."""
    if isinstance(given, cls):
        return given
    if not isinstance(given, Mapping):
        refuse(f"{what} is a mapping, not {given!r}", where(path))
    refuse_unknown(given, field_names(cls), path, where, what)
    try:
        return TypeAdapter(cls).validate_python(dict(given))
    except ValidationError as err:
        first = err.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        if key not in given:
            refuse(f"{what} has no `{key}`", where(path), cause=err)
        message = first["msg"][:1].lower() + first["msg"][1:]
        refuse(f"`{key}` is {first.get('input')!r}: {message}", where((*path, key)), cause=err)
    except RequestError as err:
        err.place = err.place or where(path)
        raise


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a dataclass, in order."""
    return tuple(field.name for field in fields(cls))


def items(given: Any, path: KeyPath, where: Where, example: str) -> list[Any]:
    """The items of anything list-like; text and mappings are not."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        refuse(f"`{path[-1]}` is a list, not {given!r}", where(path), f"such as `{example}`")
    return list(given)


def one_of(value: Any, words: Sequence[str], path: KeyPath, where: Where) -> Any:
    """The value, if it is one of the words."""
    if value not in words:
        refuse(f"`{path[-1]}` is {value!r}", where(path), did_you_mean(str(value), words))
    return value


def share(value: Any, path: KeyPath, where: Where) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        refuse(f"`{path[-1]}` is {value!r}: it is a share, from 0 to 1", where(path))
    return float(value)


def plain(value: Any, path: KeyPath, where: Where) -> Any:
    """A deep copy in plain JSON values, so that nothing outside can change what was built from it."""
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(item, (*path, key), where) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, (*path, index), where) for index, item in enumerate(value)]
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    refuse(f"{value!r} is not text, a number, true, false, null, a list or a mapping", where(path))


def dump(part: Any) -> dict[str, Any]:
    """A validated dataclass as plain JSON values, defaults left out."""
    return dict(TypeAdapter(type(part)).dump_python(part, mode="json", exclude_defaults=True))


_SIZE = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(text: str, place: str = "") -> int:
    """Bytes: "8GB" is 8,000,000,000, "8GiB" 8 * 2^30, "1000000" itself."""
    found = _SIZE.fullmatch(text)
    if not found or (found[3] and not found[2]):
        refuse(f"{text!r} is not a size", place, "such as 8GB, 512MiB or 1000000")
    base = 1024 if found[3] else 1000
    return int(float(found[1]) * base ** _POWERS[found[2].lower()])
