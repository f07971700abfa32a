from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from curate.errors import InputError, RequestError
from curate.source import batches_of, conform, is_data, unify
from curate.source import memory as memory_module

TABLE = pa.table({"n": pa.array([1, None, 3], pa.int32()), "text": ["a", "é", None]})


class OnlyStream:
    """Anything that speaks the Arrow C stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


def forms(folder: Path) -> dict[str, Any]:
    pq.write_table(TABLE, folder / "a.parquet")
    return {
        "table": TABLE,
        "batch": TABLE.to_batches()[0],
        "reader": TABLE.to_reader(max_chunksize=1),
        "dataset": ds.dataset(folder / "a.parquet"),
        "polars": pl.from_arrow(TABLE),
        "lazy": pl.scan_parquet(folder / "a.parquet"),
        "pandas": TABLE.to_pandas(types_mapper=pd.ArrowDtype),
        "stream": OnlyStream(),
        "list": [TABLE.slice(0, 1), TABLE.slice(1)],
        "generator": (TABLE.slice(at, 1).to_pandas(types_mapper=pd.ArrowDtype) for at in range(3)),
        "frames": iter([pl.from_arrow(TABLE.slice(0, 2)), pl.from_arrow(TABLE.slice(2))]),
        "dicts": iter(TABLE.to_pylist()),
        "dict_list": TABLE.to_pylist(),
    }


FORMS = "table batch reader dataset polars lazy pandas stream list generator frames dicts dict_list".split()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(tmp_path: Path, form: str) -> None:
    data = forms(tmp_path)[form]

    assert is_data(data)
    batches = list(batches_of(data))

    assert [row for batch in batches for row in batch.to_pylist()] == TABLE.to_pylist()


def test_pandas_frames_keep_their_types_and_lose_their_range_index() -> None:
    frame = pd.DataFrame({"k": pd.Categorical(["a", "b", None]), "when": pd.to_datetime(["2024-01-01"] * 3).tz_localize("UTC")})
    named = pd.DataFrame({"x": [1, 2]}, index=pd.Index(["p", "q"], name="key"))

    (batch,) = batches_of(frame)
    (indexed,) = batches_of(named)

    assert batch.schema.names == ["k", "when"]
    assert pa.types.is_dictionary(batch.schema.field("k").type)
    assert batch.schema.field("when").type.tz == "UTC"
    assert indexed.to_pydict() == {"x": [1, 2], "key": ["p", "q"]}


def test_frames_with_names_that_are_no_columns_are_refused() -> None:
    with pytest.raises(RequestError, match="no string"):
        list(batches_of(pd.DataFrame({0: [1]})))
    with pytest.raises(RequestError, match="two columns are called `a`"):
        list(batches_of(pd.DataFrame([[1, 2]], columns=["a", "a"])))
    with pytest.raises(InputError, match="pandas frame cannot be read"):
        list(batches_of(pd.DataFrame({"a": [1, "x", b"y"]}, dtype=object)))


def test_tables_without_rows_still_have_columns() -> None:
    for data in (TABLE.slice(0, 0), pl.from_arrow(TABLE.slice(0, 0)), TABLE.slice(0, 0).to_pandas(), iter([TABLE.slice(0, 0)])):
        (batch,) = batches_of(data)

        assert (batch.num_rows, batch.schema.names) == (0, ["n", "text"])
    assert list(batches_of([])) == []


def test_dictionaries_follow_the_rules_of_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "DICTS", 2)
    rows: list[dict[str, Any]] = [{"a": 1}, {"a": 2, "b": [1]}, {"b": [0.5], "a": 2.5}, {"a": None}]

    batches = list(batches_of(iter(rows)))
    schema, _ = unify([("rows", batch.schema) for batch in batches])

    assert schema == pa.schema([("a", pa.float64()), ("b", pa.list_(pa.float64()))])
    got = [row for batch in batches for row in conform(batch, schema).to_pylist()]
    assert got == [{"a": row.get("a"), "b": row.get("b")} for row in rows]
    (mixed,) = batches_of([{"x": 2**70}, {"x": "y"}])
    assert mixed.to_pydict() == {"x": [str(2**70), "y"]}


def test_dictionaries_may_hold_what_arrow_knows() -> None:
    row = {"d": dt.date(2024, 1, 1), "m": Decimal("1.10"), "b": b"\xff", "n": np.int8(3)}

    (batch,) = batches_of([row])

    assert batch.to_pylist() == [{**row, "n": 3}]
    with pytest.raises(InputError, match="`x` cannot be read"):
        list(batches_of([{"x": b"a"}, {"x": 1}]))


def test_streams_are_bounded_and_lazy() -> None:
    taken = 0

    def endless() -> Iterator[dict[str, int]]:
        nonlocal taken
        while True:
            taken += 1
            yield {"n": taken}

    batches = batches_of(endless())

    assert next(batches).num_rows == memory_module.DICTS
    assert taken <= memory_module.DICTS + 1


def test_a_large_table_comes_in_bounded_batches() -> None:
    table = pa.table({"text": ["x" * 1000] * 60_000})

    sizes = [batch.num_rows for batch in batches_of(table)]

    assert sum(sizes) == 60_000
    assert max(sizes) <= 20_000


def test_a_damaged_batch_is_an_input_error() -> None:
    broken = pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["x"]), safe=False)

    with pytest.raises(InputError, match="batch 0"):
        list(batches_of(pa.table({"x": broken})))


@pytest.mark.parametrize("thing", [7, {"a": [1]}, "path.parquet", object()])
def test_what_is_no_data_is_refused_with_what_would_be(thing: Any) -> None:
    with pytest.raises(RequestError, match="is not data that can be read"):
        list(batches_of(thing))


def test_paths_are_not_data() -> None:
    assert not is_data("a.parquet")
    assert not is_data(Path("a.parquet"))
    assert not is_data(["a.parquet", "b.parquet"])


def test_a_stranger_in_an_iterator_is_refused() -> None:
    with pytest.raises(RequestError, match="gave a int"):
        list(batches_of(iter([{"a": 1}, 7])))
    with pytest.raises(RequestError, match="gave a str"):
        list(batches_of(iter([TABLE, "x"])))


def test_pandas_is_not_imported_for_others(root: Path) -> None:
    import subprocess

    code = "import sys, curate.source; assert not {'pandas', 'numba', 'sklearn', 'fsspec'} & set(sys.modules), sys.modules.keys()"

    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
