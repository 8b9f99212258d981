"""FP8 `mma.sp` where the compiler expands it (sm_90, sm_100, sm_103): two sparse f16 operations and an addition.

As in the dense case (`expanded.py`) every register of four FP8 is widened to f16, but a chunk of four logical columns
holds two stored elements, a register of A holds two chunks of a row, and the metadata names columns inside a chunk. So
one m16n8k32 operation takes the even chunks, with c = 0, one the odd chunks, with the first result as c; a separate f32
addition, to nearest-even, adds the real c. What goes into them, lane by lane, as the compiler's code moves it (SASS of
ptxas 12.9 and 13.4 for sm_90; the code for sm_100 and sm_103 does the same with the lanes of the metadata apart):

* A: the lower half of each register to the even operation, the upper half to the odd one. Lanes stay.
* B: a register of lane q of a quad holds four columns k of one chunk, of which two lanes of f16 hold two each. Even:
  lanes 0 and 2 keep their lower half, lanes 1 and 3 take the upper half of the lane before. Odd: lanes 1 and 3 keep
  their upper half, lanes 0 and 2 take the lower half of the lane behind.
* Metadata: the nibbles of even and of odd chunks, four of row g and four of row g + 8 in a word, as `elements.py`
  wants them for selector 0.

Only f32 results: the assembler refuses f16 ones on these targets.
"""

from __future__ import annotations

from typing import Any

from interp.runtime.raw import f32_add, load_u32, native, stack_scratch, store_u32, store_u64, u32, u64
from interp.tensorcore.expanded import widen
from interp.tensorcore.general import mma_float
from interp.tensorcore.model import F16, F32

Word = Any


@native
def _columns(lower: int, upper: int, odd: int, out: int) -> None:
    """B of one operation from widened halves, each four registers of 32 lanes."""
    for register in range(4):
        for lane in range(32):
            partner = (lane | 1) if odd else (lane & ~1)
            half = upper if lane & 1 else lower
            store_u32(out + (register * 32 + lane) * 4, load_u32(half + (register * 32 + partner) * 4))


@native
def _every_second_nibble(word: Word, odd: int) -> Word:
    """The four even, or odd, nibbles of a word side by side."""
    x = word >> u32(4 * odd)
    return (x & u32(15)) | (x >> u32(4) & u32(0xF0)) | (x >> u32(8) & u32(0xF00)) | (x >> u32(12) & u32(0xF000))


@native
def _indices(metadata: int, odd: int, out: int) -> None:
    """Metadata of one operation: lanes 0 and 1 of a quad have the first and the second four of its eight chunks."""
    for lane in range(32):
        source = metadata + ((lane & ~3) + 2 * (lane & 1)) * 4
        low, high = load_u32(source), load_u32(source + 4)
        word = _every_second_nibble(low, odd) | _every_second_nibble(high, odd) << u32(16)
        store_u32(out + lane * 4, word)


@native
def mma_sp_fp8_expanded(
    out: int, a: int, b: int, c: int, metadata: int, kind_a: int, kind_b: int, block: int, fraction: int, floor: int
) -> None:  # fmt: skip
    """m16n8k64 of FP8 with an f32 result; a, b, c: four registers each.

    block, fraction, floor: those of the architecture's sparse f16 operation with an f32 result."""
    lower_a, upper_a = stack_scratch(512), stack_scratch(512)
    lower_b, upper_b = stack_scratch(512), stack_scratch(512)
    right, indices, total = stack_scratch(512), stack_scratch(128), stack_scratch(512)
    widen(a, 4, kind_a, lower_a, upper_a)
    widen(b, 4, kind_b, lower_b, upper_b)
    for i in range(64):
        store_u64(total + i * 8, u64(0))
    for odd in range(2):
        _columns(lower_b, upper_b, odd, right)
        _indices(metadata, odd, indices)
        mma_float(
            total, upper_a if odd else lower_a, right, total, indices, 16, 32, 16, F16, F16, F32, block, fraction,
            floor, 23, 1, 0,
        )  # fmt: skip
    for i in range(128):
        store_u32(out + i * 4, f32_add(load_u32(total + i * 4), load_u32(c + i * 4)))
