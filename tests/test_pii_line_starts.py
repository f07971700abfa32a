"""An item that begins a line belongs to no word of the line before."""

from __future__ import annotations

import pyarrow as pa
import pytest

from curate.check import make_check
from curate.dataset import Roles
from curate.testing import run_check


@pytest.mark.parametrize("before", ["see the list", "in 2024", "the list:"])
@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("emails", "anna.lind@example.org"),
        ("ips", "192.0.2.77"),
        ("ips", "2001:db8::17"),
        ("phones", "+44 20 7946 0958"),
        ("phones", "(312) 555-0142"),
        ("phones", "020 7946 0823"),
        ("cards", "4242 4242 4242 4242"),
        ("ibans", "DE89 3704 0044 0532 0130 00"),
        ("secrets", "sk_" + "test_FAKEhr6BibgvxUp4MckLTuYk"),
    ],
)
def test_an_item_at_the_beginning_of_a_line_is_counted(kind: str, item: str, before: str) -> None:
    table = pa.table({"body": [f"{before}\n{item}\nand so on"]})

    found = run_check(make_check("pii", {}), table, Roles(text="body")).to_pydict()

    assert found[kind] == [1]
