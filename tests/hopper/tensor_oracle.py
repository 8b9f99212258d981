"""What a tensor copy does, said again with numpy: the tensor as a padded array, columns as slices of it.

Independent of the emulator's walk: a pixel of a column is looked up by its number in the list of all pixels of the
bounding box, which is a Cartesian product of ranges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.tensor_map import TensorMap


def tensor(map_: TensorMap) -> Any:
    """The tensor as an array of its elements' bytes: shape + (bytes of an element,)."""
    size = map_.element_bytes
    base = map_.array.reshape(-1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(base, (*map_.shape, size), (*map_.strides, size, 1))


def positions(map_: TensorMap, coords: tuple[int, ...], offsets: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Where the pixels of a column lie, outermost dimension first, without channels. `coords`, `offsets`: outermost
    first."""
    walk = map_.im2col
    assert walk is not None
    n, *start = coords[:-1]
    steps = map_.steps or (1,) * len(map_.shape)
    axes = [
        [*range(low, size + high, step)]
        for low, high, size, step in zip(walk.lower, walk.upper, map_.shape[1:-1], steps[1:-1], strict=True)
    ]
    first = []  # the rest of the box from the start on, whose phase the lower corners do not set
    for depth in reversed(range(len(start))):
        limit = map_.shape[1 + depth] + walk.upper[depth]
        begin = start[depth] if depth == len(start) - 1 else start[depth] + steps[1 + depth]
        tails = [(v,) for v in range(begin, limit, steps[1 + depth])]
        for axis in axes[depth + 1 :]:
            tails = [(*t, v) for t in tails for v in axis]
        first += [(*start[:depth], *t) for t in tails]
    whole: list[tuple[int, ...]] = [()]
    for axis in axes:
        whole = [(*p, v) for p in whole for v in axis]
    pixels, image = [(n, *p) for p in first], n + steps[0]
    while len(pixels) < map_.box[0]:
        pixels += [(image, *p) for p in whole]
        image += steps[0]
    moved = (0, *offsets)
    return [tuple(p + o for p, o in zip(pixel, moved, strict=True)) for pixel in pixels[: map_.box[0]]]


def column(map_: TensorMap, coords: tuple[int, ...], offsets: tuple[int, ...]) -> Any:
    """The bytes that a load in im2col mode gives, pixel after pixel, [pixels, bytes of a row]."""
    elements, size, channels = tensor(map_), map_.element_bytes, map_.box[1]
    out = np.zeros((map_.box[0], channels, size), np.uint8)
    if map_.fill == "nan":
        out.reshape(-1).view(np.uint16)[:] = 0x7FF7
    low, high = max(coords[-1], 0), min(coords[-1] + channels, map_.shape[-1])
    for row, place in zip(out, positions(map_, coords, offsets), strict=True):
        if low < high and all(0 <= p < n for p, n in zip(place, map_.shape[:-1], strict=True)):
            row[low - coords[-1] : high - coords[-1]] = elements[place][low:high]
    return out.reshape(map_.box[0], -1)


TURNS = {(0, 16): (0, 0), (32, 16): (1, 1), (64, 16): (3, 1), (128, 16): (7, 1), (128, 32): (3, 2), (128, 64): (1, 4)}
"""The manual's tables: by bytes of the pattern and of what is kept together, after how many lines of 128 bytes they
repeat (as a mask), and how far apart the 16-byte chunks that change places are."""


def swizzled(rows: Any, swizzle: int, atom: int = 16) -> Any:
    """Rows as they lie in shared memory from a multiple of 1024 bytes on; holes, to which nothing goes, as 0xA5."""
    count, row = rows.shape
    pitch = max(row, swizzle)
    out = np.full((-(-count * pitch // 128), 8, 16), 0xA5, np.uint8)
    repeat, unit = TURNS[swizzle, atom]
    for i in range(count):
        for at in range(0, row, 16):
            line, inside = divmod(i * pitch + at, 128)
            out[line, inside // 16 ^ (line & repeat) * unit] = rows[i, at : at + 16]
    return out.reshape(-1)
