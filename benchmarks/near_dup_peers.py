"""The tools that near_dup is measured against: versions, settings, and a virtual environment for each."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from common import Failed

SCRIPTS = Path(__file__).parent / "peers"
ARROW = "pyarrow==26.0.1"


@dataclass(frozen=True)
class Peer:
    """A tool: its script in `peers/`, what is installed for it (the tool first), how it is set, the script's arguments."""

    name: str
    script: str
    packages: tuple[str, ...]
    setting: str
    arguments: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        return self.packages[0].partition("==")[2]

    def command(self, python: Path, corpus: Path, work: Path) -> list[str]:
        """Reads the corpus and writes `removed.parquet` into a folder."""
        return [*map(str, (python, SCRIPTS / self.script, corpus, work / "removed.parquet")), *self.arguments]

    def removed(self, work: Path) -> npt.NDArray[np.int64]:
        """The ids that the last run into a folder would remove."""
        return np.asarray(pq.read_table(work / "removed.parquet").column("id"))


PEERS = (
    Peer("daft", "with_daft.py", ("daft==0.7.26", "pyarrow==25.0.1"), "14 × 8 minima, candidates only"),
    Peer("daft-bare", "with_daft.py", ("daft==0.7.26", "pyarrow==25.0.1"), "the same, words parted at spaces only", ("bare",)),
    Peer("gaoya", "with_gaoya.py", ("gaoya==0.2.2", ARROW), "128 minima, estimates compared"),
    Peer("rensa", "with_rensa.py", ("rensa==0.5.0", ARROW), "128 minima, estimates compared"),
    Peer("tors", "with_tors.py", ("tors==0.16.0", ARROW), "14 × 8 minima, candidates only"),
    Peer("datasketch", "with_datasketch.py", ("datasketch==2.0.0", ARROW), "128 minima, its own bands"),
    Peer("text-dedup", "with_text_dedup.py", ("text-dedup==0.4.0", ARROW), "250 minima, its own bands"),
    Peer(
        "datatrove",
        "with_datatrove.py",
        ("datatrove[io,processing]==0.10.1", "spacy==3.8.18", ARROW),
        "14 × 8 minima, four stages",
    ),
)


def installed(peer: Peer, cache: Path) -> Path:
    """The Python of a peer's environment, made below a folder unless it is there; `Failed` says why it cannot be."""
    home = cache / re.sub(r"\[.*\]", "", peer.packages[0]).replace("==", "-")
    python, done = home / "bin" / "python", home / "installed.txt"
    wanted = "\n".join(peer.packages)
    if not done.exists() or done.read_text() != wanted:
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.packages])
        done.write_text(wanted)
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = "\n".join(line for line in done.stderr.splitlines() if line.startswith("ERROR: "))
        raise Failed(f"cannot be installed: {errors.partition(chr(10))[0] or last_line(done.stderr)}")


def last_line(errors: str) -> str:
    """The line that says why a process died, or else the last that says something."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("Fatal Python error")), lines[-1] if lines else "no message")
