"""Runs the user's own cases on one mutant until one of them finds something; what a worker does.

The mutant is a file of its own, in a folder of its own. Where it is the op file, that is loaded; where it is a file
that the op file imports, the op file is loaded afresh with the mutant in that module's place, and every other module
of the user's anew, so that nobody holds the old kernel. An op that then does not reach the mutant's function is an
error: a mutant that never ran would count as survived.

Cases are tried in the order in which they are likely to tell and cheap: a pairwise cover first, then the others, small
ones before large ones. The sweep is the user's: no case is made that `gpuemu ci` would not try.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec

from gpuemu.gate.cases import Case, enumerate_cases, quick_subset
from gpuemu.gate.declare import Input, Op, Output
from gpuemu.gate.discover import load_file
from gpuemu.gate.execute import reason_of
from gpuemu.gate.inputs import size_of
from gpuemu.gate.once import judge_once
from gpuemu.gate.results import CaseResult
from gpuemu.mutate.ptx_waits import Wait, without
from gpuemu.mutate.targets import targets_of
from ptx.errors import InvalidInput

_OWN = ("gpuemu", "interp", "ptx", "__main__", "__mp_main__")
_INSTALLED = ("site-packages", "dist-packages", "/lib/python")


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant to try. `file`: the file that it is a change of; `place`: the changed file, None for one in the PTX.

    `ops`: the op files and names that reach `function`. `wait`: (instruction, file, line) taken out of the PTX.
    """

    index: int
    kind: str
    file: str
    function: str
    line: int
    words: str
    ops: tuple[tuple[str, str], ...]
    place: str | None = None
    wait: tuple[str, str, int] | None = None


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Which cases are the user's: as for `gpuemu ci`."""

    seed: int = 0
    targets: tuple[str, ...] = ("sm_80",)
    device: str | None = None
    dtypes: tuple[str, ...] | None = None
    distributions: tuple[str, ...]
    quick: bool = False
    fmad: str | None = None


class Trial(CaseResult, frozen=True, kw_only=True):
    """What came of a mutant: 'finding' (caught), 'pass' (survived) or 'unchecked' (it does not compile, say).

    `tried`: cases executed; `by`: the case that caught it.
    """

    planted: int
    tried: int = 0
    by: str = ""


def tried_cases(op: Op, sweep: Sweep) -> list[Case]:
    """The op's cases in the order in which a mutant meets them."""
    cases = enumerate_cases(
        [op], seed=sweep.seed, targets=sweep.targets, device=sweep.device, quick=sweep.quick,
        distributions=sweep.distributions, dtypes=sweep.dtypes, fmad=sweep.fmad,
    )  # fmt: skip
    first = {c.index for c in quick_subset(cases)}
    return sorted(cases, key=lambda c: (c.index not in first, elements(op, c), c.index))


def elements(op: Op, case: Case) -> int:
    """Elements of all arguments of a case."""
    arguments: list[Input | Output] = [*op.inputs.values(), *op.outputs.values()]
    return sum(math.prod(size_of(a, case.dims)) for a in arguments)


class TrialRunner:
    """Tries mutants. A `Case` stands for the mutant whose number its `index` is."""

    def __init__(self, planted: tuple[Planted, ...], sweep: Sweep) -> None:
        self._planted = {p.index: p for p in planted}
        self._sweep = sweep

    def __call__(self, case: Case) -> CaseResult:
        planted = self._planted[case.index]
        tried, reason = 0, None
        with _edited(planted):
            for op in load_mutant(planted):
                for own in tried_cases(op, self._sweep):
                    tried += 1
                    try:
                        judged = judge_once(op, own)
                    except Exception as error:
                        reason = reason or reason_of(error)
                        if tried >= 3:  # it does not compile, or its launcher raises: the next case tells no more
                            break
                        continue
                    if judged.problems:
                        return Trial(
                            case=case, verdict="finding", problems=judged.problems[:1], planted=planted.index,
                            tried=tried, by=own.label(),
                        )  # fmt: skip
        if reason or not tried:
            why = reason or "no case ran"
            return Trial(case=case, verdict="unchecked", reason=why, planted=planted.index, tried=tried)
        return Trial(case=case, verdict="pass", planted=planted.index, tried=tried)


def make_trial_runner(planted: tuple[Planted, ...], sweep: Sweep) -> TrialRunner:
    """What a worker process calls once."""
    return TrialRunner(planted, sweep)


@contextlib.contextmanager
def _edited(planted: Planted) -> Iterator[None]:
    if planted.wait is None:
        yield
    else:
        from gpuemu.triton_run import edited_ptx

        wait = Wait(*planted.wait)
        with edited_ptx(wait, lambda ptx: without(ptx, wait)):
            yield


def load_mutant(planted: Planted) -> list[Op]:
    """The ops that reach the mutant, with the mutant in place. Raises InvalidInput where one does not reach it."""
    ops: list[Op] = []
    for file in dict.fromkeys(file for file, _ in planted.ops):
        wanted = {name for own, name in planted.ops if own == file}
        if planted.place is None:
            loaded = load_file(Path(file))
        elif Path(file).resolve() == Path(planted.file).resolve():
            if str(Path(file).parent) not in sys.path:
                sys.path.insert(0, str(Path(file).parent))
            loaded = load_file(Path(planted.place))
        else:
            loaded = _with_module(Path(file), Path(planted.file), Path(planted.place))
        ops += [op for op in loaded if op.name in wanted]
    if planted.place is not None:
        reached = {n for t in targets_of(ops) if Path(t.file) == Path(planted.place).resolve() for n in t.ops}
        if missing := [op.name for op in ops if op.name not in reached]:
            raise InvalidInput(f"op '{missing[0]}' does not reach the mutant of {planted.function}")
    return ops


def _with_module(op_file: Path, file: Path, place: Path) -> list[Op]:
    """Load `op_file` with the module of `file` replaced by that of `place`, and its other own modules anew."""
    load_file(op_file)  # so that its modules have names
    name = next((n for n, m in sys.modules.items() if _file_of(m) == file and not n.startswith("gpuemu_ops_")), None)
    if name is None:
        raise InvalidInput(f"{op_file.name} does not import {file.name} as a module: no mutant can be put in its place")
    own = {n: m for n, m in sys.modules.items() if n.split(".")[0] not in _OWN and _is_own(m)}
    for other in own:
        del sys.modules[other]
    try:
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(importlib.import_module(parent), last, module)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return load_file(op_file)
    finally:
        for other in [n for n, m in sys.modules.items() if n.split(".")[0] not in _OWN and _is_own(m)]:
            del sys.modules[other]
        sys.modules.update(own)


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def _is_own(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return bool(file) and not any(part in str(file) for part in _INSTALLED)
