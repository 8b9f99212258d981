"""Lowering: Triton's own output for a GPU that is not there, the same from the cache, and nothing else let through."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

from ptx import cache  # noqa: E402
from ptx.errors import InvalidInput, Unsupported  # noqa: E402
from ptx.lower import toolchain  # noqa: E402
from ptx.lower import triton as lowering  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ALIGNED = [["tt.divisibility", 16]]


@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor + 1.0, mask=at < n)


@triton.jit
def broken(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, at + undefined_name)  # noqa: F821


SIGNATURE = {"x": "*fp32", "out": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"}
ATTRS = {(0,): ALIGNED, (1,): ALIGNED}


def lower_scale(block: int = 256, **options: Any) -> lowering.Lowered:
    target = options.pop("target", "sm_80")
    cubin = options.pop("cubin", False)
    return lowering.lower(scale, SIGNATURE, {"BLOCK": block}, ATTRS, options, target, cubin=cubin)


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUEMU_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of kernels that were really compiled, in order."""
    seen: list[str] = []
    run = lowering._run_stages

    def counted(source: Any, *rest: Any) -> Any:
        seen.append(source.fn.__name__)
        return run(source, *rest)

    monkeypatch.setattr(lowering, "_run_stages", counted)
    return seen


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_every_target_without_a_gpu(target: str) -> None:
    got = lower_scale(target=target)
    assert got.entry == "scale" and got.target == target and got.threads == 128
    assert f".target {target}" in got.ptx and ".visible .entry scale(" in got.ptx
    assert "tt.func" in got.ttir and "ttg" in got.ttgir
    assert [(p.name, p.path, p.type) for p in got.params] == [
        ("x", (0,), "*fp32"),
        ("out", (1,), "*fp32"),
        ("n", (2,), "i32"),
        ("factor", (3,), "fp32"),
    ]
    assert got.ptx.count(".param ") == len(got.params) + 2, "the two hidden scratch pointers"
    assert got.cubin is None
    json.dumps(dict(got.metadata))


@pytest.mark.judge
@pytest.mark.parametrize("target", [80, 90])
def test_the_ptx_is_what_triton_compile_gives(target: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path / "triton"))
    theirs = triton.compile(
        ASTSource(scale, SIGNATURE, {"BLOCK": 256}, ATTRS),
        target=GPUTarget("cuda", target, 32),
        options={"enable_fp_fusion": False, "num_warps": 8},
    )
    ours = lower_scale(target=f"sm_{target}", enable_fp_fusion=False, num_warps=8, cubin=True)
    for stage in ("ttir", "ttgir", "ptx"):
        assert getattr(ours, stage) == theirs.asm[stage]
    assert ours.cubin == theirs.asm["cubin"]
    kept = json.loads(json.dumps(theirs.metadata._asdict(), default=vars))
    assert {k: ours.metadata[k] for k in ("shared", "num_warps", "name", "global_scratch_size", "num_stages")} == {
        k: kept[k] for k in ("shared", "num_warps", "name", "global_scratch_size", "num_stages")
    }


def test_the_cache_gives_the_same_record(compilations: list[str]) -> None:
    first = lower_scale()
    assert lower_scale() == first and compilations == ["scale"]
    with_cubin = lower_scale(cubin=True)
    assert with_cubin.cubin and with_cubin.cubin[:4] == b"\x7fELF"
    assert lower_scale(cubin=True) == with_cubin and compilations == ["scale", "scale"]


@pytest.mark.parametrize(
    "other",
    [{"block": 512}, {"num_warps": 8}, {"target": "sm_89"}, {"enable_fp_fusion": False}, {"maxnreg": 64}],
    ids=str,
)
def test_what_changes_the_code_changes_the_key(other: dict[str, Any], compilations: list[str]) -> None:
    lower_scale()
    lower_scale(**other)
    assert compilations == ["scale", "scale"]


def test_an_environment_that_changes_the_code_changes_the_key(
    compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lower_scale()
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    assert lower_scale() == first and compilations == ["scale"]
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "1")
    assert ".loc" not in lower_scale().ptx and compilations == ["scale", "scale"]


def test_a_damaged_cache_entry_is_compiled_again(compilations: list[str], fresh_cache: Path) -> None:
    first = lower_scale()
    for path in fresh_cache.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-10])
    assert lower_scale() == first and compilations == ["scale", "scale"]


def test_a_kernel_at_another_place_is_another_kernel(tmp_path: Path, compilations: list[str]) -> None:
    """The same text in two files: a report has to name the right one."""
    import importlib.util

    text = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef one(x):\n    tl.store(x, 1.0)\n"
    found = []
    for place in ("here", "there"):
        path = tmp_path / place / "kernel.py"
        path.parent.mkdir()
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(f"kernel_{place}", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(lowering.lower(module.one, {"x": "*fp32"}).ptx)
    assert str(tmp_path / "here") in found[0] and str(tmp_path / "there") in found[1]


def test_a_constant_without_stable_text_is_not_cached(compilations: list[str], fresh_cache: Path) -> None:
    class Odd(int):
        pass

    lowering.lower(scale, SIGNATURE, {"BLOCK": Odd(256)}, ATTRS)
    assert compilations == ["scale"] and not list(fresh_cache.rglob("*"))


def test_fusion_default_is_tritons_and_silent(recwarn: pytest.WarningsRecorder) -> None:
    fused, separate = lower_scale(), lower_scale(enable_fp_fusion=False)
    assert fused.metadata["enable_fp_fusion"] is True and "fma.rn.f32" in fused.ptx
    assert separate.metadata["enable_fp_fusion"] is False and "fma.rn.f32" not in separate.ptx
    assert not recwarn.list


def test_errors_of_the_kernel_name_its_line() -> None:
    with pytest.raises(InvalidInput, match="undefined_name") as caught:
        lowering.lower(broken, {"x": "*i32", "BLOCK": "constexpr"}, {"BLOCK": 16})
    place = caught.value.diagnostic.where
    assert place is not None and place.file == __file__ and place.line is not None
    assert "undefined_name" in Path(__file__).read_text().splitlines()[place.line - 1]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"nun_warps": 8}, InvalidInput, "called nun_warps"),
        ({"num_warps": 3}, InvalidInput, "power of 2"),
        ({"num_ctas": 2}, InvalidInput, "num_ctas"),
        ({"ir_override": "x.ttgir"}, Unsupported, "ir_override"),
        ({"target": "gfx942"}, InvalidInput, "target"),
    ],
)
def test_refused_options(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        lower_scale(**options)


def test_refused_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_OVERRIDE_ARCH", "sm90")
    with pytest.raises(Unsupported, match="TRITON_OVERRIDE_ARCH"):
        lower_scale()


def test_an_untested_triton_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, says in (("3.8.1", "3.8.1"), ("3.10.0", "3.10.0"), ("4.0.0+git", "4.0.0")):
        toolchain.triton.cache_clear()
        with monkeypatch.context() as m:
            m.setattr(triton, "__version__", version)
            with pytest.raises(Unsupported, match=says):
                toolchain.triton()
    toolchain.triton.cache_clear()


def test_without_triton_the_error_says_what_still_works() -> None:
    """In a process of its own, with the import blocked; `ptx.lower` itself must import."""
    program = (
        "import sys; sys.modules['triton'] = None\n"
        "from ptx.lower.triton import lower\n"
        "try:\n    lower(None, {})\nexcept Exception as e:\n    print(type(e).__name__, e)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("Unsupported") and "from_ptx" in done.stdout, done


def test_importing_the_layer_does_not_import_triton() -> None:
    program = "import sys, ptx.lower.triton; print([m for m in ('triton', 'torch', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done


def test_the_key_is_not_empty_of_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    monkeypatch.setattr(cache, "get", lambda kind, key: keys.append(key))
    lower_scale()
    monkeypatch.setattr(toolchain, "_installation", lambda: "another triton")
    lower_scale()
    assert len(set(keys)) == 2
