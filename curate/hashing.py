"""Digests for identity and a 64-bit mix for deterministic random choices.

Identity (store keys, row contents) is cryptographic, so nobody can craft a row that stands for
another one. Random choices are a function of the pipeline's seed and a row id alone: they
survive any order, split, worker count and library upgrade.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]


def key_of(value: Any) -> str:
    """The 32-digit hex key of a JSON-shaped value: equal values have equal keys."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def mix64(values: U64, seed: int = 0) -> U64:
    """A bijective scramble of 64-bit integers (splitmix64: Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        x = values.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def identity_sum(row_ids: U64) -> int:
    """An order-free fingerprint of a set of row ids: the sum of their mixes, modulo 2^64.

    Two disjoint sets add up to the fingerprint of their union, so kept + rejected +
    quarantined can be compared with the input by identity, not only by count.
    """
    return int(np.sum(mix64(row_ids), dtype=np.uint64))
