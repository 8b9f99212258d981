"""Input that is wrong in every way that a user can manage: what it is, how it is given, what comes of it.

Each row is run for real by `test_bad_input.py`; what it says is the row of `docs/bad_input.md`. Commands run in a
folder that holds FILES. Where the text of a row is Python, its exit code is the one that the command line gives for the
error that it raises, or 1 for a result with findings.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [x];
  ld.param.u64 %d1, [y];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  setp.ge.u32 %p0, %r1, %r0;
  @%p0 bra DONE;
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d3, %d0, %d2;
  add.u64 %d4, %d1, %d2;
  ld.global.b32 %r4, [%d3];
  st.global.b32 [%d4], %r4;
DONE:
  ret;
}
"""

KERNELS = '''"""Kernels for bad launches."""
import triton
import triton.language as tl


@triton.jit
def scale(x, y, s, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * s, mask=at < n)


@triton.jit
def overrun(x, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row * width + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.store(y + at, values, mask=tl.arange(0, BLOCK) < width)


@triton.jit
def endless(x, y):
    while tl.load(x) == 0:
        tl.store(y, 1)
'''

OP = """import numpy as np
import triton
import triton.language as tl
import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


@gpuemu.op(
    dims={"N": (4,)}, inputs={"x": Input("N")}, outputs={"y": Output("N")}, dtypes=("float32",),
    reference=REFERENCE, bound=BOUND,
)
def copy(run, x, y):
    LAUNCH
"""


def op(
    reference: str = "lambda x: x", launch: str = "run(kernel, (1,), x, y, x.size, BLOCK=4)", bound: str = ""
) -> str:
    """An op file with parts replaced."""
    text = OP.replace("REFERENCE", reference).replace("LAUNCH", launch)
    return text.replace("BOUND", bound or "bounds.exact()")


FILES = {
    "copy.ptx": PTX,
    "brace.ptx": PTX.replace("  ret;\n}", "  ret;"),
    "letter.ptx": PTX.replace("mov.u32 %r1, %tid.x;", "mov.u32 %r1 %tid.x;"),
    "opcode.ptx": PTX.replace("mad.lo.u32", "madd.lo.u32"),
    "modifier.ptx": PTX.replace("mad.lo.u32", "mad.low.u32"),
    "register.ptx": PTX.replace("mul.wide.u32 %d2, %r1, 4;", "mul.wide.u32 %d2, %r9, 4;"),
    "newer.ptx": PTX.replace("mov.u32 %r2, %ctaid.x;", "mov.u32 %r2, %ctaid.x; wgmma.fence.sync.aligned;"),
    "label.ptx": PTX.replace("bra DONE", "bra GONE"),
    "binary.ptx": "\x00\x01\x02 not PTX \x7f",
    "empty.ptx": "",
    "kernels.py": KERNELS,
    "good.py": op(),
    "raises.py": op(reference="lambda x: x.missing"),
    "shape.py": op(reference="lambda x: x[:2]"),
    "names.py": op(reference="lambda x, z: x"),
    "nothing.py": op(launch="pass"),
    "judges_nothing.py": op(bound="lambda run: np.inf"),
    "small.py": op(launch="run(kernel, (1,), x, y, x.size + 60, BLOCK=64)"),
    "syntax.py": "import gpuemu\n@gpuemu.op(\n",
    "imports.py": "import gpuemu\nimport a_missing_module\n@gpuemu.op()\ndef f(run): ...\n",
    "gpuemu_wrong.toml": "paths = 3\n",
    "two.npy": "not an array",
    "taken/keep": "",
}


@dataclass(frozen=True)
class Row:
    """`what` in words; `text`: arguments of gpuemu, or Python if it calls `run(`; `code`: the exit code."""

    what: str
    code: int
    text: str

    @property
    def command(self) -> list[str] | None:
        """The arguments of gpuemu, None for a snippet."""
        return None if "run(" in self.text else shlex.split(self.text)


_XYN = "x=rand:64:f32 y=zeros:64:f32 n=64"
_LAUNCH = f"--grid 1 --block 64 {_XYN}"
_SCALE = "run kernels.py::scale --target sm_80 --grid 1"
_REST = "y=zeros:64:f32 s=2.0 n=64"

ROWS = [
    Row("PTX: a brace is missing", 2, f"run brace.ptx {_LAUNCH}"),
    Row("PTX: a comma is missing", 2, f"run letter.ptx {_LAUNCH}"),
    Row("PTX: bytes that are no text", 2, f"run binary.ptx {_LAUNCH}"),
    Row("PTX: an empty file", 2, f"run empty.ptx {_LAUNCH}"),
    Row("PTX: an unknown instruction", 3, f"run opcode.ptx {_LAUNCH}"),
    Row("PTX: an unknown modifier", 3, f"run modifier.ptx {_LAUNCH}"),
    Row("PTX: a register that is not declared", 2, f"run register.ptx {_LAUNCH}"),
    Row("PTX: a label that does not exist", 2, f"run label.ptx {_LAUNCH}"),
    Row("PTX: an instruction newer than the target", 2, f"run newer.ptx {_LAUNCH}"),
    Row("PTX: an entry that does not exist", 2, "run copy.ptx::move --grid 1 --block 64"),
    Row("PTX: no block size", 2, f"run copy.ptx --grid 1 {_XYN}"),
    Row("PTX: another target than the text's", 2, f"run copy.ptx --target sm_90 {_LAUNCH}"),
    Row("PTX for a newer device than the one chosen", 2, f"run copy.ptx --device sm_75 {_LAUNCH}"),
    Row("too few arguments", 2, "run copy.ptx --grid 1 --block 64 x=rand:64:f32 y=zeros:64:f32"),
    Row("an array where a number belongs", 2, f"run copy.ptx {_LAUNCH.replace('n=64', 'n=ones:1:i32')}"),
    Row("a number where an array belongs", 2, "run copy.ptx --grid 1 --block 64 x=rand:64:f32 y=1.5 n=64"),
    Row("a number that does not fit", 2, f"run copy.ptx {_LAUNCH.replace('n=64', 'n=5000000000')}"),
    Row("a grid of zero", 2, f"run copy.ptx --grid 0 --block 64 {_XYN}"),
    Row("a grid beyond the device", 2, f"run copy.ptx --grid 1,70000 --block 64 {_XYN}"),
    Row("a grid of 2**62 CTAs", 3, f"run copy.ptx --grid 2147483647,65535,32767 --block 64 {_XYN}"),
    Row("too many threads a CTA", 2, f"run copy.ptx --grid 1 --block 1025 {_XYN}"),
    Row("too much shared memory", 2, f"run copy.ptx --shared 300000 {_LAUNCH}"),
    Row("an array that is too short", 1, "run copy.ptx --grid 1 --block 64 x=rand:64:f32 y=zeros:10:f32 n=64"),
    Row("Triton: an argument is missing", 2, f"{_SCALE} {_REST} BLOCK=64"),
    Row("Triton: an argument too many", 2, f"{_SCALE} x=rand:64:f32 {_REST} BLOCK=64 z=1"),
    Row("Triton: a dtype that there is none of", 2, f"{_SCALE} x=rand:64:f99 {_REST} BLOCK=64"),
    Row("Triton: text where an array belongs", 2, f"{_SCALE} \"x='hello'\" {_REST} BLOCK=64"),
    Row("Triton: a block that is no power of two", 2, f"{_SCALE} x=rand:64:f32 {_REST} BLOCK=48"),
    Row("Triton: more warps than a CTA holds", 2, f"{_SCALE} --num-warps 64 x=rand:64:f32 {_REST} BLOCK=64"),
    Row(
        "out of bounds, in a Triton kernel",
        1,
        "run kernels.py::overrun --target sm_80 --grid 3 x=rand:3x50:f32 y=zeros:3x50:f32 width=50 BLOCK=64",
    ),
    Row(
        "a loop without end",
        1,
        "run kernels.py::endless --target sm_80 --grid 1 --fuel 10000 --num-warps 1 x=zeros:1:i32 y=zeros:1:i32",
    ),
    Row("a store into a read-only array", 1, "y.flags.writeable = False\nrun(scale, 1, x, y, 2.0, 64, BLOCK=64)"),
    Row("overlapping arrays (allowed, as on a GPU)", 0, "run(scale, 1, x, x[:32], 2.0, 32, BLOCK=64)"),
    Row("an array of objects", 3, "run(scale, 1, np.array([None] * 64), y, 2.0, 64, BLOCK=64)"),
    Row("an array of complex numbers", 3, "run(scale, 1, x.astype(np.complex64), y, 2.0, 64, BLOCK=64)"),
    Row("an array in foreign byte order", 2, "run(scale, 1, x.astype('>f4'), y, 2.0, 64, BLOCK=64)"),
    Row("an unknown engine", 2, "run(scale, 1, x, y, 2.0, 64, BLOCK=64, engine='fast')"),
    Row("not a kernel", 2, "run(len, 1, x, y)"),
    Row("no such file", 2, "run gone.py::k --grid 1"),
    Row("report: no block size", 2, f"report copy.ptx --grid 1 {_XYN}"),
    Row("report: no such kernel", 2, "report kernels.py::gone --grid 1"),
    Row("report: an unknown target", 2, f"report copy.ptx --target h100 {_LAUNCH}"),
    Row("report: a target that the code is too new for", 3, f"report copy.ptx --target sm_75 {_LAUNCH}"),
    Row("report: an array that is too short", 1, f"report copy.ptx {_LAUNCH.replace('y=zeros:64', 'y=zeros:10')}"),
    Row("report: an output that is a folder", 2, f"report copy.ptx --output taken {_LAUNCH}"),
    Row("diff: no such file", 2, "diff gone.ptx copy.ptx"),
    Row("diff: three sides", 2, "diff copy.ptx copy.ptx copy.ptx"),
    Row("diff: a side that is no kernel", 2, "diff copy.ptx kernels.py"),
    Row("diff: no such metric", 2, "diff copy.ptx copy.ptx --max-increase registers=5"),
    Row("diff: a limit without a number", 2, "diff copy.ptx copy.ptx --max-increase sass__inst"),
    Row("diff: a fall that is explained by nothing", 2, "diff copy.ptx copy.ptx --explained sass__inst="),
    Row("diff: a limit of a launch, and no launch", 3, "diff copy.ptx copy.ptx --max-increase smsp__inst_executed=5"),
    Row("diff: a launch without a grid", 2, f"diff copy.ptx copy.ptx --dynamic --block 64 -- {_XYN}"),
    Row("diff: a grid without a launch", 2, "diff copy.ptx copy.ptx --grid 1"),
    Row("diff: a launch with too few arguments", 2, "diff copy.ptx copy.ptx --dynamic --grid 1 --block 64 -- n=64"),
    Row(
        "diff: a launch that goes out of bounds",
        3,
        "diff copy.ptx copy.ptx --dynamic --grid 1 --block 64 --target sm_80 -- x=rand:64:f32 y=zeros:10:f32 n=64",
    ),
    Row("diff: a target that neither side can have", 3, "diff copy.ptx copy.ptx --target sm_75"),
    Row("diff: a baseline that is none", 2, "diff two.npy copy.ptx"),
    Row("no such kernel", 2, "run kernels.py::gone --grid 1"),
    Row("an argument that cannot be read", 2, f"{_SCALE} x=rand:64"),
    Row("an array file that is none", 2, f"{_SCALE} x=@two.npy {_REST} BLOCK=64"),
    Row("an array that no machine holds", 2, f"{_SCALE} x=rand:99999999999999:f32 {_REST} BLOCK=64"),
    Row("an unknown target", 2, "ci good.py --target h100"),
    Row("a target without a device", 2, "ci good.py --target sm_55"),
    Row("an unknown op", 2, "ci good.py --op paste"),
    Row("a path that does not exist", 2, "ci gone"),
    Row("a path that is empty", 2, "ci ''"),
    Row("an unknown option", 2, "ci good.py --quik"),
    Row("a time limit that is none", 2, "ci good.py --timeout inf"),
    Row("another contraction than there is", 2, "ci good.py --fmad on"),
    Row("no op in the files", 3, "ci kernels.py"),
    Row("a dtype that no op has", 3, "ci good.py --dtype float64"),
    Row("a file that does not parse", 3, "ci syntax.py"),
    Row("a file whose import fails", 3, "ci imports.py"),
    Row("a reference that takes what is not declared", 2, "ci names.py"),
    Row("a reference that raises", 3, "ci raises.py"),
    Row("a reference of the wrong shape", 3, "ci shape.py"),
    Row("a launcher that launches nothing", 3, "ci nothing.py"),
    Row("an error model that judges nothing", 3, "ci judges_nothing.py"),
    Row("out of bounds, in a sweep", 1, "ci small.py"),
    Row("an output folder that does not exist", 2, "ci good.py --output gone/report.sarif"),
    Row("an output that is a folder", 2, "ci good.py --output taken"),
    Row("a full disk", 2, "ci good.py --output /dev/full"),
    Row("a baseline that is missing", 2, "ci good.py --expect gone.toml"),
    Row("a replay that does not exist", 3, "reproduce 0123456789abcdef"),
]
