"""tors: its signatures, as many threads as cores, then its candidate pairs; of a pair the first stays."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import tors
from shared import BANDS, ROWS, WORDS_IN_SHINGLE, asked, read, write

corpus, out = asked()
ids, texts = read(corpus)
sign = partial(tors.minhash_signature, num_perm=BANDS * ROWS, shingle_size=WORDS_IN_SHINGLE)
with ThreadPoolExecutor(os.cpu_count()) as threads:
    signatures = list(threads.map(sign, texts))
write((ids[second] for _, second in tors.lsh_candidates(signatures, bands=BANDS, rows=ROWS)["pairs"]), out)
