"""Correct kernels for the schemas of one element and of two."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

import gpuemu
from gpuemu import schemas

BLOCK = 128


@triton.jit
def unary_kernel(x, y, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=1.0).to(tl.float32)
    if FUNCTION == "relu":
        r = tl.maximum(v, 0.0)
    elif FUNCTION == "leaky_relu":
        r = tl.where(v > 0, v, v * 0.01)
    elif FUNCTION == "elu":
        r = tl.where(v > 0, v, tl.exp(v) - 1.0)
    elif FUNCTION == "sigmoid":
        r = 1.0 / (1.0 + tl.exp(-v))
    elif FUNCTION == "silu":
        r = v * tl.sigmoid(v)
    elif FUNCTION == "tanh":
        e = tl.exp(-2.0 * tl.abs(v))
        t = (1.0 - e) / (1.0 + e)
        r = tl.where(v < 0, -t, t)
    elif FUNCTION == "gelu":
        r = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))
    elif FUNCTION == "gelu_tanh":
        z = 0.7978845608028654 * (v + 0.044715 * v * v * v)
        r = 0.5 * v * (1.0 + libdevice.tanh(z))
    elif FUNCTION == "softplus":
        r = tl.maximum(v, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(v)))
    elif FUNCTION == "exp":
        r = tl.exp(v)
    elif FUNCTION == "log":
        r = tl.log(v)
    elif FUNCTION == "sqrt":
        r = tl.sqrt(v)
    elif FUNCTION == "rsqrt":
        r = tl.rsqrt(v)
    else:
        r = v * v
    tl.store(y + at, r.to(y.dtype.element_ty), mask=at < n)


@triton.jit
def binary_kernel(a, b, c, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    u = tl.load(a + at, mask=at < n, other=1.0).to(tl.float32)
    v = tl.load(b + at, mask=at < n, other=1.0).to(tl.float32)
    if FUNCTION == "add":
        r = u + v
    elif FUNCTION == "subtract":
        r = u - v
    elif FUNCTION == "multiply":
        r = u * v
    elif FUNCTION == "divide":
        r = u / v
    elif FUNCTION == "maximum":
        r = tl.maximum(u, v)
    else:
        r = tl.minimum(u, v)
    tl.store(c + at, r.to(c.dtype.element_ty), mask=at < n)


def unary_op(name):
    def launch(run, x, y):
        run(unary_kernel, (triton.cdiv(x.size, BLOCK),), x, y, x.size, FUNCTION=name, BLOCK=BLOCK)

    return gpuemu.op(getattr(schemas, name)(), name=name)(launch)


def binary_op(name):
    def launch(run, a, b, c):
        run(binary_kernel, (triton.cdiv(a.size, BLOCK),), a, b, c, a.size, FUNCTION=name, BLOCK=BLOCK)

    return gpuemu.op(getattr(schemas, name)(), name=name)(launch)


UNARY = (
    "relu", "leaky_relu", "elu", "sigmoid", "silu", "tanh", "gelu", "gelu_tanh", "softplus", "exp", "log", "sqrt",
    "rsqrt", "square",
)  # fmt: skip
OPS = [unary_op(n) for n in UNARY]
OPS += [binary_op(n) for n in ("add", "subtract", "multiply", "divide", "maximum", "minimum")]


@triton.jit
def axpy_kernel(x, y, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    u = tl.load(x + at, mask=at < n).to(tl.float32)
    v = tl.load(y + at, mask=at < n).to(tl.float32)
    tl.store(y + at, (alpha * u + v).to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.axpy(1.7))
def axpy(run, x, y):
    run(axpy_kernel, (triton.cdiv(x.size, BLOCK),), x, y, x.size, 1.7, BLOCK=BLOCK)


@triton.jit
def bias_add_kernel(x, bias, y, n, x_row, x_column, y_row, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * x_row + at * x_column, mask=at < n).to(tl.float32)
    b = tl.load(bias + at, mask=at < n).to(tl.float32)
    tl.store(y + row * y_row + at, (v + b).to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.bias_add())
def bias_add(run, x, bias, y):
    m, n = x.shape
    strides = [s // x.itemsize for s in (*x.strides, y.strides[0])]
    run(bias_add_kernel, (m, triton.cdiv(n, BLOCK)), x, bias, y, n, *strides, BLOCK=BLOCK)


@triton.jit
def cast_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n).to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.cast(dtype="float16"))
def cast_half(run, x, y):
    run(cast_kernel, (triton.cdiv(x.size, BLOCK),), x, y, x.size, BLOCK=BLOCK)


@gpuemu.op(schemas.cast(dtype="float8_e4m3fn"))
def cast_fp8(run, x, y):
    run(cast_kernel, (triton.cdiv(x.size, BLOCK),), x, y, x.size, BLOCK=BLOCK)


@gpuemu.op(
    schemas.binary(lambda a, b: a + b, gpuemu.bounds.exact()), dtypes=("int8", "int32", "int64"), name="integer_add",
    reference=lambda a, b: (a + b).astype(a.dtype),
)  # fmt: skip
def integer_add(run, a, b, c):
    run(cast_sum_kernel, (triton.cdiv(a.size, BLOCK),), a, b, c, a.size, BLOCK=BLOCK)


@triton.jit
def cast_sum_kernel(a, b, c, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at, mask=at < n) + tl.load(b + at, mask=at < n), mask=at < n)


@gpuemu.op(schemas.unary(lambda x: -x, gpuemu.bounds.exact()))
def negate(run, x, y):
    run(negate_kernel, (triton.cdiv(x.size, BLOCK),), x, y, x.size, BLOCK=BLOCK)


@triton.jit
def negate_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, -tl.load(x + at, mask=at < n), mask=at < n)
