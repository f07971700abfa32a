"""The tasks a run is made of: idempotent, each reading stored results and publishing one of its own.

`ingest` decodes whatever is not local Parquet; `scan` is one pass over the data that scores a run
of row checks and makes the keys of a group check; `group` matches, verifies and settles; `judge`
turns columns into fates; `write` writes a part's files.
"""
