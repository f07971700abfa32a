"""Compiled loops over Arrow buffers: the only modules that import numba, so import them inside functions."""
