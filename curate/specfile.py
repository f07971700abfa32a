"""Pipeline files: YAML 1.2 or JSON in, a `Pipeline` and the line of every key out, and back.

The file is read with ruamel.yaml's pure safe loader, and less of YAML than that allows: no
aliases, anchors, merge keys, tags or directives, text keys only, each once, at most 1 MiB and
50 levels. So `no` is text, and no file can be small to read and huge to walk.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, DocumentStartEvent, NodeEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from curate.errors import RequestError, did_you_mean
from curate.pipeline import STAGE_KEYS, Classes, Pipeline
from curate.source.discover import format_of
from curate.written import KeyPath, field_names, refuse, spell

MAX_BYTES = 1 << 20
MAX_DEPTH = 50
_TAG = "tag:yaml.org,2002:"


@dataclass
class Places:
    """Where every key of a pipeline file stands: `places(("roles", "text"))` is words for an error.

    A key that is not in the file has the place of the nearest key around it, and a key given
    with `--set` says so.
    """

    file: str = ""
    lines: dict[KeyPath, int] = field(default_factory=dict)
    given: dict[KeyPath, str] = field(default_factory=dict)

    def __call__(self, path: KeyPath) -> str:
        for end in range(len(path), -1, -1):
            if path[:end] in self.given:
                return f"--set {self.given[path[:end]]}"
        line = next((self.lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.lines), None)
        return ", ".join(filter(None, (self.file, f"line {line}" if line else "", spell(path))))


def read_pipeline(path: str | Path, overrides: Iterable[str] = (), classes: Classes | None = None) -> tuple[Pipeline, Places]:
    """The pipeline of a `.yaml` or `.json` file, and the places of its keys.

    `overrides` are changes such as `near_dup.similarity=0.9`, `seed=7` or `output.format=csv`,
    in the order in which they apply. Paths in `source` are relative to the current directory.
    Raises `RequestError` with file, line and key for anything wrong.
    """
    given, places = read_mapping(path)
    return changed(given, overrides, places, classes), places


def changed(
    given: dict[str, Any], overrides: Iterable[str], places: Places | None = None, classes: Classes | None = None
) -> Pipeline:
    """The pipeline of a mapping with `a.b=c` overrides applied to it, the mapping itself included."""
    places = places or Places()
    for change in overrides:
        _override(given, change, places)
    return Pipeline.from_dict(given, classes, places)


def is_pipeline(path: str) -> bool:
    """Whether a path names a pipeline rather than data: by its ending, and where that says nothing by what it holds.

    `.yaml` and `.yml` are pipelines. A folder, a glob, an address and a file of a format that is
    read are data. `.json` and everything else is a pipeline where it has `stages`, or is not there.
    """
    if path.lower().endswith((".yaml", ".yml")):
        return True
    file = Path(path)
    if "://" in path or file.is_dir():
        return False
    if not file.exists():
        return path.lower().endswith(".json")
    if format_of(file.name) not in ("json", "unknown", "companion"):
        return False
    with file.open("rb") as stream:
        head = stream.read(MAX_BYTES + 1)
    return len(head) <= MAX_BYTES and _STAGES.search(head) is not None


_STAGES = re.compile(rb"^stages\s*:|[{,]\s*\"stages\"\s*:\s*\[", re.MULTILINE)


def read_mapping(path: str | Path) -> tuple[dict[str, Any], Places]:
    """What a pipeline file says, in plain values, before anything of it is validated."""
    file = str(path)
    text = _text_of(file)
    places = Places(file)
    if file.endswith(".json"):
        given = _json(text, file)
        try:  # JSON is YAML once its tabs, which stand only between values, are blanks: read the lines from it
            _value(text.replace("\t", " "), file, places)
        except RequestError:
            places.lines.clear()
    else:
        given = _value(text, file, places)
    if not isinstance(given, dict):
        kind = "empty" if given is None else "not a mapping"
        refuse(f"the pipeline file is {kind}", file, "begin with `name:`, `source:` and `stages:`")
    return given, places


def write_pipeline(pipeline: Pipeline) -> str:
    """The pipeline as YAML that a person likes to read and `read_pipeline` reads back as the same."""
    lines = []
    for key, value in pipeline.to_dict().items():
        if key == "stages" or (key == "gate" and value):
            lines.append(f"{key}:")
            lines += [line for item in value for line in _item(item, key == "stages")]
        else:
            lines.append(f"{key}: {flow(value)}")
    return "\n".join(lines) + "\n"


def _item(item: Any, blocks: bool) -> list[str]:
    if not blocks or not isinstance(item, dict):
        return [f"  - {flow(item)}"]
    return [f"  {'- ' if index == 0 else '  '}{_scalar(key)}: {flow(value)}" for index, (key, value) in enumerate(item.items())]


def flow(value: Any) -> str:
    """A value on one line, as YAML and as a comment: every text is quoted that could be taken for something else."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return _scalar(value)


_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_./*-]*(?: [A-Za-z0-9_./*-]+)*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    if '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return '"' + "".join(_escaped(char) for char in value) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char == " " or char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _text_of(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as err:
        hint = ""
        if isinstance(err, FileNotFoundError):
            folder = Path(file).parent
            names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
            hint = did_you_mean(Path(file).name, [name for name in names if name.endswith((".yaml", ".yml", ".json"))])
        refuse(f"the pipeline file cannot be read: {err.strerror}", file, hint, err)
    if len(raw) > MAX_BYTES:
        refuse(f"the pipeline file is larger than {MAX_BYTES:,} bytes", file)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = raw[: err.start].count(b"\n") + 1
        hint = f"is it data? Then: curate run {shlex.quote(file)}, or name it as `source:` in a pipeline"
        refuse("the pipeline file is not UTF-8", f"{file}, line {line}", hint, err)


def _json(text: str, file: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        for key in out if len(out) < len(pairs) else ():
            if sum(key == other for other, _ in pairs) > 1:
                refuse(f"the key `{key}` stands twice in one mapping", file)
        return out

    def never(word: str) -> None:
        refuse(f"{word} is not a number that JSON has", file)

    try:
        given = json.loads(text, object_pairs_hook=once, parse_constant=never)
    except json.JSONDecodeError as err:
        refuse(f"this is not JSON: {err.msg}", f"{file}, line {err.lineno}", cause=err)
    except (RecursionError, ValueError) as err:
        refuse(f"this JSON cannot be read: {err}", file, cause=err)
    _check_plain(given, file, 0)
    return given


def _check_plain(value: Any, file: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        refuse(f"the file is nested more than {MAX_DEPTH} levels deep", file)
    if isinstance(value, str):
        _check_text(value, file)
    if isinstance(value, float) and not math.isfinite(value):
        refuse("a number is too large", file)
    for item in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_plain(item, file, depth + 1)


def _check_text(value: str, place: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as err:
        refuse("a text holds half of a character (a lone surrogate)", place, cause=err)


def _value(text: str, file: str, places: Places | None = None) -> Any:
    """The plain value a YAML text writes; the line of every key goes into `places`."""
    try:
        _refuse_more_than_data(text, file)
        root = YAML(typ="safe", pure=True).compose(text)
        return None if root is None else _plain(root, (), file, places or Places(file))
    except MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        said = " ".join(filter(None, (err.context, err.problem)))
        refuse(f"this is not YAML: {said}", file + line, "is a text with `:` or `#`, a bracket or a quote left open?", err)
    except (YAMLError, ValueError, OverflowError, AttributeError, IndexError) as err:
        refuse(f"this YAML cannot be read: {str(err).splitlines()[0] if str(err) else type(err).__name__}", file, cause=err)


def _refuse_more_than_data(text: str, file: str) -> None:
    """Refuse, event by event and so before anything is built, all of YAML that is not plain data."""
    depth = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        place = f"{file}, line {event.start_mark.line + 1}"
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor is not None):
            refuse(
                f"aliases and anchors are not allowed (`{event.anchor}`)",
                place,
                "write the value out, or quote text with `*` or `&`",
            )
        if getattr(event, "ctag", None) is not None or getattr(event, "tag", None) is not None:
            refuse(f"tags are not allowed (`{event.tag}`)", place, "quote text that begins with `!`")
        if isinstance(event, DocumentStartEvent) and (event.version or event.tags):
            refuse("directives (`%YAML`, `%TAG`) are not allowed: the file is YAML 1.2", place)
        name = type(event).__name__
        depth += name in ("MappingStartEvent", "SequenceStartEvent")
        depth -= name in ("MappingEndEvent", "SequenceEndEvent")
        if depth > MAX_DEPTH:
            refuse(f"the file is nested more than {MAX_DEPTH} levels deep", place)


def _plain(node: Node, path: KeyPath, file: str, places: Places) -> Any:
    line = node.start_mark.line + 1
    places.lines.setdefault(path, line)
    if isinstance(node, SequenceNode):
        return [_plain(item, (*path, index), file, places) for index, item in enumerate(node.value)]
    if isinstance(node, MappingNode):
        return _mapping(node, path, file, places)
    place = f"{file}, line {line}"
    kind = node.tag.removeprefix(_TAG) if isinstance(node.tag, str) else str(node.tag).removeprefix(_TAG)
    if kind not in ("null", "bool", "int", "float"):
        _check_text(node.value, place)
        return node.value  # text; a date stays the text it is
    value = YAML(typ="safe", pure=True).constructor.construct_object(node)
    if isinstance(value, float) and not math.isfinite(value):
        refuse(f"{node.value} is not a finite number", place)
    return value


def _mapping(node: MappingNode, path: KeyPath, file: str, places: Places) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        place = f"{file}, line {line}"
        if str(key.tag) == f"{_TAG}merge":
            refuse("merge keys (`<<`) are not allowed", place, "write the keys out")
        if not isinstance(key, ScalarNode) or str(key.tag) != f"{_TAG}str":
            refuse("a key is text", place, "put the key between quotes")
        _check_text(key.value, place)
        if key.value in out:
            first = places.lines[(*path, key.value)]
            refuse(f"the key `{key.value}` stands twice in one mapping, first in line {first}", place, "keep one of them")
        places.lines[(*path, key.value)] = line
        out[key.value] = _plain(value, (*path, key.value), file, places)
    return out


def _override(given: dict[str, Any], change: str, places: Places) -> None:
    """Apply one `--set a.b=c`; the first step may be a stage's name."""
    key, equals, text = change.partition("=")
    place = f"--set {change}"
    if not equals or not key.strip():
        refuse(f"`{change}` is not KEY=VALUE", place, "such as `--set near_dup.similarity=0.9`")
    if len(change) > MAX_BYTES:
        refuse("the value is too long", place)
    value = _value(text, place)
    steps = key.strip().split(".")
    stages = _named_stages(given)
    if steps[0] not in field_names(Pipeline) and steps[0] in stages:
        steps = ["stages", *steps]
    if steps[0] not in field_names(Pipeline):
        refuse(f"there is no `{steps[0]}` to set", place, did_you_mean(steps[0], (*field_names(Pipeline), *stages)))
    path: KeyPath
    if len(steps) > 1 and steps[0] == "stages":
        path = _set_stage(given, steps[1:], stages, value, place)
    elif len(steps) > 1 and steps[0] == "gate":
        path = _set_limit(given, steps[1:], value, place)
    else:
        path = _set_in(given, steps, (), value, place)
    places.given[path] = change


def _named_stages(given: Mapping[str, Any]) -> dict[str, int]:
    """The names of the stages a raw mapping describes, as far as they can be told."""
    names: dict[str, int] = {}
    stages = given.get("stages")
    for index, stage in enumerate(stages if isinstance(stages, list) else ()):
        if isinstance(stage, str):
            names.setdefault(stage, index)
        elif isinstance(stage, dict):
            others = [key for key in stage if key not in STAGE_KEYS]
            name = stage.get("as", others[0] if others else None)
            if isinstance(name, str):
                names.setdefault(name, index)
    return names


def _set_stage(given: dict[str, Any], steps: list[str], stages: dict[str, int], value: Any, place: str) -> KeyPath:
    name, *rest = steps
    if name not in stages:
        refuse(f"there is no stage `{name}`", place, did_you_mean(name, stages))
    if not rest:
        refuse("a whole stage cannot be set", place, f"set one of its keys, such as `{name}.when=...`")
    index = stages[name]
    stage = given["stages"][index]
    if isinstance(stage, str):
        stage = given["stages"][index] = {stage: {}}
    if rest[0] in STAGE_KEYS:
        return _set_in(stage, rest, ("stages", index), value, place)
    check = next(key for key in stage if key not in STAGE_KEYS)
    if stage[check] is None:
        stage[check] = {}
    return _set_in(stage, [check, *rest], ("stages", index), value, place)


def _set_limit(given: dict[str, Any], steps: list[str], value: Any, place: str) -> KeyPath:
    metric, key = ".".join(steps[:-1]), steps[-1]
    limits = given.get("gate")
    metrics = {
        str(limit["metric"]): index
        for index, limit in enumerate(limits if isinstance(limits, list) else ())
        if isinstance(limit, dict) and "metric" in limit
    }
    if metric not in metrics:
        refuse(f"the gate has no limit on `{metric}`", place, did_you_mean(metric, metrics))
    return _set_in(given["gate"][metrics[metric]], [key], ("gate", metrics[metric]), value, place)


def _set_in(target: dict[str, Any], steps: list[str], path: KeyPath, value: Any, place: str) -> KeyPath:
    for step in steps[:-1]:
        inner = target.setdefault(step, {})
        if not isinstance(inner, dict):
            raise RequestError(f"`{step}` is {inner!r}, which has no keys to set", place=place)
        path, target = (*path, step), inner
    target[steps[-1]] = value
    return (*path, steps[-1])
