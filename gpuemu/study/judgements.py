"""Every way to say whether a result is right: a tolerance and an oracle. One execution is judged under all of them.

    derived         ours: the op's error model against the FP64 reference, classes first, with the engine's findings and
                    the bytes outside the outputs
    calibrated      the same with the factors of a calibration file (`gpuemu/gate/tolerances.py`)
    allclose        |got - want| <= 1e-2 + 1e-2 |want|, NaN equal to NaN: what tutorials use for 16-bit results, and
                    KernelBench
    assert_close    the defaults of torch.testing.assert_close by dtype: float32 1e-5 + 1.3e-6 |want|, float16 1e-5 +
                    1e-3 |want|, bfloat16 1e-5 + 1.6e-2 |want|; 8-bit formats as bfloat16 here (torch has none);
                    integers equal
    published       an absolute tolerance that somebody published for the op

Oracles: the FP64 reference ('fp64'), and the same reference in binary32, rounded to the output's format ('same'): what
comparing with a framework's own result amounts to. The first alone can tell an error of the reference from the
kernel's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.dtypes import F64, FORMATS, quantise, to_float64

ASSERT_CLOSE = {"float64": (1e-7, 1e-7), "float32": (1e-5, 1.3e-6), "float16": (1e-5, 1e-3)}
"""(absolute, relative) of torch.testing.assert_close; bfloat16 and 8-bit formats below."""
_COARSE = (1e-5, 1.6e-2)

SCHEMES = (
    "derived fp64", "calibrated fp64", "allclose fp64", "allclose same", "assert_close fp64", "assert_close same",
    "published fp64",
)  # fmt: skip


def accepts(got: F64, want: F64, absolute: float, relative: float) -> bool:
    """Whether all elements are within the tolerance, infinities equal, NaN equal to NaN."""
    with np.errstate(all="ignore"):
        return bool(np.allclose(got, want, atol=absolute, rtol=relative, equal_nan=True))


def tolerances(dtype: str, published: tuple[float, float] | None) -> dict[str, tuple[float, float]]:
    """(absolute, relative) by scheme, without the oracle, for an output of `dtype`."""
    if dtype not in FORMATS:
        return {"allclose": (1e-2, 1e-2), "assert_close": (0.0, 0.0)}
    found = {"allclose": (1e-2, 1e-2), "assert_close": ASSERT_CLOSE.get(dtype, _COARSE)}
    if published is not None:
        found["published"] = (published[0] if FORMATS[dtype].precision >= 24 else published[1], 0.0)
    return found


def rejected(
    outputs: Mapping[str, tuple[NDArray[np.generic], str]],
    exact: Mapping[str, F64],
    same: Mapping[str, F64] | None,
    published: tuple[float, float] | None,
) -> dict[str, bool]:
    """By scheme with oracle: whether any output is rejected. `outputs`: (array, dtype) by name; `same`: the reference
    in binary32, None where it could not be had (its schemes are then absent)."""
    verdict: dict[str, bool] = {}
    for name, (array, dtype) in outputs.items():
        got = to_float64(np.ascontiguousarray(array))
        oracles = {"fp64": rounded(exact[name], dtype)} | ({"same": rounded(same[name], dtype)} if same else {})
        for scheme, (absolute, relative) in tolerances(dtype, published).items():
            for oracle, want in oracles.items():
                if scheme == "published" and oracle != "fp64":
                    continue
                key = f"{scheme} {oracle}"
                verdict[key] = verdict.get(key, False) or not accepts(got, want, absolute, relative)
    return verdict


def rounded(values: F64, dtype: str) -> F64:
    """The values in the output's format: a test that compares arrays of one dtype sees no others."""
    return quantise(np.asarray(values, np.float64), FORMATS[dtype]) if dtype in FORMATS else np.asarray(values)
