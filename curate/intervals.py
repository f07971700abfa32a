"""Intervals for shares that were counted."""

from __future__ import annotations

import math


def wilson(hits: float, of: float, z: float = 1.959964) -> tuple[float, float]:
    """The interval of a share, `hits` out of `of`, at 95 % unless `z` says otherwise; (0, 1) where nothing was counted.

    *Source*: Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if not of:
        return 0.0, 1.0
    share, spread = hits / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    return (0.0 if hits == 0 else middle - half), (1.0 if hits == of else middle + half)
