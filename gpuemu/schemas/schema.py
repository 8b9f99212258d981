"""What a schema is: the fields of `gpuemu.op` in a dictionary, with nothing about any kernel in it.

    @gpuemu.op(schemas.softmax())                                  # the launcher takes x and y
    @gpuemu.op(schemas.softmax(), dims={"N": (1, 255, 256, 257)})  # other sizes of one dim
    @gpuemu.op(**schemas.softmax())                                # the same, as plain fields

A schema states the arguments by name, sizes, value domains, the FP64 reference, and the error model; each function's
docstring gives names, formula and model. Sizes straddle a tile of `BLOCK` elements; a kernel with another tile states
its own, by `dims=` or the schema's `block`. `views` (see `gpuemu.Input`) are what the launcher passes strides for:
rows by default, where there are rows; `views=()` for a kernel that takes dense arrays only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuemu.gate.dims import sizes

Schema = dict[str, Any]
BLOCK = 128
TILE = 32
"""The tile along a dim of a matrix product."""
Views = Sequence[str]


def columns(block: int = BLOCK, largest: int | None = None) -> tuple[int, ...]:
    """Lengths of a row: 1, 2, around one and two blocks, primes, and a long one."""
    top = largest if largest is not None else 8 * block - 24
    return tuple(sorted({1, 2, *(s for s in sizes(1, top, block=block) if s != 3)}))
