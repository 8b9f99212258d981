"""The native runtime: numba functions that compiled kernels call by symbol name.

`layout` fixes the memory that both sides share, `native` is the registry and compiler of symbols, `lane` lists scalar
functions applied to each lane; the other modules hold functions over a whole warp, and the scheduler.
"""
