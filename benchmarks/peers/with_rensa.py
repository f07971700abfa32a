"""rensa: the deduplicator of its README, which compares estimates with the limit and keeps the first."""

from __future__ import annotations

from rensa import RMinHashDeduplicator
from shared import SIMILARITY, asked, read, shingles, write

corpus, out = asked()
ids, texts = read(corpus)
deduplicator = RMinHashDeduplicator(threshold=SIMILARITY, num_perm=128, use_lsh=True)
kept = deduplicator.add_pairs((str(row), shingles(text)) for row, text in zip(ids, texts, strict=True))
write((row for row, keep in zip(ids, kept, strict=True) if not keep), out)
