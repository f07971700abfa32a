"""The ledger: what became of every row, and why.

`Fates` is the working state of one part while stages run; `Verdicts` is its final form, whose
constructor refuses a gap, an overlap, or a rejection without a reason.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.dataset import OUTSIDE, RowIds
from curate.errors import InvariantError
from curate.hashing import identity_sum
from curate.policy import Decision

ALIVE, QUARANTINED = -1, -2
"""values of `Fates.stage`; 0 and up name the stage that rejected"""

SCHEMA = pa.schema(
    [
        pa.field("row_id", pa.uint64(), nullable=False),
        ("source_file", pa.string()),
        ("source_row", pa.uint64()),
        ("id", pa.string()),
        pa.field("verdict", pa.string(), nullable=False),
        ("stage", pa.string()),
        ("check", pa.string()),
        ("column", pa.string()),
        ("rule", pa.string()),
        ("value", pa.float64()),
        ("limit", pa.float64()),
        ("witness_row", pa.uint64()),
        ("witness_id", pa.string()),
        ("witness_source", pa.string()),
    ]
)
"""The columns of `verdicts/`: a contract other tools are built on."""

REASONS = pa.schema(
    [
        ("curate_stage", pa.string()),
        ("curate_check", pa.string()),
        ("curate_column", pa.string()),
        ("curate_rule", pa.string()),
        ("curate_value", pa.float64()),
        ("curate_limit", pa.float64()),
        ("curate_witness_row", pa.uint64()),
        ("curate_witness_id", pa.string()),
        ("curate_witness_source", pa.string()),
    ]
)
"""What `rejected/` adds to the input's columns."""


@dataclass(frozen=True)
class Fates:
    """One entry a row of a part: who rejected it, by which rule, on what evidence."""

    stage: npt.NDArray[np.int16]
    rule: npt.NDArray[np.int16]
    by_missing: npt.NDArray[np.bool_]
    value: npt.NDArray[np.float64]
    limit: npt.NDArray[np.float64]
    witness: npt.NDArray[np.int64]
    """row id of the witness, -1 for none"""

    @classmethod
    def fresh(cls, rows: int, unreadable: npt.NDArray[np.int64]) -> Fates:
        """Every row alive but the unreadable ones (positions in the part)."""
        stage = np.full(rows, ALIVE, np.int16)
        stage[unreadable] = QUARANTINED
        nothing = np.full(rows, np.nan)
        return cls(stage, np.full(rows, -1, np.int16), np.zeros(rows, bool), nothing, nothing.copy(), np.full(rows, -1, np.int64))

    @classmethod
    def from_table(cls, table: pa.Table) -> Fates:
        arrays = {name: table.column(name).to_numpy() for name in table.column_names}
        return cls(**{name: array.copy() for name, array in arrays.items()})

    def to_table(self) -> pa.Table:
        return pa.table(dict(vars(self).items()))

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.stage == ALIVE)

    @property
    def readable(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.stage != QUARANTINED)

    def reject(self, stage: int, positions: npt.NDArray[np.int64], decision: Decision, witness: npt.NDArray[np.int64]) -> None:
        """Apply a stage's decision to the rows at `positions`; a row already out keeps its first reason."""
        new = (decision.rule >= 0) & (self.stage[positions] == ALIVE)
        at = positions[new]
        self.stage[at] = stage
        self.rule[at] = decision.rule[new]
        self.by_missing[at] = decision.by_missing[new]
        self.value[at], self.limit[at] = decision.value[new], decision.limit[new]
        self.witness[at] = witness[new]


@dataclass(frozen=True)
class Names:
    """What stage and rule numbers are called in the ledger."""

    stages: tuple[str, ...]
    checks: tuple[str, ...]
    rules: tuple[tuple[tuple[str, str], ...], ...]
    """per stage its rules as (column, word)"""


@dataclass(frozen=True)
class Verdicts:
    """The finished ledger of one part. Raises `InvariantError` rather than hold a row twice, never, or unexplained."""

    row_ids: RowIds
    fates: Fates
    first_row: int
    names: Names

    def __post_init__(self) -> None:
        expected = np.arange(self.first_row, self.first_row + len(self.fates.stage), dtype=np.uint64)
        if not np.array_equal(self.row_ids, expected):
            raise InvariantError("the ledger has a gap or an overlap", place=f"rows from {self.first_row}")
        rejected = self.fates.stage >= 0
        if np.any(self.fates.stage >= len(self.names.stages)) or np.any(self.fates.stage < QUARANTINED):
            raise InvariantError("the ledger names a stage that the pipeline does not have")
        if np.any(rejected & (self.fates.rule < 0)):
            raise InvariantError("the ledger holds a rejection without a reason")
        if np.any(~rejected & (self.fates.rule >= 0)):
            raise InvariantError("the ledger holds a reason without a rejection")
        if np.any(self.fates.witness == self.row_ids.astype(np.int64)):
            raise InvariantError("the ledger names a row as its own witness")

    def counts(self) -> dict[str, int]:
        kept, rejected = self.fates.alive, self.fates.stage >= 0
        return {"kept": int(kept.sum()), "rejected": int(rejected.sum()), "quarantined": int((~self.fates.readable).sum())}

    def identities(self) -> dict[str, int]:
        """An order-free fingerprint of the rows under each verdict (`hashing.identity_sum`)."""
        stage = self.fates.stage
        masks = {"kept": stage == ALIVE, "rejected": stage >= 0, "quarantined": stage == QUARANTINED}
        return {verdict: identity_sum(self.row_ids[mask]) for verdict, mask in masks.items()}

    def reason_columns(self) -> dict[str, pa.Array]:
        """stage, check, column, rule, value and limit, null for rows that were not rejected."""
        fates, names = self.fates, self.names
        out = fates.stage < 0
        flat_rules = [(column, word) for rules in names.rules for column, word in rules]
        starts = np.cumsum([0, *(len(rules) for rules in names.rules)])[:-1]
        flat = starts[np.maximum(fates.stage, 0)] + fates.rule if len(starts) else fates.rule
        word = _names_at(flat, [word for _, word in flat_rules], out)
        if np.any(fates.by_missing):
            word = pa.compute.if_else(pa.array(fates.by_missing), "on_missing", word)
        return {
            "stage": _names_at(fates.stage, names.stages, out),
            "check": _names_at(fates.stage, names.checks, out),
            "column": _names_at(flat, [column for column, _ in flat_rules], out),
            "rule": word,
            "value": pa.array(fates.value, mask=out | np.isnan(fates.value)),
            "limit": pa.array(fates.limit, mask=out | np.isnan(fates.limit)),
        }

    def witness_rows(self) -> pa.Array:
        """The witness of each row by number; null for none, and for one from outside the input."""
        witness = self.fates.witness
        return pa.array(witness.astype(np.uint64), mask=(witness < 0) | (witness >= OUTSIDE))

    def to_table(self, source_file: str, first_source_row: int, ids: pa.Array, witnesses: tuple[pa.Array, pa.Array]) -> pa.Table:
        """The rows of `verdicts/` in `SCHEMA`; `ids`, and of `witnesses` the ids and the places outside, are one string a row."""
        rows = len(self.row_ids)
        verdict = np.where(self.fates.stage >= 0, 1, np.where(self.fates.readable, 0, 2))
        source_row = np.arange(first_source_row, first_source_row + rows, dtype=np.uint64)
        columns = {
            "row_id": pa.array(self.row_ids),
            "source_file": pa.repeat(pa.scalar(source_file, pa.string()), rows),
            "source_row": pa.array(source_row),
            "id": ids,
            "verdict": _names_at(verdict, ["kept", "rejected", "quarantined"], np.zeros(rows, bool)),
            **self.reason_columns(),
            "witness_row": self.witness_rows(),
            "witness_id": witnesses[0],
            "witness_source": witnesses[1],
        }
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _names_at(index: npt.NDArray[np.integer], names: list[str] | tuple[str, ...], out: npt.NDArray[np.bool_]) -> pa.Array:
    """`names[index]` a row, null where `out`."""
    return pa.array(list(names), pa.string()).take(pa.array(np.where(out, 0, index), pa.int64(), mask=out))
