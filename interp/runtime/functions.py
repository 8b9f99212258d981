"""All runtime functions: importing this declares every symbol (nothing is compiled), and offers the lane functions."""

from __future__ import annotations

from interp.runtime import access, arithmetic, async_copy, atomics, bit_search, conversion, matrix, scheduler, special, warp
from interp.runtime.lane import LANE_FUNCTIONS

__all__ = ["LANE_FUNCTIONS", "access", "arithmetic", "async_copy", "atomics", "bit_search", "conversion", "matrix", "scheduler", "special", "warp"]
