"""Records compared column by column: the kernels against plain Python, planted copies, and two public sets with known truth."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import plain_shingles
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from curate import minhash, records
from curate.kernels.records import COLUMN_SHIFT, EDGE, record_similarities
from curate.records import LIMIT, Comparison, Record, RecordColumn

APART = ("given_name", "date_of_birth", "soc_sec_id")
FEBRL = (*APART, "surname", "street_number", "address_1", "address_2", "suburb", "postcode", "state")
CDDB = ("artist", "title", "tracks")
FEW = 1e-9
WORD = st.sampled_from(["Ann", "ann", "Smith", "É", "E\u0301cole", "ß", "12", "1", "東京", "-", " ", "o'neil", "Straße", "_"])
CELL = st.none() | st.lists(WORD, max_size=4).map(" ".join)
WEIGHTS = st.sampled_from([0.5, 1.0, 2.0, 3.0])


def how(*columns: str | RecordColumn, limit: float = LIMIT) -> Comparison:
    told = [column if isinstance(column, RecordColumn) else RecordColumn(column) for column in columns]
    return records.comparison(told, *records.choose_keys(limit))


def cells(rows: list[tuple[str | None, ...]]) -> list[pa.LargeStringArray]:
    return [pa.array(column, pa.large_string()) for column in zip(*rows, strict=True)]


def alike(one: tuple[str | None, ...], two: tuple[str | None, ...], compared: Comparison | None = None) -> float:
    compared = compared or how(*map(str, range(len(one))))
    bounds, values = records.features(cells([one, two]), compared)
    return float(record_similarities(bounds, values, np.array([0]), np.array([1]), compared.weights)[0])


def plain_pieces(cell: str | None, size: int) -> set[tuple[str, ...]]:
    """The pieces of a cell; an edge is one more character."""
    characters = plain_shingles.characters(cell or "")
    if not characters:
        return set()
    edged = ["edge", *characters, "edge"]
    return {tuple(edged[at : at + size]) for at in range(max(len(edged) - size + 1, 1))}


def plain_similarity(one: tuple[str | None, ...], two: tuple[str | None, ...], columns: list[RecordColumn]) -> float:
    """The definition, as `curate.records` states it."""
    compared = counted = total = 0.0
    for mine, its, column in zip(one, two, columns, strict=True):
        left, right = plain_pieces(mine, column.chars), plain_pieces(its, column.chars)
        if left and right:
            share = column.weight * math.sqrt(len(left) + len(right))
            compared += column.weight
            total += share
            counted += share * len(left & right) / len(left | right)
    return counted / total if 2 * compared > sum(column.weight for column in columns) else 0.0


def candidates(found: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    """All pairs of records that share a key."""
    members: dict[int, set[int]] = {}
    for row, keys in zip(found[0].tolist(), found[1].tolist(), strict=True):
        for key in keys:
            members.setdefault(key, set()).add(row)
    return {(one, two) for rows in members.values() for one in rows for two in rows if one < two}


def all_pairs(rows: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(rows, 1)


@given(data=st.data(), count=st.integers(1, 4))
def test_the_similarity_is_that_of_the_definition_and_the_same_both_ways(data: st.DataObject, count: int) -> None:
    record = st.tuples(*[CELL] * count)
    one, two = data.draw(record), data.draw(record)
    sizes = st.integers(2, 5)
    columns = [RecordColumn(str(at), data.draw(WEIGHTS), data.draw(sizes)) for at in range(count)]
    compared = how(*columns)

    value = alike(one, two, compared)

    assert value == pytest.approx(plain_similarity(one, two, columns), abs=FEW)
    assert value == alike(two, one, compared)
    assert 0.0 <= value <= 1.0


@given(record=st.tuples(CELL, CELL, CELL))
def test_equal_records_are_wholly_alike_where_enough_is_filled_and_share_all_keys(record: tuple[str | None, ...]) -> None:
    compared = how("a", "b", "c")
    filled = sum(bool(plain_pieces(cell, 3)) for cell in record)

    rows, keys = records.keys(cells([record, record]), compared)

    assert alike(record, record, compared) == float(filled >= 2)
    assert rows.tolist() == ([0, 1] if filled >= 2 else [])
    assert len(rows) == 0 or (keys[0] == keys[1]).all()


@settings(max_examples=30)
@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6), cut=st.integers(0, 6))
def test_keys_and_sets_of_a_record_do_not_depend_on_the_records_beside_it(rows: list[tuple[str | None, ...]], cut: int) -> None:
    compared = how("a", "b")
    whole = cells(rows)

    parts = [[column.slice(0, cut) for column in whole], [column.slice(cut) for column in whole]]
    row, keys = records.keys(whole, compared)
    bounds, values = records.features(whole, compared)

    one, two = (records.keys(part, compared) for part in parts)
    assert [*one[0], *(two[0] + min(cut, len(rows)))] == row.tolist()
    assert np.array_equal(np.concatenate([one[1], two[1]]), keys)
    assert np.array_equal(np.concatenate([records.features(part, compared)[1] for part in parts]), values)
    assert bounds[-1] == len(values)


def test_a_set_holds_each_piece_of_each_cell_once_behind_its_column() -> None:
    compared = how("a", RecordColumn("b", chars=2))
    record = ("Anna-Anna", "É")

    bounds, values = records.features(cells([record]), compared)

    places = [each.tolist() for each in compared.places]
    expected = []
    for column, cell in enumerate(record):
        tokens = [int(EDGE), *plain_shingles.tokens(cell, "characters"), int(EDGE)]
        size = len(places[column])
        runs = [tokens[at : at + size] for at in range(len(tokens) - size + 1)]
        totals = [sum(map(int.__mul__, run, places[column])) % 2**64 for run in runs]
        expected += sorted({column << COLUMN_SHIFT | plain_shingles._scramble(total) >> 8 for total in totals})
    assert bounds.tolist() == [0, len(expected)]
    assert values.tolist() == expected


def test_long_cells_and_cells_that_python_must_fold_are_read_whole() -> None:
    long = " ".join(f"word{number * 7919 % 104729}" for number in range(20_000))
    slow = "ǰ\u0323 " * 40
    compared = how("a", "b")

    bounds, _ = records.features(cells([(long, slow)]), compared)

    assert bounds[1] == len(plain_pieces(long, 3)) + len(plain_pieces(slow, 3))
    assert alike((long, slow), (long + " more", slow), compared) > 0.99


def test_no_records_have_no_keys_and_no_sets() -> None:
    compared = how("a", "b")
    empty = [pa.array([], pa.large_string())] * 2

    rows, keys = records.keys(empty, compared)
    bounds, values = records.features(empty, compared)

    assert (len(rows), keys.shape, bounds.tolist(), len(values)) == (0, (0, compared.keys_per_row), [0], 0)


@pytest.mark.parametrize("gone", [None, "", " - "])
def test_a_column_that_one_record_lacks_is_left_out(gone: str | None) -> None:
    assert alike(("Ann", "Smith", gone), ("Ann", "Smith", "Boston")) == 1.0
    assert alike(("Ann", "Smith", gone), ("Ann", "Smith", gone)) == 1.0


def test_records_with_half_of_the_weight_in_common_are_not_alike_however_equal() -> None:
    assert alike(("Ann", None), ("Ann", None)) == 0.0
    assert alike(("Ann", None, "Boston"), ("Ann", "Smith", None)) == 0.0
    heavy = how(RecordColumn("id", weight=3), "name", "city")
    assert alike(("A-17", None, None), ("A-17", "Ann", "Boston"), heavy) == 1.0


def test_a_weight_makes_a_column_count_for_more() -> None:
    one, two = ("Ann Smith", "Boston"), ("Ann Smith", "Denver")

    equal, heavy = alike(one, two, how("name", "city")), alike(one, two, how(RecordColumn("name", weight=3), "city"))

    assert 0.5 < equal < heavy < 1.0


def test_case_accents_typed_in_two_ways_and_punctuation_do_not_count() -> None:
    assert alike(("O'Neil", "École"), ("o neil", "E\u0301COLE")) == 1.0


def test_typing_errors_are_found_and_named_records_of_a_namesake_stay() -> None:
    rows: list[tuple[str | None, ...]] = [
        ("Margaret", "Thompson", "12 Kingsley Street", "Melbourne", "1956-04-09"),
        ("Margret", "Thompson", "12 Kingsly Street", "Melbourne", "1956-04-09"),  # typing errors
        ("Margaret", "Thomson", "12 Kingsley St", None, "1956-04-09"),  # an abbreviation, a missing city
        ("Thompson", "Margaret", "12 Kingsley Street", "Melbourne", "1956-04-09"),  # names in each other's place
        ("Margaret", "Thompson", "7 Ocean Parade", "Perth", "1988-11-30"),  # a namesake
        ("Margaret", None, None, None, None),
    ]
    compared = how("given", "family", "street", "city", "born")
    bounds, values = records.features(cells(rows), compared)
    left, right = all_pairs(len(rows))

    near = record_similarities(bounds, values, left, right, compared.weights) >= LIMIT
    found = candidates(records.keys(cells(rows), compared))

    pairs = set(zip(left[near].tolist(), right[near].tolist(), strict=True))
    assert {two for one, two in pairs if one == 0} == {1, 2, 3}
    assert pairs <= found
    assert not any({4, 5} & set(pair) for pair in pairs)


def test_people_of_one_household_are_one_at_equal_weights_and_two_where_names_and_birthdays_weigh_more() -> None:
    """What a mean over columns cannot know: the default is wrong here, and its documentation says so."""
    mother = ("Margaret", "Thompson", "12 Kingsley Street", "Melbourne", "1956-04-09")
    son = ("Daniel", "Thompson", "12 Kingsley Street", "Melbourne", "1991-02-14")
    typed = ("Margret", "Thompson", "12 Kingsly Street", "Melbourne", "1956-04-09")
    weighed = how(RecordColumn("given", 3), "family", "street", "city", RecordColumn("born", 3))

    assert alike(mother, son) >= LIMIT
    assert alike(mother, son, weighed) < LIMIT
    assert alike(mother, typed, weighed) >= LIMIT


def test_planted_copies_share_a_key_and_few_others_do() -> None:
    draw = random.Random(4)
    names = ["".join(draw.choices("aeioulnrstmk", k=draw.randint(4, 9))) for _ in range(3000)]
    rows: list[tuple[str | None, ...]] = [(*draw.choices(names, k=4), str(draw.randrange(10**8))) for _ in range(2000)]
    copies = [mistyped(rows[row], draw) for row in range(0, 2000, 4)]
    compared = how(*"abcde")
    table = cells(rows + copies)
    bounds, values = records.features(table, compared)
    left, right = np.arange(0, 2000, 4), np.arange(2000, 2500)

    near = record_similarities(bounds, values, left, right, compared.weights) >= LIMIT
    found = candidates(records.keys(table, compared))

    planted = set(zip(left[near].tolist(), right[near].tolist(), strict=True))
    assert len(planted) > 300
    assert len(planted - found) <= 0.005 * len(planted)
    assert len(found) < 5 * len(rows)


def mistyped(record: tuple[str | None, ...], draw: random.Random) -> tuple[str | None, ...]:
    """The record with an error in two or three of its cells: a letter put in, or another one."""
    copied = list(record)
    for column in draw.sample(range(len(record)), draw.randint(2, 3)):
        cell = record[column] or ""
        at = draw.randrange(len(cell))
        copied[column] = cell[:at] + draw.choice("xyz") + cell[at + draw.randrange(2) :]
    return tuple(copied)


@pytest.mark.parametrize(("limit", "chosen"), [(0.55, (52, 3)), (0.8, (26, 5)), (0.04, (64, 1)), (1.0, (12, 16))])
def test_keys_are_chosen_to_find_pairs_a_little_below_the_limit(limit: float, chosen: tuple[int, int]) -> None:
    keys, slots = records.choose_keys(limit)

    assert (keys, slots) == chosen
    assert keys <= records.MOST_KEYS
    assert limit < 0.2 or minhash.detection(limit - records.MARGIN, keys, slots) >= minhash.DETECTION


@pytest.mark.parametrize("similarity", [0.3, 0.55, 0.7, 0.9])
def test_records_share_a_slot_with_a_chance_of_their_similarity(similarity: float) -> None:
    draw = random.Random(int(100 * similarity))
    compared = records.comparison([RecordColumn(name) for name in "abcde"], 2000, 1)
    one = tuple("".join(draw.choices("abcdefghijklmnop", k=k)) for k in (5, 8, 12, 20, 8))
    two = tuple(cell if draw.random() < similarity else cell[::-1] for cell in one)

    _, keys = records.keys(cells([one, two]), compared)

    assert (keys[0] == keys[1]).mean() == pytest.approx(alike(one, two), abs=0.05)


def test_ways_of_writing_the_same_columns_are_equal_and_survive_a_round_trip() -> None:
    read = TypeAdapter(Record)

    listed = read.validate_python(["name", "title"])
    weighed = read.validate_python({"name": 1, "title": {"weight": 1, "chars": 3}})

    assert listed == weighed == (RecordColumn("name"), RecordColumn("title"))
    assert read.validate_python(read.dump_python(weighed, mode="json")) == weighed
    assert read.validate_python("name") == (RecordColumn("name"),)


@pytest.mark.parametrize(
    "wrong", [{"name": 0}, {"name": "much"}, {"name": {"wieght": 1}}, ["a", "a"], [3], 3, {"a": {"chars": 1}}]
)
def test_columns_written_wrongly_are_told_what_is_expected(wrong: Any) -> None:
    with pytest.raises(ValidationError, match="expected column names"):
        TypeAdapter(Record).validate_python(wrong)


class Measured:
    """All pairs of a set with known truth: which are found at the default, precision, recall and F1."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        table = pq.read_table(path)
        compared = how(*columns)
        read = [table.column(name).combine_chunks() for name in columns]
        self.cluster = np.unique(np.array(table.column("cluster").to_pylist()), return_inverse=True)[1]
        bounds, values = records.features(read, compared)
        self.left, self.right = all_pairs(table.num_rows)
        self.value = record_similarities(bounds, values, self.left, self.right, compared.weights)
        self.true = self.cluster[self.left] == self.cluster[self.right]
        self.found = candidates(records.keys(read, compared))

    def f1(self, among: np.ndarray | slice = slice(None)) -> float:
        said, true = self.value[among] >= LIMIT, self.true[among]
        return float(2 * (said & true).sum() / (said.sum() + true.sum()))

    def halves(self) -> tuple[float, float]:
        """F1 of two halves of the pairs: those whose first record belongs to a group of one half of all groups."""
        first = np.array([random.Random(int(group)).random() < 0.5 for group in self.cluster])[self.left]
        return self.f1(first), self.f1(~first)

    def recall_of_keys(self) -> float:
        near = np.flatnonzero(self.value >= LIMIT)
        pairs = zip(self.left[near].tolist(), self.right[near].tolist(), strict=True)
        return sum(pair in self.found for pair in pairs) / len(near)


def test_relatives_at_one_address_stay_where_what_tells_them_apart_weighs_more(shared: Path) -> None:
    """FEBRL's persons, each with a relative made up of another's given name, birthday and number; surname and address stay."""
    table = pq.read_table(shared / "data" / "er_febrl" / "dataset3.parquet", columns=["rec_id", *FEBRL]).to_pylist()
    people = [row for row in table if row["rec_id"].endswith("-org")]
    draw = random.Random(3)
    others = [draw.choice(people) for _ in people]
    relatives = [{**row, **{name: other[name] for name in APART}} for row, other in zip(people, others, strict=True)]
    read = cells([tuple(row[name] for name in FEBRL) for row in people + relatives])
    left = np.arange(len(people))

    shares = []
    for weight in (1, 3):
        compared = how(*(RecordColumn(name, weight if name in APART else 1) for name in FEBRL))
        bounds, values = records.features(read, compared)
        near = record_similarities(bounds, values, left, left + len(people), compared.weights) >= LIMIT
        shares.append(near.mean())

    assert shares[0] > 0.95  # the default is wrong here, and its documentation says so
    assert shares[1] < 0.04


@pytest.mark.parametrize(
    ("file", "columns", "least", "least_of_half"),
    [
        ("er_febrl/dataset3.parquet", FEBRL, 0.97, 0.96),
        ("er_cddb/records.parquet", CDDB, 0.89, 0.86),
    ],
)
def test_real_records_reach_their_f1_at_the_defaults_and_keys_bring_all_pairs_together(
    shared: Path, file: str, columns: tuple[str, ...], least: float, least_of_half: float
) -> None:
    measured = Measured(shared / "data" / file, columns)

    assert measured.f1() >= least
    assert min(measured.halves()) >= least_of_half
    assert measured.recall_of_keys() >= 0.995
    assert len(measured.found) < 30 * len(measured.cluster)
