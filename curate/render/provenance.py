"""The provenance part of the page: what was run on what, with which versions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from curate.render.visible import name
from curate.render.words import plural, size

_YAML_CHARS = 20_000
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")


def provenance(manifest: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Pipeline, roles, versions and at most so many sources; no path of the machine it ran on."""
    sources = list(manifest.get("sources") or ())
    packages = list((manifest.get("packages") or {}).items())
    facts = [
        ("started", manifest.get("started")),
        ("finished", manifest.get("finished")),
        ("seed", manifest.get("seed")),
        ("pipeline key", manifest.get("pipeline_key")),
        ("stopped after", manifest.get("until")),
        ("Python", manifest.get("python")),
        ("Unicode", manifest.get("unicode")),
        ("platform", manifest.get("platform")),
    ]
    return {
        "yaml": _yaml(manifest.get("pipeline") or {}),
        "facts": [(key, name(value, 200)) for key, value in facts if value is not None],
        "roles": [
            (name(role, 60), name(", ".join(map(str, columns)), 300))
            for role, columns in list((manifest.get("roles") or {}).items())[:rows]
        ],
        "packages": [(name(key, 60), name(value, 60)) for key, value in packages[:rows] if value],
        "sources_title": plural(len(sources), "source file"),
        "sources": [
            {
                "name": name(one.get("name", ""), 100),
                "format": name(one.get("format", ""), 40),
                "bytes": size(one.get("bytes")),
                "digest": name(one.get("digest", ""), 80),
            }
            for one in sources[:rows]
        ],
        "sources_left": max(0, len(sources) - rows),
    }


def _yaml(pipeline: Mapping[str, Any]) -> str:
    """The pipeline as YAML in the way people write it: lists of stages and limits line by line, the rest in braces."""
    lines = []
    for key, value in pipeline.items():
        if isinstance(value, list) and value and any(isinstance(item, Mapping) for item in value):
            lines += [f"{_flow(key)}:", *(f"  - {_flow(item)}" for item in value)]
        elif isinstance(value, list) and key == "stages":
            lines += [f"{_flow(key)}:", *(f"  - {_flow(item)}" for item in value)]
        else:
            lines.append(f"{_flow(key)}: {_flow(value)}")
    text = "\n".join(lines)
    return text if len(text) <= _YAML_CHARS else text[:_YAML_CHARS] + "\n# … cut: the rest is in manifest.json"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if (
        isinstance(value, str)
        and value.replace("_", "").replace("/", "").replace(".", "").replace("-", "").isalnum()
        and value.isascii()
    ):
        return value if not value[0].isdigit() and value.lower() not in ("null", "true", "false") else json.dumps(value)
    return json.dumps(value, ensure_ascii=False)
