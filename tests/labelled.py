"""Labelled texts with known errors, for the tests of label checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.check import make_check
from curate.dataset import Roles
from curate.testing import after, run_check

ROLES = Roles(id="id", text=("text",), label="label")
TOPICS = {
    "garden": "rose soil spade seed lawn weed bloom prune compost tulip hedge shrub",
    "kitchen": "knife oven flour butter whisk simmer recipe pan salt garlic dough broth",
    "music": "chord tempo violin lyric bass drum melody encore octave rehearsal choir tune",
    "sport": "goal coach sprint league tackle referee stadium medal racket hurdle pitch score",
}
COMMON = "the a of and to in it was is that with for on as this".split()


def texts(rows: int, seed: int = 0) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Short texts on one of four topics, and the topic of each."""
    rng = np.random.default_rng(seed)
    words = [topic.split() for topic in TOPICS.values()]
    topics = rng.integers(0, len(words), rows)
    made = []
    for topic in topics.tolist():
        own = rng.choice(words[topic], 4)
        other = rng.choice(words[int(rng.integers(0, 4))], 1)
        noise = [f"w{number}" for number in rng.integers(0, 3000, 3)]
        made.append(" ".join(rng.permutation([*own, *other, *noise, *rng.choice(COMMON, 5)])))
    return made, topics


def flipped(topics: npt.NDArray[np.int64], share: float, seed: int = 1) -> npt.NDArray[np.int64]:
    """The topics with a share of them replaced by another one, each alike."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(topics)) < share
    return np.where(wrong, (topics + rng.integers(1, 4, len(topics))) % 4, topics)


def labelled(body: list[str], topics: npt.NDArray[np.int64], **more: Any) -> pa.Table:
    names = list(TOPICS)
    ids = [f"r{at}" for at in range(len(body))]
    return pa.table({"id": ids, "text": body, "label": [names[topic] for topic in topics.tolist()], **more})


def judged(table: pa.Table, roles: Roles = ROLES, oof: dict[str, Any] | None = None, **parameters: Any) -> pa.Table:
    """What `label_noise` says of the table, by row."""
    seen = after(make_check("oof_probs", {"fast": True} | (oof or {})), table, roles)
    return run_check(make_check("label_noise", parameters), seen, roles)


def evidence(table: pa.Table, roles: Roles = ROLES, **parameters: Any) -> dict[str, Any]:
    """What `label_noise` tells the report of the table."""
    from curate.dataset import Rows

    seen = after(make_check("oof_probs", {"fast": True}), table, roles)
    check: Any = make_check("label_noise", parameters)
    state = check.fit(Rows(seen, np.arange(len(table), dtype=np.uint64), roles))
    return dict(check.evidence(state))


def average_precision(wrong: npt.NDArray[np.bool_], suspicion: pa.ChunkedArray) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(wrong, suspicion.to_numpy()))
