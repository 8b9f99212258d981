"""What the usual test says of each example: one shape, one dtype, random values, `allclose`; beside what the gate says.

The usual shape is what a tutorial takes: powers of two, or whole tiles. `allclose` is as in Triton's own tutorials for
16-bit results, `atol=1e-2, rtol=1e-2`, against the same FP64 reference. Both columns run the same code: the PTX for
sm_80 (FP8: sm_90). The gate's column is one sweep of `examples/` (`gpuemu ci`, all dtypes and distributions).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.worker import ROOT
from gpuemu.gate.cases import Case
from gpuemu.gate.declare import Op
from gpuemu.gate.discover import load_file
from gpuemu.gate.engine import Run
from gpuemu.gate.execute import launch, oracle
from gpuemu.gate.inputs import make_arguments

_ROWS = {"M": 64, "N": 1024}
_HEADS = {"H": 2, "SQ": 64, "SK": 64, "D": 64}
USUAL: dict[str, tuple[dict[str, int], ...]] = {
    "softmax": (_ROWS,), "softmax_tail": (_ROWS,), "layernorm": (_ROWS,), "layernorm_tail": (_ROWS,),
    "rmsnorm": (_ROWS,), "rmsnorm_tail": (_ROWS,), "rmsnorm_mean": (_ROWS,),
    "cross_entropy": ({"M": 64, "V": 1024},), "gelu": ({"N": 4096},), "vector_add": ({"N": 4096},),
    "matmul": ({"M": 64, "N": 64, "K": 32}, {"M": 64, "N": 64, "K": 128}),
    "matmul_overwritten": ({"M": 64, "N": 64, "K": 32}, {"M": 64, "N": 64, "K": 128}),
    "matmul_split_k": ({"M": 64, "N": 64, "K": 128},),
    "matmul_fp8": ({"M": 64, "N": 32, "K": 64}, {"M": 64, "N": 32, "K": 128}),
    "matmul_fp8_overwritten": ({"M": 64, "N": 32, "K": 64}, {"M": 64, "N": 32, "K": 128}),
    "matmul_fp8_scale": ({"M": 64, "N": 32, "K": 64},),
    "attention": (_HEADS,), "attention_unscaled": (_HEADS,),
    "flash_attention": (_HEADS,), "flash_unrescaled": (_HEADS, {**_HEADS, "SK": 128}),
    "flash_attention_causal": (_HEADS,), "flash_causal_nan": (_HEADS, {**_HEADS, "SK": 128}),
}  # fmt: skip
"""By op: shapes that a single-shape test would take; two where one tile and several are both usual."""
_SKIPPED = ("fused_matmul",)
"""Ops of the walk-through in examples/story, which is the control of a change."""


def says_allclose(op: Op, file: Path, dims: dict[str, int]) -> bool:
    """Whether one regular f16 (FP8: e4m3) case is within `allclose` of the reference, every output finite or equal."""
    dtype = "float16" if "float16" in op.dtypes else op.dtypes[0]
    target = "sm_80" if "sm_80" in (op.targets or ("sm_80",)) else op.targets[-1]
    option: dict[str, Any] = dict(op.options[0]) if op.options else {}
    case = Case(
        index=0, op=op.name, file=str(file), dims=dims, dtype=dtype, distribution="regular", target=target, device=None,
        option=option, seed=0,
    )  # fmt: skip
    arguments = make_arguments(op, case)
    launch(op, case, arguments, Run(case))
    _, exact, _ = oracle(op, case, arguments)
    with np.errstate(all="ignore"):
        return all(
            np.allclose(arguments[n].view.astype(np.float64), exact[n], atol=1e-2, rtol=1e-2, equal_nan=True)
            for n in op.outputs
        )


def sweep() -> dict[str, tuple[int, int]]:
    """By op: (cases with a finding, cases) of one `gpuemu ci examples`."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "gpuemu", "ci", "examples", "--parallel", "2"]
        done = subprocess.run(
            [*command, "--format", "json", "--output", str(report)], cwd=ROOT, capture_output=True, text=True
        )
        if done.returncode != 1:
            raise RuntimeError(f"gpuemu ci examples ended with {done.returncode}:\n{done.stderr[-2000:]}")
        cases = json.loads(report.read_bytes())["cases"]
    counts: dict[str, tuple[int, int]] = {}
    for case in cases:
        found, of = counts.get(case["op"], (0, 0))
        counts[case["op"]] = (found + (case["verdict"] == "finding"), of + 1)
    return counts


def report() -> None:
    """Print a Markdown table, one row an op."""
    counts = sweep()
    print("| op | file | one usual shape | `allclose` | `gpuemu ci`: cases with a finding |")
    print("|---|---|---|---|---|")
    for file in sorted((ROOT / "examples").glob("*.py")):
        for op in load_file(file):
            if op.name in _SKIPPED:
                continue
            for dims in USUAL[op.name]:
                size = " ".join(f"{k}={v}" for k, v in dims.items())
                word = "passes" if says_allclose(op, file, dims) else "fails"
                found, of = counts[op.name]
                print(f"| {op.name} | `{file.name}` | {size} | {word} | {found} of {of} |")


if __name__ == "__main__":
    report()
