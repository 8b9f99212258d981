"""The schemas of the library as ops with a launcher that does nothing."""

import numpy as np

import gpuemu
from gpuemu import schemas

ARGUMENTS = {
    "unary": (np.negative, gpuemu.bounds.exact()),
    "binary": (np.add, gpuemu.bounds.exact()),
}
KEYWORDS = {"split_k_matmul": {"chunk": 64}, "atomic_split_k_matmul": {"chunk": 64}, "cast": {"dtype": "float16"}}


def declared(name: str, given: dict) -> gpuemu.Op:
    fields = getattr(schemas, name)(*ARGUMENTS.get(name, ()), **KEYWORDS.get(name, {}), **given)

    def launcher(run, **arguments): ...

    return gpuemu.op(fields, name=name)(launcher)
