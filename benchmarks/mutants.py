"""How many one-place mutants of the example kernels their own sweeps catch: `python -m benchmarks.mutants [FILE ...]`.

One `gpuemu mutate --quick` for each control of `examples/`, whose report follows; the operators are described in
`gpuemu/mutate/operators.py`. A survivor is either equivalent to the control or a hole in the gate.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.worker import ROOT

FILES = (
    "softmax", "matmul", "layernorm", "rmsnorm", "gelu", "cross_entropy", "attention", "flash_attention", "split_k",
)  # fmt: skip


def main(files: tuple[str, ...]) -> int:
    """Run them one after the other; 0 where every one could be scored."""
    worst = 0
    for name in files:
        print(f"examples/{name}.py", flush=True)
        command = [sys.executable, "-m", "gpuemu", "mutate", f"examples/{name}.py", "--quick", "--parallel", "2"]
        worst = max(worst, subprocess.run(command, cwd=ROOT, check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:]) or FILES))
