"""The reference of a backward kernel from that of its forward pass, without a formula written by hand.

Complex step: for an analytic f, Im f(x + ih) / h is the derivative to rounding error of FP64 with h = 1e-100, since
nothing is subtracted (Squire and Trapp, "Using complex variables to estimate derivatives of real functions", SIAM
Review 40(1), 1998). It costs one forward evaluation for each element of each input, so it is for small shapes, and for
functions of numpy that take complex numbers: + - * / ** exp log sqrt tanh, matmul, sums, means, and a maximum that
cancels (softmax). It is wrong, silently, for what is not analytic: abs, conjugates, comparisons of the results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuemu.gate.dtypes import F64

STEP = 1e-100


def gradient(
    forward: Callable[..., Any], of: Sequence[str], upstream: Sequence[str] | str = "dy"
) -> Callable[..., tuple[F64, ...]]:
    """A reference that returns the gradients of `forward` with respect to its inputs `of`, in that order.

    `upstream`: the names of the inputs that hold the gradients of the forward outputs, in their order. The op has the
    forward inputs, and those, as its inputs.
    """
    gradients = (upstream,) if isinstance(upstream, str) else tuple(upstream)
    names = tuple(inspect.signature(forward).parameters)

    def reference(**given: Any) -> tuple[F64, ...]:
        inputs = {n: given[n] for n in names if n in given}
        weights = [np.asarray(given[n], np.float64) for n in gradients]

        def pulled(changed: dict[str, Any]) -> float:
            answer = forward(**changed)
            parts = answer if isinstance(answer, tuple) else (answer,)
            return float(sum(np.sum(w * np.imag(p)) for w, p in zip(weights, parts, strict=True)))

        found = []
        for name in of:
            values = np.asarray(inputs[name], np.float64)
            out = np.zeros(values.shape)
            moved = values.astype(np.complex128)
            for at in np.ndindex(values.shape):
                moved[at] += 1j * STEP
                out[at] = pulled({**inputs, name: moved}) / STEP
                moved[at] = values[at]
            found.append(out)
        return tuple(found)

    return reference
