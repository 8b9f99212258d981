"""All runtime functions: importing this declares every symbol (nothing is compiled), and offers the lane functions."""

from __future__ import annotations

from interp.runtime import (
    access,
    arithmetic,
    async_copy,
    atomics,
    atomics_wide,
    bit_search,
    bulk,
    bulk_cluster,
    bulk_tensor,
    cluster,
    cluster_launch,
    conversion,
    conversion_tiny,
    fill,
    matrix,
    matrix_general,
    mbarrier,
    measured,
    named_barrier,
    printing,
    scheduler,
    special,
    tcgen05,
    tcgen05_step,
    tensor_access,
    tensor_gather,
    tensor_map,
    tensor_memory,
    waiting,
    warp,
    wgmma,
    wgmma_general,
    wmma,
)
from interp.runtime.lane import LANE_FUNCTIONS

__all__ = [
    "LANE_FUNCTIONS", "access", "arithmetic", "async_copy", "atomics", "atomics_wide", "bit_search", "bulk",
    "bulk_cluster", "bulk_tensor", "cluster", "cluster_launch", "conversion", "conversion_tiny", "fill", "matrix",
    "matrix_general", "mbarrier", "measured", "named_barrier", "printing", "scheduler", "special", "tcgen05",
    "tcgen05_step", "tensor_access", "tensor_gather", "tensor_map", "tensor_memory", "waiting", "warp", "wgmma",
    "wgmma_general", "wmma",
]  # fmt: skip
