"""datasketch: MinHashLSH at the limit with its own choice of bands; each text is asked for, and stays where none is like it."""

from __future__ import annotations

from datasketch import MinHash, MinHashLSH
from shared import SIMILARITY, asked, read, shingles, write

corpus, out = asked()
ids, texts = read(corpus)
index, removed = MinHashLSH(threshold=SIMILARITY, num_perm=128), []
tokens = ([shingle.encode() for shingle in shingles(text)] for text in texts)
for row, signature in zip(ids, MinHash.generator(tokens, num_perm=128), strict=True):
    if index.query(signature):
        removed.append(row)
    else:
        index.insert(row, signature, check_duplication=False)
write(removed, out)
