"""The language of texts: py3langid's model, read once a process, over samples of long texts.

The model is a compressed `.npz` inside the installed package, read with NumPy's own loader that refuses
pickles; nothing is fetched.
"""

from __future__ import annotations

import functools
import unicodedata
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from curate.kernels.language import Automaton

ROUND_TO = 4
"""decimals of a probability: what is left does not depend on the processor's vector width"""


def model_name() -> str:
    """What made the answers: part of a stored column's key."""
    return f"py3langid {version('py3langid')}"


@functools.cache
def codes() -> tuple[str, ...]:
    """The codes the model knows, sorted: ISO 639-1 where a language has one, else ISO 639-3; `zxx` is no language."""
    return tuple(sorted(set(_model()[1])))


def identify(texts: pa.LargeStringArray, sample_bytes: int) -> tuple[pa.StringArray, npt.NDArray[np.float64]]:
    """The likeliest language of each text, and the model's probability that it is.

    Null and NaN where a text has no byte sequence that the model knows. Of texts longer than
    `sample_bytes` the beginning, the middle and the end are read.

    Cost: half a second and 100 MB of memory to read the model, once a process; then about 90 ns a
    byte that is read, on one core.
    """
    from curate.kernels import language as kernel

    if len(texts) == 0:
        return pa.array([], pa.string()), np.empty(0)
    model, names = _model()
    data, offsets = _sampled(texts, sample_bytes)
    loud = kernel.shouting(data, offsets)
    data, offsets = _composed(data, offsets, loud < 0)
    best, chance = np.empty(len(texts), np.int16), np.empty(len(texts), np.float64)
    longest = int(np.diff(offsets).max())
    logs = np.log1p(np.arange(longest + 1, dtype=np.float32))
    kernel.identify(data, offsets, loud == 1, model, logs, best, chance)
    known = best >= 0
    answers = pa.array(names).take(pa.array(best.astype(np.int64), mask=~known))
    return answers, np.where(known, np.round(chance, ROUND_TO), np.nan)


@functools.cache
def _model() -> tuple[Automaton, tuple[str, ...]]:
    """The model as arrays, and the language of each column of its weights."""
    from py3langid.langid import MODEL_DIR, MODEL_FILE
    from py3langid.modelio import load_model

    from curate.kernels.language import Automaton

    weights, prior, names, move, row, output = load_model(MODEL_DIR / MODEL_FILE)
    automaton = Automaton(
        row=np.asarray(row, np.uint32) << np.uint32(8),
        move=np.asarray(move, np.uint32),
        output=np.asarray(output, np.int32),
        weights=np.ascontiguousarray(weights, np.float32),
        prior=np.asarray(prior, np.float32),
        first=np.array([names.index(name) for name in names], np.int64),
    )
    return automaton, tuple(names)


def _sampled(texts: pa.LargeStringArray, most: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Bytes and offsets of what is read of each text; the column's own buffers where no text is longer."""
    from curate.kernels.language import sample_texts

    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    sizes = np.diff(offsets)
    if sizes.max() <= most:
        return data, offsets
    out = np.empty(int(np.minimum(sizes, most + 3).sum()), np.uint8)
    ends = np.zeros(len(texts) + 1, np.int64)
    sample_texts(data, offsets, most, out, ends)
    return out[: ends[-1]], ends


def _composed(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], foreign: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The texts as the model was trained: composed (NFC), in small letters where all are capitals."""
    buffer = data.data
    changed: dict[int, bytes] = {}
    for index in np.flatnonzero(foreign).tolist():
        text = str(buffer[offsets[index] : offsets[index + 1]], "utf-8")
        if text.isupper() or not unicodedata.is_normalized("NFC", text):
            lowered = text.lower() if text.isupper() else text
            changed[index] = unicodedata.normalize("NFC", lowered).encode()
    if not changed:
        return data, offsets
    return _replaced(buffer, offsets, changed)


def _replaced(
    buffer: memoryview, offsets: npt.NDArray[np.int64], changed: dict[int, bytes]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    pieces: list[bytes | memoryview] = []
    done = 0
    sizes = np.diff(offsets)
    for index, text in changed.items():
        pieces += [buffer[offsets[done] : offsets[index]], text]
        sizes[index] = len(text)
        done = index + 1
    pieces.append(buffer[offsets[done] : offsets[-1]])
    return np.frombuffer(b"".join(pieces), np.uint8), np.concatenate([[0], np.cumsum(sizes)])
