"""The index of accepted rows is whole after a kill, and never answers from a damaged file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from indexes import IDENTITY, TOP, files, filled, numbers, planted, shown, table, the_segment

from curate.errors import BusyError, InputError, TemporaryError
from curate.index import Index


class KilledError(Exception):
    """Stands for kill -9: what comes after it in the writer does not happen."""


Change = Callable[[Index], object]
CHANGES: dict[str, Change] = {
    "add": lambda made: made.add("new", [table(planted(40, 500))]),
    "add and merge": lambda made: made.add("new", [table(planted(100, 500))]),
    "delete": lambda made: made.delete(["id-3", "id-150", "id-250"]),
    "compact": lambda made: made.compact(),
}


def steps_of(monkeypatch: pytest.MonkeyPatch, die_at: int) -> Iterator[None]:
    """Let the writer die before the step of this number: a flush, a rename or a removal."""
    left = [die_at]

    def stepping(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KilledError
            return real(*arguments, **named)

        return step

    with monkeypatch.context() as patch:
        for owner, name in ((os, "fsync"), (os, "replace"), (Path, "rename"), (Path, "unlink")):
            patch.setattr(owner, name, stepping(getattr(owner, name)))
        yield


@pytest.mark.parametrize("change", CHANGES)
def test_a_kill_between_any_two_steps_leaves_the_old_or_the_new_index(
    room: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    keys = [*range(10), 1003, 1150, 1510, TOP]
    start = filled(room / "start", planted(100), planted(100, 100), planted(100, 200))
    start.delete(["id-0", "id-299"])
    old = shown(start, keys)
    shutil.copytree(room / "start", room / "whole")
    whole = Index.open(room / "whole", IDENTITY)
    CHANGES[change](whole)
    new = shown(whole, keys)

    for die_at in range(100):
        folder = room / f"killed-{die_at}"
        shutil.copytree(room / "start", folder)
        made, died = Index.open(folder, IDENTITY), False
        for _ in steps_of(monkeypatch, die_at):
            try:
                CHANGES[change](made)
            except KilledError:
                died = True
        left = Index.open(folder, IDENTITY)
        assert shown(left, keys) in (old, new)
        CHANGES[change](left)
        left.add("another", [])
        assert shown(left, keys) == new
        assert shown(Index.open(folder, IDENTITY), keys) == new
        assert len(files(folder)) == sum(
            1 + (entry["dead"] is not None) for entry in json.loads((folder / "index.json").read_text())["segments"]
        )
        if not died:
            break

    assert 5 < die_at < 99


def damage(path: Path, at: int, flip: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= flip
    path.write_bytes(bytes(data))


def use(folder: Path) -> None:
    """Ask everything an index can be asked, and rewrite it."""
    made = Index.open(folder, IDENTITY)
    made.lookup(numbers([*range(10), TOP]))
    made.find(np.arange(0, 7 * 300, 7, dtype=np.uint64))
    made.read(np.arange(300, dtype=np.uint64))
    made.delete(["id-5"])


def test_a_flipped_bit_anywhere_in_a_segment_is_noticed_by_whoever_reads_it(room: Path) -> None:
    made = filled(room, planted(300))
    before = the_segment(room).read_bytes()
    sections = json.loads((room / "index.json").read_text())["segments"][0]["sections"]
    wanted = [at + place for at, size, _ in sections.values() for place in (0, size // 3, size // 2, size - 1)]
    used = made.read(np.arange(300, dtype=np.uint64))

    for at in wanted:
        the_segment(room).write_bytes(before)
        damage(the_segment(room), at)
        with pytest.raises(InputError) as caught:
            use(room)
        assert caught.value.place == str(the_segment(room))
        assert caught.value.exit_code == 4

    the_segment(room).write_bytes(before)
    use(room)
    assert used.num_rows == 300


@pytest.mark.parametrize("cut", [0, 1, 100, 5000])
def test_a_segment_cut_short_is_noticed_when_the_index_is_opened(room: Path, cut: int) -> None:
    filled(room, planted(300))
    with the_segment(room).open("r+b") as file:
        file.truncate(cut)

    with pytest.raises(InputError, match="damaged"):
        Index.open(room, IDENTITY)


def test_lost_files_and_a_changed_document_are_noticed(room: Path) -> None:
    made = filled(room, planted(100), planted(30, 100))
    made.delete(["id-7"])
    document = (room / "index.json").read_text()
    dead = next((room / "segments").glob("*.dead"))

    (room / "index.json").write_text(document.replace('"rows": 30', '"rows": 31'))
    with pytest.raises(InputError, match=r"index\.json"):
        Index.open(room, IDENTITY)
    (room / "index.json").write_text(document[:-40])
    with pytest.raises(InputError, match=r"index\.json"):
        Index.open(room, IDENTITY)
    (room / "index.json").unlink()
    with pytest.raises(InputError, match=r"index\.json"):
        Index.open(room, IDENTITY)
    (room / "index.json").write_text(document)
    damage(dead, 0)
    with pytest.raises(InputError, match=r"\.dead"):
        Index.open(room, IDENTITY)
    dead.unlink()
    with pytest.raises(InputError, match=r"\.dead"):
        Index.open(room, IDENTITY)


def test_one_writer_at_a_time_while_readers_read(room: Path) -> None:
    made, other = filled(room, planted(20)), Index.open(room, IDENTITY)

    def batch() -> Iterator[pa.Table]:
        for change in (lambda: other.add("other", []), lambda: other.delete(["id-1"]), other.compact):
            with pytest.raises(BusyError) as caught:
                change()
            assert caught.value.exit_code == 5
            assert str(os.getpid()) in caught.value.message
        assert other.lookup(numbers([TOP])).num_rows == 20
        yield table(planted(5, 20))

    assert made.add("long", batch())
    assert other.add("other", [])
    assert other.rows == 25


def test_a_batch_compared_with_an_older_state_is_not_added(room: Path) -> None:
    made, other = filled(room, planted(20)), Index.open(room, IDENTITY)
    state = other.state
    made.add("between", [table(planted(5, 20))])

    with pytest.raises(TemporaryError) as caught:
        other.add("mine", [table(planted(5, 30))], after=state)

    assert caught.value.exit_code == 75
    assert other.rows == 25
    assert not other.add("between", [], after=state)
    assert other.add("mine", [table(planted(5, 30))], after=other.state)


def test_a_reader_keeps_what_it_opened_when_the_index_is_rewritten_under_it(room: Path) -> None:
    made, reader = filled(room, planted(50), planted(20, 50)), Index.open(room, IDENTITY)
    before = shown(reader, [3, TOP])

    made.delete(["id-3", "id-60"])
    made.compact()

    assert shown(reader, [3, TOP]) == before
    assert len(shown(Index.open(room, IDENTITY), [TOP])) == 68


def test_a_row_that_failed_half_way_leaves_the_index_as_it_was(room: Path) -> None:
    made = filled(room, planted(20))
    state = made.state

    def batch() -> Iterator[pa.Table]:
        yield table(planted(5, 20))
        raise KeyError("the source is gone")

    with pytest.raises(KeyError):
        made.add("broken", batch())

    assert Index.open(room, IDENTITY).state == state
    assert made.add("broken", [table(planted(5, 20))])
    assert (made.rows, len(files(room))) == (25, made.facts()["segments"])


def test_a_damaged_record_stays_noticed_when_it_is_copied_and_a_damaged_key_stops_the_copy(room: Path) -> None:
    made = filled(room, planted(100), planted(20, 100))
    before = the_segment(room).read_bytes()
    sections = next(
        entry["sections"]
        for entry in json.loads((room / "index.json").read_text())["segments"]
        if entry["name"] == the_segment(room).stem
    )

    damage(the_segment(room), sections["keys"][0])
    with pytest.raises(InputError):
        made.compact()
    the_segment(room).write_bytes(before)
    damage(the_segment(room), sections["records"][0] + 60)
    made = Index.open(room, IDENTITY)
    made.compact()

    assert made.lookup(numbers([TOP])).num_rows == 120
    with pytest.raises(InputError):
        made.read(np.arange(120, dtype=np.uint64))


def test_an_index_that_is_always_rewritten_is_a_temporary_trouble(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(room, planted(5))
    states = iter(range(1000))
    document = json.loads((room / "index.json").read_text())
    document["segments"][0]["name"] = "gone"
    monkeypatch.setattr("curate.snapshot.read_document", lambda *_: (document, str(next(states))))

    with pytest.raises(TemporaryError):
        Index.open(room, IDENTITY)
