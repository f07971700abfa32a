"""Label noise that was planted: what `oof_probs` and `label_noise` say where every wrong label is known.

    python benchmarks/label_noise_planted.py --data FOLDER [--parts flips tables given fairness copies] [--rows 4000]

`FOLDER` holds `snips_intents`, `clinc150_oos` and `label_errors_pred_probs`. The parts, each a table on the terminal:

* `flips`     labels of two sets of intents flipped at 5, 20 and 40 %: at random, each class into its neighbour, and by what the
              text holds (Xia et al., 2020); the average precision, the estimated rate and the estimated precision;
* `tables`    scikit-learn's digits, breast cancer and wine with 5, 10 and 20 % random flips and the probabilities of logistic
              regression: F1 of confident learning, of plain disagreement and of the default;
* `given`     probabilities with human review: the flags beside cleanlab's, and the ranking beside its three rankings;
* `fairness`  no wrong label at all, but a group with another relation, a rare class or a far cluster: who would be removed;
* `copies`    30 % of the rows in groups of 2 to 5 copies with the same label, right or wrong.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
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

TEXTS = Roles(text=("text",), label="label")
SEEDS = (0, 1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--parts", nargs="*", default=list(PARTS))
    parser.add_argument("--rows", type=int, default=4000)
    asked = parser.parse_args()
    print(machine())
    for part in asked.parts:
        print()
        PARTS[part](asked)


def flips(asked: argparse.Namespace) -> None:
    header("set", "noise", "asked", "wrong", "AP", "regime", "rate", "precision", "estimated", "recall", "CPU s")
    for name, text, truth in intents(asked.data, asked.rows):
        for kind, flip in FLIPS.items():
            for share in (0.05, 0.2, 0.4):
                labels = flip(text, truth, share, np.random.default_rng(5))
                start = time.process_time()
                found, told = judged(pa.table({"text": text, "label": written(labels)}), TEXTS)
                wrong, flagged = labels != truth, flags(found)
                line(
                    name, kind, f"{share:.2f}", f"{wrong.mean():.3f}", f"{average_precision(wrong, found):.3f}", told["regime"],
                    f"{told['noise_rate']['value']:.3f}", share_of(wrong[flagged]), number(told["estimated_precision"]),
                    share_of(flagged[wrong]), f"{time.process_time() - start:.0f}",
                )  # fmt: skip


def intents(folder: Path, rows: int) -> Iterator[tuple[str, list[str], Any]]:
    """Two sets of texts with classes that people made: 7 of them, and 150."""
    snips = pq.read_table(folder / "snips_intents" / "snips_intents.parquet")
    clinc = pq.read_table(folder / "clinc150_oos" / "clinc150_full.parquet")
    clinc = clinc.filter(pc.invert(clinc.column("is_oos")))
    for name, table in (("snips", snips), ("clinc150", clinc)):
        chosen = np.sort(
            np.random.default_rng(3).permutation(len(table))[: max(rows, 50 * len(set(table["intent"].to_pylist())))]
        )
        table = table.take(pa.array(chosen))
        yield name, table.column("text").to_pylist(), np.unique(table.column("intent").to_pylist(), return_inverse=True)[1]


def symmetric(text: list[str], truth: Any, share: float, rng: np.random.Generator) -> Any:
    classes = truth.max() + 1
    moved = (truth + rng.integers(1, classes, len(truth))) % classes
    return np.where(rng.random(len(truth)) < share, moved, truth)


def by_class(text: list[str], truth: Any, share: float, rng: np.random.Generator) -> Any:
    return np.where(rng.random(len(truth)) < share, (truth + 1) % (truth.max() + 1), truth)


def by_row(text: list[str], truth: Any, share: float, rng: np.random.Generator) -> Any:
    """Rates that differ by row (0.1 around the share), and a wrong class that follows from what the row holds."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    classes = truth.max() + 1
    features = TruncatedSVD(32, random_state=0).fit_transform(TfidfVectorizer().fit_transform(text))
    features /= np.linalg.norm(features, axis=1, keepdims=True) + 1e-9
    scores = 4 * np.einsum("nf,nfk->nk", features, rng.normal(size=(classes, 32, classes))[truth])
    scores[np.arange(len(truth)), truth] = -np.inf
    moved = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    rate = np.clip(rng.normal(share, 0.1, len(truth)), 0, 1)
    return np.where(rng.random(len(truth)) < rate * share / rate.mean(), moved, truth)


FLIPS: dict[str, Callable[..., Any]] = {"symmetric": symmetric, "by class": by_class, "by row": by_row}


def tables(asked: argparse.Namespace) -> None:
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine
    from sklearn.metrics import f1_score

    header(
        "set",
        "flipped",
        "confident learning = cleanlab's",
        "F1 confident learning",
        "F1 disagreement",
        "F1 default",
        "rate",
        "F1 with our models",
    )
    for name, load in (("digits", load_digits), ("breast cancer", load_breast_cancer), ("wine", load_wine)):
        features, truth = load(return_X_y=True)
        for share in (0.05, 0.1, 0.2):
            scores, equal, rates = [], True, []
            for seed in SEEDS:
                labels = symmetric([], truth, share, np.random.default_rng(seed))
                shares = logistic(features, labels, seed)
                found, told = given(shares, labels)
                picks = [boolean(found, column) for column in ("confident_learning", "disagreement", "likely_wrong")]
                own, _ = judged(*as_table(features, labels))
                picks.append(flags(own))
                scores.append([f1_score(labels != truth, one) for one in picks])
                equal &= bool((picks[0] == cleanlab_flags(labels, shares)).all())
                rates.append(told["noise_rate"]["value"])
            *f1, ours = np.mean(scores, axis=0)
            line(name, f"{share:.2f}", equal, *(f"{one:.3f}" for one in f1), f"{np.mean(rates):.3f}", f"{ours:.3f}")


def as_table(numbers: Any, labels: Any) -> tuple[pa.Table, Roles]:
    names = tuple(f"x{at}" for at in range(numbers.shape[1]))
    return pa.table(dict(zip(names, numbers.T, strict=True)) | {"label": written(labels)}), Roles(label="label", features=names)


def logistic(features: Any, labels: Any, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_predict(model, features, labels, cv=folds, method="predict_proba")


def reviewed(asked: argparse.Namespace) -> None:
    from cleanlab.rank import get_label_quality_scores
    from sklearn.metrics import roc_auc_score

    header("set", "flags", "equal cleanlab's", "AUROC", *(name for name in RANKINGS), "regime", "rate")
    for name in ("mnist", "imdb"):
        table = pq.read_table(asked.data / "label_errors_pred_probs" / f"{name}.parquet")
        columns = sorted((one for one in table.column_names if one[:2] == "p_"), key=lambda one: int(one[2:]))
        shares = np.minimum(np.column_stack([table.column(one).to_numpy() for one in columns]), 1)  # rounding went above
        labels = table.column("given_label").to_numpy().astype(np.int64)
        found, told = given(shares, labels)
        verdict = np.array(table.column("human_verdict").to_pylist())
        known, wrong = verdict != "not_reviewed", np.isin(verdict, ["label_error_corrected", "neither_or_both"])
        ranked = [found.column("suspicion").to_numpy(), *(-get_label_quality_scores(labels, shares, method=m) for m in RANKINGS)]
        picks = boolean(found, "confident_learning")
        line(
            name, picks.sum(), bool((picks == cleanlab_flags(labels, shares)).all()),
            *(f"{roc_auc_score(wrong[known], one[known]):.4f}" for one in ranked),
            told["regime"], f"{told['noise_rate']['value']:.4f}",
        )  # fmt: skip


RANKINGS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


def fairness(asked: argparse.Namespace) -> None:
    header("what differs", "seed", "its share flagged", "others flagged", "overall", "budget", "spared there", "regime")
    for kind in ("group", "class", "cluster"):
        for seed in SEEDS:
            table, minority, roles = clean(kind, seed)
            found, told = judged(table, roles)
            picked = flags(found)
            spared = np.array(found.column("kind").to_pylist()) == "spared"
            line(
                kind, seed, share_of(picked[minority]), share_of(picked[~minority]), share_of(picked),
                number(told["budget"]), share_of(spared[minority]), told["regime"],
            )  # fmt: skip


def clean(kind: str, seed: int) -> tuple[pa.Table, Any, Roles]:
    """3,000 rows of eight numbers and a class that follows from them, with a minority that differs."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(3000, 8))
    labels = (numbers[:, 0] + numbers[:, 1] > 0).astype(int)
    minority = rng.random(3000) < (0.1 if kind == "group" else 0.02)
    if kind == "group":
        labels = np.where(minority, (numbers[:, 0] + numbers[:, 1] <= 0).astype(int), labels)
    if kind == "class":
        numbers[minority, 2] += 1.5
        labels[minority] = 2
    if kind == "cluster":
        numbers[minority] += 8
        labels[minority] = rng.integers(0, 2, minority.sum()) * 0
    table = pa.table({f"x{at}": numbers[:, at] for at in range(8)} | {"label": written(labels)})
    table = table.append_column("place", pa.array(np.where(minority, "island", "mainland")))
    features = tuple(f"x{at}" for at in range(8))
    return table, minority, Roles(label="label", features=features, group=("place",))


def copies(asked: argparse.Namespace) -> None:
    header("set", "copies", "rows", "wrong", "AP", "AP of copies", "conflicts")
    for name, text, truth in intents(asked.data, asked.rows):
        if name == "snips":
            for edited in (False, True):
                rng = np.random.default_rng(11)
                labels = symmetric(text, truth, 0.15, rng)
                body, place = with_copies(text, edited, rng)
                found, _ = judged(pa.table({"text": body, "label": written(labels[place])}), TEXTS)
                wrong, many = (labels != truth)[place], np.bincount(place)[place] > 1
                of_copies = average_precision(wrong[many], found.filter(pa.array(many)))
                line(
                    name, "edited" if edited else "exact", len(body), f"{wrong.mean():.3f}",
                    f"{average_precision(wrong, found):.4f}", f"{of_copies:.4f}", int(boolean(found, "copies_conflict").sum()),
                )  # fmt: skip


def with_copies(text: list[str], edited: bool, rng: np.random.Generator) -> tuple[list[str], Any]:
    """About 30 % of the rows in groups of 2 to 5; an edit takes a word out, adds one or doubles one. And each row's original."""
    groups = rng.permutation(len(text))[: int(0.109 * len(text))]
    body, place = list(text), list(range(len(text)))
    for at in groups.tolist():
        for _ in range(int(rng.integers(1, 5))):
            words = text[at].split()
            if edited:
                where = int(rng.integers(0, len(words)))
                taken_out = words[:where] + words[where + 1 :]
                words = [taken_out, [*words, "please"], [*words[:where], words[where], *words[where:]]][int(rng.integers(0, 3))]
            body.append(" ".join(words))
            place.append(at)
    return body, np.array(place)


def judged(table: pa.Table, roles: Roles, oof: dict[str, Any] | None = None) -> tuple[pa.Table, Any]:
    """What `label_noise` says of each row, and its evidence."""
    seen = after(make_check("oof_probs", oof or {}), table, roles)
    check: Any = make_check("label_noise", {})
    found = run_check(check, seen, roles)
    return found, check.evidence(check.fit(Rows(seen, np.arange(len(table), dtype=np.uint64), roles)))


def given(shares: Any, labels: Any) -> tuple[pa.Table, Any]:
    table = pa.table({"label": written(labels), "p": pa.array(list(shares.astype(np.float32)), pa.list_(pa.float32()))})
    return judged(table, Roles(label="label"), {"probabilities": "p"})


def written(labels: Any) -> list[str]:
    return [f"c{one:03d}" for one in labels]


def cleanlab_flags(labels: Any, shares: Any) -> Any:
    from cleanlab.filter import find_label_issues

    return find_label_issues(labels, shares.astype(np.float32), filter_by="prune_by_noise_rate", n_jobs=1)


def average_precision(wrong: Any, found: pa.Table) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(wrong, found.column("suspicion").fill_null(0.0).to_numpy()))


def boolean(found: pa.Table, column: str) -> Any:
    return np.asarray(found.column(column).fill_null(False).to_numpy(), bool)


def flags(found: pa.Table) -> Any:
    return boolean(found, "likely_wrong")


def share_of(mask: Any) -> str:
    return f"{mask.mean():.3f}" if len(mask) else ""


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def header(*names: str) -> None:
    line(*names)
    print("|" + "---|" * len(names))


def line(*cells: Any) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


PARTS = {"flips": flips, "tables": tables, "given": reviewed, "fairness": fairness, "copies": copies}


if __name__ == "__main__":
    main()
