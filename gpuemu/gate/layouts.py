"""How an array of a case lies in memory: a buffer, and the view of it that the launcher gets.

dense        the buffer itself
padded       rows in a buffer whose rows are longer: `pad` elements of gap after each (odd: rows lose their alignment)
transposed   the last two axes swapped in memory: the last axis is not the contiguous one
offset       a slice that starts at an odd element of a longer buffer, with a gap before and after
strided      every other element of the last axis of a buffer twice as wide
expanded     stride 0 along the first axis: one row stands for all of them
scalar       stride 0 along every axis: one element stands for all

What a buffer holds outside its view is its gap: nobody may write there, and no result may depend on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """A kind of layout for an array of `shape`; `pad`: elements of a gap, odd."""

    kind: str
    shape: tuple[int, ...]
    pad: int = 0

    @property
    def base_shape(self) -> tuple[int, ...]:
        """The shape of the buffer."""
        shape = self.shape
        if self.kind == "padded":
            return (*shape[:-1], shape[-1] + self.pad)
        if self.kind == "transposed":
            return (*shape[:-2], shape[-1], shape[-2])
        if self.kind == "offset":
            return (math.prod(shape) + 2 * self.pad,)
        if self.kind == "strided":
            return (*shape[:-1], 2 * shape[-1])
        if self.kind == "expanded":
            return (1, *shape[1:])
        if self.kind == "scalar":
            return (1,) * len(shape)
        return shape

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of the values that are different elements: that of the array but for axes of stride 0."""
        return self.base_shape if self.kind in ("expanded", "scalar") else self.shape

    def view(self, base: Array) -> Array:
        """The view of a buffer of `base_shape` (writable unless an axis has stride 0)."""
        if self.kind in ("expanded", "scalar"):
            return np.broadcast_to(base, self.shape)
        return self.stored(base)

    def stored(self, base: Array) -> Array:
        """The part of the buffer that is written, `stored_shape`; a view."""
        if self.kind == "padded":
            return base[..., : self.shape[-1]]
        if self.kind == "transposed":
            return base.swapaxes(-1, -2)
        if self.kind == "offset":
            return base[self.pad : self.pad + math.prod(self.shape)].reshape(self.shape)
        if self.kind == "strided":
            return base[..., ::2]
        return base[...]

    def gap(self) -> NDArray[np.bool_]:
        """True for the elements of the buffer that are not the array's."""
        outside = np.ones(self.base_shape, np.bool_)
        self.stored(outside)[...] = False
        return outside
