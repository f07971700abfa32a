"""Reviewed rows: what people said of flagged labels, and what follows for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from curate.dataset import as_text
from curate.errors import RequestError
from curate.intervals import wilson

Bools = npt.NDArray[np.bool_]
COLUMNS = ("id", "wrong")


@dataclass(frozen=True)
class Audit:
    """Reviewed rows: the caller's id of each, whether its label is wrong, and how likely it was to be drawn (1 if unsaid)."""

    ids: pa.Array
    wrong: Bools
    drawn: npt.NDArray[np.float64]


def read_audit(path: str) -> Audit:
    """An audit from CSV or Parquet with the columns `id`, `wrong` (true or false), and perhaps `probability`.

    Raises `RequestError` for a file that is not there or has other columns.
    """
    place = f"audit: {path}"
    if not Path(path).is_file():
        raise RequestError("there is no such file", place=place, hint="give a CSV or Parquet file with the columns id and wrong")
    try:
        table: Any = pa.parquet.read_table(path) if path.endswith(".parquet") else pa.csv.read_csv(path)
    except (pa.ArrowException, OSError) as err:
        raise RequestError(f"the audit cannot be read: {err}", place=place, hint="CSV or Parquet is expected") from err
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise RequestError(
            f"the audit has no column `{missing[0]}`", place=place, hint="the columns are id, wrong and, if any, probability"
        )
    wrong = table.column("wrong")
    if not pa.types.is_boolean(wrong.type) or wrong.null_count:
        raise RequestError(
            f"the column `wrong` is of type {wrong.type}", place=place, hint="true or false is expected in every row"
        )
    drawn = np.ones(table.num_rows)
    if "probability" in table.column_names:
        drawn = np.asarray(table.column("probability").cast(pa.float64()).to_numpy())
        if not ((drawn > 0) & (drawn <= 1)).all():
            raise RequestError(
                "a `probability` is not above 0 and at most 1", place=place, hint="it is the chance by which a row was drawn"
            )
    return Audit(as_text(table.column("id")), np.asarray(wrong.to_numpy(zero_copy_only=False), np.bool_), drawn)


def share_wrong(wrong: Bools, drawn: npt.NDArray[np.float64]) -> dict[str, Any]:
    """The share of wrong labels among reviewed rows, each weighted by 1 / its chance to be drawn, with an interval.

    The estimator of Horvitz and Thompson (1952) as a ratio (Hajek); the interval is Wilson's for the effective number of
    rows (Kish). None where nothing was reviewed.
    """
    weights = 1 / drawn
    if not len(wrong):
        return {"reviewed": 0, "share": None, "low": None, "high": None}
    share = float((weights * wrong).sum() / weights.sum())
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    low, high = wilson(share * effective, effective)
    return {"reviewed": len(wrong), "share": share, "low": low, "high": high}
