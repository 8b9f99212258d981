"""The gate: what an op is, which cases are tried, how outputs are judged.

The order of the data: `declare` (an op, checked by `check`) -> `shapes`, `cases` (what to run; `covering`) -> `inputs`
(from `bits`, `values`, `indices`, in `layouts`, with `poison`) -> `execute` (one case, in a worker of `pool`) ->
`judge` with a bound from `gpuemu.bounds` -> `locate` -> `results` -> `tolerances`, where bounds are calibrated. `sweep`
drives it. Nothing in here prints and nothing in here knows the name of any example.
"""
