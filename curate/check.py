"""What a check is: a frozen set of parameters that maps rows to columns with the same row ids.

A check never drops, splits or reorders rows, and decides nothing; that is the policy's work.
It has one of three shapes, all pure:

* `RowCheck`    `score(rows)`: each row by itself;
* `FitCheck`    `fit(rows)` gives a state, then `score(rows, state)`: each row against the whole;
* `GroupCheck`  `keys(rows)`, `match(shard)`, `settle(pairs)`: rows against each other.

A new check is one file in `curate/checks/` (or one entry point in the group `curate.checks`):
its fields are its YAML keys, its Python arguments and the text of `curate checks NAME`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from curate.errors import InvariantError, RequestError, did_you_mean
from curate.parameters import parameters as parameters

if TYPE_CHECKING:
    from curate.dataset import Roles, Rows
    from curate.policy import Rule

Kind = Literal["suspicion", "measure", "flag", "category", "link", "vector"]
Scores = Mapping[str, pa.Array]
State = Mapping[str, npt.NDArray[Any]]

ARROW_TYPE: dict[str, pa.DataType] = {
    "suspicion": pa.float64(),
    "measure": pa.float64(),
    "flag": pa.bool_(),
    "category": pa.string(),
    "link": pa.uint64(),
    "vector": pa.list_(pa.float32()),
}


@dataclass(frozen=True)
class Column:
    """One column a check emits: its kind fixes its type and what its numbers promise.

    `suspicion` runs from 0 to 1 and 1 is worst; a `measure` has a unit and promises no
    direction; a `flag` is true or false; a `category` is one of a few hundred words at most,
    counted and shown but not ruled over; a `link` is the row id of another row.
    """

    name: str
    kind: Kind
    doc: str
    unit: str = ""

    @property
    def type(self) -> pa.DataType:
        return ARROW_TYPE[self.kind]


@dataclass(frozen=True)
class Emitted:
    """A column that an earlier stage of the pipeline emits."""

    stage: str
    check: str
    column: Column

    @property
    def name(self) -> str:
        """What the column is called among the rows a later check sees: `stage.column`."""
        return f"{self.stage}.{self.column.name}"


class Check(ABC):
    """The base of the three shapes; a subclass is made with the `parameters` decorator."""

    name: ClassVar[str]
    """what a pipeline calls the check, in `lower_snake_case`"""
    version: ClassVar[int]
    """part of every stored column's key: raise it whenever the same rows could score differently"""
    sees_nulls: ClassVar[bool] = False
    """true: the check is shown rows with null cells; false: the runner hides them and scores them missing"""
    lets_threads_run: ClassVar[bool] = False
    """true: nearly all of the check's work is compiled code that holds no interpreter lock, so threads do for processes"""

    def load(self) -> None:  # noqa: B027
        """Load what the check will need, such as compiled code; called beside the first reading of the source."""

    def facts(self) -> dict[str, Any]:
        """What a plan and the report say of the check's work before any row is read, as plain JSON values."""
        return {}

    def needs(self, roles: Roles, schema: pa.Schema) -> tuple[str, ...]:
        """The input columns the check reads; the text columns unless a check says otherwise.

        Raises `RequestError` when the pipeline gives the check nothing to read.
        """
        if not roles.text:
            raise RequestError(
                f"`{self.name}` reads text, and no column has the role `text`",
                place="roles",
                hint="add `roles: {text: COLUMN}`; the columns are " + ", ".join(schema.names),
            )
        return roles.text

    def uses(self, roles: Roles, earlier: Sequence[Emitted]) -> tuple[str, ...]:
        """The columns of earlier stages the check reads, by `Emitted.name`; it finds them in `Rows.table` under that name.

        A cell is null where the earlier stage was not asked about the row or had no answer; such rows are shown all
        the same. Row and fit checks only. Raises `RequestError` when a stage that must come first does not.
        """
        return ()

    @abstractmethod
    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """The columns the check emits for this data, in order."""

    def adds(self, roles: Roles, schema: pa.Schema) -> Mapping[str, tuple[str, pa.DataType]]:
        """Columns that kept rows get beside the input's own, where the user asks for any.

        By name the emitted column whose cells they hold, and the type these are cast to.
        """
        return {}

    def default_rules(self, roles: Roles, schema: pa.Schema) -> tuple[Rule, ...]:
        """The policy where the pipeline states none; empty: the check only reports."""
        return ()

    def parameters(self) -> dict[str, Any]:
        """The parameters as plain JSON values."""
        return dict(TypeAdapter(type(self)).dump_python(self, mode="json"))

    def identity(self) -> dict[str, Any]:
        """Name, version and parameters: what a stored column's key is made of."""
        return {"check": self.name, "version": self.version, "parameters": self.parameters()}


class RowCheck(Check):
    """A check that looks at each row by itself."""

    @abstractmethod
    def score(self, rows: Rows) -> Scores:
        """One array a declared column, `len(rows)` long; null where a cell has no answer."""


TOLD = "told in the report"


def stored_facts(facts: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Facts for the report as a part of a fitted state, which holds no objects."""
    return {TOLD: np.array([json.dumps(facts)])}


class FitCheck(Check):
    """A check that learns something from the rows, then looks at each row against it."""

    fit_rows: ClassVar[int] = 1_000_000
    """at most so many rows are shown to `fit`: a sample that depends on the seed and the row ids alone"""

    @abstractmethod
    def fit(self, rows: Rows) -> State:
        """Named NumPy arrays (no objects): all that `score` needs to know of the whole."""

    @abstractmethod
    def score(self, rows: Rows, state: State) -> Scores:
        """As `RowCheck.score`."""

    def evidence(self, state: State) -> Mapping[str, Any]:
        """What the report says of the fitted state, as plain JSON values, under the stage's `detail`.

        By default the facts that `fit` put into the state with `stored_facts`.
        """
        return dict(json.loads(str(state[TOLD][0]))) if TOLD in state else {}


class GroupCheck(Check):
    """A check that compares rows with each other, in shards that hold whole groups.

    1. `keys`: one or more 64-bit keys a row; rows that share no key are never compared.
    2. `match`: in one shard (all rows of some keys), the pairs that are copies; or, where `verifies` is true,
       the rows worth a look with the keys that link them.
    3. `features`, `verify` (only where `verifies` is true): a second, sparse read of the linked rows, then the
       pairs whose exact similarity suffices, from whole groups: all rows that hang together by links.
    4. `settle`: from the pairs, the columns of the rows that have something to say.
    """

    verifies: ClassVar[bool] = False
    """true: `match` yields links, and `features` and `verify` make proven pairs of them"""

    def keys_per_row(self) -> int:
        """About how many key rows a row gets: the plan sizes the shards by it."""
        return 1

    @abstractmethod
    def keys(self, rows: Rows) -> pa.Table:
        """Columns `row` (index into `rows`), `key` (uint64, well mixed) and whatever `match` wants carried."""

    def keyed(self, rows: Rows) -> tuple[pa.Table, Mapping[str, pa.Array]]:
        """`keys`, and remarks: by name, one word a row (string) of which something is to be said, null for the others.

        The report counts the words of a remark, and its rows by the categories of earlier stages, such as their language.
        """
        return self.keys(rows), {}

    @abstractmethod
    def match(self, shard: pa.Table) -> pa.Table:
        """From `keys` rows with `row` made a row id: pairs as columns `row` and `other` (row ids), plus what `settle` needs.

        Where `verifies` is true instead links, as columns `row` and `key`, sorted by key: rows of equal keys are linked.
        """

    def features(self, rows: Rows) -> pa.Table:
        """One feature row a row: what `verify` needs to know of it."""
        raise NotImplementedError(f"{self.name} does not verify")

    def verify(self, links: pa.Table, features: pa.Table) -> tuple[pa.Table, Mapping[str, float]]:
        """The proven pairs of whole groups, as `match` makes them else, and what was counted on the way.

        `features` holds every linked row, in any order, and says of each whether it is from `outside`. Counts of
        different groups are added up.
        """
        raise NotImplementedError(f"{self.name} does not verify")

    def compares(self, roles: Roles) -> tuple[str, ...]:
        """The columns that rows from outside must have too."""
        return roles.text

    def references(self) -> tuple[str, ...]:
        """Sources, or runs, whose rows are compared with too: they can be a witness and are never rejected."""
        return ()

    def index_folder(self) -> str | None:
        """The folder of an index of rows accepted before, which are compared with too; the run's kept rows are added to it."""
        return None

    def index_identity(self) -> dict[str, Any]:
        """What keys and features in an index must have been made with."""
        return self.identity()

    def most_of_a_key(self) -> int:
        """Rows of an index with a key in common that a row is compared with."""
        return 64

    def entries(self, rows: Rows) -> pa.Table:
        """What an index keeps: `row` (index into `rows`), `id`, `content` (uint64), `keys` and `shingles` (lists of uint64)."""
        raise NotImplementedError(f"{self.name} keeps no index")

    def summary(self, counts: Mapping[str, float]) -> dict[str, Any]:
        """The evidence for the report, from the counts of all groups."""
        return dict(counts)

    @abstractmethod
    def settle(self, pairs: pa.Table) -> pa.Table:
        """A `row` column (row ids, each once) and the declared columns; rows left out get `unsettled`."""

    @abstractmethod
    def unsettled(self) -> Mapping[str, float | bool | None]:
        """The value of each declared column for a row that took part in no pair."""


@functools.cache
def catalogue() -> Mapping[str, type[Check]]:
    """Every check by name: the files of `curate/checks/` and the installed entry points.

    Raises `InvariantError` where two checks claim one name.
    """
    import curate.checks

    found: dict[str, type[Check]] = {}
    modules = [importlib.import_module(f"curate.checks.{m.name}") for m in pkgutil.iter_modules(curate.checks.__path__)]
    classes = [c for m in modules for c in vars(m).values() if _is_check(c) and c.__module__ == m.__name__]
    classes += [point.load() for point in entry_points(group="curate.checks")]
    for cls in classes:
        if found.setdefault(cls.name, cls) is not cls:
            raise InvariantError(f"two checks are called `{cls.name}`: {found[cls.name]} and {cls}")
    return dict(sorted(found.items()))


def _is_check(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Check) and hasattr(value, "name")


def make_check(name: str, given: Mapping[str, Any], place: str = "", classes: Mapping[str, type[Check]] | None = None) -> Check:
    """The check called `name` with these parameters, every one of them validated.

    Raises `RequestError` with the nearest name for an unknown check or parameter, and with
    the expected range for a bad value.
    """
    known = classes or catalogue()
    if name not in known:
        raise RequestError(f"there is no check `{name}`", place=place, hint=did_you_mean(name, known) + " (see: curate checks)")
    cls = known[name]
    fields = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for parameter in given:
        if parameter not in fields:
            hint = did_you_mean(parameter, fields) if fields else "it has no parameters"
            raise RequestError(
                f"`{name}`: `{parameter}` is not a parameter", place=place, hint=f"{hint} (see: curate checks {name})"
            )
    try:
        return TypeAdapter(cls).validate_python(dict(given))
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise RequestError(
            f"`{name}`: `{where}` is {first.get('input')!r}: {_lower(first['msg'])}",
            place=place,
            hint=f"see: curate checks {name}",
        ) from err


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def checked_scores(check: Check, columns: tuple[Column, ...], scores: Scores, rows: int) -> dict[str, pa.Array]:
    """The scores in declared order and type; `InvariantError` where a check broke its own declaration."""
    if set(scores) != {column.name for column in columns}:
        raise InvariantError(f"`{check.name}` declared {[c.name for c in columns]} and emitted {sorted(scores)}")
    out: dict[str, pa.Array] = {}
    for column in columns:
        array = scores[column.name]
        if len(array) != rows:
            raise InvariantError(f"`{check.name}.{column.name}` has {len(array)} values for {rows} rows")
        array = array.cast(column.type)
        if column.kind == "suspicion" and not _within_unit(array):
            raise InvariantError(f"`{check.name}.{column.name}` is a suspicion and leaves the range 0 to 1")
        out[column.name] = array
    return out


def _within_unit(array: pa.Array) -> bool:
    values = array.drop_null().to_numpy(zero_copy_only=False)
    return bool(np.all((values >= 0) & (values <= 1)))
