"""Kernel arguments: what the caller passes, checked against the kernel's parameters and laid out in a block.

Arrays stand for 64-bit pointers, tensor maps for the 128 bytes of a `CUtensorMap`, structures for their bytes.
Integers and floats convert by the
parameter's type; one that does not fit is an error, not a wrapped value. An integer is allowed for a 64-bit parameter
(a raw device address, 0 for none).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from interp.runtime.layout import TENSOR_MAP_BYTES
from interp.structure import Structure
from interp.tensor_map import TensorMap
from ptx import ir
from ptx.errors import InvalidInput
from ptx.types import Kind, kind, width


def check_count(kernel: ir.Kernel, args: Sequence[Any]) -> None:
    """InvalidInput unless there is one argument a parameter."""
    if len(args) != len(kernel.params):
        wanted = ", ".join(f"{p.name}: {p.type}" for p in kernel.params)
        raise InvalidInput(
            f"kernel '{kernel.name}' takes {len(kernel.params)} arguments, not {len(args)}",
            help=f"parameters: {wanted}",
        )


def parameter_block(kernel: ir.Kernel, args: Sequence[Any], addresses: Mapping[int, Sequence[int]]) -> bytearray:
    """Bytes of the parameter block; `addresses`: device addresses of the arrays at each argument position."""
    size = max((p.offset + p.size for p in kernel.params), default=0)
    block = bytearray(max(size, 8))
    for i, (param, value) in enumerate(zip(kernel.params, args, strict=True)):
        data = _bytes_of(kernel, param, value, addresses.get(i, ()))
        block[param.offset : param.offset + param.size] = data
    return block


def _bytes_of(kernel: ir.Kernel, param: ir.Param, value: Any, addresses: Sequence[int]) -> bytes:
    if isinstance(value, Structure):
        if not param.is_array or param.size != len(value.data):
            raise _mismatch(kernel, param, f"a structure of {len(value.data)} bytes")
        return value.encode(addresses)
    address = addresses[0] if addresses else None
    if isinstance(value, TensorMap):
        if not param.is_array or param.size != TENSOR_MAP_BYTES or address is None:
            raise _mismatch(kernel, param, "a tensor map")
        return value.encode(address)
    if address is not None:
        if param.is_array or width(param.type) != 64 or kind(param.type) is Kind.FLOAT:
            raise _mismatch(kernel, param, "an array")
        return address.to_bytes(8, "little")
    if param.is_array:
        data = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else b""
        if len(data) != param.size:
            raise _mismatch(kernel, param, f"{value!r}; pass {param.size} bytes")
        return data
    return _scalar(kernel, param, value)


def _scalar(kernel: ir.Kernel, param: ir.Param, value: Any) -> bytes:
    n, of = width(param.type), kind(param.type)
    if isinstance(value, np.generic):
        if value.dtype.itemsize * 8 == n and (of is Kind.BITS or (value.dtype.kind in "iub") == (of is not Kind.FLOAT)):
            return value.tobytes()
        value = value.item()
    if of is Kind.FLOAT and n in (32, 64) and isinstance(value, int | float):
        try:
            return struct.pack("<f" if n == 32 else "<d", float(value))
        except OverflowError:
            raise _mismatch(kernel, param, f"{value}, which does not fit") from None
    if isinstance(value, int) and of is not Kind.FLOAT:
        low, high = -(1 << (n - 1)), (1 << (n - 1 if of is Kind.SINT else n)) - 1
        if not low <= int(value) <= high:
            raise _mismatch(kernel, param, f"{value}, which does not fit")
        return (int(value) & ((1 << n) - 1)).to_bytes(n // 8, "little")
    raise _mismatch(kernel, param, f"{value!r} ({type(value).__name__})")


def _mismatch(kernel: ir.Kernel, param: ir.Param, got: str) -> InvalidInput:
    what = f"{param.size} bytes" if param.is_array else f"{param.type}"
    return InvalidInput(f"kernel '{kernel.name}': parameter '{param.name}' is {what} and cannot take {got}")
