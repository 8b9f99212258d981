"""Write the `.ptx` files of this directory from `kernels.py`: `python tests/ptx/regenerate.py [NAME ...]`.

The files are checked in so that everything that starts from PTX is tested without Triton, and so that a new Triton
shows its differences in a diff. Kernels are compiled from a copy at a fixed place, because source paths are part of
PTX: the same files come out of every checkout. Files above 100 kB are gzipped (with no time stamp).

`CORPUS` is the list; `read(name)` gives the text of one, for tests.
"""

from __future__ import annotations

import gzip
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
_FIXED = Path(tempfile.gettempdir()) / "gpuemu-corpus"
_GZIP_ABOVE = 100_000

_ALIGNED = [["tt.divisibility", 16]]


def _matmul(dtype: str, tile: tuple[int, int, int], precision: str | None = None) -> dict[str, Any]:
    bm, bn, bk = tile
    return {
        "kernel": "matmul",
        "signature": {"a": f"*{dtype}", "b": f"*{dtype}", "c": f"*{dtype}", "m": "i32", "n": "i32", "k": "i32",
                      "sam": "i32", "sbk": "i32", "scm": "i32"},
        "constants": {"sak": 1, "sbn": 1, "scn": 1, "BM": bm, "BN": bn, "BK": bk, "PRECISION": precision},
        "aligned": ["a", "b", "c", "sam", "sbk", "scm"],
    }  # fmt: skip


_SOFTMAX = {
    "kernel": "softmax",
    "signature": {"x": "*fp32", "out": "*fp32", "stride": "i32", "n": "i32"},
    "constants": {"BLOCK": 1024},
    "aligned": ["x", "out"],
}

# Name of the file -> what is lowered. `fusion` is off unless said: the PTX then has no fma that the source does not.
CORPUS: dict[str, dict[str, Any]] = {
    "vector_add_sm80": {
        "kernel": "vector_add",
        "signature": {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"},
        "constants": {"BLOCK": 1024},
        "aligned": ["x", "y", "out", "n"],
    },
    "softmax_f32_sm80": _SOFTMAX,
    "softmax_f32_sm90": {**_SOFTMAX, "target": 90},
    "softmax_f16_sm80": {**_SOFTMAX, "signature": {"x": "*fp16", "out": "*fp16", "stride": "i32", "n": "i32"}},
    "softmax_bf16_sm80": {**_SOFTMAX, "signature": {"x": "*bf16", "out": "*bf16", "stride": "i32", "n": "i32"}},
    "softmax_f32_vectored_sm80": {**_SOFTMAX, "aligned": ["x", "out", "stride", "n"]},
    "layernorm_f16_sm80": {
        "kernel": "layernorm",
        "signature": {"x": "*fp16", "w": "*fp16", "b": "*fp16", "out": "*fp16", "stride": "i32", "n": "i32",
                      "eps": "fp32"},
        "constants": {"BLOCK": 512},
        "aligned": ["x", "w", "b", "out", "stride"],
    },
    "gelu_f32_sm80": {
        "kernel": "gelu",
        "signature": {"x": "*fp32", "out": "*fp32", "n": "i32"},
        "constants": {"BLOCK": 512},
        "aligned": ["x", "out"],
    },
    "matmul_f16_sm80": _matmul("fp16", (64, 64, 32)),
    "matmul_bf16_sm80": _matmul("bf16", (64, 64, 32)),
    "matmul_tf32_sm80": _matmul("fp32", (64, 64, 32), "tf32"),
    "matmul_f16_small_sm80": _matmul("fp16", (16, 16, 16)),
    "matmul_f32_ieee_small_sm80": _matmul("fp32", (16, 16, 16), "ieee"),
    "matmul_f32_ieee_large_sm80": _matmul("fp32", (128, 128, 32), "ieee"),
    "flash_attention_f16_sm80": {
        "kernel": "flash_attention",
        "signature": {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp16", "seq": "i32", "scale": "fp32"},
        "constants": {"BM": 64, "BN": 32, "D": 64},
        "aligned": ["q", "k", "v", "out", "seq"],
    },
    "histogram_atomic_sm80": {
        "kernel": "histogram_atomic",
        "signature": {"x": "*i32", "counts": "*i32", "total": "*i32", "n": "i32"},
        "constants": {"BINS": 64, "BLOCK": 256},
        "aligned": ["x", "counts", "total"],
    },
    "collatz_steps_sm80": {
        "kernel": "collatz_steps",
        "signature": {"x": "*i32", "out": "*i32", "n": "i32"},
        "constants": {"BLOCK": 256},
        "aligned": ["x", "out"],
    },
    "row_cumsum_sm80": {
        "kernel": "row_cumsum",
        "signature": {"x": "*fp32", "out": "*fp32", "n": "i32"},
        "constants": {"BLOCK": 512},
        "aligned": ["x", "out"],
    },
    "row_argmax_sm80": {
        "kernel": "row_argmax",
        "signature": {"x": "*fp32", "out": "*i32", "n": "i32"},
        "constants": {"BLOCK": 512},
        "aligned": ["x", "out"],
    },
    "dropout_sm80": {
        "kernel": "dropout",
        "signature": {"x": "*fp32", "out": "*fp32", "n": "i32", "p": "fp32", "seed": "i32"},
        "constants": {"BLOCK": 512},
        "aligned": ["x", "out"],
    },
}  # fmt: skip


def read(name: str) -> str:
    """The PTX of one corpus entry. Raises FileNotFoundError for a name that is not there."""
    plain = HERE / f"{name}.ptx"
    if plain.exists():
        return plain.read_text()
    return gzip.decompress((HERE / f"{name}.ptx.gz").read_bytes()).decode()


def lower_entry(kernels: Any, entry: dict[str, Any]) -> str:
    """The PTX of one entry of `CORPUS`, lowered with the kernels of module `kernels`."""
    from ptx.lower.triton import lower

    kernel = getattr(kernels, entry["kernel"])
    constants = entry["constants"]
    signature = {name: entry["signature"].get(name, "constexpr") for name in kernel.arg_names}
    lowered = lower(
        kernel,
        signature,
        {(kernel.arg_names.index(name),): value for name, value in constants.items()},
        {(kernel.arg_names.index(name),): _ALIGNED for name in entry["aligned"]},
        {"enable_fp_fusion": entry.get("fusion", False), **entry.get("options", {})},
        entry.get("target", 80),
    )
    return lowered.ptx


def kernels_at_fixed_place() -> Any:
    _FIXED.mkdir(exist_ok=True)
    copy = _FIXED / "kernels.py"
    shutil.copyfile(HERE / "kernels.py", copy)
    spec = importlib.util.spec_from_file_location("corpus_kernels", copy)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_site_packages(text: str) -> str:
    import triton

    return text.replace(str(Path(triton.__file__).parent), "/triton")


def main(names: list[str]) -> None:
    sys.path.insert(0, str(HERE.parents[1]))
    kernels = kernels_at_fixed_place()
    for name in names or CORPUS:
        text = without_site_packages(lower_entry(kernels, CORPUS[name]))
        plain, packed = HERE / f"{name}.ptx", HERE / f"{name}.ptx.gz"
        if len(text) > _GZIP_ABOVE:
            packed.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        else:
            plain.write_text(text)
        print(f"{name}: {len(text)} bytes, {text.count(';')} statements")


if __name__ == "__main__":
    main(sys.argv[1:])
