"""A corpus of natural English with planted duplicates whose similarity is known exactly.

    python benchmarks/near_dup_corpus.py --size 255MB [--packages FOLDER] [--out FOLDER] [--seed 1]

Paragraphs come from the HTML of four documentation packages of Debian. They are downloaded and unpacked on the first use
(on a Debian machine, as any user; nothing is installed), or read from `--packages`, a folder where they lie unpacked.
OUT then holds

- `corpus.parquet`: `id` (0, 1, … in order) and `text`, the planted rows shuffled among the others;
- `truth_pairs.parquet`: rows `a` < `b`, the `kind` of plant, the Jaccard similarity aimed at (`target_j`) and the
  exact one (`j`), of the sets of word 5-grams;
- `corpus.json`: counts, seed, and a digest of the paragraphs: of equal digests and seeds the rows are equal.

A word is a run of letters, digits and underscores with the marks on them, after NFC and case folding (in scripts without
spaces, one character). The packages hold 21 MB of paragraphs, each used once a *pass*. From the second pass on every
word is replaced by another of its length and frequency, the same one throughout the pass: lengths, bytes and repetitions
stay as they are in English, and hardly a sentence comes twice. The same options and packages give the same rows.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import html
import json
import math
import os
import re
import subprocess
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.letters import SPACELESS

DATA = Path(__file__).parent / "data"
SIZES = {"25MB": 25, "255MB": 255, "1GB": 1_000, "4GB": 4_000}
PACKAGES = ("linux-doc-6.1", "debian-handbook", "gnome-user-docs", "libreoffice-help-en-us")
SHINGLE = 5

STRETCH = 200
"""paragraphs that stay together, so that a document is about one thing and a small corpus about many"""
MEDIAN_LENGTH, SHORTEST, LONGEST = 2_000, 200, 60_000
"""of documents, in characters; lognormal with a deviation of 1"""
PLANTED_SHARE = 0.2
"""of the corpus that is planted, in bytes, about"""
EXACT, FOLDED, CHAINS, HEADERS, TEMPLATES = 0.05, 0.01, 0.004, 0.04, 0.004
"""share of documents that get exact copies, one copy of other case and punctuation, a chain of copies, a header and a
footer that many share (no duplicates), and the same around so little of their own that it is most of them"""
TARGETS = {0.95: 0.015, 0.9: 0.015, 0.86: 0.015, 0.83: 0.015, 0.81: 0.015, 0.79: 0.01, 0.7: 0.015, 0.5: 0.01}
"""Jaccard similarity of an edited copy: share of documents that get one"""
CHAIN_TARGET = 0.86
USABLE = 0.9
"""of the paragraphs that are sure to come into a document; the rest may be cut off"""
SHELF_MB = 250
"""text that is shuffled in memory at once"""

ELEMENT = re.compile(r'<(?:p\b|div class="para")[^>]*>(.*?)</(?:p|div)>', re.DOTALL)
TAG = re.compile(r"<[^<>]*>")
PIECE = re.compile(r"\S+\s*")
ENGLISH = re.compile(r"[A-Za-z]+")
COMMON = frozenset("the of to and a in is that for be it on with as are this by or not can if you from an will".split())

Pair = tuple[int, int, str, float, float]


def words(text: str) -> list[str]:
    """The words of a text, folded, in order."""
    if text.isascii():
        return _ascii_words().findall(text.lower())
    return _any_words().findall(unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()))


def shingles(text: str) -> set[tuple[str, ...]]:
    """The set of word 5-grams; a text of fewer words is one shingle."""
    found = words(text)
    return {tuple(found[at : at + SHINGLE]) for at in range(max(1, len(found) - SHINGLE + 1))}


def jaccard(first: set[tuple[str, ...]], second: set[tuple[str, ...]]) -> float:
    """Shared shingles over all shingles."""
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)


def unpacked(folder: Path) -> Path:
    """The packages, downloaded and unpacked below a folder unless they are there."""
    for package in PACKAGES:
        if not (folder / package).exists():
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package], cwd=folder, check=True)
            (archive,) = folder.glob(f"{package}_*.deb")
            subprocess.run(["dpkg-deb", "-x", str(archive.resolve()), f"{package}.tmp"], cwd=folder, check=True)
            (folder / f"{package}.tmp").rename(folder / package)
    return folder


def pool(folder: Path) -> Iterator[str]:
    """Each English paragraph below a folder once (that is, its words), files in the order of their names."""
    seen: set[bytes] = set()
    for file in sorted([*folder.rglob("*.html"), *folder.rglob("*.page")]):
        for found in ELEMENT.findall(file.read_text("utf-8", "replace")):
            paragraph = " ".join(html.unescape(TAG.sub("", found)).split())
            said = words(paragraph)
            known = hashlib.blake2b(" ".join(said).encode("utf-8", "replace"), digest_size=8).digest()
            if known not in seen and is_english(paragraph, said):
                seen.add(known)
                yield paragraph


def is_english(paragraph: str, said: list[str]) -> bool:
    """True for prose: long enough, few digits and signs, and among its words enough of the most common English ones."""
    letters = sum(map(str.isalpha, paragraph)) + paragraph.count(" ")
    return len(paragraph) >= 60 and letters > 0.85 * len(paragraph) and sum(word in COMMON for word in said) > 0.15 * len(said)


def make(paragraphs: Path, folder: Path, megabytes: float, seed: int = 1, workers: int = 1) -> dict[str, object]:
    """Write the corpus and its truth from a Parquet file of paragraphs; the facts of `corpus.json`."""
    size = sum(map(len, loaded(paragraphs)))
    wanted, most = megabytes * 1e6 * (1 - PLANTED_SHARE), USABLE * size
    lengths = [min(most, wanted - at * most) for at in range(math.ceil(wanted / most))]
    passes = [(paragraphs, seed, number, length) for number, length in enumerate(lengths)]
    folder.mkdir(parents=True, exist_ok=True)
    if workers == 1:
        facts = _write(map(_pass, passes), folder, megabytes, seed)
    else:
        with ProcessPoolExecutor(workers) as processes:
            facts = _write(processes.map(_pass, passes), folder, megabytes, seed)
    digest = hashlib.blake2b("\n".join(loaded(paragraphs)).encode(), digest_size=16).hexdigest()
    facts |= {"seed": seed, "passes": len(passes), "paragraphs": len(loaded(paragraphs)), "paragraphs_digest": digest}
    (folder / "corpus.json").write_text(json.dumps(facts, indent=1) + "\n")
    return facts


@functools.lru_cache(1)
def loaded(paragraphs: Path) -> list[str]:
    """The paragraphs of a Parquet file."""
    return list(pq.read_table(paragraphs).column("text").to_pylist())


def documents(paragraphs: list[str], length: float, rng: np.random.Generator) -> Iterator[str]:
    """Documents of consecutive paragraphs, so many characters together; the last paragraph ends with a sentence."""
    starts = np.arange(0, len(paragraphs), STRETCH)
    for start in rng.permutation(starts).tolist():
        stretch = iter(paragraphs[start : start + STRETCH])
        while parts := _fill(stretch, float(np.clip(rng.lognormal(np.log(MEDIAN_LENGTH), 1), SHORTEST, LONGEST))):
            document = "\n\n".join(parts)
            if len(document) >= SHORTEST:
                yield document
                length -= len(document)
            if length <= 0:
                return


def plant(texts: list[str], rng: np.random.Generator) -> tuple[list[str], list[Pair]]:
    """The texts, some with a shared header, and behind them the copies; each pair of them with its similarity."""
    texts, pairs = list(texts), list[Pair]()
    free = [row for row in rng.permutation(len(texts)).tolist() if len(texts[row]) >= 500]
    base = len(texts)

    def take(share: float) -> list[int]:
        count = int(share * base + rng.random())
        taken, free[:] = free[:count], free[count:]
        return taken

    def add(text: str, of: int, kind: str, target: float) -> int:
        texts.append(text)
        pairs.append((of, len(texts) - 1, kind, target, jaccard(shingles(texts[of]), shingles(text))))
        return len(texts) - 1

    headers = [" ".join(texts[row].split()[: rng.integers(40, 120)]) for row in rng.integers(0, base, 20).tolist()]
    for share, most_words in ((HEADERS, LONGEST), (TEMPLATES, 60)):
        for row in take(share):
            at, own = int(rng.integers(20)), " ".join(texts[row].split(" ")[:most_words])
            texts[row] = f"{headers[at]}\n\n{own}\n\n{headers[at - 1]}"
    for row in take(EXACT):
        copies = [row, *range(len(texts), len(texts) + min(20, int(rng.geometric(0.6))))]
        texts += [texts[row]] * (len(copies) - 1)
        pairs += [(first, second, "exact", 1.0, 1.0) for first, second in combinations(copies, 2)]
    for row in take(FOLDED):
        text = texts[row]
        add(text.upper() if rng.random() < 0.3 else text.replace(" ", "  ").replace(", ", " , "), row, "folded", 1.0)
    for target, share in TARGETS.items():
        for row in take(share):
            kind, text = edited(texts[row], target, texts[int(rng.integers(base))], rng)
            add(text, row, kind, target)
    for row in take(CHAINS):
        for _ in range(int(rng.integers(3, 7))):
            row = add(scattered(texts[row], CHAIN_TARGET, rng), row, "chain", CHAIN_TARGET)
    return texts, pairs


def edited(text: str, target: float, other: str, rng: np.random.Generator) -> tuple[str, str]:
    """What was done to a text, and the text so changed that it has about this similarity to the old one."""
    kind = str(rng.choice(["words", "cut", "added"], p=[0.6, 0.2, 0.2]))
    if kind == "words":
        return kind, scattered(text, target, rng)
    pieces = PIECE.findall(text)
    if kind == "cut":
        length = round(len(pieces) * target)
        start = int(rng.integers(len(pieces) - length + 1))
        return kind, "".join(pieces[start : start + length])
    more = round(len(pieces) * (1 / target - 1))
    foreign = PIECE.findall(other)
    return kind, text + "\n\n" + "".join((foreign * (more // len(foreign) + 1))[:more])


def scattered(text: str, target: float, rng: np.random.Generator) -> str:
    """A text with words here and there replaced, dropped or added, as many as bring it nearest to a similarity."""
    pieces, before = PIECE.findall(text), shingles(text)
    places = rng.permutation(len(pieces)).tolist()
    new = [pieces[at].strip() + " " for at in rng.integers(0, len(pieces), len(pieces)).tolist()]
    ways = rng.random(len(pieces)).tolist()

    def after(edits: int) -> tuple[float, str]:
        changed = list(pieces)
        for place in places[:edits]:
            old = "" if ways[place] < 0.8 else pieces[place].rstrip() + " "
            changed[place] = old + ("" if 0.6 <= ways[place] < 0.8 else new[place])
        made = "".join(changed)
        return jaccard(before, shingles(made)), made

    few, many = 1, max(2, round(len(before) * (1 - target) / (1 + target)))
    tried = [after(few)]
    while few < many:
        middle = (few + many + 1) // 2
        tried.append(after(middle))
        few, many = (middle, many) if tried[-1][0] > target else (few, middle - 1)
    return min(tried, key=lambda one: abs(one[0] - target))[1]


def reworded(paragraphs: list[str], rng: np.random.Generator) -> list[str]:
    """The paragraphs with every word replaced by one of its length and about its frequency, case kept."""
    alike = defaultdict(list)
    counts = Counter(word.lower() for paragraph in paragraphs for word in ENGLISH.findall(paragraph))
    for word, count in sorted(counts.items()):
        alike[len(word), count.bit_length() // 2].append(word)
    new = {word: kin[at] for kin in alike.values() for word, at in zip(kin, rng.permutation(len(kin)), strict=True)}

    def other(found: re.Match[str]) -> str:
        old = found[0]
        word: str = new[old.lower()]
        return word if old.islower() else word.upper() if len(old) > 1 and old.isupper() else word.capitalize()

    return [ENGLISH.sub(other, paragraph) for paragraph in paragraphs]


def _pass(asked: tuple[Path, int, int, float]) -> tuple[list[str], list[Pair]]:
    paragraphs, seed, number, length = asked
    rng = np.random.default_rng([seed, number])
    texts = loaded(paragraphs) if number == 0 else reworded(loaded(paragraphs), rng)
    return plant(list(documents(texts, length, rng)), rng)


def _fill(stretch: Iterator[str], length: float) -> list[str]:
    parts, left = list[str](), length
    while left > 0 and (paragraph := next(stretch, None)) is not None:
        if len(paragraph) > 1.3 * left and (end := paragraph.rfind(". ", 0, max(60, int(left)))) > 0:
            paragraph = paragraph[: end + 1]
        parts.append(paragraph)
        left -= len(paragraph)
    return parts


def _write(passes: Iterable[tuple[list[str], list[Pair]]], folder: Path, megabytes: float, seed: int) -> dict[str, object]:
    """Deal the texts onto shelves as they come, then shuffle one shelf after the other: memory for one shelf, any size."""
    rng = np.random.default_rng([seed, 0, 0])
    shelves = [folder / f"shelf-{at}.tmp" for at in range(1 + int(megabytes) // SHELF_MB)]
    schema = pa.schema([("number", pa.int64()), ("text", pa.string())])
    writers = [pq.ParquetWriter(shelf, schema, compression="zstd") for shelf in shelves]
    rows, pairs = 0, list[Pair]()
    for texts, planted in passes:
        shelf_of = rng.integers(0, len(shelves), len(texts))
        for at, writer in enumerate(writers):
            mine = np.flatnonzero(shelf_of == at)
            writer.write_table(pa.table([rows + mine, [texts[row] for row in mine.tolist()]], schema=schema))
        pairs += [(rows + first, rows + second, kind, target, exact) for first, second, kind, target, exact in planted]
        rows += len(texts)
    for writer in writers:
        writer.close()
    ids, size = _shuffle(shelves, folder / "corpus.parquet", rows, rng)
    ends = np.sort(ids[np.array([pair[:2] for pair in pairs], np.int64).reshape(-1, 2)], axis=1)
    columns = {name: [pair[at] for pair in pairs] for at, name in ((2, "kind"), (3, "target_j"), (4, "j"))}
    truth = pa.table({"a": ends[:, 0], "b": ends[:, 1], **columns})
    pq.write_table(truth.sort_by([("a", "ascending"), ("b", "ascending")]), folder / "truth_pairs.parquet")
    return {"rows": rows, "text_bytes": size, "pairs": len(pairs), "kinds": dict(sorted(Counter(columns["kind"]).items()))}


def _shuffle(shelves: list[Path], target: Path, rows: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """The id that each numbered text got, and the bytes of all texts."""
    ids, given, size = np.empty(rows, np.int64), 0, 0
    aside = target.with_suffix(".tmp")
    with pq.ParquetWriter(aside, pa.schema([("id", pa.int64()), ("text", pa.string())]), compression="zstd") as writer:
        for shelf in shelves:
            table = pq.read_table(shelf)
            table = table.take(rng.permutation(len(table)))
            now = np.arange(given, given + len(table))
            ids[table.column("number").to_numpy()] = now
            writer.write_table(pa.table({"id": now, "text": table.column("text")}), row_group_size=16_384)
            given += len(table)
            size += pc.sum(pc.binary_length(table.column("text"))).as_py()
            shelf.unlink()
    aside.rename(target)
    return ids, size


@functools.cache
def _ascii_words() -> re.Pattern[str]:
    return re.compile(r"\w+", re.ASCII)


@functools.cache
def _any_words() -> re.Pattern[str]:
    marks = "".join(chr(code) for code in range(0x300, 0x20000) if unicodedata.category(chr(code))[0] == "M")
    own_marks, letter = re.sub(f"[{SPACELESS}]", "", marks), rf"[^\W{SPACELESS}]"
    return re.compile(f"{letter}+(?:[{own_marks}]+{letter}*)*|[{SPACELESS}]")


def main() -> None:
    given = argparse.ArgumentParser(description="A corpus with planted near-duplicates.")
    given.add_argument("--size", choices=SIZES, default="255MB")
    given.add_argument("--packages", type=Path, help="a folder where the packages lie unpacked")
    given.add_argument("--out", type=Path, help="benchmarks/data/near-dup-SIZE unless given")
    given.add_argument("--seed", type=int, default=1)
    asked = given.parse_args()
    folder = corpus(asked.size, asked.packages, asked.out, asked.seed)
    print((folder / "corpus.json").read_text(), end="")


def corpus(size: str, packages: Path | None = None, out: Path | None = None, seed: int = 1) -> Path:
    """The folder of a corpus of this size, made on the first use."""
    folder = out or DATA / f"near-dup-{size}-{seed}"
    if not (folder / "corpus.json").exists():
        DATA.mkdir(exist_ok=True)
        paragraphs = DATA / "paragraphs.parquet"
        if packages or not paragraphs.exists():
            pq.write_table(pa.table({"text": list(pool(packages or unpacked(DATA / "packages")))}), paragraphs)
        make(paragraphs, folder, SIZES[size], seed, os.cpu_count() or 1)
    return folder


if __name__ == "__main__":
    main()
