"""Kernels that use what numba-cuda offers; `python tests/compilers/numba_kernels.py FOLDER 9.0` compiles them.

Only the module that runs needs numba-cuda: `tests.compilers.numba_cases` launches the texts and knows what is right.
A kernel's text goes to FOLDER/name.sm_NN.0.ptx, those of libraries that it needs to .1.ptx and so on.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numba import complex64, complex128, cuda, float32, float64, from_dtype, int32, int64, uint32, uint64, void
from numba.cuda import libdevice
from numba.cuda.random import (
    init_xoroshiro128p_state,
    xoroshiro128p_dtype,
    xoroshiro128p_normal_float32,
    xoroshiro128p_normal_float64,
    xoroshiro128p_uniform_float32,
    xoroshiro128p_uniform_float64,
)
from numba.cuda.types import float16
from nvrtc import compile_source

KERNELS = {}
RECORD = np.dtype([("a", np.int16), ("b", np.float64), ("c", np.float32, (3,))], align=True)
TABLE = np.arange(1, 9, dtype=np.float32) ** 2
STATE = from_dtype(xoroshiro128p_dtype)


def kernel(*types, debug=False):
    """Registers a kernel with the types of its arguments."""

    def add(function):
        KERNELS[function.__name__] = (function, void(*types), debug)
        return function

    return add


def function(f):
    return cuda.jit(device=True)(f)


@kernel(float64[:], float64[:], float64[:, :])
def functions64(x, y, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    a, b = x[i], y[i]
    out[0, i], out[1, i], out[2, i], out[3, i] = math.sin(a), math.cos(a), math.tan(a), math.asin(a / 8)
    out[4, i], out[5, i], out[6, i], out[7, i] = math.acos(a / 8), math.atan(a), math.sinh(a), math.cosh(a)
    out[8, i], out[9, i], out[10, i], out[11, i] = math.tanh(a), math.asinh(a), math.acosh(b + 1), math.atanh(a / 8)
    out[12, i], out[13, i], out[14, i], out[15, i] = math.exp(a), math.expm1(a), math.log(b), math.log10(b)
    out[16, i], out[17, i], out[18, i], out[19, i] = math.log1p(b), math.log2(b), math.sqrt(b), math.erf(a)
    out[20, i], out[21, i], out[22, i], out[23, i] = math.erfc(a), math.gamma(b), math.lgamma(b), math.atan2(a, b)
    out[24, i], out[25, i], out[26, i], out[27, i] = math.hypot(a, b), math.pow(b, a), b**a, libdevice.cbrt(a)
    out[28, i], out[29, i], out[30, i], out[31, i] = (
        libdevice.rsqrt(b),
        libdevice.exp2(a),
        libdevice.sinpi(a),
        libdevice.j0(b),
    )


@kernel(float32[:], float32[:], float32[:, :])
def functions32(x, y, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    a, b = x[i], y[i]
    out[0, i], out[1, i], out[2, i], out[3, i] = math.sin(a), math.cos(a), math.tan(a), math.asin(a / float32(8))
    out[4, i], out[5, i], out[6, i], out[7, i] = math.acos(a / float32(8)), math.atan(a), math.sinh(a), math.cosh(a)
    out[8, i], out[9, i], out[10, i], out[11, i] = (
        math.tanh(a),
        math.asinh(a),
        math.acosh(b + float32(1)),
        math.atanh(a / float32(8)),
    )
    out[12, i], out[13, i], out[14, i], out[15, i] = math.exp(a), math.expm1(a), math.log(b), math.log10(b)
    out[16, i], out[17, i], out[18, i], out[19, i] = math.log1p(b), math.log2(b), math.sqrt(b), math.erf(a)
    out[20, i], out[21, i], out[22, i], out[23, i] = math.erfc(a), math.gamma(b), math.lgamma(b), math.atan2(a, b)
    out[24, i], out[25, i], out[26, i], out[27, i] = math.hypot(a, b), math.pow(b, a), b**a, libdevice.cbrtf(a)
    out[28, i], out[29, i], out[30, i], out[31, i] = (
        libdevice.rsqrtf(b),
        libdevice.exp2f(a),
        libdevice.sinpif(a),
        libdevice.j0f(b),
    )


@kernel(float64[:], float64[:], float64[:, :])
def exact64(x, y, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    a, b = x[i], y[i]
    rest, whole = libdevice.modf(a)
    fraction, power = math.frexp(a)
    out[0, i], out[1, i], out[2, i], out[3, i] = math.floor(a), math.ceil(a), math.trunc(a), math.fabs(a)
    out[4, i], out[5, i], out[6, i], out[7, i] = math.fmod(a, b), math.copysign(a, b), math.ldexp(a, 5), fraction
    out[8, i], out[9, i], out[10, i], out[11, i] = power, round(a), a // b, a % b
    out[12, i], out[13, i], out[14, i], out[15, i] = cuda.fma(a, b, a), min(a, b), max(a, b), a / b
    out[16, i], out[17, i] = whole, rest
    out[18, i], out[19, i] = libdevice.fma_rd(a, b, a), libdevice.ddiv_ru(a, b)
    out[20, i], out[21, i], out[22, i] = math.isnan(a), math.isinf(b), math.isfinite(a)


@kernel(int32[:], int32[:], int32[:, :])
def integers32(x, y, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    a, b = x[i], y[i]
    out[0, i], out[1, i], out[2, i], out[3, i] = a // b, a % b, a * b, a ^ b
    out[4, i], out[5, i], out[6, i], out[7, i] = a >> (b & 31), a << (b & 31), cuda.popc(a), cuda.clz(a)
    out[8, i], out[9, i], out[10, i], out[11, i] = cuda.ffs(a), cuda.brev(uint32(a)), cuda.selp(a > b, a, b), abs(a)
    out[12, i], out[13, i], out[14, i], out[15, i] = ~a, -a, a & b, a | b
    out[16, i], out[17, i] = libdevice.mulhi(a, b), libdevice.byte_perm(a, b, 0x5140)
    out[18, i], out[19, i] = libdevice.sad(a, b, 7), libdevice.hadd(a, b)


@kernel(int64[:], int64[:], int64[:, :])
def integers64(x, y, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    a, b = x[i], y[i]
    out[0, i], out[1, i], out[2, i], out[3, i] = a // b, a % b, a * b, a ^ b
    out[4, i], out[5, i], out[6, i], out[7, i] = a >> (b & 63), a << (b & 63), cuda.popc(a), cuda.clz(a)
    out[8, i], out[9, i], out[10, i], out[11, i] = cuda.ffs(a), cuda.brev(uint64(a)), cuda.selp(a > b, a, b), abs(a)
    out[12, i], out[13, i] = uint64(a) // uint64(b | 1), uint64(a) % uint64(b | 1)
    out[14, i] = libdevice.mul64hi(a, b)


@kernel(float16[:], float16[:], float16[:, :])
def halves(x, y, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    a, b = x[i], y[i]
    out[0, i], out[1, i], out[2, i], out[3, i] = a + b, a - b, a * b, a / b
    out[4, i], out[5, i], out[6, i], out[7, i] = (
        cuda.fp16.hfma(a, b, a),
        cuda.fp16.hneg(a),
        cuda.fp16.habs(a),
        cuda.fp16.hmax(a, b),
    )
    out[8, i], out[9, i], out[10, i] = cuda.fp16.hmin(a, b), cuda.fp16.hfloor(a), cuda.fp16.hceil(a)
    out[11, i], out[12, i], out[13, i] = cuda.fp16.hrint(a), cuda.fp16.htrunc(a), cuda.fp16.hsqrt(cuda.fp16.habs(b))
    out[14, i] = float16(1) if a > b else float16(0)
    out[15, i] = float16(float32(a) * float32(2))
    out[16, i] = float16(int32(a))


@kernel(float16[:], float16[:], float16[:, :])
def half_functions(x, y, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    a, b = x[i], cuda.fp16.habs(y[i])
    out[0, i], out[1, i], out[2, i], out[3, i] = (
        cuda.fp16.hsin(a),
        cuda.fp16.hcos(a),
        cuda.fp16.hexp(a),
        cuda.fp16.hlog(b),
    )
    out[4, i], out[5, i], out[6, i], out[7, i] = (
        cuda.fp16.hexp2(a),
        cuda.fp16.hlog2(b),
        cuda.fp16.hexp10(a),
        cuda.fp16.hlog10(b),
    )
    out[8, i], out[9, i] = cuda.fp16.hrsqrt(b), cuda.fp16.hrcp(b)


@kernel(complex128[:], complex128[:], complex128[:, :])
def complex_numbers(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b = x[i], y[i]
        out[0, i], out[1, i], out[2, i], out[3, i] = a + b, a * b, a / b, a.conjugate()
        out[4, i], out[5, i] = complex(abs(a), 0), complex(a.real, b.imag)


@kernel(complex64[:], complex64[:])
def mandelbrot(c, out):
    i = cuda.grid(1)
    if i < c.size:
        z = complex64(0)
        n = 0
        while n < 30 and z.real * z.real + z.imag * z.imag < float32(4):
            z = z * z + c[i]
            n += 1
        out[i] = complex64(n)


@kernel(int32[:], uint32[:], int64[:], float32[:], float64[:], int32[:])
def atomics(s, u, w, f, d, x):
    i = cuda.grid(1)
    v = x[i]
    cuda.atomic.add(s, 0, v)
    cuda.atomic.sub(s, 1, v)
    cuda.atomic.max(s, 2, v)
    cuda.atomic.min(s, 3, v)
    cuda.atomic.and_(s, 4, v | 3)
    cuda.atomic.or_(s, 5, v)
    cuda.atomic.xor(s, 6, v)
    cuda.atomic.inc(u, 0, uint32(100))
    cuda.atomic.dec(u, 1, uint32(50))
    cuda.atomic.max(u, 2, uint32(v))
    cuda.atomic.add(w, 0, int64(v) << 20)
    cuda.atomic.max(w, 1, int64(v) << 33)
    cuda.atomic.min(w, 2, int64(v) << 33)
    cuda.atomic.add(f, 0, float32(v))
    cuda.atomic.max(f, 1, float32(v) * float32(0.5))
    cuda.atomic.min(f, 2, float32(v) * float32(0.5))
    cuda.atomic.nanmax(f, 3, float32(v))
    cuda.atomic.add(d, 0, float64(v) * 0.25)
    cuda.atomic.max(d, 1, float64(v) * 0.5)
    cuda.atomic.min(d, 2, float64(v) * 0.5)
    cuda.atomic.nanmin(d, 3, float64(v))
    cuda.atomic.cas(s, 7, 0, i + 1)
    cuda.atomic.compare_and_swap(s[8:], 0, i + 5)
    if i == 5:
        cuda.atomic.exch(s, 9, v)
        cuda.atomic.exch(w, 3, int64(v))


@kernel(float32[:], float32[:])
def shared_sum(x, out):
    part = cuda.shared.array(128, float32)
    dynamic = cuda.shared.array(0, int32)
    i = cuda.threadIdx.x
    part[i] = x[cuda.grid(1)]
    dynamic[i] = i
    cuda.syncthreads()
    step = 64
    while step > 0:
        if i < step:
            part[i] += part[i + step]
        cuda.syncthreads()
        step //= 2
    if i == 0:
        out[cuda.blockIdx.x] = part[0] + dynamic[7]


@kernel(float32[:], float32[:])
def local_and_constant(x, out):
    own = cuda.local.array(10, float32)
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    for k in range(10):
        own[k] = x[i] * k
    total = float32(0)
    for k in range(10):
        total += own[(k * 7 + i) % 10] + table[(k + i) % 8]
    out[i] = total


@kernel(int32[:], uint32[:, :])
def warps(x, out):
    i = cuda.threadIdx.x
    v = x[i]
    lane = cuda.laneid
    out[0, i] = cuda.shfl_sync(0xFFFFFFFF, v, 5)
    out[1, i] = cuda.shfl_up_sync(0xFFFFFFFF, v, 2)
    out[2, i] = cuda.shfl_down_sync(0xFFFFFFFF, v, 3)
    out[3, i] = cuda.shfl_xor_sync(0xFFFFFFFF, v, 9)
    out[4, i] = uint32(cuda.shfl_xor_sync(0xFFFFFFFF, float64(v), 1))
    out[5, i] = cuda.all_sync(0xFFFFFFFF, v > 0)
    out[6, i] = cuda.any_sync(0xFFFFFFFF, v > 6)
    out[7, i] = cuda.eq_sync(0xFFFFFFFF, v > 3)
    out[8, i] = cuda.ballot_sync(0xFFFFFFFF, v & 1)
    out[9, i] = cuda.match_any_sync(0xFFFFFFFF, v & 3)
    out[10, i], ok = cuda.match_all_sync(0xFFFFFFFF, v)
    out[11, i] = ok
    out[12, i] = cuda.syncthreads_count(v & 1)
    out[13, i] = cuda.syncthreads_and(int32(v < 8))
    out[14, i] = cuda.syncthreads_or(int32(v == 7))
    if v & 1:
        out[15, i] = cuda.activemask()
    cuda.syncwarp()
    out[16, i] = cuda.lanemask_lt()
    out[17, i] = lane
    cuda.threadfence()
    cuda.threadfence_block()
    cuda.threadfence_system()
    cuda.nanosleep(uint32(20))


@kernel(int32[:, :], int32[:, :])
def grid_sync(x, out):
    g = cuda.cg.this_grid()
    i = cuda.grid(1)
    n = x.shape[1]
    for row in range(1, x.shape[0]):
        out[row, i] = out[row - 1, (i + 1) % n] + x[row, i]
        g.sync()


@function
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@function
def swap(a, b):
    return b, a


@function
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@kernel(int32[:], int32[:, :])
def calls(x, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b = swap(x[i], i)
        out[0, i] = collatz(x[i] + 1)
        out[1, i] = a * 100 + b
        out[2, i] = fibonacci(i % 12)


@kernel(from_dtype(RECORD)[:], float64[:])
def records(r, out):
    i = cuda.grid(1)
    if i < r.size:
        out[i] = r[i].a * r[i].b + r[i].c[2]
        r[i].a += 1
        r[i].c[0] = float32(r[i].b)


@kernel(float32[:, :], float32[:, :], float32[:, :])
def matmul(a, b, c):
    tile_a = cuda.shared.array((8, 8), float32)
    tile_b = cuda.shared.array((8, 8), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for t in range((a.shape[1] + 7) // 8):
        tile_a[ty, tx] = a[y, tx + t * 8] if y < a.shape[0] and tx + t * 8 < a.shape[1] else float32(0)
        tile_b[ty, tx] = b[ty + t * 8, x] if x < b.shape[1] and ty + t * 8 < b.shape[0] else float32(0)
        cuda.syncthreads()
        for k in range(8):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@kernel(int32[:])
def vector_types(out):
    v = cuda.int32x3(1, 2, 3)
    w = cuda.float32x4(0.5, 1.5, 2.5, 3.5)
    i = cuda.grid(1)
    out[i] = v.x * 100 + v.y * 10 + v.z + int32(w.w * 2) + i


@kernel(int32[:])
def printing(x):
    i = cuda.grid(1)
    if i < 3:
        print("value", i, x[i], 0.5 * x[i])


@kernel(int32[:], int32[:], debug=True)
def raising(x, y):
    i = cuda.grid(1)
    if x[i] < 0:
        raise ValueError("negative")
    y[i] = 100 // x[i]


@kernel(STATE[:], float32[:], float64[:], float32[:], float64[:], int64)
def random(states, u32, u64, n32, n64, seed):
    i = cuda.grid(1)
    if i < states.size:
        init_xoroshiro128p_state(states, i, uint64(seed + i))
        for k in range(3):
            u32[3 * i + k] = xoroshiro128p_uniform_float32(states, i)
            u64[3 * i + k] = xoroshiro128p_uniform_float64(states, i)
        n32[i] = xoroshiro128p_normal_float32(states, i)
        n64[i] = xoroshiro128p_normal_float64(states, i)


@kernel(float32[:, :, :], float32[:, :, :])
def strided(x, out):
    i, j, k = cuda.grid(3)
    sx, sy, sz = cuda.gridsize(3)
    if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
        out[k, j, i] = x[i, j, k] + sx * 100 + sy * 10 + sz


def compile_library(source, name, cc, ltoir=False, lineinfo=False, debug=False):
    """A library in CUDA C++, as numba compiles it."""
    from cuda import pathfinder
    from numba.cuda import cuda_paths

    here = Path(cuda_paths.__file__).parent
    folders = [
        here / "include" / "13", cuda_paths.get_cuda_paths()["include_dir"].info,
        pathfinder.locate_nvidia_header_directory("cccl").abs_path, here / "memory_management",
    ]  # fmt: skip
    options = ["-std=c++17", "-rdc", "true", *(f"-I{folder}" for folder in folders)]
    text, log = compile_source(source, name, f"sm_{cc[0]}{cc[1]}", options)
    return SimpleNamespace(code=text.encode()), log


def main(folder, capability):
    """Compiles all for one compute capability; what the compiler refuses is printed with its reason."""
    from numba.cuda import compile_all, dispatcher
    from numba.cuda.cudadrv import nvrtc

    major, minor = map(int, capability.split("."))
    # Device functions ask for the current device, to compile for it; there is none.
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(major, minor))
    nvrtc.compile = compile_library  # numba's own asks the driver for its version
    for name, (f, signature, debug) in KERNELS.items():
        try:
            texts, _ = compile_all(
                f,
                signature.args,
                cc=(major, minor),
                debug=debug,
                opt=not debug,
                device=False,
                abi="numba",
                output="ptx",
            )
        except Exception as error:
            print(f"{name} {capability}: {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        for number, text in enumerate(texts):
            code = text if isinstance(text, bytes) else getattr(text, "code", text)
            code = code if isinstance(code, bytes) else str(code).encode()
            Path(folder, f"{name}.sm_{major}{minor}.{number}.ptx").write_bytes(code.rstrip(b"\0"))


if __name__ == "__main__":
    main(*sys.argv[1:])
