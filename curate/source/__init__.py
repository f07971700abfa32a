"""Sources: which files there are, what their rows are, and which records could not be read.

Local Parquet is read in place (`curate.source.parquet`). Everything else (JSON lines, CSV,
Arrow, remote files, data in memory) is decoded once, strictly, into record batches. Each record
of the input comes out as a row or as a quarantined record with its place and its reason.
"""

from curate.source.chunk import Chunk, Counter, Piece, Quarantined
from curate.source.discover import SourceFile, discover
from curate.source.ingest import ingest, pieces
from curate.source.memory import batches_of, is_data
from curate.source.options import ReadOptions
from curate.source.schema import conform, must_reread, unify, with_partitions

__all__ = [
    "Chunk",
    "Counter",
    "Piece",
    "Quarantined",
    "ReadOptions",
    "SourceFile",
    "batches_of",
    "conform",
    "discover",
    "ingest",
    "is_data",
    "must_reread",
    "pieces",
    "unify",
    "with_partitions",
]
