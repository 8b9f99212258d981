"""Mutation: bugs planted automatically into a user's own correct kernels, to see which of them the sweep catches.

`operators` (one-place changes of Triton source) and `ptx_waits` (barriers and waits taken out of PTX) make mutants;
`targets` says which functions of which files an op reaches; `trial` runs an op's cases on one mutant until something is
found; `score` does that for all of them. `alive` plants one change in every `gpuemu ci`.
"""
