"""gaoya: all texts into its string index, then each asked for what is like it; the index compares estimates with the limit."""

from __future__ import annotations

from gaoya.minhash import MinHashStringIndex
from shared import SIMILARITY, WORDS_IN_SHINGLE, asked, read, write

corpus, out = asked()
ids, texts = read(corpus)
index = MinHashStringIndex(
    hash_size=32, jaccard_threshold=SIMILARITY, num_hashes=128, num_bands=None, band_size=None, analyzer="word",
    lowercase=True, ngram_range=(WORDS_IN_SHINGLE, WORDS_IN_SHINGLE), id_container="smallvec",
)  # fmt: skip
index.par_bulk_insert_docs(ids, texts)
write((row for row, like in zip(ids, index.par_bulk_query(texts), strict=True) if min(like, default=row) < row), out)
