"""When two short records, of names, addresses or titles, are the same one: column by column, typing errors forgiven.

*Similarity*: the mean, over the columns filled in both records, of the share of three-character pieces that the two cells
have in common, each column counting by its weight times the square root of the length of its cells. The share
is the Jaccard similarity of the sets of pieces; the length is that of both sets together. It is 1 for equal records. A long
cell says more than a short one, though not in proportion: a street and a state agreeing are not two equal proofs.

*Pieces*: cells are read as `curate.cells.fold` folds them, letters, digits and underscores with one space between words
and an edge at both ends, so `Ann` is the edge and `An`, `Ann`, and `nn` and the edge.

*Missing*: a cell that is null or has no letter or digit. Its column is left out, and where the columns left do not hold
more than half of all weight, two records are not alike at all (0): a name alone is no person.

*Candidates*: a key is a hash of a few slots. A slot draws one of the filled columns, with a chance in
proportion to its share of the similarity, and is the least of the cell's pieces under a permutation. So two records agree in
a slot with a chance of about their similarity, and bands of slots find them as bands of minima find texts.

*Source*: Broder 1997 for minima; for the drawing, Efraimidis and Spirakis, "Weighted random sampling with a
reservoir", 2006 (the item with the least exponential wait). Drawing a column before a piece is our own.

*Measured* at the defaults, on all pairs: F1 0.975 on persons (FEBRL data set 3, ten columns; precision 1.000, recall 0.952)
and 0.902 on audio CDs (artist, title, tracks; 0.871, 0.937).

*When it is wrong*: a mean does not know which column tells two things apart. Of relatives at one address, made from FEBRL's
persons by another given name, birthday and number, all count as one at equal weights; with weight 3 on these three columns
2.4 % do, and F1 stays 0.977. FEBRL itself has no such pairs, so its precision says nothing about them. And few
columns with common values say too little: by artist and title alone ("various artists", "greatest hits") F1 on the
CDs is 0.27 at the default, 0.81 with `similarity: 0.7`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from curate import minhash
from curate.hashing import mix64
from curate.parameters import parameters

U64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

VERSION = 1
"""of pieces, draws, keys and the similarity: what another version made is never compared"""
LIMIT = 0.55
"""the similarity from which two records count as one, where the user names none"""
CHARACTERS = 3
"""characters in a piece, where the user says nothing"""
MOST_COLUMNS = 64
MOST_KEYS = 64
MOST_SLOTS = 192
MARGIN = 0.05
"""how much rarer than their similarity two records may share a slot: cells of unlike length are not drawn alike (measured: 0.014
on average over the pairs of CDs above the limit, 0.08 at most)"""
EXACTNESS = 2.0**32
"""waits are rounded to this share, so that no processor's logarithm decides a draw"""
EXPECTED = (
    "expected column names, [name, street], or their weights, {name: 2, street: 1, title: {weight: 3, chars: 3}}, each once"
)


@parameters
class RecordColumn:
    """One column of a record."""

    name: str
    """the column"""
    weight: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 1.0
    """how much it counts beside the others, for cells of the same length"""
    chars: Annotated[int, Field(ge=2, le=16)] = CHARACTERS
    """characters in a piece"""


def _columns(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(value, str):
        value = [value]
    if isinstance(value, dict):
        value = [{"name": name, **(how if isinstance(how, dict) else {"weight": how})} for name, how in value.items()]
    elif isinstance(value, list | tuple):
        value = [{"name": one} if isinstance(one, str) else one for one in value]
    try:
        columns: tuple[RecordColumn, ...] = validate(value)
    except (ValidationError, TypeError) as err:
        raise PydanticCustomError("record", EXPECTED) from err
    if len({column.name for column in columns}) < len(columns):
        raise PydanticCustomError("record", EXPECTED)
    return columns


_How = Annotated[float, Field(gt=0)] | dict[str, float]
Record = Annotated[
    Annotated[tuple[RecordColumn, ...], Field(max_length=MOST_COLUMNS)],
    WrapValidator(_columns, json_schema_input_type=str | tuple[str | RecordColumn, ...] | dict[str, _How]),
]
"""the columns of a record, as a user writes them; several ways of writing the same are the same value"""


class Comparison(NamedTuple):
    """How records are compared: per column its weight and those of the places in a piece; per slot its permutation.

    `waits` (columns x slots) say how soon a slot draws a column; `rows` slots make a key.
    """

    weights: npt.NDArray[np.float64]
    places: tuple[U64s, ...]
    factors: npt.NDArray[np.uint32]
    shifts: npt.NDArray[np.uint32]
    waits: npt.NDArray[np.float64]
    rows: int

    @property
    def keys_per_row(self) -> int:
        """The keys that a record has."""
        return len(self.factors) // self.rows


def choose_keys(similarity: float) -> tuple[int, int]:
    """Keys, and slots a key: the most slots with which a pair of a little less than this similarity is still found.

    0.55 gives 52 x 3, 0.8 gives 26 x 5.
    """
    likely = max(similarity - MARGIN, MARGIN)
    chosen = (MOST_KEYS, 1)
    for slots in range(1, MOST_SLOTS + 1):
        keys = math.ceil(math.log(1 - minhash.DETECTION) / math.log1p(-(likely**slots)))
        if keys > MOST_KEYS or keys * slots > MOST_SLOTS:
            break
        chosen = (keys, slots)
    return chosen


def comparison(columns: Sequence[RecordColumn], bands: int, rows: int) -> Comparison:
    """How these columns are compared, with so many keys (`bands`) of so many slots (`rows`)."""
    slots = minhash.signing(bands, rows, 1, minhash.CHARACTERS)
    drawn = mix64(np.arange(len(columns) * bands * rows, dtype=np.uint64), seed=VERSION + 2000)
    waits = np.rint(-np.log((drawn + 1.0) / 2.0**64) * EXACTNESS) / EXACTNESS
    return Comparison(
        np.array([column.weight for column in columns], np.float64),
        tuple(minhash.signing(1, 1, column.chars, minhash.CHARACTERS).places for column in columns),
        slots.factors,
        slots.shifts,
        waits.reshape(len(columns), bands * rows),
        rows,
    )


def keys(cells: Sequence[pa.LargeStringArray], how: Comparison) -> tuple[Int64s, U64s]:
    """The records of which enough is filled to be compared, and their keys (records x keys a row), all even.

    `cells` are the columns, equally long. Records without a common key are not worth comparing.
    Cost: one pass, 5 to 6 s for a million records of five short cells and 52 keys (one core of a busy machine).
    """
    from curate.kernels.records import Slots, record_keys, record_sets

    slots = Slots(how.factors, how.shifts, how.waits, how.rows)
    found = [record_keys(sets, how.weights, slots) for sets in record_sets(cells, how.places)]
    rows = np.concatenate([np.empty(0, np.int64), *(row for row, _ in found)])
    return rows, np.concatenate([np.empty((0, how.keys_per_row), np.uint64), *(each for _, each in found)])


def features(cells: Sequence[pa.LargeStringArray], how: Comparison) -> tuple[Int64s, U64s]:
    """The sets of pieces of all records, end to end: bounds (n + 1) and values, rising within a record.

    The leading byte of a value is the place of its column, so a record's cells follow one another. Two records are
    compared by `curate.kernels.records.record_similarity`.
    """
    from curate.kernels.records import record_sets

    found = list(record_sets(cells, how.places))
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(sets.bounds) for sets in found)])
    return np.cumsum(sizes), np.concatenate([np.empty(0, np.uint64), *(sets.values for sets in found)])
