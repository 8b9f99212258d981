"""Every schema without a kernel: its cases can be made, its reference runs, its bound covers a correct rounding of the
reference, and the formula of its error model computes what the reference does."""

import inspect

import numpy as np
import pytest
from schema_list import declared

from gpuemu import schemas
from gpuemu.bounds import Exact, Model
from gpuemu.bounds.formula import evaluated
from gpuemu.gate.cases import enumerate_cases
from gpuemu.gate.dtypes import FORMATS, numpy_dtype, quantise, to_storage
from gpuemu.gate.execute import oracle
from gpuemu.gate.inputs import make_arguments
from gpuemu.gate.judge import compare

VARIANTS = {
    "layer_norm": {"stats": True},
    "attention": {"causal": True, "lse": True, "grouped": True},
    "varlen_attention": {"causal": True},
    "cross_entropy": {"ignore": True},
    "cross_entropy_backward": {"inplace": True},
    "rope": {"inplace": True, "interleaved": True},
    "fp8_matmul": {"scaling": "block"},
    "int8_matmul": {"scaled": True},
    "quantise_fp8": {"group": 32},
    "dequantise": {"dtype": "float8_e4m3fn", "group": 32},
    "cumsum": {"reverse": True, "exclusive": True},
    "sort": {"descending": True},
    "fused_matmul": {"activation": "gelu"},
    "geglu": {"approximate": False},
    "permute_rows": {"inverse": True},
    "causal_conv1d": {"activation": "silu"},
    "moe_routing": {"renormalise": False},
}
CHOICES = [(n, {}) for n in schemas.__all__ if n not in ("Schema", "gradient")] + list(VARIANTS.items())


@pytest.mark.parametrize("name, given", CHOICES, ids=lambda v: v if isinstance(v, str) else "".join(v) or "-")
def test_cases_reference_and_bound(name, given):
    op = declared(name, given)
    cases = enumerate_cases([op], seed=3, targets=["sm_80"], quick=True)
    assert len(cases) >= 9
    judged = elements = 0
    for case in cases[:: max(1, len(cases) // 24)]:
        arguments = make_arguments(op, case)
        _, exact, bounds = oracle(op, case, arguments)
        assert set(exact) == set(op.outputs)
        for output, values in exact.items():
            dtype = arguments[output].dtype
            if dtype in FORMATS:
                stored = to_storage(quantise(values, FORMATS[dtype]), FORMATS[dtype])
            else:
                stored = np.rint(values).astype(numpy_dtype(dtype))
            result = compare(output, stored, dtype, values, bounds[output])
            assert result.kind is None and not result.borderline, (case.label(), result.words())
            judged, elements = judged + result.judged, elements + result.elements
            if case.distribution in ("regular", "exact"):
                assert result.judged == result.elements, (case.label(), output)
        if case.distribution == "exact":
            assert not any(b.any() for b in bounds.values())
        check_formula(op, case, arguments, exact)
    assert judged > 0.8 * elements


def check_formula(op, case, arguments, exact):
    cells = [c.cell_contents for c in op.bound.evaluate.__closure__ or ()]
    function = next((c for c in cells if inspect.isfunction(c)), None)
    if not isinstance(op.bound, Model) or "formula" not in op.bound.evaluate.__qualname__ or function is None:
        return
    inputs = {n: np.asarray(a.original, np.float64) for n, a in arguments.items() if a.original is not None}
    dtypes = {n: a.dtype for n, a in arguments.items()}
    run = Exact(inputs, exact, case.dims, case.dtype, case.target, case.option, dtypes)
    for name, r in evaluated(function, tuple(inspect.signature(function).parameters), run).items():
        value = np.broadcast_to(r.value, exact[name].shape)
        both = np.isfinite(value) & np.isfinite(exact[name])
        largest = np.abs(exact[name][both]).max(initial=0)
        assert np.allclose(value[both], exact[name][both], rtol=1e-9, atol=1e-12 + 1e-9 * largest), name
