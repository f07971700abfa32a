"""Daft: the candidates of its MinHash tutorial, up to the buckets (no components, no verification, no output but ids).

`python with_daft.py CORPUS OUT [bare]`: with `bare`, words are parted at spaces only, which leaves out the step of the
tutorial that takes away case and punctuation, and a third of the time. Bands are hashed before they are grouped, which
the tutorial does not do and which is a third faster.
"""

from __future__ import annotations

import sys

import daft
import pyarrow.parquet as pq
from daft import col, functions
from shared import BANDS, ROWS, WORDS_IN_SHINGLE, asked

corpus, out = asked()
text = col("text")
if "bare" not in sys.argv:
    text = functions.normalize(text, remove_punct=True, lowercase=True, nfd_unicode=True, white_space=True)
signature = functions.minhash(text, num_hashes=BANDS * ROWS, ngram_size=WORDS_IN_SHINGLE, hash_function="xxhash")
bands = daft.read_parquet(str(corpus)).select(
    "id", functions.chunk(signature, ROWS).alias("band"), daft.lit([*range(BANDS)]).alias("at")
)
keys = bands.explode("band", "at").select("id", "at", functions.hash(col("band")).alias("key"))
buckets = keys.groupby("at", "key").agg(col("id").list_agg().alias("ids")).where(functions.list_count(col("ids")) > 1)
firsts = buckets.select(col("ids").explode().alias("id"), col("ids").list_min().alias("first"))
removed = firsts.where(col("id") != col("first")).select("id").distinct()
pq.write_table(removed.to_arrow(), out)
