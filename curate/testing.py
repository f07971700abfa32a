"""The contract every check signs, as functions that test it: for authors of checks.

    from curate.testing import contract, sample

    def test_my_check_keeps_the_contract():
        table, roles = sample()
        contract(MyCheck(), table, roles)

`run_check` is the smallest correct runner: all in memory, one row in, one row out. It defines
what a check may rely on; the engines do the same, with files and processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.check import Check, Column, Emitted, FitCheck, GroupCheck, RowCheck, checked_scores, make_check
from curate.dataset import Roles, RowIds, Rows

Order = npt.NDArray[np.int64]


def run_check(
    check: Check,
    table: pa.Table,
    roles: Roles,
    *,
    seed: int = 0,
    row_ids: Sequence[int] | RowIds | None = None,
    parts: int = 1,
    shards: int = 1,
    order: Order | None = None,
) -> pa.Table:
    """`row` (rising row ids) and every declared column, one row for each row of the table.

    `row_ids` are 0, 1, 2, … when not given; `order` is the order rows are shown in, `parts` the
    pieces they are shown in, `shards` the pieces that groups are matched in. None of the three
    changes the result of a sound check. Missing: rows with a null in a needed column
    (unless the check sees nulls), and rows for which `keys` has no key.
    """
    ids = np.arange(len(table), dtype=np.uint64) if row_ids is None else np.asarray(row_ids, np.uint64)
    columns = check.columns(roles, table.schema)
    needs, uses = check.needs(roles, table.schema), check.uses(roles, _emitted(table.schema))
    whole = Rows(table.select([*needs, *uses]), ids, roles, seed)
    if not check.sees_nulls:
        whole = whole.take(_complete(table.select(list(needs))))
    places = np.arange(len(whole)) if order is None else order[np.isin(order, np.arange(len(whole)))]
    pieces = [_pick(whole, piece) for piece in np.array_split(places, parts)]
    match check:
        case RowCheck():
            answers = [_answers(check, columns, piece, check.score(piece)) for piece in pieces]
        case FitCheck():
            state = check.fit(_pick(whole, np.argsort(whole.row_ids)))
            answers = [_answers(check, columns, piece, check.score(piece, state)) for piece in pieces]
        case GroupCheck():
            answers = [_settled(check, columns, pieces, shards)]
        case _:
            raise TypeError(f"{check!r} has none of the three shapes of a check")
    return _one_each(np.sort(ids), columns, pa.concat_tables(answers))


def after(check: Check, table: pa.Table, roles: Roles) -> pa.Table:
    """The table with the columns a check emits, as stages behind it see them: `check.column`."""
    found = run_check(check, table, roles)
    for column in check.columns(roles, table.schema):
        emitted = {_EMITTED: f"{check.name} {column.kind}"}
        table = table.append_column(
            pa.field(f"{check.name}.{column.name}", column.type, metadata=emitted), found.column(column.name)
        )
    return table


_EMITTED = "emitted"


def _emitted(schema: pa.Schema) -> list[Emitted]:
    """The columns that `after` added."""
    found = []
    for field in schema:
        stage, _, name = field.name.partition(".")
        check, _, kind = (field.metadata or {}).get(_EMITTED.encode(), b"").decode().partition(" ")
        if check:
            found.append(Emitted(stage, check, Column(name, kind, "of an earlier stage")))
    return found


def sample(rows: int = 60) -> tuple[pa.Table, Roles]:
    """A small table with every role: texts with exact and near copies, empty and foreign ones, two classes, two groups, nulls."""
    at = np.arange(rows)
    texts: list[str | None] = [f"Row {i}: " + " ".join(f"word{(i * 7 + j * j) % 97}" for j in range(30)) for i in at]
    for copy, near, empty in zip(range(1, rows, 10), range(2, rows, 10), range(3, rows, 20), strict=False):
        texts[copy], texts[near], texts[empty] = texts[copy - 1], f"{texts[near - 2]} end", ""
    foreign = ["Ｔｈｅ cafe\u0301", "東京都は日本の首都であり、世界最大級の都市です。", "สวัสดีครับ", "\u00a0\u200b", "😀" * 9, None]
    texts[4 : 4 + len(foreign)] = foreign[: max(0, rows - 4)]
    table = pa.table(
        {
            "name": pa.array([f"r{i:04d}" for i in at]),
            "body": pa.array(texts[:rows], pa.string()),
            "label": pa.array([None if i % 17 == 16 else "yes" if i % 3 else "no" for i in at], pa.string()),
            "country": pa.array(["de" if i % 2 else "fr" for i in at]),
            "part": pa.array(["test" if i % 5 == 0 else "train" for i in at]),
            "width": pa.array([None if i % 19 == 18 else float(i % 7) for i in at], pa.float64()),
            "height": pa.array(np.cos(at)),
        }
    )
    roles = Roles(id="name", text=("body",), label="label", group=("country",), split="part", features=("width", "height"))
    return table, roles


def contract(check: Check, table: pa.Table, roles: Roles) -> None:
    """Every promise below, on this table; `AssertionError` names the first one that does not hold."""
    for promise in PROMISES:
        promise(check, table, roles)


def same_ids(check: Check, table: pa.Table, roles: Roles) -> None:
    """A row goes in, a row with the same id comes out, also where ids have gaps."""
    ids = np.arange(len(table), dtype=np.uint64) * np.uint64(3) + np.uint64(2**40)
    found = run_check(check, table, roles, row_ids=ids)
    _claim(found.column("row").to_pylist() == ids.tolist(), check, "changed the row ids")


def declared_columns(check: Check, table: pa.Table, roles: Roles) -> None:
    """The columns are the declared ones, in order and type; names are not repeated; rules look at declared columns."""
    columns = check.columns(roles, table.schema)
    names = [column.name for column in columns]
    _claim(len(names) == len(set(names)), check, f"declared a column twice: {names}")
    found = run_check(check, table, roles)
    _claim(found.schema.names == ["row", *names], check, f"declared {names} and emitted {found.schema.names[1:]}")
    for column in columns:
        _claim(found.schema.field(column.name).type == column.type, check, f"`{column.name}` is no {column.type}")
        _claim(bool(column.doc), check, f"`{column.name}` has no description")
    for rule in check.default_rules(roles, table.schema):
        _claim(rule.column in names, check, f"has a default rule over `{rule.column}`, which it does not emit")


def links_name_rows(check: Check, table: pa.Table, roles: Roles) -> None:
    """A link is the id of another row of the data."""
    found = run_check(check, table, roles)
    for column in check.columns(roles, table.schema):
        if column.kind == "link":
            links, rows = found.column(column.name), found.column("row")
            _claim(pc.all(pc.is_in(links.drop_null(), value_set=rows)).as_py() is not False, check, "links to no row")
            _claim(pc.any(pc.equal(links, rows)).as_py() is not True, check, "links a row to itself")


def split_and_order_do_not_matter(check: Check, table: pa.Table, roles: Roles) -> None:
    """The same columns for any order of the rows, any number of parts and of shards."""
    expected = run_check(check, table, roles)
    for seed, parts, shards in ((1, 1, 1), (2, 3, 2), (3, 7, 16), (4, max(1, len(table)), 3)):
        order = np.random.default_rng(seed).permutation(len(table))
        found = run_check(check, table, roles, parts=parts, shards=shards, order=order)
        _claim(found.equals(expected), check, f"answers otherwise in {parts} parts and {shards} shards, rows shuffled")


def empty_part(check: Check, table: pa.Table, roles: Roles) -> None:
    """No rows in, no rows out, with the declared columns."""
    found = run_check(check, table.slice(0, 0), roles)
    _claim(len(found) == 0, check, "made rows out of none")


def null_in_missing_out(check: Check, table: pa.Table, roles: Roles) -> None:
    """A row whose needed cells are all null is missing in every column, unless the check sees nulls."""
    needed = check.needs(roles, table.schema)
    hidden = np.arange(len(table)) % 4 == 1
    holes = table
    for name in needed:
        column = table.column(name)
        empty = pa.nulls(len(table), column.type)
        holes = holes.set_column(holes.schema.get_field_index(name), name, pc.if_else(pa.array(hidden), empty, column))
    found = run_check(check, holes, roles)
    _claim(len(found) == len(table), check, "lost a row with nulls")
    if not check.sees_nulls:
        for name in found.schema.names[1:]:
            answered = found.column(name).is_valid().to_numpy()[hidden]
            _claim(not answered.any(), check, f"answered `{name}` for a row with nulls")


def all_rows_identical(check: Check, table: pa.Table, roles: Roles) -> None:
    """Rows that are all alike, null or not, are scored without an error."""
    for place in range(min(len(table), 8)):
        same = table.take(pa.array([place] * len(table)))
        _claim(len(run_check(check, same, roles)) == len(table), check, "lost one of many equal rows")


def parameters_round_trip(check: Check, table: pa.Table, roles: Roles) -> None:
    """The parameters, written as JSON and read again, make an equal check."""
    again = make_check(check.name, json.loads(json.dumps(check.parameters())), classes={check.name: type(check)})
    _claim(again == check and again.identity() == check.identity(), check, "changes when written to JSON and read")


def travels(check: Check, table: pa.Table, roles: Roles) -> None:
    """A check reaches a worker process unchanged."""
    _claim(ForkingPickler.loads(ForkingPickler.dumps(check)) == check, check, "changes on the way to a worker")


PROMISES: tuple[Callable[[Check, pa.Table, Roles], None], ...] = (
    same_ids,
    declared_columns,
    links_name_rows,
    split_and_order_do_not_matter,
    empty_part,
    null_in_missing_out,
    all_rows_identical,
    parameters_round_trip,
    travels,
)


def _claim(holds: bool, check: Check, fault: str) -> None:
    if not holds:
        raise AssertionError(f"`{check.name}` {fault}")


def _complete(needed: pa.Table) -> npt.NDArray[np.bool_]:
    complete = np.ones(len(needed), np.bool_)
    for column in needed.columns:
        complete &= column.is_valid().to_numpy()
    return complete


def _pick(rows: Rows, places: Order) -> Rows:
    return Rows(rows.table.take(pa.array(places, pa.int64())), rows.row_ids[places], rows.roles, rows.seed)


def _answers(check: Check, columns: tuple[Column, ...], rows: Rows, scores: dict[str, pa.Array] | object) -> pa.Table:
    checked = checked_scores(check, columns, scores, len(rows))  # type: ignore[arg-type]
    return pa.table({"row": pa.array(rows.row_ids, pa.uint64()), **checked})


def _settled(check: GroupCheck, columns: tuple[Column, ...], pieces: list[Rows], shards: int) -> pa.Table:
    """Group checks: shard by key, match, prove, settle; rows with a key and no pair are unsettled."""
    keyed = pa.concat_tables([_with_ids(check.keys(piece), piece) for piece in pieces])
    home = keyed.column("key").to_numpy() % np.uint64(shards)
    pairs = [check.match(keyed.filter(pa.array(home == shard))) for shard in range(shards)]
    if check.verifies:
        links = pa.concat_tables(pairs)
        named = pa.array(links.column("row").unique(), pa.uint64())
        features = pa.concat_tables([_with_ids(check.features(piece), piece) for piece in pieces])
        features = features.filter(pc.is_in(features.column("row"), value_set=named))
        pairs = [check.verify(links, features)[0]]
    settled = [check.settle(some) for some in pairs]
    found = pa.concat_tables([table.select(["row", *(column.name for column in columns)]) for table in settled])
    rest = np.setdiff1d(keyed.column("row").to_numpy(), found.column("row").to_numpy())
    alone = {c.name: pa.array([check.unsettled()[c.name]] * len(rest), c.type) for c in columns}
    return pa.concat_tables([found, pa.table({"row": pa.array(rest, pa.uint64()), **alone})])


def _with_ids(table: pa.Table, rows: Rows) -> pa.Table:
    ids = rows.row_ids[table.column("row").to_numpy().astype(np.int64)]
    return table.set_column(table.schema.get_field_index("row"), "row", pa.array(ids, pa.uint64()))


def _one_each(ids: RowIds, columns: tuple[Column, ...], answers: pa.Table) -> pa.Table:
    """Every row id once, in order, null where nothing was answered."""
    answered = answers.column("row").to_numpy()
    if len(np.unique(answered)) != len(answered):
        raise AssertionError("a row was answered twice")
    places = pc.index_in(pa.array(ids, pa.uint64()), value_set=answers.column("row"))
    found = {c.name: answers.column(c.name).take(places).combine_chunks().cast(c.type) for c in columns}
    return pa.table({"row": pa.array(ids, pa.uint64()), **found})
