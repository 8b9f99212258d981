"""Triton kernels through `gpuemu.run`: loops, branches, calls, locks between programs, far addresses, grids."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton")

import gpuemu
from tests.kernels import triton_kernels as K
from tests.kernels.bounds import integers, numbers

SM80 = {"target": "sm_80"}


def test_while_loops_and_nested_ifs_on_scalars() -> None:
    keys = np.unique(integers(1, 200, 0, 500))
    x = integers(2, 40, -10, 510)
    out = np.zeros((40, 2), np.int32)
    result = gpuemu.run(K.binary_search, 40, keys, x, out, keys.size, **SM80)
    assert result.findings == ()

    def search(wanted: int) -> tuple[int, int]:
        low, high, steps = 0, len(keys), 0
        while low < high:
            middle = (low + high) // 2
            steps += 1 + 100 * int(keys[middle] == wanted)
            low, high = (middle + 1, high) if keys[middle] < wanted else (low, middle)
        return low, steps

    assert [tuple(r) for r in out] == [search(w) for w in x]


def test_program_that_returns_early() -> None:
    x = integers(3, 300, 0, 100)
    out = np.full(400, 9, np.int32)
    assert gpuemu.run(K.early_exit, 5, x, out, 300, BLOCK=128, **SM80).findings == ()
    expected = np.concatenate([(-p if p.sum() % 2 == 0 else p) for p in (x[:128], x[128:256], x[256:])])
    assert (out[:300] == expected).all() and (out[300:] == 9).all()


def test_function_that_is_not_inlined() -> None:
    x, out = integers(4, 128, -99, 99), np.full(128, 7, np.int32)
    result = gpuemu.run(K.calls, 1, x, out, 5, BLOCK=128, **SM80)
    assert result.findings == () and (out == x + 3 * 5 + 1).all()


@pytest.mark.parametrize("num_warps", [1, 4])
def test_program_that_waits_for_a_later_one(num_warps: int) -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(256, np.int32)
    result = gpuemu.run(K.wait_for_another_program, 2, flag, out, BLOCK=128, num_warps=num_warps, **SM80)
    assert result.findings == () and result.resident == 2
    assert (out[:128] == 2 * np.arange(128)).all() and (out[128:] == out[:128] + 1).all()


def test_lock_between_programs() -> None:
    x = integers(6, (5, 64), 0, 10)
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    assert gpuemu.run(K.locked_sum, 5, lock, total, x, BLOCK=64, **SM80).findings == ()
    expected = 0
    for row in x:
        expected = expected * 3 + int(row.sum())
    assert total[0] == expected and lock[0] == 0


def test_offsets_beyond_32_bits() -> None:
    """Row 5 of a matrix with rows of 2^29 floats: 10 GiB away. With 64-bit offsets it is read; with 32-bit ones the
    product wraps, the kernel reads elsewhere, and the emulator says so."""
    x = gpuemu.sparse((6, 1 << 29), np.float32)
    x[5, :128] = np.arange(128)
    out = np.zeros((6, 128), np.float32)
    chosen = [(5, 0, 0)]
    result = gpuemu.run(K.far_rows, 6, x, out, 1 << 29, BLOCK=128, WIDE=True, ctas=chosen, **SM80)
    assert result.findings == () and "partial" in result.exactness
    assert (out[5] == np.arange(128)).all() and (out[:5] == 0).all()
    out[:] = 0
    (finding,) = gpuemu.run(K.far_rows, 6, x, out, 1 << 29, BLOCK=128, WIDE=False, ctas=chosen, **SM80).findings
    assert finding.kind == "out-of-bounds" and finding.array == "x" and finding.index == (-3, 0)
    assert finding.file is not None and finding.file.endswith("triton_kernels.py")


def test_three_dimensional_grid() -> None:
    x = numbers(7, (5, 7, 100))
    out = np.zeros((100, 7, 5), np.float32)
    assert gpuemu.run(K.transpose_3d, (5, 7, 4), x, out, 5, 7, 100, BLOCK=32, **SM80).findings == ()
    assert (out == x.transpose(2, 1, 0)).all()


@pytest.mark.parametrize("shape", [(8, 8), (16, 32), (40, 56)])
def test_tensor_descriptors(shape: tuple[int, int]) -> None:
    """On sm_80 Triton turns descriptors into plain accesses: zero outside on loads, nothing on stores."""
    x = numbers(8, shape, np.float16)
    out = np.zeros(shape[::-1], np.float16)
    grid = (-(-shape[0] // 16), -(-shape[1] // 32))
    assert gpuemu.run(K.descriptor_copy, grid, x, out, *shape, BM=16, BN=32, **SM80).findings == ()
    assert (out == x.T).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis: int) -> None:
    x, out = numbers(9, (16, 64)), np.zeros((16, 64), np.float32)
    index = integers(10, (16, 64), 0, x.shape[axis])
    assert gpuemu.run(K.gather_rows, 1, x, index, out, ROWS=16, COLUMNS=64, AXIS=axis, **SM80).findings == ()
    assert (out == np.take_along_axis(x, index, axis)).all()


@pytest.mark.parametrize("engine", ["compiled", "traced"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_eviction_policies_are_hints(target: str, engine: str) -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert gpuemu.run(K.add_one_with_hints, 1, x, out, 50, B=64, target=target, engine=engine).findings == ()
    np.testing.assert_array_equal(out, np.where(np.arange(64) < 50, x + 1, 0))


@pytest.mark.parametrize("engine", ["compiled", "traced"])
@pytest.mark.parametrize("target", ["sm_89", "sm_90"])
def test_e4m3_becomes_bf16_exactly(target: str, engine: str) -> None:
    x = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    out = np.zeros(256, ml_dtypes.bfloat16)
    assert gpuemu.run(K.converted, 1, x, out, B=256, target=target, engine=engine).findings == ()
    np.testing.assert_array_equal(out.astype(np.float64), x.astype(np.float64))


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_device_print_and_device_assert(target: str) -> None:
    x = np.arange(32, dtype=np.int32)
    result = gpuemu.run(K.tells, 1, x, BLOCK=32, num_warps=1, debug=True, target=target)
    assert result.findings == ()
    assert result.printed.splitlines()[7] == "pid (0, 0, 0) idx ( 7) v: 7"
    x[5] = 100
    (finding,) = gpuemu.run(K.tells, 1, x, BLOCK=32, num_warps=1, debug=True, target=target).findings
    assert finding.kind == "assertion" and finding.message == "device assertion failed: too large"
    assert finding.file is not None and finding.file.endswith("triton_kernels.py")
