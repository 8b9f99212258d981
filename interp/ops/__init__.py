"""The instruction set: one file a chapter of the PTX ISA manual, each instruction whole in one place.

`ISA` is the filled table (type: `ptx.isa.Isa`). How a record is written: docstring of `ptx.isa`; what its meaning may
use: docstring of `interp.kit`. Importing this package imports no numba function body, only their declarations.
"""

from __future__ import annotations

from interp.ops import (  # noqa: F401  (imported for their entries)
    async_copy,
    atomic_vector,
    bulk,
    bulk_tensor,
    carry,
    cluster,
    cluster_launch,
    compare,
    control,
    convert,
    convert_packed,
    convert_same,
    convert_stochastic,
    convert_tiny,
    float32,
    float32_packed,
    float64,
    half,
    integer,
    integer_packed,
    logic,
    matrix,
    matrix_scaled,
    matrix_small,
    matrix_sparse,
    matrix_sparse_scaled,
    mbarrier,
    memory,
    move,
    system,
    tcgen05,
    tcgen05_mma,
    tcgen05_mma_sparse,
    tensor_map,
    transcend,
    video,
    video_simd,
    warp,
    wgmma,
    wgmma_sparse,
    wide,
    wmma,
)
from interp.ops.table import isa as ISA

__all__ = ["ISA"]
