"""What `bias` says of texts: which groups they name, how often beside an insult, and which differ only in whom they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from curate.bias_lines import judged
from curate.dataset import Rows
from curate.identity import TOXIC, has_word, terms, twin_keys, twins
from curate.intervals import newcombe, p_of_shares, wilson


def evidence(rows: Rows, toxic_words: Sequence[str], least: int, margin: float) -> tuple[dict[str, Any], npt.NDArray[np.uint64]]:
    """The tables, and the keys of texts that have a counterfactual twin."""
    text = rows.whole_text()
    toxic = has_word(text, (*TOXIC, *(word.lower() for word in toxic_words)))
    lines = []
    for kind, group, words in terms():
        named = has_word(text, words)
        if named.any():
            lines.append(_line(kind, group, named, toxic))
    key, own = twin_keys(text)
    found = twins(key, own)
    paired = np.isin(key, found)
    low, high = wilson(int(toxic.sum()), len(toxic))
    told: dict[str, Any] = {
        "toxicity": [
            {"texts": len(toxic), "with_toxic_word": int(toxic.sum()), "share": float(toxic.mean()), "low": low, "high": high}
        ]
        if len(toxic)
        else [],
        "identity_terms": judged(lines, margin, least),
        "counterfactual_twins": {"sets": len(found), "rows": int(paired.sum())} if len(found) else {},
    }
    return {name: value for name, value in told.items() if value}, found


def _line(kind: str, group: str, named: npt.NDArray[np.bool_], toxic: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """A group's rate in the texts, and the toxic ones among them against those among all others."""
    rows, total = int(named.sum()), len(named)
    low, high = wilson(rows, total)
    beside, other = int((toxic & named).sum()), int((toxic & ~named).sum())
    line: dict[str, Any] = {
        "kind": kind,
        "group": group,
        "rows": rows,
        "share": rows / total,
        "share_low": low,
        "share_high": high,
    }
    low, high = wilson(beside, rows)
    line |= {"toxic_share": beside / rows, "toxic_share_low": low, "toxic_share_high": high}
    low, high = newcombe(beside, rows, other, total - rows)
    rest = other / (total - rows) if total > rows else 0.0
    gap = beside / rows - rest
    line |= {"rest_toxic_share": rest, "difference": gap, "difference_low": low, "difference_high": high}
    chance = p_of_shares(beside, rows, other, total - rows)
    return line | {"_p": chance, "_gap": (gap, low, high), "_rows": min(rows, total - rows)}
