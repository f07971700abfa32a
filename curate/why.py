"""Why one row ended as it did: every score, rule and limit, and the witness beside it.

Only the parts that hold the row and its witness are opened, and of them one row group.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from curate.cells import python_values
from curate.errors import RequestError
from curate.expression import parse
from curate.rundir import read_document
from curate.verdicts import REASONS

Row = dict[str, Any]


def why(run: str | Path, row_or_id: str | int) -> dict[str, Any]:
    """The whole story of one row, given its row id or the caller's id.

    Text that is a whole number is taken for a caller's id where the data has such an id, and
    for a row id otherwise. Raises `RequestError` where there is no such row.
    """
    path = Path(run)
    manifest = read_document(path, "manifest.json")
    row_id = _find(path, manifest, row_or_id)
    verdict = _verdict(path, manifest, row_id)
    scores = _read_one(_part_file(path, manifest, row_id, "scores"), row_id - _part(manifest, row_id)["first_row"])
    cells = _cells(path, manifest, verdict)
    out = {**verdict, "stages": _stages(manifest, verdict, _values(scores), cells), "row": _own(cells), "witness": None}
    if verdict["witness_row"] is not None:
        other = _verdict(path, manifest, verdict["witness_row"])
        out["witness"] = {**other, "row": _own(_cells(path, manifest, other))}
    elif verdict["witness_source"] is not None:
        out["witness"] = {"row_id": None, "id": verdict["witness_id"], "source": verdict["witness_source"], "row": None}
    return out


def _find(run: Path, manifest: Mapping[str, Any], row_or_id: str | int) -> int:
    text = str(row_or_id)
    if isinstance(row_or_id, str) and manifest["roles"].get("id"):
        ids = pl.scan_parquet(sorted(map(str, (run / "verdicts").glob("*.parquet"))), glob=False)
        found = ids.filter(pl.col("id") == text).select("row_id").head(2).collect()["row_id"].to_list()
        if len(found) > 1:
            raise RequestError(
                f"the id `{text}` belongs to several rows", hint=f"give a row number, such as {found[0]} or {found[1]}"
            )
        if found:
            return int(found[0])
    if text.isascii() and text.isdecimal():
        return int(text)
    raise RequestError(
        f"there is no row with the id `{text}`", place=str(run), hint="give an id of the data or a row number, counted from 0"
    )


def _part(manifest: Mapping[str, Any], row_id: int) -> Mapping[str, Any]:
    parts = [part for part in manifest["parts"] if part["rows"]]
    at = bisect.bisect_right([part["first_row"] for part in parts], row_id) - 1
    if at < 0 or row_id >= parts[at]["first_row"] + parts[at]["rows"]:
        rows = sum(part["rows"] for part in parts)
        raise RequestError(f"there is no row {row_id}: the run has {rows} rows, numbered from 0")
    found: Mapping[str, Any] = parts[at]
    return found


def _part_file(run: Path, manifest: Mapping[str, Any], row_id: int, folder: str, form: str = "parquet") -> Path:
    return run / folder / f"{_part(manifest, row_id)['name']}.{form}"


def _read_one(path: Path, index: int) -> pa.Table:
    """Row `index` of a Parquet file as a table, through the one row group that holds it."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if index < rows:
                return file.read_row_group(group).slice(index, 1)
            index -= rows
    raise RequestError("a file of the run is shorter than its manifest says", place=str(path), hint="run the pipeline again")


def _values(row: pa.Table) -> Row:
    return {name: python_values(row.column(at), name)[0] for at, name in enumerate(row.column_names)}


def _own(cells: pa.Table | None) -> Row | None:
    """The cells that are the input's, without the reasons that `rejected/` adds."""
    return None if cells is None else {name: cell for name, cell in _values(cells).items() if name not in REASONS.names}


def _verdict(run: Path, manifest: Mapping[str, Any], row_id: int) -> Row:
    part = _part(manifest, row_id)
    return _values(_read_one(_part_file(run, manifest, row_id, "verdicts"), row_id - part["first_row"]))


def _cells(run: Path, manifest: Mapping[str, Any], verdict: Row) -> pa.Table | None:
    """The row as kept/ or rejected/ has it, a table of one row; None for a row that could not be read."""
    if verdict["verdict"] == "quarantined":
        return None
    part = _part(manifest, verdict["row_id"])
    verdicts = pq.read_table(_part_file(run, manifest, verdict["row_id"], "verdicts"), columns=["verdict"]).column("verdict")
    before = pl.Series(pl.from_arrow(verdicts))[: verdict["row_id"] - part["first_row"]]
    index = int((before == verdict["verdict"]).sum())
    form = manifest["output"] if verdict["verdict"] == "kept" else "parquet"
    path = _part_file(run, manifest, verdict["row_id"], verdict["verdict"], form)
    return _read_one(path, index) if form == "parquet" else _read_line(path, form, index)


def _read_line(path: Path, form: str, index: int) -> pa.Table:
    lines = pl.scan_csv(path, infer_schema=False) if form == "csv" else pl.scan_ndjson(path)
    return lines.slice(index, 1).collect().to_arrow()


def _stages(manifest: Mapping[str, Any], verdict: Row, scores: Row, cells: pa.Table | None) -> list[Row]:
    """Each stage's scores and rules for the row; not asked: one after the rejection, or whose condition the row does not meet."""
    audit = manifest["pipeline"].get("mode") == "audit"
    out, gone = [], verdict["verdict"] == "quarantined"
    for stage in manifest["stages"]:
        prefix = f"{stage['name']}."
        own = {name.removeprefix(prefix): value for name, value in scores.items() if name.startswith(prefix)}
        asked = not gone or (audit and verdict["verdict"] != "quarantined")
        decided = verdict["stage"] == stage["name"]
        answered = any(value is not None for value in own.values())
        silent = "missing" if own else "scored"  # a check without columns looks at the whole data alone
        status = "scored" if answered else silent if asked and _meets(stage, cells) else "not asked"
        out.append(
            {"name": stage["name"], "status": status, "scores": own, "rules": _rules(stage, own, verdict if decided else None)}
        )
        gone = gone or decided
    return out


def _meets(stage: Mapping[str, Any], cells: pa.Table | None) -> bool:
    """Whether a row meets a stage's condition; taken for granted where the kept file has lost the types (CSV)."""
    if stage["when"] is None or cells is None:
        return True
    try:
        return bool(parse(stage["when"]).mask(cells)[0])
    except RequestError:
        return True


def _rules(stage: Mapping[str, Any], scores: Row, verdict: Row | None) -> list[Row]:
    out = []
    for rule in stage["rules"]:
        value = scores.get(rule["column"])
        number = None if value is None else float(value)
        out.append({**rule, "value": number, "fires": verdict is not None and _fired(rule, verdict)})
    return out


def _fired(rule: Mapping[str, Any], verdict: Row) -> bool:
    """Whether this rule of the stage that rejected the row is the one that did; a limit tells two of one kind apart."""
    same = verdict["column"] == rule["column"] and verdict["rule"] in (rule["rule"], "on_missing")
    return same and rule["limit"] in (None, verdict["limit"])
