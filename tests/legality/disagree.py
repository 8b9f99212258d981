"""Where the verifier and ptxas 13.4 are known to part, and why. Each entry is a pattern of the text and the reason; a
disagreement that no entry names fails the judge, and so does an entry that no text needs any more."""

from __future__ import annotations

import re

REFUSED_HERE = {
    r"(atom|red|cp\.reduce)\.(?=.*\.noftz)(?=.*\.f32\b)": "PTX 9.4: f32 that keeps subnormals; not modelled",
    r"isspacep\.param": "the window of .param in generic addresses is not modelled",
    r"wmma\.(load|store)\..*": "ptxas takes shapes for types that have no product of that shape; the manual has none",
    r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.tf32": "ptxas takes tf32 at depth 16; the manual has no such shape",
    r"mma\.sync\..*kind::f8f6f4.*": "ptxas takes FP6 and FP4 at depth 16, and mixed results; the manual has none",
    r"mma\.sync\..*block_scale.*": "ptxas takes the scale type in places and sizes that the manual has not",
    r"tcgen05\.mma\.(sp\.)?cta_group::\d\.kind::i8.*": "ptxas scales d of integers; the manual that of f16 and tf32",
    r"cp\.async\..*shared::cta": "ptxas takes .shared::cta in cp.async from PTX 7.4 on; the manual has it from 7.8 on",
    r"v(add|sub|absdiff|min|max|shl|shr|set)\.": "ptxas takes an operand c that nothing uses; the manual has none",
    r"cvt\.r[nzmp](\.ftz)?\.f32\.bf16": "ptxas takes a rounding where nothing is rounded",
    r"cvt\..*\.(u8|s8)\.bf16|cvt\..*\.bf16\.(u8|s8)": "not in ptxas 12.9, nor in the manual's table",
}
"""ptxas takes it, gpuemu does not."""

TAKEN_HERE = {
    r"cvt\.rn\..*(e4m3x2|e5m2x2)": "on sm_89 ptxas wants PTX 8.1, elsewhere 7.8",
}
"""gpuemu takes it, ptxas does not."""


def reason(text: str, taken: bool) -> str | None:
    """The pattern that explains a disagreement over a text. `taken`: gpuemu takes it."""
    return next((p for p in (TAKEN_HERE if taken else REFUSED_HERE) if re.match(p, text)), None)


LAYOUTS = {
    r"mov\.u32 imm `18446744073709551616`": "refused here: a literal beyond 64 bits, which ptxas cuts",
    r"add\.f(32|64) imm `-0d": "refused here: ptxas negates 0d… but not 0f…",
    r"mov\.u64 sym `gv\[4\]`": "refused here: an element of an array as an operand",
    r"init u64 `0xFF\(gp\)`": "refused here: part of an address in a wider word",
    r"leading zeros": "refused here: ptxas takes %r01 for a register of %r<2>",
    r"label %": "refused here: a label that begins with %",
    r"dir \.local_maxnreg": "refused here: not in the manual",
    r"params \(\.param \.(texref|u32 \.align)": "refused here: textures; alignment behind the type",
    r"var \.global \.(attribute|texref|surfref)": "refused here: textures, and unified variables",
    r"func attribute": "refused here: unified functions",
    r"entry extern": "refused here: an entry that is defined elsewhere",
    r"brx (range)": "refused here: a range of labels",
    r"brkpt|pmevent|discard|istypep|txq|tex|multimem|mov special vec":
        "refused here: instructions that are not modelled",
    r"header \d\.\d compute_80": "refused here: a virtual target, which no compiler writes into a text",
    r"header \d\.\d sm_90,sm_80": "refused here: several targets",
    r"header \d\.\d sm_90, debug": "taken here: ptxas asks for debug information, which is not read",
    r"init u64 `(\(gp|generic\(\()": "taken here: parentheses round a name",
    r"init f(32|64) `-0f": "taken here: a minus before 0f…",
    r"label inner": "taken here: a label of an inner scope is seen from outside when its name is unique",
    r"sink setp both": "taken here: both results of setp discarded",
    r"loc function_name|file escapes|section in body": "taken here: debug information is not checked",
    r"func decl mismatch": "taken here: declaration and definition are compared at calls only",
    r"func two results": "taken here: ptxas means calls without the ABI",
    r"call (args regparam|param align|int imm for float|prototype (after|name))":
        "taken here: arguments are compared by their size; prototypes with names, or behind their use",
    r"brx after": "taken here: a list of labels behind its use",
}  # fmt: skip
"""Names of layouts where the two part, and why."""
