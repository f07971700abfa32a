"""text-dedup: its MinHash command with its defaults (250 permutations, its own choice of bands), a process a core."""

from __future__ import annotations

import os
import tempfile

from datasets import load_from_disk
from shared import SIMILARITY, WORDS_IN_SHINGLE, asked, read, write
from text_dedup.minhash import main

corpus, out = asked()
with tempfile.TemporaryDirectory(dir=out.parent) as work:
    options = {
        "path": "parquet", "data_files": corpus, "split": "train", "column": "text", "cache_dir": f"{work}/cache",
        "output": f"{work}/kept", "ngram": WORDS_IN_SHINGLE, "threshold": SIMILARITY, "num_proc": os.cpu_count(),
    }  # fmt: skip
    main([f"--{name}={value}" for name, value in options.items()], standalone_mode=False)
    kept = set(load_from_disk(f"{work}/kept")["id"])
    write((row for row in read(corpus)[0] if row not in kept), out)
