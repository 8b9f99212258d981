"""gpuemu.run: arguments of every kind reach the kernel as on a GPU, and what comes back is the caller's own arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

import gpuemu  # noqa: E402
from gpuemu import triton_run  # noqa: E402
from ptx.errors import InvalidInput, Unsupported  # noqa: E402


@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr = 128):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


@triton.jit
def scalars(out, a: tl.float16, b: tl.bfloat16, c: tl.float64, d: tl.int8, e: tl.int1, f: tl.uint16, g: tl.int64, h):
    tl.store(out + 0, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c)
    tl.store(out + 3, d.to(tl.float64))
    tl.store(out + 4, tl.where(e, 1.0, 0.0).to(tl.float64))
    tl.store(out + 5, f.to(tl.float64))
    tl.store(out + 6, g.to(tl.float64))
    tl.store(out + 7, h.to(tl.float64))


@triton.jit
def optional(x, bias, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    if bias is not None:
        v += tl.load(bias + at)
    tl.store(out + at, v)


@triton.jit
def ids(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out + (z * tl.num_programs(1) + y) * tl.num_programs(0) + x, x + 10 * y + 100 * z)


@triton.jit
def paired(pair, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(pair[1] + at, tl.load(pair[0] + at) + pair[2])


class Pair(NamedTuple):
    source: Any
    destination: Any
    amount: int


TARGET = {"target": "sm_80"}


def test_arrays_are_updated_in_place_and_the_result_tells_how() -> None:
    x, out = np.arange(300, dtype=np.float32), np.full(300, np.nan, np.float32)
    result = gpuemu.run(scale, (3,), x, out, 300, 2.5, **TARGET)
    np.testing.assert_array_equal(out, x * np.float32(2.5))
    assert "tt.func" in result.ttir and ".entry scale" in result.ptx
    assert result.metadata["num_warps"] == 4 and not result.findings


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.int32, np.uint8, np.int64, np.float64]
)
def test_element_types(dtype: Any) -> None:
    x = np.arange(100).astype(dtype)
    out = np.zeros_like(x)
    gpuemu.run(scale, 1, x, out, 100, 2, **TARGET)
    np.testing.assert_array_equal(out.astype(np.float64), (np.arange(100) * 2).astype(dtype).astype(np.float64))


def test_scalars_convert_by_their_annotation() -> None:
    out = np.zeros(8)
    gpuemu.run(scalars, 1, out, 1.0009765625, 3.0, 0.1, -5, True, 65535, -(2**40), np.float32(0.25), **TARGET)
    np.testing.assert_array_equal(out, [1.0009765625, 3.0, 0.1, -5, 1, 65535, -(2.0**40), 0.25])


def test_a_scalar_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"d=300 of scalars does not fit i8"):
        gpuemu.run(scalars, 1, np.zeros(8), 1.0, 1.0, 1.0, 300, True, 1, 1, 1.0, **TARGET)


def test_none_is_a_constant() -> None:
    x, bias, out = np.arange(16.0), np.ones(16), np.zeros(16)
    gpuemu.run(optional, 1, x, None, out, BLOCK=16, **TARGET)
    np.testing.assert_array_equal(out, x)
    gpuemu.run(optional, 1, x, bias, out, BLOCK=16, **TARGET)
    np.testing.assert_array_equal(out, x + 1)


def test_tuples_and_named_tuples() -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    for pair in ((x, out, 3), Pair(x, out, 1), Pair(x, out, 16)):
        gpuemu.run(paired, 1, pair, BLOCK=16, **TARGET)
        np.testing.assert_array_equal(out, x + pair[2])


@pytest.mark.parametrize("grid", [(2, 3, 4), [2, 3, 4], lambda meta: (2, 3, 2 * 2)], ids=["tuple", "list", "function"])
def test_grids(grid: Any) -> None:
    out = np.zeros((4, 3, 2), np.int32)
    gpuemu.run(ids, grid, out, **TARGET)
    want = np.arange(2) + 10 * np.arange(3)[:, None] + 100 * np.arange(4)[:, None, None]
    np.testing.assert_array_equal(out, want)


def test_a_grid_function_sees_the_callers_arguments() -> None:
    x, out = np.ones(300, np.float32), np.zeros(300, np.float32)
    seen: dict[str, Any] = {}

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.update(meta)
        return (triton.cdiv(meta["n"], meta["BLOCK"]),)

    gpuemu.run(scale, grid, x, out, n=300, factor=2, BLOCK=64, **TARGET)
    assert seen["x"] is x and seen["BLOCK"] == 64 and out.sum() == 600


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), (-1,), "3", (1.5,), 2.0, None])
def test_a_bad_grid_is_refused(grid: Any) -> None:
    with pytest.raises(InvalidInput, match="grid"):
        gpuemu.run(scale, grid, np.zeros(4, np.float32), np.zeros(4, np.float32), 4, 2, **TARGET)


def test_an_empty_grid_runs_nothing_and_says_so() -> None:
    out = np.ones(4, np.float32)
    result = gpuemu.run(scale, 0, np.zeros(4, np.float32), out, 4, 2, **TARGET)
    assert out.sum() == 4 and result.exactness == ("empty grid: nothing ran",) and result.counters is None


def test_alignment_is_the_devices_not_the_hosts() -> None:
    """The host's allocator must not change PTX; the distance of two views of one storage must, as on a GPU."""
    raw = np.zeros(4096, np.uint8)
    texts = set()
    for shift in (0, 4, 8, 12):
        x = raw[shift : shift + 1024].view(np.float32)
        texts.add(gpuemu.run(scale, 1, x, np.zeros(256, np.float32), 128, 2.0, 1024, **TARGET).ptx)
    assert len(texts) == 1
    whole = np.zeros(256, np.float32)
    assert gpuemu.run(scale, 1, whole, whole[1:], 128, 2.0, 1024, **TARGET).ptx not in texts


def test_addresses_follow_the_parameters_not_the_call() -> None:
    """Keyword order must not matter: the launch lays arrays out in the order of the parameters."""
    whole = np.zeros(256, np.float32)
    bound = triton_run.bind_arrays(scale, (), {"out": whole[1:], "x": whole, "n": 1, "factor": 2.0}, "sm_80")
    assert bound.values["out"].address - bound.values["x"].address == 4
    assert bound.values["x"].address % 256 == 0


def test_a_repeated_call_is_not_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = np.ones(128, np.float32), np.zeros(128, np.float32)
    gpuemu.run(scale, 1, x, out, 128, 2.0, **TARGET)
    monkeypatch.setattr(triton_run, "lower_call", lambda *_: pytest.fail("lowered again"))
    gpuemu.run(scale, 1, x, out, 128, 3.0, **TARGET)
    assert out[0] == 3
    gpuemu.run(scale, 1, x.copy(), out, 64, 4.0, **TARGET)


def test_autotune_says_what_it_took() -> None:
    tuned = triton.autotune([triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 32})], key=["n"])(scale)
    out = np.zeros(128, np.float32)
    result = gpuemu.run(tuned, lambda m: (2,), np.ones(128, np.float32), out, 128, 2.0, **TARGET)
    assert out.sum() == 256 and result.metadata["num_warps"] == 2
    assert "configuration 1 of 2" in result.metadata["notes"][0]


def test_wrong_arguments_are_said_in_the_users_terms() -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(InvalidInput, match="missing 1 required positional argument"):
        gpuemu.run(scale, 1, x, x, 4, **TARGET)
    with pytest.raises(InvalidInput, match="list"):
        gpuemu.run(scale, 1, [1.0], x, 4, 2, **TARGET)
    with pytest.raises(InvalidInput, match="called BLOK"):
        gpuemu.run(scale, 1, x, x, 4, 2, BLOK=3, **TARGET)
    with pytest.raises(Unsupported, match="complex"):
        gpuemu.run(scale, 1, x.astype(np.complex64), x, 4, 2, **TARGET)


def test_torch_tensors_work_where_torch_is() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.arange(100).to(dtype)
        out = torch.zeros(100, dtype=dtype)
        gpuemu.run(scale, lambda meta: (triton.cdiv(meta["x"].numel(), meta["BLOCK"]),), x, out, 100, 2, **TARGET)
        assert torch.equal(out, x * 2)
