"""Bytes by the vector: the few machine operations that plain compiled loops cannot express.

Each works on raw addresses, so the caller promises that what it names is allocated: `BLOCK` bytes for the vectors,
eight for `load64`. LLVM lowers the 64-byte vectors to whatever the processor has: AVX-512, AVX2, SSE2 or NEON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic

BLOCK = 64
"""bytes of a vector, and bits of a mask"""
signed: Any = np.int64
"""to a signed number: in compiled code `int` keeps the sign that a number lacks"""
_BYTES = ir.VectorType(ir.IntType(8), BLOCK)


def address(array: npt.NDArray[Any]) -> np.uint64:
    """Where an array's first item lies; kernels that took it from the array themselves could not be cached."""
    return np.uint64(array.ctypes.data)


def _machine(emitter: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of compiled code, from the function that emits it; its first argument is the compiler's."""
    made: Callable[..., Any] = intrinsic(emitter)
    return made


def _every(value: int) -> Any:
    return ir.Constant(_BYTES, [value] * BLOCK)


def _load(builder: Any, place: Any) -> Any:
    return builder.load(builder.inttoptr(place, _BYTES.as_pointer()), align=1)


@_machine
def high_bits(typingctx: Any, place: Any) -> Any:
    """A mask of the bytes that are 0x80 or more in the 64 bytes at an address."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        high = builder.icmp_unsigned(">", _load(builder, args[0]), _every(0x7F))
        return builder.bitcast(high, ir.IntType(64))

    return nb.types.uint64(nb.types.uint64), emit


@_machine
def copy_block(typingctx: Any, source: Any, target: Any) -> Any:
    """Copy 64 bytes."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(_load(builder, args[0]), builder.inttoptr(args[1], _BYTES.as_pointer()), align=1)
        return context.get_dummy_value()

    return nb.types.void(nb.types.uint64, nb.types.uint64), emit


@_machine
def lower_words(typingctx: Any, source: Any, target: Any) -> Any:
    """Copy 64 bytes with A-Z made a-z, and give a mask of those that belong to words: a-z, 0-9, _, and all from 0x80 on."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _load(builder, args[0])
        upper = builder.icmp_unsigned("<", builder.sub(block, _every(0x41)), _every(26))
        low = builder.or_(block, builder.select(upper, _every(0x20), _every(0)))
        builder.store(low, builder.inttoptr(args[1], _BYTES.as_pointer()), align=1)
        letter = builder.icmp_unsigned("<", builder.sub(low, _every(0x61)), _every(26))
        digit = builder.icmp_unsigned("<", builder.sub(low, _every(0x30)), _every(10))
        other = builder.or_(builder.icmp_unsigned("==", low, _every(0x5F)), builder.icmp_unsigned(">", low, _every(0x7F)))
        return builder.bitcast(builder.or_(builder.or_(letter, digit), other), ir.IntType(64))

    return nb.types.uint64(nb.types.uint64, nb.types.uint64), emit


@_machine
def load64(typingctx: Any, place: Any) -> Any:
    """Eight bytes at an address as a little-endian number."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)

    return nb.types.uint64(nb.types.uint64), emit


@_machine
def load8(typingctx: Any, place: Any) -> Any:
    """One byte at an address."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = builder.load(builder.inttoptr(args[0], ir.IntType(8).as_pointer()), align=1)
        return builder.zext(byte, ir.IntType(64))

    return nb.types.uint64(nb.types.uint64), emit


@_machine
def store8(typingctx: Any, place: Any, value: Any) -> Any:
    """Write the low byte of a number to an address."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = builder.trunc(args[1], ir.IntType(8))
        builder.store(byte, builder.inttoptr(args[0], ir.IntType(8).as_pointer()), align=1)
        return context.get_dummy_value()

    return nb.types.void(nb.types.uint64, nb.types.uint64), emit


@_machine
def trailing_zeros(typingctx: Any, mask: Any) -> Any:
    """The place of the lowest bit that is set; 64 for none."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return nb.types.uint64(nb.types.uint64), emit
