from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.errors import InputError
from curate.source import Chunk, Piece, ReadOptions, conform, discover, ingest, jsonline, must_reread, pieces, unify
from curate.source import jsonl as jsonl_module
from curate.source import lines as lines_module
from curate.source.discover import SourceFile


def chunks_of(path: Path, options: ReadOptions | None = None, schema: pa.Schema | None = None) -> list[Chunk]:
    options = options or ReadOptions()
    (file,) = discover(path, options)
    return [chunk for piece in pieces(file, options) for chunk in ingest(piece, options, schema)]


def written(folder: Path, *lines: bytes | str, name: str = "a.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines))
    return path


def rows_of(chunks: list[Chunk]) -> list[dict[str, Any]]:
    return [row for chunk in chunks for row in chunk.rows.to_pylist()]


def reasons(chunks: list[Chunk]) -> list[str]:
    return [lost.reason for chunk in chunks for lost in chunk.quarantined]


def test_each_line_is_a_row_and_blank_lines_are_none(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": 1, "b": "x"}', "", "  \t", '{"b": "y"}\r')

    (chunk,) = chunks_of(path)

    assert chunk.rows.to_pylist() == [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]
    assert (chunk.records, chunk.lines, chunk.positions.tolist()) == (2, 4, [0, 1])
    assert chunk.rows.schema.names == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": NaN}', "not valid JSON"),
        (b'{"a": Infinity}', "not valid JSON"),
        (b'{"a": "\xff"}', "invalid UTF-8 at byte 7"),
        (b'{"a": "\xed\xa0\x80"}', "invalid UTF-8"),
        (rb'{"a": "\ud800"}', "lone surrogate"),
        (rb'{"a": 1e999, "b": "\udc00"}', "surrogate"),
        (b'{"a": 1} x', "not valid JSON"),
        (b'{"a": 1e999} x', "not valid JSON"),
        (b'{"a": 1e999, "b": NaN}', "not valid JSON"),
        (b'{"a": 1', "not valid JSON"),
        (b"[1]", "not a JSON object but an array"),
        (b"7", "not a JSON object but a number"),
        (b"null", "not a JSON object but null"),
        (b'{"a": 1, "a": 2}', 'the key "a" stands twice'),
        (b'{"a":1,"a" :2}', 'the key "a" stands twice'),
        (b'{"a":1,"a"\t:2,"b":":"}', 'the key "a" stands twice'),
        (rb'{"a\\":1,"b":1,"b":2}', 'the key "b" stands twice'),
        (rb'{"a\\" :1,"a\\":2}', "stands twice"),
        (rb'{"x":"\":","a":{"b":1,"b":2}}', 'the key "b" stands twice'),
        (rb'{"a":1,"\u0061":2}', 'the key "a" stands twice'),
        (b'{"a":1e999,"a":2}', 'the key "a" stands twice'),
        (b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", "nested deeper than 128"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "nested deeper than 128"),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", "nested deeper than 128"),
        (b'\xef\xbb\xbf{"a": 1}', "not valid JSON"),
        (b"\xff\xfe{\0", "invalid UTF-8"),
    ],
)
def test_a_line_that_is_no_row_is_quarantined_with_its_place(tmp_path: Path, line: bytes, reason: str) -> None:
    path = written(tmp_path, '{"a": 1}', "", line, '{"a": 3}')

    (chunk,) = chunks_of(path)

    (lost,) = chunk.quarantined
    assert reason in lost.reason
    assert (lost.position, lost.line, lost.offset, lost.raw) == (1, 3, 10, line)
    assert chunk.positions.tolist() == [0, 2]
    assert chunk.records == 3


def test_text_that_looks_like_keys_is_not_taken_for_keys(tmp_path: Path) -> None:
    values = ['":', '\\":', '" :', "{", '","a":1', "\\", '"a":"a":', ":", '\\\\" :']
    path = written(tmp_path, *(json.dumps({"a": value, ":": value}) for value in values))

    chunks = chunks_of(path)

    assert [row["a"] for row in rows_of(chunks)] == values
    assert reasons(chunks) == []


KEYS = st.sampled_from(["a", "b\\", '"', ":", '":'])
TEXTS = st.sampled_from(["1", '":"', '" :"', "[]"])


@given(pairs=st.lists(st.tuples(KEYS, TEXTS), max_size=4), spaces=st.sampled_from(["", " ", "\t", "  "]))
def test_a_key_that_stands_twice_never_passes(pairs: list[tuple[str, str]], spaces: str) -> None:
    line = ("{" + ",".join(f"{json.dumps(key)}{spaces}:{value}" for key, value in pairs) + "}").encode()
    spaced = jsonline.has_spaced_colon(line)

    rows, _, lost, _ = jsonline.parse_lines([line], spaced, 10**6)

    assert len(rows) == (len({key for key, _ in pairs}) == len(pairs))
    assert len(lost) == 1 - len(rows)


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\nx\n')

    (chunk,) = chunks_of(path)

    assert chunk.rows.to_pylist() == [{"a": 1}]
    assert chunk.quarantined[0].offset == 12


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", "null", "-2"], pa.int64(), [1, None, -2]),
        (["1", "18446744073709551615"], pa.uint64(), [1, 2**64 - 1]),
        (["-1", "18446744073709551615"], pa.string(), ["-1", "18446744073709551615"]),
        (["1", "18446744073709551616"], pa.string(), ["1", "18446744073709551616"]),
        (["-9223372036854775809", "2"], pa.string(), ["-9223372036854775809", "2"]),
        (["1", "0.5"], pa.float64(), [1.0, 0.5]),
        (["9007199254740993", "0.5"], pa.string(), ["9007199254740993", "0.5"]),
        (["1e300", "1e-3"], pa.float64(), [1e300, 1e-3]),
        (["1e400", "1.50"], pa.string(), ["1e400", "1.50"]),
        (["1" + "0" * 400, "1.50"], pa.string(), ["1" + "0" * 400, "1.50"]),
        (["12345678901234567890.5", "1"], pa.float64(), [12345678901234567890.5, 1.0]),
        (["true", "null"], pa.bool_(), [True, None]),
        (["true", "1"], pa.string(), ["true", "1"]),
        (['"x"', "1.50", "[1.0, 2]"], pa.string(), ["x", "1.50", "[1.0,2]"]),
        (['"x"', '{"a": "\\u00e9", "n": 1E2}'], pa.string(), ["x", '{"a":"é","n":1E2}']),
        (["{}", "{}"], pa.string(), ["{}", "{}"]),
        (["[]", "null"], pa.list_(pa.null()), [[], None]),
        (["[1]", "[0.5, null]"], pa.list_(pa.float64()), [[1.0], [0.5, None]]),
        (["[1]", '["a"]'], pa.list_(pa.string()), [["1"], ["a"]]),
        (["[18446744073709551616]", "[1.0]"], pa.list_(pa.string()), [["18446744073709551616"], ["1.0"]]),
        (["[1]", "2"], pa.string(), ["[1]", "2"]),
        (["{}", '{"a": 1}'], pa.struct([("a", pa.int64())]), [{"a": None}, {"a": 1}]),
        (['{"a": 1}', '{"b": [{"c": "x"}]}'], pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string())])))]),
         [{"a": 1, "b": None}, {"a": None, "b": [{"c": "x"}]}]),
    ],
)  # fmt: skip
def test_types_lose_nothing_in_one_chunk_or_in_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[str], kind: pa.DataType, expected: list[Any]
) -> None:
    path = written(tmp_path, *(f'{{"x": {value}}}' for value in values))
    (together,) = chunks_of(path)
    monkeypatch.setattr(jsonl_module, "CHUNK_ROWS", 1)

    apart = chunks_of(path)
    schema, _ = unify([("a.jsonl", chunk.rows.schema) for chunk in apart])
    again = chunks_of(path, schema=schema)

    assert together.rows.schema.field("x").type == kind
    assert together.rows.column("x").to_pylist() == expected
    assert len(apart) == len(values)
    assert schema.field("x").type in (kind, pa.large_string())
    assert [row["x"] for row in rows_of(again)] == expected
    if not must_reread([chunk.rows.schema for chunk in apart], schema):
        conformed = [conform(chunk.rows, schema).to_pylist()[0]["x"] for chunk in apart]
        assert conformed == expected


def test_chunk_schemas_widen_and_the_last_one_covers_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, '{"a": null}', '{"a": 1}', '{"b": 1, "a": 2.5}', '{"a": "x"}')
    monkeypatch.setattr(jsonl_module, "CHUNK_ROWS", 1)

    types = [[str(f.type) for f in chunk.rows.schema] for chunk in chunks_of(path)]

    assert types == [["null"], ["int64"], ["double", "int64"], ["string", "int64"]]


def test_deep_and_very_wide_values_become_json_text(tmp_path: Path) -> None:
    deep = "[" * 60 + "]" * 60
    wide = {f"k{n}": n for n in range(2000)}
    path = written(tmp_path, f'{{"deep": {deep}}}', json.dumps({"wide": wide}))

    (chunk,) = chunks_of(path)

    assert chunk.rows.schema.field("wide").type == pa.string()
    assert json.loads(chunk.rows.column("wide")[1].as_py()) == wide
    innermost = chunk.rows.column("deep")[0].as_py()
    for _ in range(32):
        (innermost,) = innermost
    assert innermost == "[" * 28 + "]" * 28


def test_too_many_different_keys_are_an_error_that_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, *(f'{{"k{n}": 1}}' for n in range(5000)))

    with pytest.raises(InputError, match="different keys"):
        chunks_of(path)


def test_objects_without_keys_are_rows_all_the_same(tmp_path: Path) -> None:
    (chunk,) = chunks_of(written(tmp_path, "{}", "{}"))

    assert (chunk.rows.num_rows, chunk.records) == (2, 2)
    assert conform(chunk.rows, pa.schema([("a", pa.int64())])).to_pylist() == [{"a": None}] * 2


def test_names_and_values_that_break_software_come_back_unchanged(tmp_path: Path, shared: Path) -> None:
    source = shared / "data" / "naughty_strings" / "naughty_strings.jsonl"
    strings = [json.loads(line)["text"] for line in source.read_bytes().split(b"\n") if line]
    path = written(tmp_path, json.dumps({string: string for string in strings}))

    assert [row["text"] for row in rows_of(chunks_of(source))] == strings
    (row,) = rows_of(chunks_of(path))
    assert row == {string: string for string in strings}


def test_every_odd_json_file_is_a_row_or_is_accounted_for(tmp_path: Path, shared: Path) -> None:
    folder = shared / "data" / "bad_json"
    for entry in csv.DictReader((folder / "manifest.csv").read_text(encoding="utf-8").splitlines()):
        raw = (folder / "files" / entry["file"]).read_bytes()
        path = tmp_path / "one.jsonl"
        path.write_bytes(raw)
        try:
            chunks = chunks_of(path)
        except InputError as err:
            assert "one.jsonl" in str(err), entry["file"]  # noqa: PT017
            assert entry["expected"] != "accept"
            continue
        rows, lost = rows_of(chunks), reasons(chunks)
        expected = json.loads(raw) if entry["expected"] == "accept" else None
        if isinstance(expected, dict) and b"\n" not in raw.strip():
            assert len(rows) == 1, entry["file"]
            assert lost == [], entry["file"]
        elif raw.strip() and raw.strip() != b"\xef\xbb\xbf":
            assert lost or entry["expected"] != "reject", entry["file"]
            assert len(rows) + len(lost) == sum(bool(line.strip()) for line in raw.split(b"\n")), entry["file"]


def test_rows_over_the_cap_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = json.dumps({"a": "x" * 5000})
    path = written(tmp_path, '{"a": "1"}', long, '{"a": "2"}', long)

    whole = chunks_of(path, ReadOptions(row_bytes=1000))
    monkeypatch.setattr("curate.source.lines.CHUNK_BYTES", 64)
    monkeypatch.setattr("curate.source.stream.READ_BYTES", 100)
    monkeypatch.setattr(lines_module.blocks_of, "__defaults__", (64,))
    bits = chunks_of(path, ReadOptions(row_bytes=1000))

    for chunks in (whole, bits):
        assert [row["a"] for row in rows_of(chunks)] == ["1", "2"]
        lost = [lost for chunk in chunks for lost in chunk.quarantined]
        assert [(q.position, q.line, q.offset) for q in lost] == [(1, 2, 11), (3, 4, 11 + len(long) + 1 + 11)]
        assert {q.reason for q in lost} == {"the row is longer than 1000 bytes"}
        assert all(long.encode().startswith(q.raw) for q in lost)
        assert sum(chunk.records for chunk in chunks) == 4
        assert sum(chunk.lines for chunk in chunks) == 4


def test_what_is_kept_of_an_unreadable_row_is_capped(tmp_path: Path) -> None:
    (chunk,) = chunks_of(written(tmp_path, "x" * 10**6))

    assert len(chunk.quarantined[0].raw) == 65536


def test_a_last_line_that_was_not_finished_is_a_file_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "wor')

    with pytest.raises(InputError, match=r"cut\.jsonl. is cut short"):
        chunks_of(path)
    (chunk,) = chunks_of(path, ReadOptions(allow_truncated=("cut.jsonl",)))
    assert (chunk.rows.num_rows, len(chunk.quarantined)) == (1, 1)


def test_an_empty_file_gives_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"")

    assert chunks_of(path) == []


PIECES = st.lists(
    st.sampled_from(
        [b'{"a":1}', b'{"a":"x\\n"}', b"\n", b"\n", b"\r\n", b" ", b"{", b"}", b'"', b"\xff", b"[1]", b"\xef\xbb\xbf", b"0"]
    ),
    max_size=30,
)


@settings(max_examples=300)
@given(parts=PIECES, cuts=st.lists(st.integers(0, 120), max_size=4), size=st.integers(1, 40), cap=st.sampled_from([8, 1000]))
def test_any_split_of_any_bytes_gives_the_same_records(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], cuts: list[int], size: int, cap: int
) -> None:
    data = b"".join(parts)
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(data)
    file = SourceFile(str(path), "any.jsonl", "jsonl", "none", len(data), "", False)
    options = ReadOptions(allow_truncated=("any.jsonl",), row_bytes=cap)
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})

    def records(some: list[Piece], block: int) -> tuple[list[tuple[int, Any]], int]:
        found: list[tuple[int, Any]] = []
        base = lines = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("curate.source.stream.READ_BYTES", block)
            patch.setattr(lines_module.blocks_of, "__defaults__", (block,))
            for piece in some:
                total = piece_lines = 0
                for chunk in ingest(piece, options, pa.schema([("a", pa.string())])):
                    rows = zip(chunk.positions.tolist(), chunk.rows.column("a").to_pylist(), strict=True)
                    found += [(base + position, value) for position, value in rows]
                    found += [(base + q.position, (lines + q.line, q.offset, q.reason, q.raw)) for q in chunk.quarantined]
                    total += chunk.records
                    piece_lines += chunk.lines
                base += total
                lines += piece_lines
        return sorted(found, key=lambda pair: pair[0]), lines

    whole = records([Piece(file, 0, len(data))], 1 << 20)
    split = records([Piece(file, start, stop) for start, stop in itertools.pairwise(borders)], size)

    assert [position for position, _ in whole[0]] == list(range(len(whole[0])))
    assert split == whole
    text = data.removeprefix(b"\xef\xbb\xbf")
    assert len(whole[0]) == sum(bool(line.strip()) for line in text.split(b"\n"))
