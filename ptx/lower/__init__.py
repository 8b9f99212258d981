"""Lowering: from the language a kernel is written in to the PTX that a driver would load.

    toolchain.py   which Triton is installed, whether it is a tested one, what in its environment changes its output
    specialise.py  a call's arguments -> signature, constants and attributes, exactly as Triton's JIT derives them
    wrappers.py    `@triton.heuristics` and `@triton.autotune` around a kernel, applied without a GPU
    triton.py      kernel + signature + target -> TTIR, TTGIR, PTX, metadata; cached by content

Nothing here imports Triton when it is imported; the functions do, so that what starts from PTX works without it.
"""
