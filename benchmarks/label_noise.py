"""Label noise: `label_noise` beside the plain way, on texts whose true labels are known.

    python benchmarks/label_noise.py --data FOLDER [--tasks area youtube]

`FOLDER` holds `e2e_semantic_noise/e2e_semantic_noise.parquet` (seven attributes, `<a>_noisy` and `<a>_clean`) and
`youtube_spam_weak/youtube_spam_weak.parquet` (`majority_vote` and the gold `label`). The plain way is five-fold logistic
regression over TF-IDF of words, ranked by 1 - the probability of the given label: cleanlab's self-confidence. Prints the
average precision of both, the estimated noise rate, and precision and recall at the default cut.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from near_dup import machine

from curate.check import make_check
from curate.dataset import Roles, Rows
from curate.testing import after, run_check

ATTRIBUTES = ("eatType", "food", "priceRange", "customer_rating", "area", "familyFriendly", "near")
ROLES = Roles(text=("text",), label="label")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="*", default=[*ATTRIBUTES, "youtube"])
    asked = parser.parse_args()
    print(
        machine(),
        "",
        "| task | rows | errors | plain AP | curate AP | ratio | true rate | estimated | precision | recall | CPU s |",
        sep="\n",
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    lines = [measured(*task) for task in tasks(asked.data) if task[0] in asked.tasks]
    plain, ours, precision, recall = np.nanmean(np.array(lines), axis=0)
    print(f"| mean | | | {plain:.3f} | {ours:.3f} | {ours / plain:.2f} | | | {precision:.2f} | {recall:.2f} | |")


def tasks(folder: Path) -> Iterator[tuple[str, pa.Table, Any]]:
    """Each task: its name, a table of texts and given labels, and the true labels."""
    table = pq.read_table(folder / "e2e_semantic_noise" / "e2e_semantic_noise.parquet")
    for name in ATTRIBUTES:
        given = table.column(f"{name}_noisy").cast(pa.string())
        yield name, pa.table({"text": table.column("text"), "label": given}), table.column(f"{name}_clean").cast(pa.string())
    table = pq.read_table(folder / "youtube_spam_weak" / "youtube_spam_weak.parquet")
    table = table.filter(pc.and_(pc.equal(table.column("split"), "train"), pc.greater_equal(table.column("majority_vote"), 0)))
    given = table.column("majority_vote").cast(pa.int64()).cast(pa.string())
    yield (
        "youtube",
        pa.table({"text": table.column("text"), "label": given}),
        table.column("label").cast(pa.int64()).cast(pa.string()),
    )


def measured(name: str, table: pa.Table, truth: Any) -> tuple[float, float, float, float]:
    from sklearn.metrics import average_precision_score

    wrong = np.asarray(pc.not_equal(table.column("label"), truth).to_numpy())
    plain = average_precision_score(wrong, plain_suspicion(table))
    start = time.process_time()
    seen = after(make_check("oof_probs", {}), table, ROLES)
    check: Any = make_check("label_noise", {})
    found = run_check(check, seen, ROLES)
    spent = time.process_time() - start
    told = check.evidence(check.fit(Rows(seen, np.arange(len(table), dtype=np.uint64), ROLES)))
    suspicion = np.asarray(found.column("suspicion").fill_null(0.0).to_numpy())
    ours = average_precision_score(wrong, suspicion)
    flagged = np.asarray(found.column("likely_wrong").fill_null(False).to_numpy(), bool)
    precision, recall = wrong[flagged].mean() if flagged.any() else float("nan"), flagged[wrong].mean()
    rate = told["noise_rate"]["value"]
    print(
        f"| {name} | {len(table):,} | {wrong.sum():,} | {plain:.3f} | {ours:.3f} | {ours / plain:.2f} "
        f"| {wrong.mean():.3f} | {rate:.3f} ({told['regime']}) | {precision:.2f} | {recall:.2f} | {spent:.0f} |",
        flush=True,
    )
    return float(plain), float(ours), float(precision), float(recall)


def plain_suspicion(table: pa.Table) -> Any:
    """1 - the five-fold probability of the given label by logistic regression over TF-IDF of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    text = np.array(table.column("text").to_pylist(), dtype=object)
    labels = np.unique(table.column("label").to_pylist(), return_inverse=True)[1]
    suspicion = np.zeros(len(text))
    for rest, held in StratifiedKFold(5, shuffle=True, random_state=0).split(text, labels):
        vectoriser = TfidfVectorizer()
        model = LogisticRegression(max_iter=1000).fit(vectoriser.fit_transform(text[rest]), labels[rest])
        shares = np.zeros((len(held), labels.max() + 1))
        shares[:, model.classes_] = model.predict_proba(vectoriser.transform(text[held]))
        suspicion[held] = 1 - shares[np.arange(len(held)), labels[held]]
    return suspicion


if __name__ == "__main__":
    main()
