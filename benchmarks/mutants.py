"""How many one-line mutants of the example kernels the gate catches: `python -m benchmarks.mutants [FILE ...]`.

A mutant is a control of `examples/` with one change inside a `@triton.jit` function: a comparison, an operator, a
reduction, a constant, a mask or an `other` value. Each is swept by `gpuemu ci` as its author would; a mutant is
*caught* by a finding, *refused* when nothing could be checked (it does not compile, say), and else it *survives*: it is
printed, and is either equivalent to the control or a hole in the gate.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.worker import ROOT

FILES = (
    "softmax", "matmul", "layernorm", "rmsnorm", "gelu", "cross_entropy", "attention", "flash_attention", "split_k",
)  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
}  # fmt: skip
_CALLS = {
    "max": "min", "sum": "max", "exp": "exp2", "exp2": "exp", "maximum": "minimum", "sqrt": "exp", "rsqrt": "sqrt",
}  # fmt: skip
_SECONDS = 300


def is_kernel(node: ast.stmt) -> bool:
    """Whether a statement is a `@triton.jit` function."""
    return isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in node.decorator_list)


def changes(node: ast.AST) -> Iterator[tuple[str, str, object]]:
    """(what, attribute, new value) of every change of one node."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        yield "operator", "op", _OPERATORS[type(node.op)]()
    elif isinstance(node, ast.AugAssign):
        yield "accumulation", "op", ast.Sub()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        yield "comparison", "ops", [_COMPARISONS[type(node.ops[0])]()]
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield "constant", "value", node.value + 1.0 if node.value == 0 else node.value * 1.01
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS:
            yield "call", "func", ast.Attribute(node.func.value, _CALLS[node.func.attr], ast.Load())
        if any(k.arg == "mask" for k in node.keywords):
            yield "no mask", "keywords", [k for k in node.keywords if k.arg not in ("mask", "other")]
        if any(k.arg == "other" for k in node.keywords):
            other = ast.keyword("other", ast.Constant(1.0))
            yield "other", "keywords", [other if k.arg == "other" else k for k in node.keywords]


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """(line number, what it was and is; the text of the file) of every mutant."""
    tree = ast.parse(text)
    places = [n for kernel in tree.body if is_kernel(kernel) for n in ast.walk(kernel)]
    for index, node in enumerate(places):
        for what, attribute, value in changes(node):
            other = copy.deepcopy(tree)
            twin = [n for kernel in other.body if is_kernel(kernel) for n in ast.walk(kernel)][index]
            before = ast.unparse(twin)
            setattr(twin, attribute, value)
            after = ast.unparse(ast.fix_missing_locations(twin))
            line = getattr(node, "lineno", 0)
            yield f"line {line}: {what}: {before}  ->  {after}".replace("\n", " "), ast.unparse(other)


def judge(name: str, text: str, quick: bool) -> str:
    """'caught', 'refused' or 'survives' for a file's text."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, ".git").mkdir()
        file, report = Path(folder, f"{name}.py"), Path(folder, "report.json")
        file.write_text(text)
        command = [sys.executable, "-m", "gpuemu", "ci", str(file), "--parallel", "2", "--target", "sm_80"]
        command += ["--format", "json", "--output", str(report), *(["--quick"] if quick else [])]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            return "timed out"
        if done.returncode == 0:
            return "survives"
        found = report.exists() and json.loads(report.read_bytes())["bugs"]
        return "caught" if found else "refused"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", default=FILES)
    parser.add_argument("--quick", action="store_true", help="each pair of settings once: about a third of the cases")
    options = parser.parse_args()
    for name in options.files:
        counts: dict[str, int] = {}
        for what, text in mutants((ROOT / "examples" / f"{name}.py").read_text()):
            verdict = judge(name, text, options.quick)
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict != "caught":
                print(f"{name}: {verdict}: {what}", flush=True)
        print(f"{name}: {counts}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
