"""Run a batch on both engines and compare everything that a launch gives: output bytes, scratch bytes, counters,
findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from interp.launch import Module, Result
from ptx.record import Op
from tests.differential.frame import SCRATCH, THREAD_OUT
from tests.differential.programs import Batch, inputs


@dataclass
class Tally:
    """What a run of programs was made of."""

    programs: int = 0
    divergent: int = 0
    looping: int = 0
    shared: int = 0
    draws: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        n = max(self.programs, 1)
        counts = {"divergent": self.divergent, "looping": self.looping, "with shared memory": self.shared}
        shares = ", ".join(f"{count / n:.0%} {what}" for what, count in counts.items())
        return f"{self.programs} programs: {shares}; {sum(self.draws.values())} draws of {len(self.draws)} records"


@dataclass(frozen=True)
class Run:
    """Bytes and result of one engine."""

    out: np.ndarray
    scratch: np.ndarray
    result: Result


def execute(batch: Batch, engine: str, module: Module | None = None) -> Run:
    """Run a batch on an engine."""
    module = module or Module.from_ptx(batch.text)
    count = len(batch.bodies)
    out = np.zeros(count * batch.threads * THREAD_OUT, np.uint8)
    scratch = np.frombuffer(np.arange(count * SCRATCH, dtype=np.uint8).tobytes(), np.uint8).copy()
    given = inputs(batch.seed, count, batch.threads)
    result = module["batch"].launch((count,), (batch.threads,), [given, out, scratch, batch.seed & 0xFF], engine=engine)
    return Run(out, scratch, result)


def differences(batch: Batch, tally: Tally | None = None) -> list[str]:
    """What differs between the engines; empty when nothing does."""
    module = Module.from_ptx(batch.text)
    a, b = execute(batch, "compiled", module), execute(batch, "traced", module)
    found = []
    for name, x, y in (("out", a.out, b.out), ("scratch", a.scratch, b.scratch)):
        if x.tobytes() != y.tobytes():
            at = int(np.flatnonzero(x != y)[0])
            found.append(f"{name}: byte {at} is {x[at]} compiled, {y[at]} traced{_locate(batch, name, at)}")
    assert a.result.counters is not None and b.result.counters is not None
    if a.result.counters.instructions != b.result.counters.instructions:
        pairs = zip(a.result.counters.instructions, b.result.counters.instructions, strict=True)
        x, y = next((x, y) for x, y in pairs if x != y)
        found.append(f"counters: {x} compiled, {y} traced")
    if a.result.findings != b.result.findings:
        found.append(f"findings: {a.result.findings} compiled, {b.result.findings} traced")
    if a.result.findings:
        found.append(f"unexpected finding: {a.result.findings}")
    if tally is not None:
        _count(batch, b.result, tally)
    return found


def _locate(batch: Batch, name: str, at: int) -> str:
    if name == "scratch":
        return f" (body {at // SCRATCH})"
    thread, byte = divmod(at, THREAD_OUT)
    body, tid = divmod(thread, batch.threads)
    bounds = ((48, "r", 0, 4), (112, "q", 48, 8), (128, "h", 112, 2), (144, "p", 128, 4))
    stem, start, size = next((s, b, n) for end, s, b, n in bounds if byte < end)
    return f" (body {body}, thread {tid}, %{stem}{(byte - start) // size})"


def _count(batch: Batch, result: Result, tally: Tally) -> None:
    assert result.counters is not None
    by_line = {c.ptx_line: c for c in result.counters.instructions}
    text = batch.text.split("\n")
    for body, (first, last) in zip(batch.bodies, batch.spans, strict=True):
        tally.programs += 1
        tally.looping += body.loops
        tally.shared += body.shared
        ran = [by_line[n] for n in range(first, last) if n in by_line and not text[n - 1].startswith("\t@")]
        # lanes a warp execution: the same for all instructions unless lanes have parted
        start = ran[0]
        tally.divergent += any(c.issued_lanes * start.executions != start.issued_lanes * c.executions for c in ran)
        tally.draws.update(key(op) for op in body.records)


def key(op: Op) -> str:
    """A record's name in tables: a syntax line may have several records."""
    return f"{op.syntax}  ({op.meaning.__name__})"
