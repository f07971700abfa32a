"""How input files are read: the pipeline key `read:`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass as validated

Format = Literal["auto", "parquet", "jsonl", "csv", "arrow"]


def _one_byte(value: object) -> object:
    if isinstance(value, str) and (len(value) != 1 or not value.isascii() or value in '"\r\n\0'):
        raise ValueError("expected one ASCII character that is neither a quote nor a line break")
    return value


def _names(value: object) -> object:
    return (value,) if isinstance(value, str) else value


@validated(frozen=True, config=ConfigDict(extra="forbid"))
class ReadOptions:
    """How input files are read. Nothing here changes which rows there are, only how bytes become rows."""

    format: Format = "auto"
    """what the files are; `auto` goes by the extension, anything else also picks the files of a folder"""
    delimiter: Annotated[str | None, BeforeValidator(_one_byte)] = None
    """what separates the cells of a CSV row; a comma, or a tab in `.tsv` files, when left out"""
    row_bytes: Annotated[int, Field(ge=1, le=2**30)] = 2**28
    """the longest row in bytes (256 MiB); a longer one is quarantined and never held in memory"""
    max_expansion: Annotated[int, Field(ge=1)] = 1000
    """decoded bytes allowed for one compressed byte, once a file has decoded to more than 1 GiB"""
    allow_truncated: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """names of files that may be cut short: the rows before the cut are used"""
