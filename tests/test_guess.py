from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate.errors import InputError, RequestError
from curate.guess import Guess, guess, name_of

PROSE = [f"the quick brown fox number {index} jumps over the lazy dog" for index in range(60)]
WORDS = [f"w{index % 7}" for index in range(60)]
ADDRESSES = [f"https://example.org/a/very/long/path/that/is/longer/than/the/prose/number/{index}" for index in range(60)]


def guessed(tmp_path: Path, **columns: Any) -> Guess:
    pq.write_table(pa.table({name.replace("__", "-"): values for name, values in columns.items()}), tmp_path / "x.parquet")
    return guess(str(tmp_path / "x.parquet"))


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"Body": WORDS, "notes": PROSE}, ("Body",)),  # a name wins over what stands in the cells
        ({"a": WORDS, "notes": PROSE, "more": [f"{text} {text}" for text in PROSE]}, ("more",)),
        ({"url": ADDRESSES, "notes": PROSE}, ("notes",)),
        ({"prompt": PROSE, "response": PROSE}, ("prompt", "response")),
        ({"text": pa.nulls(60, pa.string()), "notes": PROSE}, ("notes",)),
        ({"n": list(range(60)), "s": [f"x{index}" for index in range(60)]}, ("s",)),  # the only texts there are
        ({"t": ["今日は天気がとても良いので散歩に行きました" + str(index) for index in range(60)], "u": WORDS}, ("t",)),
        ({"t": pa.array(PROSE).dictionary_encode(), "u": WORDS}, ("t",)),
        ({"url": ADDRESSES}, None),
        ({"a": WORDS, "b": WORDS}, None),
        ({"s": ["one sentence that is always the same one"] * 60}, None),  # a label in many words
        ({"id": [f"x{index}" for index in range(60)]}, None),
        ({"messages": [[{"role": "user", "content": "hi"}]] * 60}, None),
    ],
)
def test_the_text_column(tmp_path: Path, columns: dict[str, Any], text: tuple[str, ...] | None):
    assert guessed(tmp_path, **columns).roles.get("text") == text


@pytest.mark.parametrize(
    ("columns", "role", "wanted"),
    [
        ({"url": ADDRESSES, "docId": [f"d{index}" for index in range(60)]}, "id", ("docId",)),
        ({"id": [1] * 60, "uuid": [f"u{index}" for index in range(60)]}, "id", ("uuid",)),  # an id is unique
        ({"page_id": list(range(60))}, "id", ("page_id",)),
        ({"id": [1.5 * index for index in range(60)]}, "id", None),
        ({"intent": WORDS}, "label", ("intent",)),
        ({"is_spam_label": [True, False] * 30}, "label", ("is_spam_label",)),
        ({"label": [f"l{index}" for index in range(60)]}, "label", None),  # every row a class of its own
        ({"part": ["train", "dev"] * 30}, "split", ("part",)),
        ({"Split": [0, 1] * 30}, "split", ("Split",)),
        ({"Language": WORDS, "native__country": WORDS, "source": ADDRESSES}, "group", ("Language", "native-country")),
    ],
)
def test_the_other_roles(tmp_path: Path, columns: dict[str, Any], role: str, wanted: tuple[str, ...] | None):
    assert guessed(tmp_path, text=PROSE, **columns).roles.get(role) == wanted


def test_what_came_second_is_named(tmp_path: Path):
    found = guessed(tmp_path, text=PROSE, summary=PROSE, id=list(range(60)), url=ADDRESSES)

    assert found.others == {"text": ("summary",), "id": ("url",)}


def test_a_folder_is_looked_into_file_by_file(tmp_path: Path):
    for lang in ("de", "en"):
        (tmp_path / "d" / f"lang={lang}").mkdir(parents=True)
        lines = [json.dumps({"content": text, "n": index}) for index, text in enumerate(PROSE)]
        (tmp_path / "d" / f"lang={lang}" / "a.jsonl").write_text("\n".join(lines))

    found = guess(str(tmp_path / "d"))

    assert found.roles == {"text": ("content",), "group": ("lang",)}
    assert found.sample.rows == 120


def test_clashing_types_stop_no_guess(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text(
        '{"text": "one two three four", "v": 1}\n{"text": "five six seven eight", "v": "x"}\n{"v": [1]}\n'
    )

    assert guess(str(tmp_path / "a.jsonl")).roles["text"] == ("text",)


@pytest.mark.parametrize(
    "text", ['[{"text": "a"}, {"text": "b"}]', '[\n{"text": "a"},\n{"text": "b"}\n]', json.dumps([{"a": 1}], indent=1)]
)
def test_a_json_array_is_refused_with_the_remedy(tmp_path: Path, text: str):
    (tmp_path / "a.json").write_text(text)

    with pytest.raises(InputError, match="this is one JSON array") as caught:
        guess(str(tmp_path / "a.json"))

    assert "jq -c '.[]' a.json" in caught.value.hint


@pytest.mark.parametrize(("sign", "written"), [(";", ";"), ("\t", r"\t"), ("|", "|")])
def test_a_wrong_delimiter_is_named(tmp_path: Path, sign: str, written: str):
    (tmp_path / "a.csv").write_text(sign.join(["id", "text"]) + "\n" + sign.join(["1", "hello"]) + "\n")

    with pytest.raises(RequestError, match="the whole file is one column") as caught:
        guess(str(tmp_path / "a.csv"))

    assert caught.value.hint == f"say so with --set 'read.delimiter=\"{written}\"'"


@pytest.mark.parametrize("rows", [b"", b"{}\n{}\n", b"not json\n"])
def test_a_source_without_columns_is_an_input_error(tmp_path: Path, rows: bytes):
    (tmp_path / "a.jsonl").write_bytes(rows)

    with pytest.raises(InputError):
        guess(str(tmp_path / "a.jsonl"))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("data/reviews.jsonl.gz", "reviews"),
        ("data/", "data"),
        ("/data/v1.2/*.parquet", "v1.2"),
        ("s3://bucket/some%20where/part-0.parquet?x=1", "part-0"),
        ("*.csv", "data"),
        ("odd ' name$(x).csv", "odd-name-x"),
        (".", "data"),
    ],
)
def test_a_pipeline_is_named_after_its_data(source: str, name: str):
    assert name_of(source) == name


@pytest.mark.parametrize(
    ("file", "roles"),
    [
        ("web_text_cc/cc_en_head.parquet", {"text": ("text",), "id": ("id",), "group": ("lang",)}),
        ("snips_intents/snips_intents.parquet", {"text": ("text",), "label": ("intent",), "split": ("split",)}),
        ("tatoeba_languages/tatoeba.parquet", {"text": ("text",), "group": ("lang",)}),
        ("naughty_strings/naughty_strings.parquet", {"text": ("string",)}),
        ("er_cddb/records.parquet", {"text": ("tracks",), "id": ("rec_id",), "label": ("category",), "group": ("genre",)}),
        ("bias_adult/adult.parquet", {"group": ("native-country", "sex", "race")}),
        ("dirty_tables/beers_dirty.csv", {"id": ("id",)}),
        ("outliers_adbench/glass.parquet", {}),
    ],
)
def test_real_data(shared: Path, file: str, roles: dict[str, tuple[str, ...]]):
    assert guess(str(shared / "data" / file)).roles == roles
