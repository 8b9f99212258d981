"""The gate: what an op is, which cases are tried, how outputs are judged.

The order of the data: `declare` (an op) -> `shapes`, `cases` (what to run) -> `inputs` (from `bits` and `values`) ->
`execute` (one case, in a worker of `pool`) -> `judge` with a bound from `gpuemu.bounds` -> `locate` -> `results`.
`sweep` drives it. Nothing in here prints and nothing in here knows the name of any example.
"""
