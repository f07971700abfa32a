"""Rows by group: values of a column as codes, numbers cut at quantiles, the rarest added up, null a group of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.dataset import Roles, is_single, shown
from curate.errors import RequestError

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MISSING, OTHERS = "(missing)", "(other values)"
CROSS = " × "
"""what stands between two columns in the name of their intersections"""
FEW = 20
"""a column of numbers with more distinct values than this is cut at quantiles"""


@dataclass(frozen=True)
class Cut:
    """How the cells of a column become groups: by the values in `names`, or where there are `edges` by these.

    A group of numbers holds what is above the edge before it, up to its own edge.
    """

    column: str
    names: tuple[str, ...]
    edges: tuple[float, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups by code: the named ones, then other values, then rows without one."""
        return (*self.names, OTHERS, MISSING)

    def codes(self, column: pa.ChunkedArray | pa.Array) -> Codes:
        """The group of each cell."""
        if self.edges:
            values = as_floats(column)
            found = np.minimum(np.searchsorted(np.asarray(self.edges), values, side="left"), len(self.edges) - 1)
            return np.where(np.isnan(values), len(self.names) + 1, found).astype(np.int64)
        cells = words(column)
        found = pc.index_in(cells, value_set=pa.array(self.names, pa.string()))
        code: Codes = found.fill_null(len(self.names)).to_numpy().astype(np.int64)
        code[cells.is_null().to_numpy(zero_copy_only=False)] = len(self.names) + 1
        return code


@dataclass(frozen=True)
class Grouping:
    """Rows by group: a name (a column's, or several joined), the groups, and each row's group by its index."""

    name: str
    groups: tuple[str, ...]
    codes: Codes

    @property
    def sizes(self) -> Codes:
        return np.bincount(self.codes, minlength=len(self.groups))

    def occurring(self) -> Grouping:
        """The same without groups that have no row."""
        there = np.flatnonzero(self.sizes)
        place = np.full(len(self.groups), -1, np.int64)
        place[there] = np.arange(len(there))
        return Grouping(self.name, tuple(self.groups[at] for at in there), place[self.codes])

    def where(self, mask: npt.NDArray[np.bool_]) -> Grouping:
        """Some of the rows."""
        return Grouping(self.name, self.groups, self.codes[mask])

    def take(self, places: Codes) -> Grouping:
        """Some of the rows, by their places."""
        return Grouping(self.name, self.groups, self.codes[places])


def cut(name: str, column: pa.ChunkedArray | pa.Array, quantiles: int, most: int) -> Cut:
    """The groups of a column: its `most` frequent values, or of many different numbers `quantiles` parts of equal size."""
    if is_number(column.type):
        values = as_floats(column)
        values = values[np.isfinite(values)]
        if len(np.unique(values)) > FEW:
            steps = np.arange(1, quantiles + 1) / quantiles
            edges = np.unique(np.quantile(values, steps, method="inverted_cdf"))
            return Cut(name, _spans(values.min(), edges), tuple(edges.tolist()))
    counts = words(column).drop_null().value_counts()
    ranked = sorted(
        zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True), key=lambda at: (-at[1], at[0])
    )
    return Cut(name, tuple(sorted(value for value, _ in ranked[:most])))


def quantile_groups(rows: Mapping[str, int], quantiles: int) -> dict[str, str]:
    """Of numbers as written, with the rows that have each, the name of the part of equal size that it falls in."""
    written = sorted(rows, key=float)
    values, reached = np.array([float(name) for name in written]), np.cumsum([rows[name] for name in written])
    wanted = np.arange(1, quantiles + 1) / quantiles * reached[-1]
    edges = np.unique(values[np.searchsorted(reached, wanted - 1e-6)])
    names = _spans(values[0], edges)
    return {name: names[int(np.searchsorted(edges, value))] for name, value in zip(written, values, strict=True)}


def _spans(least: float, edges: Floats) -> tuple[str, ...]:
    spans = [f"{low:.6g} to {high:.6g}" for low, high in zip([least, *edges[:-1]], edges, strict=True)]
    return spans[0], *(f"above {span}" for span in spans[1:])


def crossed(one: Grouping, other: Grouping, least: int) -> tuple[Grouping, int]:
    """The intersections of two groupings; those of fewer than `least` rows are one, `(other values)`. And how many these are."""
    there, place, sizes = np.unique(one.codes * len(other.groups) + other.codes, return_inverse=True, return_counts=True)
    large = sizes >= least
    pairs = [divmod(code, len(other.groups)) for code in there[large].tolist()]
    names = [crossed_name(one.groups[a], other.groups[b]) for a, b in pairs]
    position = np.where(large, np.cumsum(large) - 1, len(names))
    return Grouping(f"{one.name}{CROSS}{other.name}", (*names, OTHERS), position[place].astype(np.int64)), int(np.sum(~large))


def crossed_name(one: str, other: str) -> str:
    """What an intersection is called."""
    return f"{one}, {other}"


def words(column: pa.ChunkedArray | pa.Array) -> pa.StringArray:
    """The cells as text; NaN is no value, and a value spelt like one of our own names stands in quotes."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    found = shown(column)
    ours = pc.is_in(found, value_set=pa.array([MISSING, OTHERS]))
    return pc.if_else(ours, pc.binary_join_element_wise('"', found, '"', ""), found) if pc.any(ours).as_py() else found


def as_floats(column: pa.ChunkedArray | pa.Array) -> Floats:
    """Numbers as floats, NaN where there is none."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def is_number(kind: pa.DataType) -> bool:
    """Whether a column holds numbers that have an order and a distance."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def label_column(check: str, roles: Roles, schema: pa.Schema) -> str:
    """The label's column; `RequestError` where there is none, or where its cells are no single values."""
    if roles.label is None:
        raise RequestError(
            f"`{check}` looks at the label, and no column has the role `label`",
            place="roles",
            hint="add `roles: {label: COLUMN}`; the columns are " + ", ".join(schema.names),
        )
    kind = schema.field(roles.label).type
    if not is_single(kind):
        raise RequestError(
            f"`{check}` looks at the label, and the cells of `{roles.label}` are of type {kind}: no single values",
            place="roles",
            hint="name a column with one label a row",
        )
    return roles.label
