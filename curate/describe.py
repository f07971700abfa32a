"""What can be asked for: the catalogue in words, and the JSON Schema of pipeline files.

Both are read off the same fields that validate a pipeline, so neither can drift from it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from curate.check import Check, FitCheck, RowCheck, catalogue
from curate.dataset import Roles
from curate.errors import RequestError, did_you_mean
from curate.pipeline import MAX_SEED, STAGE_KEYS, Classes, Limit, Mode, Output
from curate.policy import RULES, OnMissing
from curate.source.options import ReadOptions

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFS = "#/$defs/"


def checks(name: str | None = None, classes: Classes | None = None) -> list[dict[str, Any]]:
    """Every check, or the named one: its shape, version, first sentence, whole text and parameters.

    Raises `RequestError` with the nearest name for an unknown one.
    """
    known = catalogue() if classes is None else classes
    if name is not None and name not in known:
        raise RequestError(f"there is no check `{name}`", hint=did_you_mean(name, known))
    return [_check(cls) for key, cls in known.items() if name in (None, key)]


def schema(classes: Classes | None = None) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a pipeline file, with every check's parameters."""
    known = catalogue() if classes is None else classes
    defs: dict[str, Any] = {}
    stage_keys = _stage_keys(defs)
    stages: list[dict[str, Any]] = [{"enum": list(known), "description": "a check with its default parameters"}]
    for name, cls in known.items():
        parameters = {"anyOf": [_schema_of(cls, name, defs), {"type": "null"}], "description": _summary(cls)}
        stages.append(
            {"type": "object", "properties": {name: parameters, **stage_keys}, "required": [name], "additionalProperties": False}
        )
    defs["stage"] = {"anyOf": stages}
    properties = {
        "name": {"type": "string", "minLength": 1, "description": "what the pipeline is called"},
        "source": _source(),
        "roles": _schema_of(Roles, "roles", defs),
        "stages": {"type": "array", "items": {"$ref": f"{_DEFS}stage"}, "minItems": 1, "description": "the checks, in order"},
        "gate": {"type": "array", "items": _schema_of(Limit, "limit", defs), "description": "limits on the report's numbers"},
        "probe": {"type": "object", "description": "how to measure whether the verdicts were worth it"},
        "seed": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_SEED,
            "default": 0,
            "description": "every random choice follows from it",
        },
        "mode": {"enum": list(get_args(Mode)), "default": "staged", "description": "audit: every check sees every row"},
        "quarantine_limit": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "default": 0.001,
            "description": "the share of rows that may be unreadable",
        },
        "read": _schema_of(ReadOptions, "read", defs),
        "output": _schema_of(Output, "output", defs),
    }
    return {
        "$schema": SCHEMA_DIALECT,
        "title": "curate pipeline",
        "type": "object",
        "properties": properties,
        "required": ["name", "stages"],
        "additionalProperties": False,
        "$defs": defs,
    }


def _stage_keys(defs: dict[str, Any]) -> dict[str, Any]:
    rules = [_schema_of(rule, f"rule.{rule.word}", defs) for rule in RULES]
    texts: dict[str, dict[str, Any]] = {
        "as": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$", "description": "the stage's own name"},
        "reject": {"type": "array", "items": {"anyOf": rules}, "description": "the rules; empty: flag, never reject"},
        "on_missing": {"enum": list(get_args(OnMissing)), "default": "keep", "description": "what a missing cell means"},
        "when": {"type": "string", "description": 'the rows the stage looks at, such as: split == "train"'},
    }
    return {key: texts[key] for key in STAGE_KEYS}


def _source() -> dict[str, Any]:
    one = {"type": "string", "minLength": 1}
    return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}], "description": "files, folders, globs or URLs"}


def _schema_of(cls: type, called: str, defs: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of a validated dataclass, which goes into `defs` under its own name."""
    made = TypeAdapter(cls).json_schema(ref_template=f"{_DEFS}{called}.{{model}}", schema_generator=_Documented)
    for inner, definition in made.pop("$defs", {}).items():
        defs[f"{called}.{inner}"] = definition
    made.pop("title", None)
    made["description"] = _summary(cls)
    for field in made.get("properties", {}).values():
        field.pop("title", None)
    defs[called] = made
    return {"$ref": f"{_DEFS}{called}"}


def _check(cls: type[Check]) -> dict[str, Any]:
    described = TypeAdapter(cls).json_schema(schema_generator=_Documented)
    fields = described.get("properties", {})
    inner = described.get("$defs", {})
    parameters = []
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        about = fields.get(field.name, {})
        required = field.name in described.get("required", ())
        one = {"name": field.name, "type": type_words(about, inner), "required": required, "default": about.get("default")}
        parameters.append({**one, "doc": about.get("description", "")})
    return {
        "name": cls.name,
        "shape": _shape(cls),
        "version": cls.version,
        "summary": _summary(cls),
        "doc": inspect.getdoc(cls) or "",
        "parameters": parameters,
    }


class _Documented(GenerateJsonSchema):
    """With the docstrings of fields as descriptions, read from the source when they are asked for."""

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        made = super().dataclass_schema(schema)
        docs = field_docs(schema["cls"])
        for name, about in made.get("properties", {}).items():
            if name in docs:
                about.setdefault("description", docs[name])
        return made


def field_docs(cls: type) -> dict[str, str]:
    """The docstring below each field of a dataclass, inherited ones too; none where its source is nowhere to be read."""
    found = field_docs(cls.__base__) if cls.__base__ is not None and dataclasses.is_dataclass(cls.__base__) else {}
    try:
        tree = ast.parse(textwrap.dedent("".join(inspect.getsourcelines(cls)[0])))
    except (OSError, TypeError, SyntaxError):
        return found
    body = next((node.body for node in tree.body if isinstance(node, ast.ClassDef)), [])
    for field, below in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            if isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
                found[field.target.id] = inspect.cleandoc(below.value.value)
    return found


def _shape(cls: type[Check]) -> str:
    if issubclass(cls, RowCheck):
        return "row"
    return "fit" if issubclass(cls, FitCheck) else "group"


def _summary(cls: type) -> str:
    return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")


def type_words(about: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """A field's JSON Schema in words: "number from 0 to 1", "first | longest"."""
    if "$ref" in about:
        return type_words(defs.get(str(about["$ref"]).rsplit("/", 1)[-1], {}), defs)
    for several in ("anyOf", "oneOf"):
        if several in about:
            return " | ".join(dict.fromkeys(type_words(one, defs) for one in about[several]))
    if "enum" in about:
        return " | ".join(str(word) for word in about["enum"])
    if "const" in about:
        return str(about["const"])
    kind = str(about.get("type", "any"))
    if kind == "array":
        inner = type_words(about.get("items", {}), defs)
        return f"list of ({inner})" if " | " in inner else f"list of {inner}"
    if about.get("properties"):
        return "{" + ", ".join(f"{name}: ..." for name in about["properties"]) + "}"
    words = {"string": "text", "integer": "whole number", "boolean": "true | false", "object": "mapping", "null": "none"}.get(
        kind, kind
    )
    return words + _bounds(about)


def _bounds(about: Mapping[str, Any]) -> str:
    phrases = (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"), ("exclusiveMaximum", "below"))
    return "".join(f" {word} {about[key]:{',' if isinstance(about[key], int) else 'g'}}" for key, word in phrases if key in about)
