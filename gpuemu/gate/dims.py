"""Sizes: the axes of an argument's shape as small expressions of dims, and candidate sets for a dim.

An axis is an integer, a dim, or integer arithmetic of them without spaces: `N`, `2*N`, `B+1`, `Hq*D`, `K/32`. `/` is
rounded up (the number of blocks that cover), `//` down.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache

from ptx.errors import InvalidInput

Sizes = Mapping[str, int]
_PRIMES = (2, 3, 7, 13, 31, 61, 127, 251, 509, 1021)


def axes_of(shape: str) -> tuple[str, ...]:
    """The axes of a shape text: 'M K' or 'M, K' or 'M 128' or 'B+1'."""
    return tuple(shape.replace(",", " ").split())


def size_of_axis(axis: str, dims: Sizes) -> int:
    """The size of one axis under given dims. Raises InvalidInput for a text that is no such expression."""
    return _parsed(axis)[0](dims)


def names_in(axis: str) -> frozenset[str]:
    """The dims that an axis depends on. Raises InvalidInput as `size_of_axis`."""
    return _parsed(axis)[1]


def sizes(low: int, high: int, *, block: int | None = None, multiple_of: int = 1) -> tuple[int, ...]:
    """Candidates between two ends: both ends, 1, a few primes, and the neighbourhood of one and two blocks.

    `block`: the tile of the kernel along the dim; gives BLOCK-1, BLOCK, BLOCK+1, 2*BLOCK and 2*BLOCK+1. `multiple_of`:
    keeps only its multiples (the ends must be some). Raises InvalidInput for ends that leave nothing.
    """
    if low < 0 or high < low or multiple_of < 1 or low % multiple_of or high % multiple_of:
        raise InvalidInput(f"sizes({low}, {high}, multiple_of={multiple_of}) has no sizes between its ends")
    wanted = {low, high, 1, multiple_of, 3 * multiple_of}
    if block is not None:
        wanted |= {block - 1, block, block + 1, 2 * block, 2 * block + 1}
        wanted |= {block - multiple_of, block + multiple_of}
    inside = [p for p in _PRIMES if low < p < high]
    wanted |= {inside[0], inside[len(inside) // 2], inside[-1]} if inside else set()
    return tuple(sorted(w for w in wanted if low <= w <= high and w % multiple_of == 0))


@lru_cache(maxsize=4096)
def _parsed(axis: str) -> tuple[Callable[[Sizes], int], frozenset[str]]:
    try:
        tree = ast.parse(axis, mode="eval").body
    except SyntaxError:
        raise InvalidInput(f"axis '{axis}' is not an expression of dims", help="such as N, 2*N, B+1, K/32") from None
    names: set[str] = set()

    def build(node: ast.expr) -> Callable[[Sizes], int]:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            value = node.value
            return lambda dims: value
        if isinstance(node, ast.Name):
            name = node.id
            names.add(name)
            return lambda dims: dims[name]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            left, right, operation = build(node.left), build(node.right), _OPERATIONS[type(node.op)]
            return lambda dims: operation(left(dims), right(dims))
        raise InvalidInput(f"axis '{axis}' is not an expression of dims", help="dims, integers, + - * / // and ( )")

    return build(tree), frozenset(names)


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: -(-a // b),
    ast.FloorDiv: lambda a, b: a // b,
}
