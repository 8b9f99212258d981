"""The checked intermediate representation: what a PTX text says, with nothing interpreted.

A `Module` holds kernels and variables; a `Kernel` holds basic blocks in text order; a block is a straight line of
`Inst` that ends with (at most) one control transfer. Braces inside a body (`{ .reg .b16 h; … }`, inline asm) are
flattened by the parser: a register declared in an inner scope is renamed so that every name in a kernel is unique.

Operands are small frozen records; a register's width is that of its declaration. An instruction keeps its opcode and
modifiers as written (`op="ld"`, `mods=(".global", ".v4", ".b32")`); `ptx.isa` decides what they mean.

Everything is immutable and hashable, so a decoded module can be cached and shared.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

# gc=False: the records below are trees of immutable values, so no cycle can run through them, and a large kernel's
# tens of thousands need not be walked by every collection (decoding 6,000 instructions took 65 ms when one fell in,
# 20 ms otherwise).


class Frame(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One source position: file as PTX names it (an absolute path where known), 1-based line, column (0 = unknown)."""

    file: str
    line: int
    column: int = 0


class Loc(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Where an instruction comes from.

    `ptx_line`: 1-based line in the PTX text. `frames`: innermost first, then the call sites that it was inlined at;
    empty without `.loc`. The user's frame is the one that a finding points at: the outermost, i.e. the position in the
    kernel itself and not in a library function that was inlined into it.
    """

    ptx_line: int
    frames: tuple[Frame, ...] = ()

    @property
    def user(self) -> Frame | None:
        return self.frames[-1] if self.frames else None


# ------------------------------------------------------------------------------------------------ operands
class Reg(msgspec.Struct, frozen=True, gc=False, tag="reg", tag_field="node", array_like=True):
    """A register; `type` is that of its declaration ("pred", "b32", "f32", …)."""

    name: str
    type: str


class Imm(msgspec.Struct, frozen=True, gc=False, tag="imm", tag_field="node", array_like=True):
    """A literal. `kind` "int": `value` is the exact integer as written (may be negative); "f32"/"f64": `value` holds
    the bits of `0f…`/`0d…` (decimal literals such as 1.5 become f64 bits, as PTX specifies)."""

    value: int
    kind: str = "int"


class Sym(msgspec.Struct, frozen=True, gc=False, tag="sym", tag_field="node", array_like=True):
    """The name of a variable, parameter, label or function, plus a byte offset (`mov.u64 %rd1, table+8`)."""

    name: str
    offset: int = 0


class Special(msgspec.Struct, frozen=True, gc=False, tag="special", tag_field="node", array_like=True):
    """A special register such as `%tid.x` or `%laneid`, with its leading percent sign."""

    name: str


class Not(msgspec.Struct, frozen=True, gc=False, tag="not", tag_field="node", array_like=True):
    """A negated predicate operand, `!%p1`."""

    reg: Reg


class Part(msgspec.Struct, frozen=True, gc=False, tag="part", tag_field="node", array_like=True):
    """An operand of a video instruction that is not a whole register: `%r1.h0`, `-%r1`, `-%r1.b3`. `selector`: what
    stands behind the dot, or nothing."""

    reg: Reg
    selector: str
    negated: bool = False


class Wide(msgspec.Struct, frozen=True, gc=False, tag="wide", tag_field="node", array_like=True):
    """A register of 128 bits as its halves; stands in no text (`ptx.flatten.halves`)."""

    low: Reg
    high: Reg


class Sink(msgspec.Struct, frozen=True, gc=False, tag="sink", tag_field="node", array_like=True):
    """The bit bucket `_`."""


class Mem(msgspec.Struct, frozen=True, gc=False, tag="mem", tag_field="node", array_like=True):
    """An address expression `[base + offset]`; base is a register, a symbol or an absolute immediate address."""

    base: Reg | Sym | Imm
    offset: int = 0


class Vec(msgspec.Struct, frozen=True, gc=False, tag="vec", tag_field="node", array_like=True):
    """A vector operand `{a, b, …}`; also the coordinate vector of a tensor address."""

    items: tuple[Reg | Imm | Sink | Special | Sym, ...]


class Pair(msgspec.Struct, frozen=True, gc=False, tag="pair", tag_field="node", array_like=True):
    """A destination pair `d|p` (setp, shfl, …)."""

    first: Reg | Sink
    second: Reg | Sink


class TensorMem(msgspec.Struct, frozen=True, gc=False, tag="tensor", tag_field="node", array_like=True):
    """A tensor address `[map, {c0, c1, …}]` of the bulk tensor copies (optionally with im2col offsets)."""

    base: Reg | Sym
    coords: Vec
    offsets: Vec | None = None


Operand = Reg | Imm | Sym | Special | Not | Part | Wide | Sink | Mem | Vec | Pair | TensorMem


# ------------------------------------------------------------------------------------------------ code
class Guard(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """`@%p` (or `@!%p` when negated)."""

    reg: Reg
    negated: bool = False


class Inst(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One instruction, as written. `op` is the text before the first dot, `mods` the rest, each with its dot.

    `made`: why a pass put it here when it does not stand in the text (`ptx.flatten`); such instructions are executed
    and not counted. Their `loc` is that of the instruction they were made for."""

    op: str
    mods: tuple[str, ...]
    operands: tuple[Operand, ...]
    loc: Loc
    guard: Guard | None = None
    made: str = ""

    @property
    def opcode(self) -> str:
        """The full opcode, `ld.global.v4.b32`."""
        return self.op + "".join(self.mods)


class Block(msgspec.Struct, frozen=True, array_like=True):
    """A basic block: control enters at the top and leaves at the bottom.

    `labels` are all PTX labels on its first instruction (may be empty). Blocks are split after control transfers
    (`bra`, `brx.idx`, `ret`, `exit`, `trap`, `call` stays inside) and before labels that are branched to.
    """

    labels: tuple[str, ...]
    insts: tuple[Inst, ...]


class Variable(msgspec.Struct, frozen=True, array_like=True):
    """A module- or kernel-scope variable. `size` in bytes (0 for `.extern … []`), `init` its bytes or None.

    `relocations`: (byte offset, symbol, addend) of initialisers that are addresses of other variables."""

    name: str
    space: str  # ".global" ".shared" ".const" ".local" ".param"
    type: str
    align: int
    size: int
    init: bytes | None = None
    extern: bool = False
    relocations: tuple[tuple[int, str, int], ...] = ()


class Param(msgspec.Struct, frozen=True, array_like=True):
    """A kernel parameter. `size` bytes; `pointer_space`/`pointer_align` from `.ptr .global .align 16`, if given.
    Array parameters (`.b8 name[64]`) have type b8 and size 64. `register`: a function's parameter that is a register
    of its body (`.reg .u32 a`), with no place in a block."""

    name: str
    type: str
    size: int
    align: int
    offset: int  # byte offset in the parameter block
    is_array: bool = False
    pointer_space: str | None = None
    pointer_align: int | None = None
    register: bool = False


class Prototype(msgspec.Struct, frozen=True, array_like=True):
    """A `.callprototype`: what a function called through a pointer takes and returns."""

    results: tuple[Param, ...]
    params: tuple[Param, ...]


class Kernel(msgspec.Struct, frozen=True, array_like=True):
    """An `.entry` or `.func`.

    `registers`: every register, declared name → type, in declaration order (only those that are used).
    `variables`: `.shared`/`.local` variables declared inside. `directives`: `.maxntid`, `.reqntid`,
    `.minnctapersm`, `.maxnreg`, `.reqnctapercluster` … → integers. `branch_targets`: label lists for `brx.idx`;
    `prototypes` for indirect calls. `blocks` is empty for a function that is declared here and defined elsewhere.
    `variables` may include `.param` ones: argument space of one `call`.

    A call's operands are always (Vec results, Sym or Reg callee, Vec arguments[, Sym prototype or target list]).
    """

    name: str
    is_entry: bool
    params: tuple[Param, ...]
    registers: dict[str, str]
    variables: tuple[Variable, ...]
    blocks: tuple[Block, ...]
    directives: dict[str, tuple[int, ...]]
    branch_targets: dict[str, tuple[str, ...]]
    results: tuple[Param, ...] = ()
    loc: Loc | None = None
    prototypes: dict[str, Prototype] = {}


class Module(msgspec.Struct, frozen=True, array_like=True):
    """A PTX translation unit. `version` (8, 8); `target` "sm_80" plus `target_options` ("texmode_unified", "debug");
    `files`: `.file` table, index → path."""

    version: tuple[int, int]
    target: str
    target_options: tuple[str, ...]
    address_size: int
    variables: tuple[Variable, ...]
    kernels: tuple[Kernel, ...]
    files: dict[int, str]

    def kernel(self, name: str) -> Kernel:
        """The entry of that name; KeyError otherwise."""
        for k in self.kernels:
            if k.name == name:
                return k
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Position:
    """Names one instruction of a kernel: block index and index inside the block."""

    block: int
    index: int
