"""Ready schemas: what common operations of neural networks compute, stated once, for kernels that anybody writes.

    @gpuemu.op(schemas.softmax())
    def softmax(run, x, y): ...

Each function returns the fields of `gpuemu.op` (`schemas/schema.py`); its docstring has the arguments' names and
shapes, the formula, and the error model. What is beside it in `op(...)` wins. `gradient` makes the reference of a
backward kernel from a forward one. `docs/schemas.md` lists all of them.
"""

from gpuemu.schemas.attention import attention, attention_backward, paged_attention, varlen_attention
from gpuemu.schemas.elementwise import (
    add,
    axpy,
    bias_add,
    binary,
    divide,
    elu,
    exp,
    gelu,
    gelu_tanh,
    leaky_relu,
    log,
    maximum,
    minimum,
    multiply,
    relu,
    rsqrt,
    sigmoid,
    silu,
    softplus,
    sqrt,
    square,
    subtract,
    tanh,
    unary,
)
from gpuemu.schemas.gated import geglu, rope, swiglu, swiglu_backward
from gpuemu.schemas.gradient import gradient
from gpuemu.schemas.indexing import embedding, gather, index_put, permute_rows, scatter_add
from gpuemu.schemas.losses import cross_entropy, cross_entropy_backward
from gpuemu.schemas.matmul import (
    atomic_split_k_matmul,
    batched_matmul,
    fp8_matmul,
    fused_matmul,
    grouped_matmul,
    int4_weight_matmul,
    int8_matmul,
    matmul,
    split_k_matmul,
)
from gpuemu.schemas.norms import (
    add_rms_norm,
    group_norm,
    l2_norm,
    layer_norm,
    layer_norm_backward,
    rms_norm,
    rms_norm_backward,
)
from gpuemu.schemas.quantisation import cast, dequantise, quantise_fp8, quantise_int8
from gpuemu.schemas.reductions import (
    argmax,
    column_sum,
    cummax,
    cumsum,
    row_max,
    row_mean,
    row_sum,
    row_variance,
    sort,
    top_k,
)
from gpuemu.schemas.rows import log_softmax, logsumexp, softmax, softmax_backward
from gpuemu.schemas.schema import Schema
from gpuemu.schemas.sequences import causal_conv1d, conv1d, dropout, moe_combine, moe_routing

__all__ = [
    "Schema", "add", "add_rms_norm", "argmax", "atomic_split_k_matmul", "attention", "attention_backward", "axpy",
    "batched_matmul", "bias_add", "binary", "cast", "causal_conv1d", "column_sum", "conv1d", "cross_entropy",
    "cross_entropy_backward", "cummax", "cumsum", "dequantise", "divide", "dropout", "elu", "embedding", "exp",
    "fp8_matmul", "fused_matmul", "gather", "geglu", "gelu", "gelu_tanh", "gradient", "group_norm",
    "grouped_matmul", "index_put",
    "int4_weight_matmul", "int8_matmul", "l2_norm", "layer_norm", "layer_norm_backward", "leaky_relu", "log",
    "log_softmax", "logsumexp", "matmul", "maximum", "minimum", "moe_combine", "moe_routing", "multiply",
    "paged_attention", "permute_rows", "quantise_fp8", "quantise_int8", "relu", "rms_norm", "rms_norm_backward", "rope",
    "row_max", "row_mean", "row_sum", "row_variance", "rsqrt", "scatter_add", "sigmoid", "silu", "softmax",
    "softmax_backward", "softplus", "sort", "split_k_matmul", "sqrt", "square", "subtract", "swiglu", "swiglu_backward",
    "tanh", "top_k", "unary", "varlen_attention",
]  # fmt: skip
