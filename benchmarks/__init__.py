"""Speed, measured: every claim is a ratio or a time within one run of one of these, on one core.

    python -m benchmarks                      all four
    python -m benchmarks.versus_interpreter   gpuemu against TRITON_INTERPRET=1, what users have today
    python -m benchmarks.compile_time         PTX text to runnable, per instruction, by code generator CPU
    python -m benchmarks.first_result         empty caches, import to the first result
    python -m benchmarks.matrix_product       tensor-core products with the hardware's bits against numpy's f32 matmul

Two measure something else than speed and run by themselves: `benchmarks.mutants` (what the examples' sweeps catch) and
`benchmarks.delta_study` (whether a change costs the same on every architecture).

Run them from a checkout. Times are processor seconds of one thread on one core, except where wall time is the point
(`first_result` prints both); a wide gap between best and median says that something else was running.
"""
