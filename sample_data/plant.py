"""Build the sample corpus and its truth: real texts, planted faults, and the exact answer for every row.

    python -m sample_data.plant SOURCES

`SOURCES` is a folder with `licence_texts/`, `tatoeba_languages/` and `snips_intents/` (see README.md
beside this file for where they come from). The same sources always give the same rows: every choice is a
function of its own name, so adding a planted kind changes no other row's text. Nothing here uses curate.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from sample_data.junk import junk
from sample_data.personal import look_alikes, personal
from sample_data.rows import Row, draw
from sample_data.similarity import SPACELESS, TOKEN, all_pairs, jaccard, shingles, tokens

HERE = Path(__file__).resolve().parent
COLUMNS = ("id", "text", "lang", "source")
ENGLISH_FILES = ("en-0001.jsonl.gz",) * 9 + ("en-0002.jsonl",) * 3 + ("en-0004.parquet",) * 4
OTHER_FILES = ("multi-0001.parquet", "multi-0002.jsonl.zst")


@dataclass(frozen=True)
class Corpus:
    """The files' decoded bytes or tables, the truth of every row, and every similar pair."""

    files: dict[str, bytes | pa.Table]
    truth: pa.Table
    pairs: pa.Table


def build(sources: Path) -> Corpus:
    """The whole corpus, deterministically, from the source folders."""
    by_lang = sentences(sources)
    real = [*licence_notices(sources), *conversations(by_lang), *commands(sources)]
    spare = {lang: texts[2040 if lang == "eng" else 240 :] for lang, texts in by_lang.items()}
    lonely = without_relatives(real)
    planted = [
        *copies(lonely),
        *near_copies(lonely),
        *routes(),
        *junk(spare),
        *personal(spare["eng"]),
        *look_alikes(spare["eng"]),
    ]
    rows = in_files([*real, *planted, *broken(real)])
    ids = {row.key: f"d{number:04d}" for number, row in enumerate((row for row in rows if not row.raw), 1)}
    return Corpus(encoded(rows, ids), truth_of(rows, ids), similar_pairs(rows, ids))


def main() -> None:
    """Write the corpus, the truth and the digests beside this script."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    corpus = build(Path(sys.argv[1]))
    (HERE / "corpus").mkdir(exist_ok=True)
    for name, content in corpus.files.items():
        write(HERE / "corpus" / name, content)
    write(HERE / "truth.parquet", corpus.truth)
    write(HERE / "truth_pairs.parquet", corpus.pairs)
    names = sorted([*(f"corpus/{name}" for name in corpus.files), "truth.parquet", "truth_pairs.parquet"])
    digests = [f"{hashlib.sha256((HERE / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (HERE / "SHA256SUMS").write_text("".join(digests))
    kinds = corpus.truth.group_by("kind").aggregate([([], "count_all")]).sort_by("kind").to_pylist()
    print(*(f"{row['count_all']:6} {row['kind']}" for row in kinds), f"{len(corpus.pairs):6} pairs", sep="\n")


# Real texts


def licence_notices(sources: Path) -> Iterable[Row]:
    """1,000 English licence notices of 100 to 1,500 characters."""
    table = pq.read_table(sources / "licence_texts" / "docs.parquet", columns=["rule_id", "kind", "text"])
    notices = [row for row in table.to_pylist() if row["kind"] == "is_license_notice" and 100 <= len(row["text"]) <= 1500]
    notices.sort(key=lambda row: draw(2**63, "notice", row["rule_id"]))
    for row in notices[:1000]:
        yield Row(row["rule_id"], row["text"], "eng", "scancode", "original")


def sentences(sources: Path) -> dict[str, list[str]]:
    """The sentences of each language, English ones last."""
    table = pq.read_table(sources / "tatoeba_languages" / "tatoeba.parquet", columns=["lang", "text", "english"])
    columns = table.to_pydict()
    by_lang: dict[str, list[str]] = {}
    for lang, text in zip(columns["lang"], columns["text"], strict=True):
        by_lang.setdefault(lang, []).append(text)
    translated = zip(columns["english"], columns["lang"], strict=True)
    english = list(dict.fromkeys(text for text, lang in translated if lang in ("deu", "fra", "rus")))
    return dict(sorted(by_lang.items())) | {"eng": english}


def conversations(by_lang: dict[str, list[str]]) -> Iterable[Row]:
    """Eight consecutive sentences a document: 250 English ones, 30 in each other language, and 40 single sentences."""
    english = by_lang["eng"]
    for number in range(250):
        yield Row(f"eng/{number}", " ".join(english[number * 8 : number * 8 + 8]), "eng", "tatoeba", "original")
    for number, text in enumerate(english[2000:2040]):
        yield Row(f"eng/short/{number}", text, "eng", "tatoeba", "original")
    for lang, texts in by_lang.items():
        gap = "" if lang in ("jpn", "yue") else " "
        for number in range(30 if lang != "eng" else 0):
            text = gap.join(texts[number * 8 : number * 8 + 8])
            yield Row(f"{lang}/{number}", text, lang, "tatoeba", "other_language")


def commands(sources: Path) -> Iterable[Row]:
    """100 lists of six voice commands of one intent, a command a line."""
    table = pq.read_table(sources / "snips_intents" / "snips_intents.parquet", columns=["text", "intent"])
    by_intent: dict[str, list[str]] = {}
    for row in table.to_pylist():
        by_intent.setdefault(row["intent"], []).append(row["text"])
    for number in range(100):
        intents = sorted(by_intent)
        chosen, start = by_intent[intents[number % len(intents)]], number // len(intents) * 6
        yield Row(f"snips/{number}", "\n".join(chosen[start : start + 6]), "eng", "snips", "original")


def without_relatives(real: list[Row]) -> list[Row]:
    """The documents of 12 tokens and more that resemble no other one, shuffled: what may be copied and still be sure."""
    related = {index for i, j, _ in all_pairs([str(row.text) for row in real], 0.2) for index in (i, j)}
    alone = [row for index, row in enumerate(real) if index not in related and len(tokens(str(row.text))) >= 12]
    return sorted(alone, key=lambda row: draw(2**63, "lonely", row.key))


# Planted rows


def copies(lonely: list[Row]) -> Iterable[Row]:
    """60 exact copies; 60 copies that differ in case, white space or Unicode form only."""
    for number, row in enumerate(lonely[:60]):
        yield made_from(row, f"exact/{number}", "exact_copy", str(row.text))
    changes: list[Callable[[str], str]] = [str.upper, str.lower, str.title, spaced, nfd, lambda text: spaced(nfd(text).upper())]
    wanted, number = 60, 0
    for row in lonely[60:]:
        text = changes[number % len(changes)](str(row.text))
        if text != row.text and normal(text) == normal(str(row.text)) and shingles(text) == shingles(str(row.text)):
            yield made_from(row, f"normalised/{number}", "normalised_copy", text)
            number += 1
        if number == wanted:
            return


def made_from(row: Row, key: str, kind: str, text: str) -> Row:
    return replace(row, key=key, kind=kind, text=text, of=row.key)


def spaced(text: str) -> str:
    """Other white space: doubled spaces, tabs, a line break now and then and at the beginning."""
    words = text.split(" ")
    gaps = [("  ", "\t", " \n", *" " * 21)[draw(24, "gap", text, i)] for i in range(len(words))]
    return "\n" + "".join(word + gap for word, gap in zip(words, gaps, strict=True))


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def normal(text: str) -> tuple[str, str]:
    """What no normalised copy may change, under either reading of "case"."""
    composed = " ".join(unicodedata.normalize("NFC", text).split())
    return composed.casefold(), unicodedata.normalize("NFC", composed.lower())


BANDS = (  # kind, how many, similarity from (inclusive) and to (exclusive)
    ("near_copy", 6, Fraction(4, 5), Fraction(4, 5)),
    ("near_copy", 16, Fraction(81, 100), Fraction(85, 100)),
    ("near_copy", 20, Fraction(85, 100), Fraction(90, 100)),
    ("near_copy", 20, Fraction(90, 100), Fraction(95, 100)),
    ("near_copy", 18, Fraction(95, 100), Fraction(1)),
    ("near_miss", 10, Fraction(77, 100), Fraction(4, 5)),
    ("near_miss", 20, Fraction(70, 100), Fraction(77, 100)),
    ("near_miss", 20, Fraction(60, 100), Fraction(70, 100)),
    ("near_miss", 10, Fraction(50, 100), Fraction(60, 100)),
)


def near_copies(lonely: list[Row]) -> Iterable[Row]:
    """Edited copies at a known similarity, and 12 chains A ~ B ~ C in which C no longer resembles A."""
    bases = iter(lonely[200:])
    for kind, wanted, low, high in BANDS:
        made = 0
        while made < wanted:
            row = next(bases)
            text = edited(str(row.text), low, high)
            if text is not None:
                yield made_from(row, f"{kind}/{low}/{made}", kind, text)
                made += 1
    made = 0
    while made < 12:
        first = next(bases)
        text = edited(str(first.text), Fraction(81, 100), Fraction(87, 100))
        last = text and edited(text, Fraction(81, 100), Fraction(87, 100))
        if text and last and jaccard(shingles(str(first.text)), shingles(last)) < Fraction(79, 100):
            middle = made_from(first, f"chain/{made}/b", "chain", text)
            yield from (middle, made_from(middle, f"chain/{made}/c", "chain", last))
            made += 1


def edited(text: str, low: Fraction, high: Fraction) -> str | None:
    """The text with a few words replaced, removed or added so that the similarity falls in the band; None if it never does."""
    old = shingles(text)
    for attempt in range(120):
        new = text
        for step in range(1 + draw(1 + attempt // 8, text, attempt)):
            new = one_edit(new, text, attempt, step)
        similarity = jaccard(old, shingles(new))
        if low <= similarity < high or low == similarity == high:
            return new
    return None


def one_edit(text: str, *name: object) -> str:
    """Replace, remove or double up one token with another one of the same text."""
    spans = [found.span() for found in TOKEN.finditer(text)]
    start, end = spans[draw(len(spans), *name, "where")]
    other = slice(*spans[draw(len(spans), *name, "what")])
    gap = "" if re.match(f"[{SPACELESS}]", text[start:end]) else " "
    match draw(4, *name, "how"):
        case 0:
            return text[:start] + text[end:].removeprefix(gap)
        case 1:
            return text[:start] + text[other] + gap + text[start:]
        case _:
            return text[:start] + text[other] + text[end:]


def routes() -> Iterable[Row]:
    """Short texts one number apart, which say different things: similar to look at, not duplicates."""
    for first, line in enumerate(("Route {} is closed", "Order {} has been sent to you today")):
        base = Row(f"route/{first}", line.format(11), "eng", "curate", "original")
        yield base
        for number in range(12, 15):
            yield made_from(base, f"route/{first}/{number}", "near_miss", line.format(number))


def broken(real: list[Row]) -> Iterable[Row]:
    """Eight records that no strict reader takes; each would be a row of real text but for one fault."""
    faults: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
        ("en-0002.jsonl", lambda line: line.replace(b" the ", b" \xff\xfe ", 1)),
        ("en-0002.jsonl", lambda line: line[: len(line) // 2]),
        ("en-0002.jsonl", lambda line: line.replace(b'"text":"', b'"text":NaN,"x":"', 1)),
        ("en-0002.jsonl", lambda line: line.replace(b" the ", rb" \ud83d ", 1)),
        ("en-0002.jsonl", lambda line: line.replace(b'"lang":', b'"id":"x2","lang":', 1)),
        ("en-0001.jsonl.gz", lambda line: line[:-2]),
        ("multi-0002.jsonl.zst", lambda line: line.replace(b" the ", b" \xc3\x28 ", 1)),
        ("multi-0002.jsonl.zst", lambda line: line.replace(b'"lang":"eng"', b'"lang":eng', 1)),
    )
    whole = [row for row in real if row.source == "scancode" and " the " in str(row.text)]
    for number, (file, fault) in enumerate(faults):
        row = whole[draw(len(whole), "broken", number)]
        line = json_line(replace(row, text=str(row.text)[:300]), f"x{number}")
        assert fault(line) != line
        yield Row(f"broken/{number}", None, "eng", "curate", "broken", file=file, raw=fault(line))


# Files and truth


def in_files(rows: list[Row]) -> list[Row]:
    """Every row in a file, files in name order, rows shuffled within theirs."""
    placed = [row if row.file else replace(row, file=file_for(row)) for row in rows]
    return sorted(placed, key=lambda row: (row.file, draw(2**63, "place", row.key)))


def file_for(row: Row) -> str:
    if row.source == "snips":
        return "en-0003.csv.gz"
    files = ENGLISH_FILES if row.lang == "eng" else OTHER_FILES
    return files[draw(len(files), "file", row.key)]


def json_line(row: Row, name: str) -> bytes:
    record = {"id": name, "text": row.text, "lang": row.lang, "source": row.source}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def encoded(rows: list[Row], ids: dict[str, str]) -> dict[str, bytes | pa.Table]:
    """What each file holds: decoded bytes for lines, a table for Parquet."""
    files: dict[str, bytes | pa.Table] = {}
    for name in sorted({row.file for row in rows}):
        inside = [row for row in rows if row.file == name]
        cells = [(ids.get(row.key, ""), row.text, row.lang, row.source) for row in inside]
        if ".jsonl" in name:
            files[name] = b"".join((row.raw or json_line(row, ids[row.key])) + b"\n" for row in inside)
        elif ".csv" in name:
            sheet = io.StringIO(newline="")
            csv.writer(sheet, lineterminator="\n").writerows([COLUMNS, *cells])
            files[name] = sheet.getvalue().encode()
        else:
            columns = zip(COLUMNS, zip(*cells, strict=True), strict=True)
            files[name] = pa.table({column: pa.array(values, pa.string()) for column, values in columns})
    return files


def truth_of(rows: list[Row], ids: dict[str, str]) -> pa.Table:
    """One line an input row, broken ones too: where it stands, what it is, what it was made from, what was put in."""
    by_key = {row.key: row for row in rows}
    places: dict[str, int] = {}
    lines = []
    for row in rows:
        place = places[row.file] = places.get(row.file, -1) + 1
        origin = by_key.get(row.of)
        similarity = float(jaccard(shingles(str(origin.text)), shingles(str(row.text)))) if origin else None
        planted = ",".join(row.planted) or None
        lines.append((row.file, place, ids.get(row.key), row.kind, ids.get(row.of), similarity, planted))
    names = ("source_file", "source_row", "id", "kind", "of", "jaccard", "planted")
    types = (pa.string(), pa.int64(), pa.string(), pa.string(), pa.string(), pa.float64(), pa.string())
    columns = zip(names, types, zip(*lines, strict=True), strict=True)
    return pa.table({name: pa.array(values, kind) for name, kind, values in columns})


def similar_pairs(rows: list[Row], ids: dict[str, str]) -> pa.Table:
    """Every pair of readable texts with a Jaccard similarity of 0.5 or more, planted or not."""
    texts = [row for row in rows if row.text]
    pairs = all_pairs([str(row.text) for row in texts], 0.5)
    names = [ids[row.key] for row in texts]
    return pa.table(
        {
            "a": pa.array([names[i] for i, _, _ in pairs], pa.string()),
            "b": pa.array([names[j] for _, j, _ in pairs], pa.string()),
            "jaccard": pa.array([similarity for _, _, similarity in pairs], pa.float64()),
        }
    )


def write(path: Path, content: bytes | pa.Table) -> None:
    """Write one file in the form its name asks for."""
    if isinstance(content, pa.Table):
        rows_a_group = 200 if path.parent.name == "corpus" else None
        pq.write_table(content, path, compression="zstd", compression_level=19, row_group_size=rows_a_group)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(content, 9, mtime=0))
    elif path.suffix == ".zst":
        path.write_bytes(zstandard.ZstdCompressor(level=19).compress(content))
    else:
        path.write_bytes(content)


if __name__ == "__main__":
    main()
