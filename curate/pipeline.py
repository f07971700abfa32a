"""A pipeline: a name, the roles of the columns, ordered stages, a gate, a probe and a seed.

YAML, Python and the command line are three faces of this one model. What a file may say, a
mapping may say, and so may Python:

    Pipeline(name="reviews", roles=Roles(text="body"), stages=["exact_dup", NearDup(similarity=0.8)])

`Pipeline.from_dict(pipeline.to_dict()) == pipeline`, always.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as validated

from curate import expression
from curate.check import Check, catalogue, make_check
from curate.dataset import Roles
from curate.errors import RequestError, did_you_mean
from curate.hashing import key_of
from curate.policy import OnMissing, Policy, Rule, make_rule
from curate.source.options import ReadOptions
from curate.written import KeyPath, Where, build, dump, field_names, items, one_of, plain, refuse, refuse_unknown, share, spell

Classes = Mapping[str, type[Check]]
Mode = Literal["staged", "audit"]
Severity = Literal["fail", "warn"]
OutputFormat = Literal["parquet", "jsonl", "jsonl.zst", "csv"]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]

STAGE_KEYS = ("as", "reject", "on_missing", "when")
"""the keys of a stage that are not the check's name"""
_STAGE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
REPORT_NAMES = frozenset(
    "version name status rows kept_share rejected_share quarantined_share stages sources groups labels max_group_ratio "
    "max_group_ratio_low disparity uneven quarantine casts witness_rejected_later costs read ingest write".split()
)
"""the keys of `report.json` and its steps besides stages, so that a limit on `rows.kept` has one meaning"""
MAX_SEED = 2**63 - 1
_DEFAULTS: dict[str, Any] = {"seed": 0, "mode": "staged", "quarantine_limit": 0.001}

_part = validated(frozen=True, config=ConfigDict(extra="forbid"))


@_part
class Limit:
    """One limit of the gate on one number of the report.

    `min` and `max` hold the number itself; `max_increase` and `max_decrease` hold its absolute
    difference from the same number of a baseline run.
    """

    metric: Annotated[str, Field(min_length=1)]
    """the number, as a dotted path into `report.json`: `rejected_share`, `near_dup.rejected_share`"""
    min: Number | None = None
    """the smallest value that passes"""
    max: Number | None = None
    """the greatest value that passes"""
    severity: Severity = "fail"
    """`warn`: a broken limit is shown and does not stop anything"""
    max_increase: Annotated[Number, Field(ge=0)] | None = None
    """how far the number may rise above the baseline's"""
    max_decrease: Annotated[Number, Field(ge=0)] | None = None
    """how far the number may fall below the baseline's"""

    def __post_init__(self) -> None:
        if (self.min, self.max, self.max_increase, self.max_decrease) == (None, None, None, None):
            refuse(f"the limit on `{self.metric}` limits nothing", hint="give it min, max, max_increase or max_decrease")
        if self.min is not None and self.max is not None and self.min > self.max:
            refuse(f"the limit on `{self.metric}` can never pass: min {self.min:g} is more than max {self.max:g}")

    @property
    def needs_baseline(self) -> bool:
        return self.max_increase is not None or self.max_decrease is not None


@_part
class Output:
    """How the kept rows are written; everything else is Parquet, or JSON lines for what could not be read."""

    format: OutputFormat = "parquet"
    """the file format of `kept/`"""


@dataclass(frozen=True, init=False)
class Stage:
    """A check, the name it goes by in this pipeline, and the policy that decides on its columns.

    `reject` None means the check's own default rules; an empty tuple means: flag, never reject.
    """

    name: str
    check: Check
    reject: tuple[Rule, ...] | None
    on_missing: OnMissing
    when: str | None

    def __init__(
        self,
        check: Check | str,
        name: str | None = None,
        reject: Iterable[Rule | Mapping[str, Any]] | None = None,
        on_missing: OnMissing = "keep",
        when: str | None = None,
        *,
        path: KeyPath = (),
        where: Where = spell,
    ) -> None:
        check = make_check(check, {}, where(path)) if isinstance(check, str) else check
        if not isinstance(check, Check):
            refuse(f"a stage holds a check, not {check!r}", where(path), "see: curate checks")
        _fill(
            self,
            name=_stage_name(check.name if name is None else name, (*path, "as"), where),
            check=check,
            reject=None if reject is None else _rules(reject, (*path, "reject"), where),
            on_missing=one_of(on_missing, get_args(OnMissing), (*path, "on_missing"), where),
            when=None if when is None else _condition(when, (*path, "when"), where),
        )

    def policy(self, defaults: Sequence[Rule] = ()) -> Policy:
        """The stage's policy, given the rules its check would apply by itself."""
        return Policy(tuple(defaults) if self.reject is None else self.reject, self.on_missing)

    def to_dict(self) -> str | dict[str, Any]:
        """The shortest written form: the check's name, or a mapping."""
        out: dict[str, Any] = {self.check.name: dump(self.check)}
        if self.name != self.check.name:
            out["as"] = self.name
        if self.reject is not None:
            out["reject"] = [dump(rule) for rule in self.reject]
        if self.on_missing != "keep":
            out["on_missing"] = self.on_missing
        if self.when is not None:
            out["when"] = self.when
        return self.check.name if out == {self.check.name: {}} else out


@dataclass(frozen=True, init=False)
class Pipeline:
    """What to do with a data set. Immutable; change one with `dataclasses.replace`.

    `gate` None means that no gate was asked for; an empty gate was asked for and says no.
    """

    name: str
    source: str | tuple[str, ...] | None
    roles: Roles
    stages: tuple[Stage, ...]
    gate: tuple[Limit, ...] | None
    probe: Mapping[str, Any] | None
    seed: int
    mode: Mode
    quarantine_limit: float
    read: ReadOptions
    output: Output

    def __init__(
        self,
        name: str,
        stages: Iterable[Stage | Check | str | Mapping[str, Any]],
        roles: Roles | Mapping[str, Any] | None = None,
        source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
        gate: Iterable[Limit | Mapping[str, Any]] | None = None,
        probe: Mapping[str, Any] | None = None,
        seed: int = 0,
        mode: Mode = "staged",
        quarantine_limit: float = 0.001,
        read: ReadOptions | Mapping[str, Any] | None = None,
        output: Output | Mapping[str, Any] | None = None,
        *,
        classes: Classes | None = None,
        where: Where = spell,
    ) -> None:
        _fill(
            self,
            name=_name(name, where),
            source=None if source is None else _source(source, where),
            roles=build(Roles, {} if roles is None else roles, ("roles",), where, "`roles`"),
            stages=_stages(stages, classes, where),
            gate=None if gate is None else _gate(gate, where),
            probe=None if probe is None else _probe(probe, where),
            seed=_seed(seed, where),
            mode=one_of(mode, get_args(Mode), ("mode",), where),
            quarantine_limit=share(quarantine_limit, ("quarantine_limit",), where),
            read=build(ReadOptions, {} if read is None else read, ("read",), where, "`read`"),
            output=build(Output, {} if output is None else output, ("output",), where, "`output`"),
        )

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], classes: Classes | None = None, where: Where = spell) -> Pipeline:
        """The pipeline a mapping describes.

        `classes` are the checks that may be named, the whole catalogue unless given; `where`
        words the places of errors. Raises `RequestError` with the nearest name for an unknown key.
        """
        if not isinstance(given, Mapping):
            refuse(f"a pipeline is a mapping of keys, not {given!r}", where(()))
        refuse_unknown(given, field_names(cls), (), where, "a pipeline")
        for key, example in (("name", "name: reviews"), ("stages", "stages: [exact_dup]")):
            if key not in given:
                refuse(f"the pipeline has no `{key}`", where(()), f"add it, such as `{example}`")
        for key, value in given.items():
            if value is None and key != "source":
                refuse(f"`{key}` is empty", where((key,)), "give it a value or take the key out")
        return cls(**given, classes=classes, where=where)

    def to_dict(self) -> dict[str, Any]:
        """The pipeline in plain JSON values, defaults left out."""
        out: dict[str, Any] = {"name": self.name}
        if self.source is not None:
            out["source"] = self.source if isinstance(self.source, str) else list(self.source)
        if roles := dump(self.roles):
            one = {role: columns[0] for role, columns in roles.items() if isinstance(columns, list) and len(columns) == 1}
            out["roles"] = roles | one
        out["stages"] = [stage.to_dict() for stage in self.stages]
        if self.gate is not None:
            out["gate"] = [dump(limit) for limit in self.gate]
        if self.probe is not None:
            out["probe"] = copy.deepcopy(dict(self.probe))
        out |= {key: getattr(self, key) for key, default in _DEFAULTS.items() if getattr(self, key) != default}
        out |= {key: written for key in ("read", "output") if (written := dump(getattr(self, key)))}
        return out

    @property
    def key(self) -> str:
        """Equal for pipelines that mean the same with the same versions of their checks."""
        return key_of({**self.to_dict(), "checks": [stage.check.identity() for stage in self.stages]})


def parse_stage(given: Any, classes: Classes | None = None, path: KeyPath = (), where: Where = spell) -> Stage:
    """A stage from any of its forms: a stage, a check, a check's name, a mapping."""
    if isinstance(given, Stage):
        return given
    if isinstance(given, Check):
        return Stage(given, path=path, where=where)
    if isinstance(given, str):
        return Stage(make_check(given, {}, where(path), classes), path=path, where=where)
    if not isinstance(given, Mapping):
        refuse(f"a stage is a check's name or a mapping, not {given!r}", where(path), "such as `near_dup: {similarity: 0.8}`")
    known = catalogue() if classes is None else classes
    name = _check_key(given, known, path, where)
    for key in STAGE_KEYS:
        if key in given and given[key] is None:
            refuse(f"`{key}` is empty", where((*path, key)), "give it a value or take the key out")
    check = _check(name, given[name], known, (*path, name), where)
    own = {"name" if key == "as" else key: given[key] for key in STAGE_KEYS if key in given}
    return Stage(check, **own, path=path, where=where)


def _check_key(given: Mapping[str, Any], known: Classes, path: KeyPath, where: Where) -> str:
    """The one key of a stage that names its check."""
    others = [str(key) for key in given if key not in STAGE_KEYS]
    named = [key for key in others if key in known]
    if not others:
        refuse("the stage names no check", where(path), "such as `near_dup: {similarity: 0.8}`")
    if len(others) == 1:
        return others[0]
    if len(named) != 1:
        refuse(f"a stage has one check, not {len(others)}: {', '.join(others)}", where(path), "see: curate checks")
    wrong = next(key for key in others if key != named[0])
    hint = did_you_mean(wrong, STAGE_KEYS)
    if wrong in field_names(known[named[0]]):
        hint = f"it is a parameter of `{named[0]}`: write `{named[0]}: {{{wrong}: ...}}`, or indent it further"
    refuse(f"`{wrong}` is not a key of a stage", where((*path, wrong)), hint)


def _check(name: str, given: Any, known: Classes, path: KeyPath, where: Where) -> Check:
    """The check of a stage; an error points at the parameter that caused it."""
    if given is not None and not isinstance(given, Mapping):
        refuse(f"`{name}` takes its parameters as a mapping, not {given!r}", where(path), f"see: curate checks {name}")
    given = {} if given is None else given
    try:
        return make_check(name, given, where(path), known)
    except RequestError as err:
        guilty: KeyPath = ()
        if isinstance(err.__cause__, ValidationError):
            guilty = err.__cause__.errors()[0]["loc"][:1]
        elif name in known:
            guilty = tuple(str(key) for key in given if key not in field_names(known[name]))[:1]
        err.place = where((*path, *guilty))
        raise


def _name(value: Any, where: Where) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        refuse(f"`name` is {value!r}: a pipeline has a name of one line", where(("name",)))
    return value


def _source(given: Any, where: Where) -> str | tuple[str, ...]:
    one = isinstance(given, str | os.PathLike)
    paths = [given] if one else items(given, ("source",), where, "source: data/*.parquet")
    if not paths:
        refuse("`source` is an empty list", where(("source",)), "name a file, a folder, a glob or a URL")
    for path in paths:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            refuse(f"`source` is a path or a list of paths, and {path!r} is not a path", where(("source",)))
    return os.fspath(given) if one else tuple(os.fspath(path) for path in paths)


def _stages(given: Any, classes: Classes | None, where: Where) -> tuple[Stage, ...]:
    listed = items(given, ("stages",), where, "stages: [exact_dup]")
    stages = tuple(parse_stage(stage, classes, ("stages", index), where) for index, stage in enumerate(listed))
    if not stages:
        refuse("the pipeline has no stage", where(("stages",)), "name at least one check (see: curate checks)")
    first: dict[str, int] = {}
    for index, stage in enumerate(stages):
        if first.setdefault(stage.name, index) != index:
            refuse(
                f"stages {first[stage.name] + 1} and {index + 1} are both called `{stage.name}`",
                where(("stages", index)),
                f"give one of them a name of its own: `as: {stage.name}_2`",
            )
    return stages


def _gate(given: Any, where: Where) -> tuple[Limit, ...]:
    limits = items(given, ("gate",), where, "gate: [{metric: rejected_share, max: 0.4}]")
    return tuple(build(Limit, limit, ("gate", index), where, "a limit") for index, limit in enumerate(limits))


def _probe(given: Any, where: Where) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        refuse(f"`probe` is a mapping, not {given!r}", where(("probe",)))
    return dict(plain(given, ("probe",), where))


def _seed(value: Any, where: Where) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SEED:
        refuse(f"`seed` is {value!r}: it is a whole number from 0 to 2^63 - 1", where(("seed",)))
    return value


def _stage_name(value: Any, path: KeyPath, where: Where) -> str:
    if not isinstance(value, str) or not _STAGE_NAME.fullmatch(value):
        rule = "letters, digits, `_` and `-`, at most 64, a letter first"
        refuse(f"{value!r} is not a stage's name", where(path), rule)
    if value in REPORT_NAMES:
        refuse(f"a stage may not be called `{value}`: the report has that name itself", where(path), f"such as `as: {value}_2`")
    return value


def _rules(given: Any, path: KeyPath, where: Where) -> tuple[Rule, ...]:
    rules = items(given, path, where, "reject: [{above: 0.9, of: suspicion}]")
    return tuple(make_rule(rule, where((*path, index))) for index, rule in enumerate(rules))


def _condition(text: Any, path: KeyPath, where: Where) -> str:
    try:
        return expression.parse(text).text
    except RequestError as err:
        raise RequestError(f"`when`: {err.message}", place=where(path), hint=err.hint) from err


def _fill(target: object, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(target, name, value)
