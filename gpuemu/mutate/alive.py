"""One planted change in every `gpuemu ci`: proof that the gate which found nothing would have found something.

A gate can go blind without anybody noticing (a reference that is overwritten with the result, a comparison that always
agrees, cases that never reach the kernel). So one op of the sweep, chosen by name and size alone, is run again with one
change that no correct sweep can miss: the values of a function's stores doubled and one more, `tl.store(p, v)` ->
`tl.store(p, v * 2 + 1)`, in a copy of the user's kernel. A few of the smallest cases must flag it which passed
unchanged. Another function or op is tried where the first does not show it (a store may stand in a branch that no case
takes); where no store of a Triton function can be changed so, the same is done to the op's outputs after the launch,
which still proves reference, error model and judge, and the words say so.

It costs one compilation of one small kernel (cached afterwards) and some launches, runs in the process that called
`ci`, and adds nothing to the sweep's results.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from gpuemu.files import write_atomically
from gpuemu.gate.cases import Case
from gpuemu.gate.declare import Op
from gpuemu.gate.dtypes import FORMATS, to_float64
from gpuemu.gate.inputs import Argument
from gpuemu.gate.once import judge_once
from gpuemu.gate.results import Alive, CaseResult
from gpuemu.mutate.operators import kernels_of, replaced
from gpuemu.mutate.targets import Target, targets_of
from gpuemu.mutate.trial import Planted, elements, load_mutant
from gpuemu.replay.portable import portable_path

CASES = 3
"""Cases that are tried: one of them must flag the change."""
OPS = 3
"""Ops, and functions of each, that are tried where the first does not show it."""


def prove_alive(ops: Sequence[Op], results: Sequence[CaseResult], work: Path, root: Path) -> Alive:
    """Plant one change and look for it. `results`: those of the sweep, to know which cases passed unchanged."""
    passed: dict[str, list[Case]] = {}
    for result in results:
        if result.verdict in ("pass", "borderline"):
            passed.setdefault(result.case.op, []).append(result.case)
    reasons: list[str] = []
    targets = targets_of(ops)
    candidates = [op for op in ops if any(elements(op, c) for c in passed.get(op.name, ()))]
    for op in sorted(candidates, key=lambda op: (_length(op, targets), op.name))[:OPS]:
        # Plain values, and small cases of several shapes.
        order = sorted(
            (c for c in passed[op.name] if elements(op, c)),
            key=lambda c: (c.distribution != "regular", elements(op, c), c.index),
        )
        shapes: dict[tuple[tuple[str, int], ...], Case] = {}
        for case in order:
            shapes.setdefault(tuple(case.dims.items()), case)
        cases = [*shapes.values()][:CASES]
        own = [t for t in targets if op.name in t.ops]
        ran = False
        for planted in [p for t in own if (p := _planted(op, t, work)) is not None][:OPS]:
            words = f"{portable_path(planted.file, root)}:{planted.line} stores twice its value and 1, op {op.name}"
            verdict = _seen(partial(_mutated, planted), cases)
            if verdict is True:
                return Alive(proven=True, words=f"planted and found: {words}")
            ran |= verdict is False
            reasons.append(f"{words}: {verdict or 'NOT FOUND'}")
        if not ran:
            words = f"outputs of op {op.name} doubled and 1 added after the launch"
            verdict = _seen(partial(_itself, op), cases, _spoil)
            if verdict is True:
                return Alive(proven=True, words=f"planted and found: {words}")
            reasons.append(f"{words}: {verdict or 'NOT FOUND'}")
    return Alive(proven=False, words="; ".join(reasons) or "no op has a case that passed, so nothing could be planted")


def _seen(
    load: Callable[[], Op], cases: Sequence[Case], spoil: Callable[[Mapping[str, Argument]], None] | None = None
) -> bool | str:
    """Whether one of the cases flags the change; the reason in words where it could not be run."""
    try:
        op = load()
        return any(judge_once(op, case, spoil).problems for case in cases)
    except Exception as error:
        return f"could not be run ({type(error).__name__}: {' '.join(str(error).split())[:120]})"


def _mutated(planted: Planted) -> Op:
    return load_mutant(planted)[0]


def _itself(op: Op) -> Op:
    return op


def _length(op: Op, targets: Sequence[Target]) -> int:
    """Lines of all Triton functions that an op reaches; an op without any comes last."""
    return sum(t.lines for t in targets if op.name in t.ops) or 1 << 30


def _planted(op: Op, target: Target, work: Path) -> Planted | None:
    """The target's stores with their values changed, written under `work`; None where it has no plain store."""
    text = Path(target.file).read_text(encoding="utf-8")
    kernel = next((k for k in kernels_of(ast.parse(text)) if k.name == target.function), None)
    stores = [
        n for n in ast.walk(kernel or ast.Module([], []))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "store" and len(n.args) >= 2
    ]  # fmt: skip
    if not stores:
        return None
    changed = text
    for store in sorted(stores, key=lambda n: (n.lineno, n.col_offset), reverse=True):  # places before it stay
        changed = replaced(changed, store.args[1], f"({ast.unparse(store.args[1])}) * 2 + 1")
    place = work / hashlib.sha256(changed.encode()).hexdigest()[:12] / Path(target.file).name
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, changed.encode())
    return Planted(
        index=0, kind="planted", file=target.file, function=target.function, line=max(n.lineno for n in stores),
        words="", ops=((op.file, op.name),), place=str(place),
    )  # fmt: skip


def _spoil(arguments: Mapping[str, Argument]) -> None:
    """Double every output and add 1, in its own format."""
    for argument in arguments.values():
        if argument.role != "input":
            with np.errstate(all="ignore"):
                changed = to_float64(np.ascontiguousarray(argument.view)) * 2 + 1
                if argument.dtype in FORMATS:
                    argument.view[...] = changed.astype(np.float32).astype(argument.view.dtype)
                else:
                    argument.view[...] = argument.view * 2 + 1
