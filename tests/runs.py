"""What the tests of whole runs share: small inputs, and what a run left behind, read back plainly."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from curate import api
from curate.dataset import Roles
from curate.pipeline import Pipeline, Stage
from curate.rundir import FOLDERS
from curate.verdicts import REASONS

ROLES = Roles(id="id", text="text")
Row = dict[str, Any]


def pipeline(*stages: Any, roles: Roles = ROLES, **more: Any) -> Pipeline:
    """A pipeline of checks and stages that quarantines without limit."""
    return Pipeline(name="test", stages=list(stages), roles=roles, **{"quarantine_limit": 1.0, **more})


def flag(check: Any, name: str | None = None, **rule: Any) -> Stage:
    """A stage with one rule: `flag(Amount(), above=0.5, of="amount")`."""
    return Stage(check, name=name, reject=[rule] if rule else [])


def write_parquet(path: Path, table: pa.Table, row_group_size: int = 50) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def write_jsonl(path: Path, rows: Sequence[Row | bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode() for row in rows]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def numbered(rows: int, values: Sequence[float | None] | None = None) -> pa.Table:
    """`rows` rows with ids, short texts of which every third comes again, and numbers with gaps."""
    values = values or [None if at % 11 == 5 else (at * 37 % 101) / 100 for at in range(rows)]
    texts = [None if at % 17 == 3 else f"text number {at // 3 * 7 % 40} of some" for at in range(rows)]
    ids = pa.array([f"r{at:03}" for at in range(rows)], pa.string())
    return pa.table({"id": ids, "text": pa.array(texts, pa.string()), "value": pa.array(values[:rows], pa.float64())})


def data_files(run: Path) -> dict[str, bytes]:
    """The bytes of every data file, by its name in the run directory."""
    paths = sorted(path for folder in FOLDERS for path in (run / folder).rglob("*"))
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in paths if path.is_file()}


def document(run: Path, name: str = "report.json") -> dict[str, Any]:
    return dict(json.loads((run / name).read_bytes()))


def numbers(run: Path) -> dict[str, Any]:
    """The report without what depends on the machine and the moment."""
    report = document(run)
    del report["costs"]
    return report


def verdicts(run: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted((run / "verdicts").glob("*.parquet"))])


def scores(run: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted((run / "scores").glob("*.parquet"))])


def rows_in(run: Path, folder: str) -> list[Row]:
    return [row for path in sorted((run / folder).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def quarantined(run: Path) -> list[Row]:
    lines = [line for path in sorted((run / "quarantined").glob("*.jsonl")) for line in path.read_bytes().splitlines()]
    return [json.loads(line) for line in lines]


def by_id(run: Path) -> dict[str, tuple[Any, ...]]:
    """What became of each row, under the caller's id."""
    columns = ["verdict", "stage", "check", "column", "rule", "value", "limit", "witness_id"]
    return {row[0]: row[1:] for row in verdicts(run).select("id", *columns).iter_rows()}


def assert_accounted(run: Path, source: Sequence[Row | None]) -> None:
    """Every row of the source (None: not readable) is kept, rejected or quarantined: that very row, in order, once.

    And what the run says of itself in several places agrees.
    """
    ledger = verdicts(run)
    assert ledger["row_id"].to_list() == list(range(len(source)))
    fate = ledger["verdict"].to_list()
    kept, rejected, bad = (
        [at for at, verdict in enumerate(fate) if verdict == word] for word in ("kept", "rejected", "quarantined")
    )

    assert bad == [at for at, row in enumerate(source) if row is None]
    assert _plain(rows_in(run, "kept")) == _plain(source[at] for at in kept)
    _assert_rejected(run, ledger, [source[at] for at in rejected])
    assert [row["row_id"] for row in quarantined(run)] == bad
    assert all(base64.b64decode(row["raw"]) and row["reason"] for row in quarantined(run))
    counts = {"input": len(source), "kept": len(kept), "rejected": len(rejected), "quarantined": len(bad)}
    assert document(run)["rows"] == counts
    assert scores(run)["row_id"].to_list() == list(range(len(source)))


def _assert_rejected(run: Path, ledger: pl.DataFrame, expected: Sequence[Row | None]) -> None:
    found = rows_in(run, "rejected")
    assert _plain({name: row[name] for name in row if name not in REASONS.names} for row in found) == _plain(expected)
    out = ledger.filter(pl.col("verdict") == "rejected")
    for name in REASONS.names:
        assert _plain(row[name] for row in found) == _plain(out[name.removeprefix("curate_")].to_list()), name
    assert out.select(pl.col("stage", "check", "column", "rule").is_not_null().all()).row(0) == (True,) * 4
    assert not len(out) or out["witness_row"].drop_nulls().is_in(ledger["row_id"].implode()).all()


def _plain(rows: Any) -> list[str]:
    """Comparable, NaN and -0.0 included."""
    return [repr(row) for row in rows]


def run_all(stages: Sequence[Any], sources: Mapping[str, Any], out: Path, **more: Any) -> Iterator[tuple[str, api.Run]]:
    """The same stages on several forms of the same data."""
    for name, source in sources.items():
        yield name, api.run(pipeline(*stages, **more), source, out / name)
