"""Ten small kernels for sm_90 whose thread-level counts were worked out by hand.

Each line of a body is `lanes | instruction`: in how many threads of the whole launch the instruction takes effect. The
formula stands in front of the kernel. `totals` are metrics of the launch, worked out likewise. `tests/hardware`
executes the same kernels on a GPU with a counter before every basic block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptx.accounting.metrics import conflicts, data_bytes, requests, sectors, wavefronts
from tests.engine.assembly import text


@dataclass(frozen=True)
class Counted:
    """A kernel with its launch. `lanes`: of each instruction behind the prologue, which every thread runs."""

    name: str
    ptx: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arrays: Callable[[], list[np.ndarray[Any, Any]]]
    lanes: list[int]
    totals: dict[str, int] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        return int(np.prod(self.grid) * np.prod(self.block))


def _kernel(
    name: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arrays: Callable[[], list[np.ndarray[Any, Any]]],
    body: str,
    totals: dict[str, int] | None = None,
    shared: str = "",
) -> Counted:
    lines, lanes = [shared], []
    for line in filter(None, map(str.strip, body.splitlines())):
        number, bar, instruction = line.partition("|")
        lines.append(instruction.strip() if bar else line)
        if bar:
            lanes.append(int(number))
    params = [f"p{i}" for i in range(1, len(arrays()))]
    return Counted(
        name, text("\n".join(lines), params, target="sm_90"), grid, block, arrays, lanes, totals or {}
    )


def words(n: int) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.uint32)


# 1. Vector add with a tail: 8 CTAs of 128 threads for n = 1000 elements. The 24 threads from 1000 on leave. Rows of 4
# bytes: a full warp touches 4 sectors; the last warp has 8 lanes, 1 sector: 31 * 4 + 1 = 125 a tensor.
_TAIL = _kernel(
    "tail", (8, 1, 1), (128, 1, 1), lambda: [np.zeros(1000, np.uint32), words(1000)],
    """
    1024 | mov.u32 %r3, %ctaid.x;
    1024 | mad.lo.u32 %r3, %r3, 128, %r0;
    1024 | setp.ge.u32 %p1, %r3, 1000;
    24   | @%p1 bra DONE;
    1000 | ld.param.u64 %rd2, [p1];
    1000 | mad.wide.u32 %rd3, %r3, 4, %rd2;
    1000 | mad.wide.u32 %rd4, %r3, 4, %rd0;
    1000 | ld.global.u32 %r4, [%rd3];
    1000 | add.u32 %r4, %r4, 1;
    1000 | st.global.u32 [%rd4], %r4;
    DONE:
    1024 | ret;
    """,
    {
        sectors("global", "ld"): 125, sectors("global", "st"): 125, requests("global", "ld"): 32,
        data_bytes("global", "ld"): 4000, "ptx__branch_executed": 32, "ptx__branch_divergent": 1,
    },
)  # fmt: skip

# 2. A loop of 7 turns in 3 * 64 threads, f32: the branch back is taken 6 times. A turn is one fma and one add, 3 flops.
_LOOP = _kernel(
    "loop", (3, 1, 1), (64, 1, 1), lambda: [np.zeros(64, np.float32)],
    f"""
    {192}     | mov.u32 %r3, 0;
    {192}     | mov.f32 %f1, 0f00000000;
    TOP:
    {192 * 7} | cvt.rn.f32.u32 %f2, %r3;
    {192 * 7} | fma.rn.f32 %f1, %f2, %f2, %f1;
    {192 * 7} | add.rn.f32 %f1, %f1, %f2;
    {192 * 7} | add.u32 %r3, %r3, 1;
    {192 * 7} | setp.lt.u32 %p1, %r3, 7;
    {192 * 6} | @%p1 bra TOP;
    {192}     | st.global.f32 [%rd1], %f1;
    {192}     | ret;
    """,
    {"ptx__flops_fp32": 192 * 7 * 3, "ptx__branch_divergent": 0, "ptx__branch_executed": 6 * 7},
)  # fmt: skip

# 3. Thread t of 64 makes t + 1 turns: 64 * 65 / 2 = 2080; each thread takes the branch back one time less.
_TURNS = 64 * 65 // 2
_TRIANGLE = _kernel(
    "triangle", (1, 1, 1), (64, 1, 1), lambda: [np.zeros(64, np.uint32)],
    f"""
    64            | mov.u32 %r3, 0;
    TOP:
    {_TURNS}      | add.u32 %r3, %r3, 1;
    {_TURNS}      | setp.le.u32 %p1, %r3, %r0;
    {_TURNS - 64} | @%p1 bra TOP;
    64            | st.global.u32 [%rd1], %r3;
    64            | ret;
    """,
)  # fmt: skip

# 4. Two nested loops: i from 0 to (t mod 4), j from 0 to i. Of each four threads: 1 + 2 + 3 + 4 = 10 turns of the outer
# loop, (1) + (1+2) + (1+2+3) + (1+2+3+4) = 20 of the inner one; 24 such fours in 96 threads.
_NESTED = _kernel(
    "nested", (1, 1, 1), (96, 1, 1), lambda: [np.zeros(96, np.uint32)],
    f"""
    96             | and.b32 %r3, %r0, 3;
    96             | mov.u32 %r4, 0;
    96             | mov.u32 %r6, 0;
    OUTER:
    {240}          | mov.u32 %r5, 0;
    INNER:
    {480}          | add.u32 %r6, %r6, 1;
    {480}          | add.u32 %r5, %r5, 1;
    {480}          | setp.le.u32 %p1, %r5, %r4;
    {480 - 240}    | @%p1 bra INNER;
    {240}          | add.u32 %r4, %r4, 1;
    {240}          | setp.le.u32 %p2, %r4, %r3;
    {240 - 96}     | @%p2 bra OUTER;
    96             | st.global.u32 [%rd1], %r6;
    96             | ret;
    """,
)  # fmt: skip

# 5. Early exits: of 2 * 100 threads, those with t >= 70 end first (30 a CTA), then the odd ones of the other 70 (35).
_EXITS = _kernel(
    "exits", (2, 1, 1), (100, 1, 1), lambda: [np.zeros(100, np.uint32)],
    """
    200 | setp.ge.u32 %p1, %r0, 70;
    60  | @%p1 exit;
    140 | and.b32 %r3, %r0, 1;
    140 | setp.eq.u32 %p2, %r3, 1;
    70  | @%p2 exit;
    70  | st.global.u32 [%rd1], %r0;
    70  | ret;
    """,
)  # fmt: skip

# 6. Guards and a branch: in 5 * 32 threads, lanes below 12 take one side, the other 20 the other; t mod 3 = 0 holds in
# 4 of the first 12 lanes and in 11 of all 32.
_SIDES = _kernel(
    "sides", (5, 1, 1), (32, 1, 1), lambda: [np.zeros(32, np.uint32)],
    f"""
    160    | rem.u32 %r4, %r0, 3;
    160    | setp.eq.u32 %p2, %r4, 0;
    160    | mov.u32 %r3, 5;
    {55}   | @%p2 add.u32 %r3, %r3, 1;
    160    | setp.lt.u32 %p1, %r0, 12;
    {60}   | @%p1 bra THEN;
    {100}  | add.u32 %r3, %r3, 7;
    {100}  | bra.uni JOIN;
    THEN:
    {20}   | @%p2 mul.lo.u32 %r3, %r3, 3;
    {40}   | @!%p2 mul.lo.u32 %r3, %r3, 5;
    JOIN:
    160    | st.global.u32 [%rd1], %r3;
    160    | ret;
    """,
    {"ptx__branch_executed": 5, "ptx__branch_divergent": 5},
)  # fmt: skip

# 7. Transpose of a 32 x 32 tile through shared memory without padding: rows are written without conflict (32 warps, 1
# wavefront each), columns are read with all 32 lanes in one bank (32 wavefronts each, 31 of them conflicts).
_TRANSPOSE = _kernel(
    "transpose", (1, 1, 1), (32, 32, 1), lambda: [np.zeros(1024, np.uint32)],
    """
    1024 | mov.u32 %r3, tile;
    1024 | mad.lo.u32 %r4, %r0, 4, %r3;
    1024 | st.shared.u32 [%r4], %r0;
    1024 | bar.sync 0;
    1024 | mov.u32 %r5, %tid.x;
    1024 | mov.u32 %r6, %tid.y;
    1024 | mad.lo.u32 %r7, %r5, 32, %r6;
    1024 | mad.lo.u32 %r7, %r7, 4, %r3;
    1024 | ld.shared.u32 %r8, [%r7];
    1024 | st.global.u32 [%rd1], %r8;
    1024 | ret;
    """,
    {
        wavefronts("st"): 32, conflicts("st"): 0, wavefronts("ld"): 32 * 32, conflicts("ld"): 32 * 31,
        data_bytes("shared", "ld"): 4096, data_bytes("shared", "st"): 4096, sectors("global", "st"): 128,
    },
    shared=".shared .align 4 .b8 tile[4096];",
)  # fmt: skip

# 8. Tree sum of 128 words in shared memory: 7 steps, in which 64 + 32 + 16 + 8 + 4 + 2 + 1 = 127 threads add; all 128
# run each step, and 128 * 7 - 127 = 769 skip the addition.
_TREE = _kernel(
    "tree", (2, 1, 1), (128, 1, 1), lambda: [np.zeros(128, np.uint32)],
    f"""
    256            | mov.u32 %r3, cells;
    256            | mad.lo.u32 %r4, %r0, 4, %r3;
    256            | st.shared.u32 [%r4], %r0;
    256            | mov.u32 %r5, 64;
    STEP:
    {256 * 7}      | bar.sync 0;
    {256 * 7}      | setp.ge.u32 %p1, %r0, %r5;
    {2 * 769}      | @%p1 bra SKIP;
    {2 * 127}      | mad.lo.u32 %r6, %r5, 4, %r4;
    {2 * 127}      | ld.shared.u32 %r7, [%r6];
    {2 * 127}      | ld.shared.u32 %r8, [%r4];
    {2 * 127}      | add.u32 %r8, %r8, %r7;
    {2 * 127}      | st.shared.u32 [%r4], %r8;
    SKIP:
    {256 * 7}      | shr.u32 %r5, %r5, 1;
    {256 * 7}      | setp.ne.u32 %p2, %r5, 0;
    {256 * 6}      | @%p2 bra STEP;
    256            | bar.sync 0;
    256            | setp.eq.u32 %p3, %r0, 0;
    2              | @%p3 ld.shared.u32 %r9, [%r3];
    2              | @%p3 st.global.u32 [%rd0], %r9;
    256            | ret;
    """,
    {data_bytes("shared", "ld"): 4 * (2 * 2 * 127 + 2), conflicts("ld"): 0, conflicts("st"): 0},
    shared=".shared .align 4 .b8 cells[512];",
)  # fmt: skip


def _collatz(n: int) -> tuple[int, int]:
    """(steps, odd ones among them) from n to 1."""
    steps = odd = 0
    while n != 1:
        odd += n % 2
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps, odd


# 9. Collatz: thread t of 128 goes from t + 1 to 1; `steps` and `odd` are summed over all threads by the definition. The
# top of the loop runs once more than there are steps.
_STEPS, _ODD = (sum(column) for column in zip(*(_collatz(t + 1) for t in range(128)), strict=True))
_COLLATZ = _kernel(
    "collatz", (1, 1, 1), (128, 1, 1), lambda: [np.zeros(128, np.uint32)],
    f"""
    128            | add.u32 %r3, %r0, 1;
    128            | mov.u32 %r4, 0;
    TOP:
    {_STEPS + 128} | setp.eq.u32 %p1, %r3, 1;
    128            | @%p1 bra DONE;
    {_STEPS}       | add.u32 %r4, %r4, 1;
    {_STEPS}       | and.b32 %r5, %r3, 1;
    {_STEPS}       | setp.eq.u32 %p2, %r5, 0;
    {_STEPS - _ODD} | @%p2 bra EVEN;
    {_ODD}         | mad.lo.u32 %r3, %r3, 3, 1;
    {_ODD}         | bra TOP;
    EVEN:
    {_STEPS - _ODD} | shr.u32 %r3, %r3, 1;
    {_STEPS - _ODD} | bra TOP;
    DONE:
    128            | st.global.u32 [%rd1], %r4;
    128            | ret;
    """,
)  # fmt: skip

_MMA = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{%f1, %f2, %f3, %f4}, {%r7, %r8, %r9, %r10}, {%r7, %r9}, {%f1, %f2, %f3, %f4};"
)
# 10. Tensor cores: 4 warps, 3 products of 16 x 8 x 16 each: 4 * 3 * 2 * 16 * 8 * 16 operations. Each ldmatrix.x4 reads
# four matrices of 8 rows of 16 bytes that follow each other (4 wavefronts without conflict, 512 bytes); all warps read
# the same 512 bytes. The tile is filled by 4-byte stores of 128 threads, 4 wavefronts in all.
_TENSOR = _kernel(
    "tensor", (1, 1, 1), (128, 1, 1), lambda: [np.zeros(128, np.float32)],
    f"""
    128       | mov.u32 %r3, square;
    128       | mad.lo.u32 %r4, %r0, 4, %r3;
    128       | mov.b32 %r5, 0x3C003C00;
    128       | st.shared.b32 [%r4], %r5;
    128       | bar.sync 0;
    128       | mov.u32 %r6, %laneid;
    128       | mad.lo.u32 %r6, %r6, 16, %r3;
    128       | mov.f32 %f1, 0f00000000;
    128       | mov.f32 %f2, 0f00000000;
    128       | mov.f32 %f3, 0f00000000;
    128       | mov.f32 %f4, 0f00000000;
    128       | mov.u32 %r11, 0;
    TOP:
    {128 * 3} | ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r7, %r8, %r9, %r10}}, [%r6];
    {128 * 3} | {_MMA}
    {128 * 3} | add.u32 %r11, %r11, 1;
    {128 * 3} | setp.lt.u32 %p1, %r11, 3;
    {128 * 2} | @%p1 bra TOP;
    128       | st.global.f32 [%rd1], %f1;
    128       | ret;
    """,
    {
        "ptx__tensor_ops_fp16": 4 * 3 * 2 * 16 * 8 * 16, wavefronts("ld"): 4 * 3 * 4, conflicts("ld"): 0,
        data_bytes("shared", "ld"): 4 * 3 * 512, wavefronts("st"): 4, "ptx__inst_executed_tensor": 12,
    },
    shared=".shared .align 16 .b8 square[512];",
)  # fmt: skip

KERNELS = (_TAIL, _LOOP, _TRIANGLE, _NESTED, _EXITS, _SIDES, _TRANSPOSE, _TREE, _COLLATZ, _TENSOR)
