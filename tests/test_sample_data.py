"""The sample corpus says of itself what is true; nothing here uses curate."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib
import io
import ipaddress
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

Record = dict[str, object] | bytes
SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
BLANK_KINDS = ("empty", "blank", "null_text")


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "sample_data"


@pytest.fixture(scope="module")
def truth(folder: Path) -> list[dict[str, object]]:
    return pq.read_table(folder / "truth.parquet").to_pylist()


@pytest.fixture(scope="module")
def pairs(folder: Path) -> dict[tuple[str, str], float]:
    return {(row["a"], row["b"]): row["jaccard"] for row in pq.read_table(folder / "truth_pairs.parquet").to_pylist()}


@pytest.fixture(scope="module")
def records(folder: Path) -> dict[str, list[Record]]:
    return {path.name: read(path) for path in sorted((folder / "corpus").iterdir())}


@pytest.fixture(scope="module")
def texts(records: dict[str, list[Record]]) -> dict[str, str | None]:
    return {row["id"]: row["text"] for rows in records.values() for row in rows if isinstance(row, dict)}


@pytest.fixture(scope="module")
def plant(root: Path) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root)
        yield importlib.import_module("sample_data.plant")


def decoded(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(content)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().decompress(content, max_output_size=1 << 24)
    return content


def read(path: Path) -> list[Record]:
    """The records of one file in order; the raw line where a strict reader refuses it."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if ".csv" in path.name:
        return list(csv.DictReader(io.StringIO(decoded(path).decode("utf-8"), newline="")))
    return [strict(line) for line in decoded(path).removesuffix(b"\n").split(b"\n")]


def strict(line: bytes) -> Record:
    try:
        record = json.loads(line.decode("utf-8"), object_pairs_hook=no_twins, parse_constant=refuse)
        json.dumps(record, ensure_ascii=False).encode("utf-8")  # a lone surrogate cannot be encoded
    except ValueError:
        return line
    return record


def no_twins(items: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in items}) != len(items):
        raise ValueError("a key twice")
    return dict(items)


def refuse(constant: str) -> object:
    raise ValueError(constant)


def shingles(text: str) -> set[tuple[str, ...]]:
    """Word 5-grams written a second time, plainly, so that the script is not its own judge."""
    words, inside = [], False
    for letter in unicodedata.normalize("NFC", text).casefold():
        is_mark = unicodedata.category(letter)[0] == "M"
        if SPACELESS.match(letter):
            words += [letter] if letter.isalnum() or is_mark else []
            inside = False
        elif letter.isalnum() or letter == "_" or (is_mark and inside):
            words[len(words) - inside :] = [words[-1] + letter if inside else letter]
            inside = True
        else:
            inside = False
    if not words:
        return set()
    return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))}


def jaccard(a: str, b: str) -> float:
    one, two = shingles(a), shingles(b)
    return len(one & two) / len(one | two)


def normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def test_the_sample_fits_in_a_megabyte(folder: Path):
    assert (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts) < 1_000_000
    )


def test_the_files_are_those_that_were_published(folder: Path):
    lines = (folder / "SHA256SUMS").read_text().splitlines()

    assert {
        hashlib.sha256((folder / name).read_bytes()).hexdigest() + "  " + name for name in [line[66:] for line in lines]
    } == set(lines)
    assert len(lines) == 2 + len(list((folder / "corpus").iterdir()))


def test_the_sources_give_the_published_rows_again(folder: Path, shared: Path, plant: ModuleType):
    corpus = plant.build(shared / "data")

    assert set(corpus.files) == {path.name for path in (folder / "corpus").iterdir()}
    for name, content in corpus.files.items():
        path = folder / "corpus" / name
        assert pq.read_table(path).equals(content) if isinstance(content, pa.Table) else decoded(path) == content, name
    assert pq.read_table(folder / "truth.parquet").equals(corpus.truth)
    assert pq.read_table(folder / "truth_pairs.parquet").equals(corpus.pairs)


def test_truth_has_one_line_a_record_in_the_order_of_the_files(truth: list[dict[str, object]], records: dict[str, list[Record]]):
    places = [(name, place) for name, rows in records.items() for place in range(len(rows))]

    assert [(row["source_file"], row["source_row"]) for row in truth] == places


def test_readable_records_have_the_id_that_truth_says_and_broken_ones_none(
    truth: list[dict[str, object]], records: dict[str, list[Record]]
):
    for row in truth:
        record = records[str(row["source_file"])][int(str(row["source_row"]))]
        assert isinstance(record, bytes) == (row["kind"] == "broken"), row
        assert row["id"] == (None if isinstance(record, bytes) else record["id"])


def test_every_file_has_the_same_columns_and_ids_are_unique(records: dict[str, list[Record]], texts: dict[str, str | None]):
    readable = [record for rows in records.values() for record in rows if isinstance(record, dict)]

    assert {tuple(record) for record in readable} == {("id", "text", "lang", "source")}
    assert len(texts) == len(readable)


def test_there_are_two_thousand_real_documents_and_every_planted_kind(truth: list[dict[str, object]]):
    counts = Counter(row["kind"] for row in truth)

    assert counts["original"] + counts["other_language"] >= 2_000
    assert counts["broken"] / len(truth) < 0.01
    assert counts == {
        "original": 1392, "other_language": 750, "exact_copy": 60, "normalised_copy": 60, "near_copy": 80, "near_miss": 66,
        "chain": 24, "empty": 15, "blank": 15, "null_text": 15, "symbols": 24, "boilerplate": 30, "keywords": 24, "code": 24,
        "lorem_ipsum": 24, "repeated_lines": 20, "repeated_paragraphs": 20, "mojibake": 30, "personal_data": 48,
        "look_alike": 24, "broken": 8,
    }  # fmt: skip


def test_junk_is_what_its_kind_says(truth: list[dict[str, object]], texts: dict[str, str | None]):
    kind = {row["id"]: row["kind"] for row in truth if row["id"]}

    assert {name for name, text in texts.items() if text is None} == {name for name in kind if kind[name] == "null_text"}
    assert {name for name, text in texts.items() if text == ""} == {name for name in kind if kind[name] == "empty"}
    assert {name for name, text in texts.items() if text and not text.strip()} == {name for name in kind if kind[name] == "blank"}


@pytest.fixture(scope="module")
def of_kind(truth: list[dict[str, object]], texts: dict[str, str | None]) -> dict[str, list[str]]:
    """The texts of each planted kind."""
    found: dict[str, list[str]] = {}
    for row in truth:
        if row["id"]:
            found.setdefault(str(row["kind"]), []).append(str(texts[str(row["id"])]))
    return found


def test_repetitions_repeat(of_kind: dict[str, list[str]]):
    assert all(max(Counter(text.split("\n")).values()) >= 3 for text in of_kind["repeated_lines"])
    assert all(max(Counter(text.split("\n\n")).values()) >= 2 for text in of_kind["repeated_paragraphs"])
    assert sum("lorem ipsum" in text.lower() for text in of_kind["lorem_ipsum"]) == 18


def test_mojibake_is_text_that_was_read_in_the_wrong_encoding(of_kind: dict[str, list[str]]):
    as_byte = {bytes([byte]).decode("cp1252", "ignore") or chr(byte): byte for byte in range(256)}
    for text in of_kind["mojibake"]:
        data = bytes(as_byte.get(letter, ord(letter)) for letter in text)
        assert len(text) > len(data.decode("utf-8"))


MARKS_OF = {
    "email": r"[\w.+-]+@(?:[\w-]+\.)+\w+",
    "ip": r"\b(?:\d+\.){3}\d+\b|\b2001:db8:[0-9a-f]*::[0-9a-f]+",
    "phone": r"(?<![\w-])(?<!\d )(?:\+\d|\(\d{3}\)|0\d{2,3} )[\d -]{8,}\d",
    "card": r"(?<![\w+])(?<!\d )(?:\d{4}[ -]){3}\d{4}(?! ?\d)|(?<!\w)\d{15,16}(?!\w)",
    "iban": r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,6}(?: ?[A-Z0-9]{1,3})?\b",
    "secret": r"PASSWORD=|postgres://|BEGIN RSA|eyJ\w+\.eyJ|(?:AKIA|ghp_|glpat-|sk_test_|AIza)FAKE",
}
"""how to see each kind, written plainly and for these texts only"""


def test_personal_data_is_what_truth_says_was_planted(truth: list[dict[str, object]], texts: dict[str, str | None]):
    for row in truth:
        assert bool(row["planted"]) == (row["kind"] == "personal_data"), row
        if row["planted"]:
            text = re.sub(r"postgres://\S+", "postgres://", str(texts[str(row["id"])]))
            seen = {kind: len(re.findall(marks, text)) for kind, marks in MARKS_OF.items()}
            assert {kind: count for kind, count in seen.items() if count} == Counter(str(row["planted"]).split(",")), text


def test_personal_data_is_nobodys(of_kind: dict[str, list[str]]):
    text = "\n".join(of_kind["personal_data"])
    blocks = [ipaddress.ip_network(block) for block in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")]

    for address in re.findall(MARKS_OF["ip"], text):
        found = ipaddress.ip_address(address)
        assert any(found.version == block.version and found in block for block in blocks), address
    assert set(re.findall(r"@(?:\w+\.)*(\w+\.\w+)", text)) <= {"example.com", "example.org", "example.net"}
    for number in re.findall(MARKS_OF["iban"], text):
        letters = number.replace(" ", "")
        assert int("".join(str(int(letter, 36)) for letter in letters[4:] + letters[:4])) % 97 == 1, number
    for number in re.findall(MARKS_OF["card"], text):
        digits = [int(letter) for letter in number if letter.isdigit()]
        assert sum(digits[-1::-2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]) in range(0, 200, 10), number


def test_no_token_lies_open_in_the_checkout(folder: Path):
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert not re.search(
                rb"(?:AKIA|ghp_|glpat-|sk_test_|AIza)[A-Za-z0-9]{16}|BEGIN RSA PRIVATE KEY", path.read_bytes()
            ), path


def test_copies_are_exact_or_differ_in_case_space_and_unicode_form_alone(
    truth: list[dict[str, object]], texts: dict[str, str | None]
):
    for row in truth:
        if row["kind"] in ("exact_copy", "normalised_copy"):
            copy, origin = str(texts[str(row["id"])]), str(texts[str(row["of"])])
            assert (copy == origin) == (row["kind"] == "exact_copy"), row
            assert normal(copy) == normal(origin), row


def test_no_unplanted_row_repeats_a_planted_one(truth: list[dict[str, object]], texts: dict[str, str | None]):
    groups: dict[str, list[dict[str, object]]] = {}
    for row in truth:
        if row["id"] and row["kind"] not in BLANK_KINDS:
            groups.setdefault(normal(str(texts[str(row["id"])])), []).append(row)

    for group in groups.values():
        copies = [row for row in group if row["kind"] in ("exact_copy", "normalised_copy")]
        assert len(group) == (2 if copies else 1), group


def test_the_similarity_of_every_planted_row_is_exact_and_of_its_kind(
    truth: list[dict[str, object]], texts: dict[str, str | None], pairs: dict[tuple[str, str], float]
):
    for row in truth:
        if row["of"] is None:
            assert row["jaccard"] is None
            continue
        name, of, similarity = str(row["id"]), str(row["of"]), float(str(row["jaccard"]))
        assert similarity == jaccard(str(texts[name]), str(texts[of])), row
        assert (similarity >= 0.8) == (row["kind"] != "near_miss"), row
        assert similarity < 0.5 or similarity in (pairs.get((name, of)), pairs.get((of, name))), row


def test_near_copies_stand_on_both_sides_of_the_limit_and_on_it(truth: list[dict[str, object]]):
    similarities = [float(str(row["jaccard"])) for row in truth if row["kind"] in ("near_copy", "near_miss")]

    assert similarities.count(0.8) == 6
    assert sum(0.77 <= similarity < 0.8 for similarity in similarities) == 10
    assert sum(0.8 < similarity < 0.85 for similarity in similarities) >= 16


def test_a_near_miss_resembles_no_row_at_all(truth: list[dict[str, object]], pairs: dict[tuple[str, str], float]):
    misses = {row["id"] for row in truth if row["kind"] == "near_miss"}

    assert not [pair for pair, similarity in pairs.items() if similarity >= 0.8 and misses & set(pair)]


def test_the_ends_of_a_chain_do_not_resemble_each_other(truth: list[dict[str, object]], pairs: dict[tuple[str, str], float]):
    of = {row["id"]: row["of"] for row in truth if row["kind"] == "chain"}
    ends = [(first, last) for last, middle in of.items() for first in [of.get(middle)] if first]

    assert len(ends) == 12
    assert all(max(pairs.get((a, b), 0), pairs.get((b, a), 0)) < 0.8 for a, b in ends)


def test_every_listed_pair_has_its_exact_similarity(texts: dict[str, str | None], pairs: dict[tuple[str, str], float]):
    sets = {name: shingles(str(texts[name])) for pair in pairs for name in pair}

    for (a, b), similarity in pairs.items():
        shared, whole = len(sets[a] & sets[b]), len(sets[a] | sets[b])
        assert similarity == shared / whole >= 0.5, (a, b)


def test_no_similar_pair_is_missing(texts: dict[str, str | None], pairs: dict[tuple[str, str], float]):
    sets = {name: shingles(text) for name, text in texts.items() if text}
    names = [name for name in sets if sets[name]]
    holders: dict[tuple[str, ...], list[int]] = {}
    for index, name in enumerate(names):
        for shingle in sets[name]:
            holders.setdefault(shingle, []).append(index)

    for index in range(0, len(names), 7):
        shared = Counter(other for shingle in sets[names[index]] for other in holders[shingle] if other != index)
        for other, count in shared.items():
            first, last = sorted((index, other))
            similar = count / (len(sets[names[index]]) + len(sets[names[other]]) - count) >= 0.5
            assert similar == ((names[first], names[last]) in pairs), (names[first], names[last])
