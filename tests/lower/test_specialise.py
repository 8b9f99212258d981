"""Specialisation: a call is bound to the same signature, constants, attributes and options as by Triton's own JIT.

The judge is Triton: its `JITFunction.run` is driven with a driver that only knows a target, and stopped by its own
compile hook just before it would compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402

from ptx.errors import InvalidInput  # noqa: E402
from ptx.lower import specialise, wrappers  # noqa: E402
from ptx.lower.specialise import DevicePointer  # noqa: E402

CONSTANT = tl.constexpr(7)
PLAIN = 3


class Pair(NamedTuple):
    left: Any
    right: Any


@triton.jit
def helper(v):
    return v + CONSTANT


@triton.jit
def plain(x, y, n, s, BLOCK: tl.constexpr = 64):
    tl.store(x + tl.arange(0, BLOCK), helper(tl.load(y + tl.arange(0, BLOCK)) * s + n))


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["y"])
def reluctant(x, y, n, s, BLOCK: tl.constexpr = 64):
    tl.store(x + tl.arange(0, BLOCK), tl.load(y + tl.arange(0, BLOCK)) * s + n)


@triton.jit
def annotated(x: "*fp16", n: tl.int64, s: tl.float32, flag: tl.int1, BLOCK: tl.constexpr):  # noqa: F722
    tl.store(x + tl.arange(0, BLOCK), (n * s).to(tl.float16), mask=flag)


@triton.jit
def packed(pair, n, FN: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(pair[0] + tl.arange(0, BLOCK), FN(tl.load(pair[0] + tl.arange(0, BLOCK)) + n))


class TargetOnlyDriver:
    """What `JITFunction.run` asks of a driver before it compiles."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 80, 32)


@pytest.fixture
def triton_binding(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function (kernel, args, kwargs) -> what Triton's JIT hands to its compiler."""
    from triton.runtime.driver import driver

    seen: list[dict[str, Any]] = []

    def stop(**info: Any) -> bool:
        seen.append(info["compile"])
        return True

    monkeypatch.setattr(triton.knobs.runtime, "jit_cache_hook", stop)
    previous = driver._active
    driver.set_active(TargetOnlyDriver())

    def run(kernel: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        kernel.device_caches.clear()
        kernel.run(*args, grid=(1,), warmup=True, **kwargs)
        return seen.pop()

    yield run
    driver._active = previous


P16, P8 = DevicePointer("fp32", 4096), DevicePointer("fp16", 4104)

CALLS = [
    (plain, (P16, P8, 5, 2.5), {}),
    (plain, (P16, P8, 1, 16), {}),
    (plain, (P8, P16, 0, True), {"BLOCK": 32, "num_warps": 8, "num_stages": 2}),
    (plain, (P8, P16, 2**31, -(2**31) - 1), {}),
    (plain, (P8, P16, 2**63, 2**31 - 1), {"maxnreg": 64, "num_ctas": 1}),
    (plain, (P8, P16, None, -1), {}),
    (plain, (), {"x": P8, "y": P16, "n": 48, "s": 1, "BLOCK": 16}),
    (plain, (DevicePointer("bf16", 64), DevicePointer("fp8e4nv", 65), 48, 1), {}),
    (reluctant, (P16, P16, 1, 1), {}),
    (reluctant, (P8, P8, 16, 2**40), {}),
    (annotated, (P16, 1, 1, True, 16), {}),
    (annotated, (P16, 16, 2.0, 0, 16), {}),
    (packed, ((P16, 1), 16, helper, 32), {}),
    (packed, (Pair(P8, (2, 1.0)), 1, helper, 32), {}),
]


@pytest.mark.judge
@pytest.mark.parametrize("call", CALLS, ids=lambda c: f"{c[0].__name__}-{c[1]!r:.60}-{c[2]!r}")
def test_binding_is_tritons(call: Any, triton_binding: Any) -> None:
    kernel, args, kwargs = call
    theirs = triton_binding(kernel, *args, enable_fp_fusion=False, **kwargs)
    ours = specialise.bind(kernel, args, kwargs, 80)
    assert ours.signature() == theirs["signature"]
    assert ours.constexprs() == theirs["constants"]
    assert [ours.attrs()] == theirs["configs"]
    assert {k: v for k, v in ours.options.items() if k in theirs} == {k: theirs[k] for k in ours.options if k in theirs}


def test_the_memo_key_separates_what_compiles_differently() -> None:
    def key(*args: Any, **kwargs: Any) -> Any:
        return specialise.bind(plain, args, kwargs, 80).memo

    same = key(P16, P8, 5, 2.5)
    assert same == key(DevicePointer("fp32", 8192), DevicePointer("fp16", 4104), 7, 3.5)
    different = [
        same,
        key(P8, P8, 5, 2.5),
        key(P16, P8, 16, 2.5),
        key(P16, P8, 1, 2.5),
        key(P16, P8, True, 2.5),
        key(P16, P8, 5, 2),
        key(P16, P8, 5, 2.5, BLOCK=1),
        key(P16, P8, 5, 2.5, BLOCK=True),
        key(P16, P8, 5, 2.5, BLOCK=1.0),
        key(P16, P8, 5, 2.5, BLOCK=0.0),
        key(P16, P8, 5, 2.5, BLOCK=-0.0),
        key(P16, P8, 5, 2.5, BLOCK=(1,)),
        key(P16, P8, 5, 2.5, BLOCK=(True,)),
        key(P16, P8, 5, 2.5, num_warps=8),
    ]
    assert len(set(different)) == len(different)


def test_stable_text_tells_constants_apart() -> None:
    values = [1, True, 1.0, "1", None, (1,), (True,), [1], tl.float32, tl.float16, helper, tl.constexpr(1), -0.0, 0.0]
    texts = [specialise.stable_text(v) for v in values]
    assert None not in texts and len(set(texts)) == len(texts)
    assert specialise.stable_text(object()) is None
    assert specialise.stable_text((1, object())) is None


def test_source_files_include_called_functions() -> None:
    @triton.jit
    def uses_standard(x):
        tl.store(x, helper(tl.sum(tl.arange(0, 16), 0)))

    files = specialise.source_files(uses_standard)
    assert __file__ in files and any(f.endswith("standard.py") for f in files)


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((P16,), {}, "missing 3 required positional arguments"),
        ((P16, P8, "text", 1), {}, "failed to specialize argument of type: str"),
        ((P16, P8, 2**64, 1), {}, "too large"),
        ((P16, P8, 1, 1, 64, 9), {}, "positional arguments"),
    ],
)
def test_a_bad_call_is_said_in_the_users_terms(args: Any, kwargs: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        specialise.bind(plain, args, kwargs, 80)
    assert "plain" in str(caught.value) and "test_specialise.py" in str(caught.value)
    assert "dynamic_func" not in str(caught.value)


def test_a_changed_global_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _ = plain.cache_key
    monkeypatch.setitem(globals(), "CONSTANT", tl.constexpr(8))
    with pytest.raises(InvalidInput, match="global CONSTANT has changed"):
        specialise.bind(plain, (P16, P8, 1, 1), {}, 80)


def test_heuristics_and_autotune_are_applied_without_a_gpu() -> None:
    ran = []
    configs = [
        triton.Config({"BLOCK": 32}, num_warps=2, pre_hook=lambda named: ran.append(named["BLOCK"])),
        triton.Config({"BLOCK": 128}, num_warps=8),
    ]
    tuned = triton.autotune(configs, key=["n"])(plain)
    kernel, kwargs, notes = wrappers.unwrap(tuned, (P16, P8, 5, 2), {})
    assert kernel is plain and kwargs["BLOCK"] == 32 and kwargs["num_warps"] == 2 and ran == [32]
    assert "configuration 1 of 2" in notes[0]
    _, kwargs, _ = wrappers.unwrap(tuned, (P16, P8, 5, 2), {"BLOCK": 128})
    assert kwargs["num_warps"] == 8, "the configuration that agrees with the keyword"
    _, kwargs, notes = wrappers.unwrap(tuned, (P16, P8, 5, 2), {"BLOCK": 512})
    assert kwargs["BLOCK"] == 512 and "overrule" in notes[0]
    ruled = triton.heuristics({"BLOCK": lambda named: 16 if named["n"] < 10 else 1024})(plain)
    assert wrappers.unwrap(ruled, (P16, P8, 5, 2), {})[1]["BLOCK"] == 16


def test_what_is_not_a_kernel_is_named() -> None:
    with pytest.raises(InvalidInput, match="not a @triton.jit function"):
        wrappers.unwrap(len, (), {})
