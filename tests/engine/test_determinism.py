"""The same launch gives the same bytes and counters: again, after other launches, in another process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from interp.launch import Module
from tests.engine.assembly import text
from tests.engine.test_scheduling import LOCKED_INCREMENT
from tests.ptx import regenerate

ROOT = Path(__file__).resolve().parents[2]


def digest() -> str:
    """SHA-256 over outputs and counters of launches in which an order could show: float atomics, locks, random bits."""
    h = hashlib.sha256()
    random = np.random.default_rng(3)

    def note(entry: object, **launch: object) -> None:
        result = entry.launch(**launch)  # type: ignore[attr-defined]
        assert result.findings == ()
        for a in launch["args"]:  # type: ignore[attr-defined]
            if isinstance(a, np.ndarray):
                h.update(a.tobytes())
        h.update(repr([(c.executions, c.active_lanes) for c in result.counters.instructions]).encode())

    body = """
        ld.param.u64 %rd2, [p1];
        mad.wide.u32 %rd3, %r0, 4, %rd2;
        ld.global.f32 %f1, [%rd3];
        mov.u32 %r2, %ctaid.x;
        cvt.rn.f32.u32 %f2, %r2;
        mul.f32 %f1, %f1, %f2;
        red.global.add.f32 [%rd0], %f1;
        ret;
    """
    source = random.normal(size=96).astype(np.float32)
    note(Module.from_ptx(text(body, ["p1"]))["k"], grid=7, block=96, args=[np.zeros(1, np.float32), source])
    lock = [np.zeros(1, np.uint32), np.zeros(1, np.uint32)]
    note(Module.from_ptx(text(LOCKED_INCREMENT, ["p1"]))["k"], grid=3, block=48, args=lock)
    x = random.normal(size=(5, 300)).astype(np.float32)
    note(Module.from_ptx(regenerate.read("softmax_f32_sm80"))["softmax"], grid=5, block=128, shared=64,
         args=[x, np.zeros_like(x), 300, 300, 0, 0])  # fmt: skip
    note(Module.from_ptx(regenerate.read("dropout_sm80"))["dropout"], grid=3, block=128, shared=0,
         args=[x, np.zeros_like(x), 1500, 0.5, 42, 0, 0])  # fmt: skip
    return h.hexdigest()


def test_again_in_this_process() -> None:
    assert digest() == digest()


def test_in_another_process_with_another_hash_seed() -> None:
    program = "from tests.engine.test_determinism import digest; print(digest())"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "77"}
    other = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == digest()
