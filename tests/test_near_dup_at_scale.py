"""near_dup where it hurts: templates, crowds, giant groups, a giant text, and any cut of the same rows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from near_dup_texts import near_dup, removed_rows, sentence, shown, steps, with_template
from process import curate, script, write_pipeline
from runs import by_id, pipeline, verdicts, write_parquet

from curate import api
from curate.kernels.signatures import shingle_sets

ROWS = 20_000
COPIES = 200
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("shared", "own", "edits", "limit", "compared", "found"),
    [(120, 150, 5, 0.8, 50, 0.95), (200, 60, 2, 0.8, 66, 0.95), (200, 30, 1, 0.9, 66, 0.95), (200, 20, 1, 0.9, 66, 0.8)],
)
def test_rows_of_a_template_stay_and_their_copies_go(
    shared: int, own: int, edits: int, limit: float, compared: int, found: float
) -> None:
    """From the second on, rows are 0.62, 0.75 and 0.83 alike by the template alone, so that each band holds a crowd."""
    texts, originals = with_template(ROWS, shared, own, COPIES, edits)

    _, settled, counts = steps(near_dup(similarity=limit), shown(texts))

    removed = removed_rows(settled)
    assert sum(row < ROWS for row in removed) <= 0.01 * ROWS
    assert sum(removed.get(row) == original for row, original in originals.items()) >= found * COPIES
    assert counts["compared"] < compared * len(texts)


def test_rows_that_differ_in_less_than_the_limit_are_one_group_however_many() -> None:
    texts, _ = with_template(ROWS, 200, 20, 0, 0)  # 196 of 236 shingles in common

    _, settled, counts = steps(near_dup(), shown(texts))

    assert len(removed_rows(settled)) == ROWS - 1
    assert set(settled["similarity"].drop_null().to_pylist()) == {196 / 236}
    assert counts["compared"] < 2 * ROWS


def crowd(seed: int) -> list[str]:
    """Threes of equal texts, which all share a half of their words."""
    base = sentence(seed, 30)
    return [" ".join([*base, *sentence(1_000 * seed + number // 3, 30)]) for number in range(900)]


def test_what_becomes_of_a_group_depends_on_no_other_group() -> None:
    """Whatever batch a group is compared in, and so however the input is cut."""
    check = near_dup(bands=60, rows=1, similarity=0.9, max_bucket_rows=8)
    _, alone, _ = steps(check, shown(crowd(1)))

    for others in (1, 4):
        texts = [text for seed in range(1, 2 + others) for text in crowd(seed)]
        _, among, counts = steps(check, shown(texts))

        assert counts["cut_rows"] > 0
        assert {row: kept for row, kept in removed_rows(among).items() if row < 900} == removed_rows(alone)


def test_files_workers_and_the_order_of_rows_change_nothing(room: Path) -> None:
    pick, rows = random.Random(4), list[dict[str, object]]()
    for number in range(400):
        words = sentence(number // 4, 60) if pick.random() < 0.9 else sentence(1, 12) * 5
        words = [word if pick.random() > 0.01 else f"edited{number}" for word in words]
        rows.append({"id": f"r{number}", "text": " ".join(words), "score": number * 7 % 401})
    given = pipeline(near_dup(prefer={"highest": "score"}))
    ledgers = []
    for name, files, workers in (("whole", 1, 1), ("shuffled", 1, 1), ("cut", 7, 2)):
        if name != "whole":
            pick.shuffle(rows)
        for at in range(files):
            write_parquet(room / name / f"{at}.parquet", pa.Table.from_pylist(rows[at::files]), row_group_size=37)
        run = api.run(given, room / name, room / f"{name}-run", workers=workers)
        ledgers.append(by_id(run.path))

    assert 100 < sum(fate[0] == "rejected" for fate in ledgers[0].values()) < 390
    assert ledgers[0] == ledgers[1] == ledgers[2]


@pytest.mark.parametrize("folder", ["lo_help_near_dups", "licence_texts"])
def test_real_texts_lose_exactly_the_rows_that_the_rule_takes_from_the_pairs_found(shared: Path, folder: str) -> None:
    """The sets are the kernel's, which equal the definition bit by bit; all pairs of them are compared."""
    texts = pq.read_table(shared / "data" / folder / "docs.parquet", columns=["text"])["text"]
    check = near_dup(max_bucket_rows=4096)
    bounds, values = shingle_sets(texts.combine_chunks().cast(pa.large_string()), check._signing())
    pairs = all_pairs(bounds, values, check.similarity)

    links, settled, _ = steps(check, shown(texts.to_pylist()))
    _, usual, _ = steps(near_dup(), shown(texts.to_pylist()))

    keys: dict[int, set[int]] = {}
    for row, key in zip(links["row"].to_pylist(), links["key"].to_pylist(), strict=True):
        keys.setdefault(row, set()).add(key)
    found = [(one, two) for one, two in pairs if keys.get(one, set()) & keys.get(two, set())]
    removed = set(removed_rows(settled))
    assert len(found) >= 0.995 * len(pairs)
    assert removed == taken(found)
    assert len(removed ^ taken(pairs)) <= 2 * (len(pairs) - len(found))
    assert len(set(removed_rows(usual)) ^ removed) <= 0.01 * len(removed)


def all_pairs(bounds: np.ndarray, values: np.ndarray, least: float) -> list[tuple[int, int]]:
    """The pairs (i < j) of sets whose Jaccard similarity is at least so much, by one sparse product."""
    _, column = np.unique(values, return_inverse=True)
    table = sp.csr_matrix((np.ones(len(values), np.int32), column, bounds))
    common = sp.triu(table @ table.T, k=1).tocoo()
    sizes = np.diff(bounds)
    enough = common.data / (sizes[common.row] + sizes[common.col] - common.data) >= least
    return sorted(zip(common.row[enough].tolist(), common.col[enough].tolist(), strict=True))


def taken(pairs: list[tuple[int, int]]) -> set[int]:
    """The rows that go where each goes exactly when an earlier row that stays is alike enough."""
    gone: set[int] = set()
    for later, earlier in sorted((two, one) for one, two in pairs):
        if earlier not in gone:
            gone.add(later)
    return gone


def changed(number: int, at: int) -> str:
    return " ".join(f"x{number}" if place == at else f"word{place}" for place in range(30))


EDGES = (0, 1, 28, 29)
GIANTS: dict[str, Callable[[int], list[str]]] = {
    "one group": lambda number: [changed(number, 29)],
    "one group of rows too unlike": lambda number: [changed(number, number % 30)],
    "tiny groups": lambda number: [(text := " ".join(f"w{number}x{at}" for at in range(8))), text.upper()],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", GIANTS)
def test_a_million_groups_and_groups_of_a_million_stay_within_memory(tmp_path: Path, kind: str) -> None:
    texts = [text for number in range(MILLION) for text in GIANTS[kind](number)]
    write_parquet(tmp_path / "data.parquet", pa.table({"id": np.arange(len(texts)), "text": texts}), 100_000)
    write_pipeline(tmp_path, ["near_dup"], source="data.parquet")

    done = curate("run", "pipeline.yaml", "--out", "out", "--memory", "2GB", "--workers", "2", cwd=tmp_path, timeout=900)

    assert done.code == 0, done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    ledger = verdicts(tmp_path / "out")
    rejected = set(ledger.filter(ledger["verdict"] == "rejected")["row_id"].to_list())
    if kind == "one group":
        assert rejected == set(range(1, MILLION))
    elif kind == "tiny groups":
        assert rejected == set(range(1, 2 * MILLION, 2))
    else:  # two rows changed in the middle have 16 of 36 shingles in common, near the same end 24 of 28 or more
        edges = {row for row in range(MILLION) if row % 30 in EDGES}
        assert rejected <= edges
        assert len(rejected) >= 0.999 * len(edges)
    assert report["costs"]["peak_memory_bytes"] <= 2e9


SIGN = """
import sys
import pyarrow as pa
from curate import minhash
from curate.kernels.signatures import sign
from curate.meter import give_memory_back, peak_memory, reset_peak

word = sys.argv[1]
signing = minhash.signing(25, 5, 5, int(sys.argv[2]))
sign(pa.array([word * 30_000], pa.large_string()), signing)
text = pa.array([word * (100_000_000 // len(word.encode()))], pa.large_string())
give_memory_back()
reset_peak()
before = peak_memory()
signed = sign(text, signing)
assert signed.shingles[0] > 10_000_000
print((peak_memory() - before) // 1_000_000)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process' memory is read from /proc")
@pytest.mark.parametrize(("word", "mode"), [("The quick fox ", 0), ("中文“Word” ", 0), ("Straße ", 1), ("A b é", 2)])
def test_a_text_of_100_megabytes_is_signed_in_the_memory_of_a_piece(word: str, mode: int) -> None:
    done = script(SIGN, word, mode, timeout=120)

    assert done.code == 0, done.stderr
    assert int(done.stdout) <= 8, "MB more than before"
