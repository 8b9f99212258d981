"""Error models: from the FP64 run of an op to how far a correct kernel's result may lie from it, element by element.

A model gives the error *before* the result is rounded to the output's format; the judge adds that half ulp itself. It
is a bound, derived from the arithmetic that the hardware does and from the order-free theory of summation, with no
constant fitted to any kernel. u = 2**-24 is the unit roundoff of binary32, in which kernels compute; half-precision
inputs are exact in it.

Pieces, with their sources:

summation     |error| <= depth * u * sum|terms| (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed.,
              4.2): depth = n-1 additions in the worst order, less for a tree (`tree_depth`).
tensor core   see `products`.
ex2.approx    2 ulp over the full range, results below 2**-126 may be flushed (PTX ISA, ex2).
lg2.approx    absolute 2**-22 for arguments in (0.5, 2), relative 2**-22 elsewhere (PTX ISA, lg2).
div.full, sqrt.approx, rsqrt.approx
              2 ulp, 1 ulp, 1 ulp (PTX ISA); a rsqrt made of a square root and a division is covered too.
exp(z)        computed as ex2(z * log2 e): the argument carries relative error 2u (the rounded constant, the product)
              besides that of z itself, and an absolute error d of the exponent is a relative error d of the result.

`running` composes these: an op's formula evaluated with a bound carried along. Most schemas of `gpuemu.schemas` state
their error model that way.

A kernel that rounds an intermediate to a narrow format makes more error than these bounds allow, and that is meant to
be seen. State it (`precision=`) where it is intended: the verdict shows the mode.

An own model is any function `(Exact) -> array` or `{output: array}`, broadcastable to the outputs. Infinity or NaN in a
bound means "not judged here"; an output with no judged element is not called checked.
"""

from gpuemu.bounds.absolute import absolute
from gpuemu.bounds.attention import attention, causal_mask
from gpuemu.bounds.formula import formula
from gpuemu.bounds.model import Bound, Exact, Model, family_of, half_ulp, statement_of
from gpuemu.bounds.norms import layernorm, rmsnorm
from gpuemu.bounds.pointwise import elementwise, exact, gelu
from gpuemu.bounds.products import dot, fused_dot, tensor_core
from gpuemu.bounds.rows import cross_entropy, softmax
from gpuemu.bounds.running import Running, constant, lift
from gpuemu.bounds.sums import loop_depth, total, tree_depth

__all__ = [
    "Bound",
    "Exact",
    "Model",
    "Running",
    "absolute",
    "attention",
    "causal_mask",
    "constant",
    "cross_entropy",
    "dot",
    "elementwise",
    "exact",
    "family_of",
    "formula",
    "fused_dot",
    "gelu",
    "half_ulp",
    "layernorm",
    "lift",
    "loop_depth",
    "rmsnorm",
    "softmax",
    "statement_of",
    "tensor_core",
    "total",
    "tree_depth",
]
