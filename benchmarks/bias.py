"""`bias` beside fairlearn and aequitas on the Adult table: the same numbers, to 1e-6?

    python benchmarks/bias.py --data FOLDER

FOLDER holds `bias_adult/adult.parquet`; without it the sample of the repository is read. The two are installed into a virtual
environment of their own below `benchmarks/data/`, since aequitas wants an older pandas. Ends with 1 where a number differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from near_dup_peers import ARROW, SCRIPTS, Peer, installed

from curate.check import make_check
from curate.checks.bias import Bias
from curate.dataset import Roles, Rows

SAMPLE = Path(__file__).parents[1] / "sample_data" / "adult" / "adult.parquet"
CLOSE = 1e-6


def main() -> int:
    """Print every number three times, and say whether they agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with bias_adult/adult.parquet")
    data = parser.parse_args().data
    path = SAMPLE if data is None else data / "bias_adult" / "adult.parquet"
    label = "income_per_year" if data is None else "income-per-year"
    ours, theirs = of_curate(path, label), of_peers(path, label)
    furthest = 0.0
    print("| column | group | number | curate | fairlearn | aequitas |\n|---|---|---|---|---|---|")
    for column, told in theirs.items():
        for number in ("difference", "ratio"):
            mine = ours[column][number]
            furthest = max(furthest, abs(mine - told[number]))
            print(f"| {column} | | parity {number} | {mine:.6f} | {told[number]:.6f} | |")
        for group, pair in told["groups"].items():
            for name, mine, other in zip(("share", "ratio to the highest"), ours[column]["groups"][group], pair, strict=True):
                furthest = max(furthest, abs(mine - other))
                print(f"| {column} | {group} | {name} | {mine:.6f} | | {other:.6f} |")
    print(f"\nThe largest difference is {furthest:.1e}.")
    return int(furthest > CLOSE)


def of_curate(path: Path, label: str) -> dict[str, Any]:
    """By column what `bias` says."""
    table = pq.read_table(path)
    roles, check = Roles(label=label, group=("sex", "race")), make_check("bias", {"favourable": ">50K"})
    assert isinstance(check, Bias)
    rows = Rows(table.select(list(check.needs(roles, table.schema))), np.arange(len(table), dtype=np.uint64), roles)
    told = check.evidence(check.fit(rows))
    return {
        gap["column"]: {
            "difference": gap["parity_difference"],
            "ratio": gap["parity_ratio"],
            "groups": {
                line["group"]: (line["share"], line["impact_ratio"])
                for line in told["label_rates"]
                if line["column"] == gap["column"]
            },
        }
        for gap in told["label_gaps"]
    }


def of_peers(path: Path, label: str) -> dict[str, Any]:
    """By column what the two say."""
    peer = Peer("fairness", "with_fairness.py", ("aequitas==1.1.0", "fairlearn==0.15.0", ARROW), "defaults")
    python = installed(peer, Path(__file__).parent / "data" / "venvs")
    command = [str(python), str(SCRIPTS / peer.script), str(path), label, ">50K", "sex", "race"]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


if __name__ == "__main__":
    sys.exit(main())
