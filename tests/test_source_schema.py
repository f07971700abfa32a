from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.errors import InputError
from curate.source import SourceFile, conform, unify, with_partitions
from curate.source.infer import Inference
from curate.source.lattice import remark, remarks
from curate.source.schema import join


def united(*types: pa.DataType) -> pa.DataType:
    schema, _ = unify([(f"f{i}", pa.schema([("x", kind)])) for i, kind in enumerate(types)])
    return schema.field("x").type


@pytest.mark.parametrize(
    ("left", "right", "union"),
    [
        (pa.null(), pa.list_(pa.date32()), pa.list_(pa.date32())),
        (pa.int8(), pa.int32(), pa.int32()),
        (pa.uint8(), pa.int8(), pa.int16()),
        (pa.uint32(), pa.int8(), pa.int64()),
        (pa.uint64(), pa.uint8(), pa.uint64()),
        (pa.uint64(), pa.int64(), pa.string()),
        (pa.int32(), pa.float32(), pa.float64()),
        (pa.int64(), pa.float64(), pa.string()),
        (pa.float16(), pa.float32(), pa.float32()),
        (pa.decimal128(5, 2), pa.decimal128(10, 0), pa.decimal128(12, 2)),
        (pa.decimal128(5, 2), pa.int64(), pa.decimal128(21, 2)),
        (pa.decimal128(38, 2), pa.decimal128(38, 10), pa.decimal256(46, 10)),
        (pa.decimal128(5, 2), pa.float64(), pa.string()),
        (pa.string(), pa.large_string(), pa.large_string()),
        (pa.string(), pa.string_view(), pa.large_string()),
        (pa.binary(), pa.binary(4), pa.large_binary()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.int64(), pa.string()),
        (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC"), pa.timestamp("ns", "UTC")),
        (pa.date32(), pa.date64(), pa.date64()),
        (pa.time32("s"), pa.time64("us"), pa.time64("us")),
        (pa.duration("s"), pa.duration("ms"), pa.duration("ms")),
        (pa.bool_(), pa.int8(), pa.string()),
        (pa.date32(), pa.string(), pa.string()),
        (pa.int64(), pa.large_string(), pa.large_string()),
        (pa.list_(pa.int8()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.large_list(pa.int8())),
        (pa.list_(pa.int8(), 2), pa.list_(pa.int16(), 2), pa.list_(pa.int16(), 2)),
        (pa.list_(pa.int8(), 2), pa.list_(pa.int8(), 3), pa.large_list(pa.int8())),
        (pa.struct([("a", pa.int8())]), pa.struct([("b", pa.string()), ("a", pa.int16())]),
         pa.struct([("a", pa.int16()), ("b", pa.string())])),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int16()), pa.map_(pa.string(), pa.int16())),
    ],
)  # fmt: skip
def test_different_types_meet_where_nothing_is_lost(left: pa.DataType, right: pa.DataType, union: pa.DataType) -> None:
    assert united(left, right) == union
    assert united(right, left).equals(union) or pa.types.is_struct(union)
    assert united(left, left) == left


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.struct([("a", pa.int8())]), pa.int8()),
        (pa.list_(pa.int8()), pa.string()),
        (pa.binary(), pa.string()),
        (pa.timestamp("s", "UTC"), pa.timestamp("s", "Asia/Tokyo")),
        (pa.timestamp("s"), pa.timestamp("s", "UTC")),
        (pa.duration("s"), pa.string()),
        (pa.date32(), pa.timestamp("s")),
        (pa.list_(pa.struct([("a", pa.int8())])), pa.list_(pa.struct([("a", pa.list_(pa.int8()))]))),
    ],
)
def test_types_without_a_common_form_are_an_error_that_names_both_files(left: pa.DataType, right: pa.DataType) -> None:
    with pytest.raises(InputError) as caught:
        unify([("one.arrow", pa.schema([("x", left)])), ("two.arrow", pa.schema([("x", right)]))])

    for word in ("`x`", "one.arrow", "two.arrow", str(left), str(right)):
        assert word in str(caught.value)


def test_columns_keep_their_first_seen_order_and_missing_ones_are_nullable() -> None:
    first = pa.schema([pa.field("b", pa.int8(), nullable=False), pa.field("a", pa.string(), nullable=False)])
    second = pa.schema([pa.field("c", pa.int8(), nullable=False), pa.field("a", pa.string(), nullable=False)])

    schema, casts = unify([("f1", first), ("f2", second), ("f3", second)])

    assert [(f.name, f.nullable) for f in schema] == [("b", True), ("a", False), ("c", True)]
    assert casts == ("`b`: not there, filled with null in `f2` and 1 more", "`c`: not there, filled with null in `f1`")


def test_casts_are_told_once_a_change() -> None:
    schemas = [
        ("a", pa.schema([("x", pa.int64())])),
        ("a", pa.schema([("x", pa.null())])),
        ("b", pa.schema([("x", pa.string())])),
    ]

    assert unify(schemas)[1] == ("`x`: int64 is read as string in `a`",)


def test_metadata_is_the_first_files_and_pandas_only_where_all_agree() -> None:
    one = pa.schema([("x", pa.int64())], metadata={"pandas": "{}", "mine": "1"})
    other = pa.schema([("x", pa.int64())], metadata={"pandas": "{}", "mine": "2"})
    wider = pa.schema([("x", pa.int64()), ("y", pa.int8())], metadata={"pandas": "{}"})

    assert unify([("a", one), ("b", other)])[0].metadata == {b"pandas": b"{}", b"mine": b"1"}
    assert unify([("a", one), ("b", wider)])[0].metadata == {b"mine": b"1"}


def test_two_columns_of_one_name_are_an_error() -> None:
    with pytest.raises(InputError, match="two columns are called `x`"):
        unify([("a", pa.schema([("x", pa.int8()), ("x", pa.int8())]))])


def test_conform_casts_fills_reorders_and_never_rounds() -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"s": {"a": 1}, "n": 2, "l": [{"a": 1}]}, {"s": None, "n": None, "l": None}],
        schema=pa.schema(
            [("s", pa.struct([("a", pa.int8())])), ("n", pa.int32()), ("l", pa.list_(pa.struct([("a", pa.int8())])))]
        ),
    )
    wide = pa.struct([("b", pa.string()), ("a", pa.int64())])
    schema = pa.schema([("n", pa.float64()), ("new", wide), ("l", pa.large_list(wide)), ("s", wide)])

    out = conform(batch.slice(0), schema)

    assert out.schema == schema
    assert out.to_pylist() == [
        {"n": 2.0, "new": None, "l": [{"b": None, "a": 1}], "s": {"b": None, "a": 1}},
        {"n": None, "new": None, "l": None, "s": None},
    ]
    assert conform(batch.slice(1), schema).to_pylist() == out.to_pylist()[1:]
    big = pa.RecordBatch.from_pydict({"n": pa.array([2**53 + 1])})
    with pytest.raises(InputError, match="`n` cannot be read as double"):
        conform(big, pa.schema([("n", pa.float64())]))


def test_hive_values_become_columns_unless_the_file_has_them() -> None:
    def file(name: str, **partition: str) -> SourceFile:
        return SourceFile(name, name, "arrow", "none", 0, "", False, tuple(partition.items()))

    files = [
        file("a", year="2024", code="01", x="9"),
        file("b", year="-1", code="2", x="9"),
        file("c", year="__HIVE_DEFAULT_PARTITION__"),
    ]
    schema = with_partitions(pa.schema([("x", pa.string())]), files)
    batch = pa.RecordBatch.from_pydict({"x": ["own"]})

    assert [(f.name, str(f.type)) for f in schema] == [("x", "string"), ("year", "int64"), ("code", "string")]
    assert [conform(batch, schema, f.partition).to_pylist()[0] for f in files] == [
        {"x": "own", "year": 2024, "code": "01"}, {"x": "own", "year": -1, "code": "2"}, {"x": "own", "year": None, "code": None},
    ]  # fmt: skip


def test_remarks_stay_until_unify_takes_them_off() -> None:
    whole = remark(pa.field("x", pa.int64()), ["double", "uint64"])
    real = remark(pa.field("x", pa.float64()), ["text"])

    joined = join(pa.schema([whole]), pa.schema([real])).field("x")
    final, _ = unify([("a", pa.schema([whole])), ("b", pa.schema([pa.field("x", pa.uint64())]))])

    assert (joined.type, remarks(joined)) == (pa.float64(), {"text"})
    assert (final.field("x").type, final.field("x").metadata) == (pa.uint64(), None)


EDGES = st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63, 2**64 - 1, 2**64])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), EDGES, st.floats(-2, 2), st.text(max_size=1))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2), max_leaves=4
)


def inferred(values: list[Any]) -> pa.Schema:
    return pa.schema([Inference().field("x", values)])


@settings(max_examples=300)
@given(groups=st.lists(st.lists(VALUES, max_size=3), min_size=1, max_size=4))
def test_the_type_of_the_whole_is_the_join_of_the_types_of_its_chunks(groups: list[list[Any]]) -> None:
    step: pa.Schema | None = None
    for group in groups:
        step = join(step, inferred(group))
    last_first: pa.Schema | None = None
    for group in reversed(groups):
        last_first = join(last_first, inferred(group))
    assert step is not None
    assert last_first is not None

    whole = inferred([value for group in groups for value in group])

    assert str(step.field("x").type) == str(whole.field("x").type)
    assert _shape(last_first.field("x").type) == _shape(whole.field("x").type)


def _shape(kind: pa.DataType) -> Any:
    """A type without the order of struct fields."""
    if pa.types.is_struct(kind):
        return {field.name: _shape(field.type) for field in kind}
    return [_shape(kind.value_type)] if pa.types.is_list(kind) else str(kind)
