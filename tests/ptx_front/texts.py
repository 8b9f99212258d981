"""Small PTX texts for the front end's tests, and the toy instruction table that they are checked against."""

from __future__ import annotations

from pathlib import Path

import ptx
from ptx import ir
from ptx.isa import Cost, Effect, Isa
from tests.ptx import regenerate

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"
DECLARED = (
    ".reg .pred %p<8>; .reg .b16 %rs<8>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<8>;"
    " .reg .u32 %u<8>; .reg .s64 %s<8>; .reg .u16 %us<8>; .reg .f16 %h<8>;"
)
SAMPLES = Path(__file__).with_name("samples")


def kernel_text(body: str) -> str:
    """An entry with registers of every kind, a parameter `p` and a .global and a .shared variable. The body's first
    line is PTX line 8."""
    return (
        f"{HEADER}.global .align 4 .b32 variable;\n.extern .shared .align 16 .b8 buffer[];\n"
        f".visible .entry k(.param .u64 p)\n{{ {DECLARED}\n{body}\n}}\n"
    )


def kernel(body: str) -> ir.Kernel:
    return ptx.parse(kernel_text(body)).kernel("k")


def insts(body: str) -> list[ir.Inst]:
    """The instructions of a body, blocks joined."""
    return [inst for block in kernel(body).blocks for inst in block.insts]


def sample_names() -> list[str]:
    """Every real compiler output at hand: Triton's corpus and the samples here."""
    return [*regenerate.CORPUS, *(p.stem for p in sorted(SAMPLES.glob("*.ptx")))]


def sample(name: str) -> str:
    path = SAMPLES / f"{name}.ptx"
    return path.read_text() if path.exists() else regenerate.read(name)


# ------------------------------------------------------------------------------------------------ toy instruction table
ISA = Isa(version=(8, 8))
_INT = (".u16", ".s16", ".u32", ".s32", ".u64", ".s64")
_ANY = (*_INT, ".b8", ".b16", ".b32", ".b64", ".f32", ".f64", ".u8", ".s8")


def _none(k: object, **mods: object) -> None:
    """no meaning: this table is for analyses"""


ISA.op("mov.type d, a", type=(*_ANY, ".pred"), cost=Cost.MOVE, ref="mov")(_none)
ISA.op("add{.sat}.type d, a, b", type=(*_INT, ".f32", ".f64", ".f16"), cost=Cost.INT, ref="add")(_none)
ISA.op("and.type d, a, b", type=(".b16", ".b32", ".b64", ".pred"), cost=Cost.INT, ref="and")(_none)
ISA.op("shl.type d, a, b", type=(".b32",), types={"d": "type", "a": "type", "b": "u32"}, cost=Cost.INT, ref="shl")(
    _none
)
ISA.op(
    "setp.cmp.type p|q, a, b",
    cmp=(".eq", ".ne", ".lt"),
    type=_ANY,
    types={"p": "pred", "q": "pred", "a": "type", "b": "type"},
    writes=("p", "q"),
    cost=Cost.INT,
    ref="setp",
)(_none)
ISA.op(
    "selp.type d, a, b, c",
    type=_ANY,
    types={"d": "type", "a": "type", "b": "type", "c": "pred"},
    cost=Cost.INT,
    ref="selp",
)(_none)
ISA.op("cvt.type.atype d, a", type=_ANY, atype=_ANY, types={"d": "type", "a": "atype"}, cost=Cost.CONVERT, ref="cvt")(
    _none
)
_SPACES = (".global", ".shared", ".param", ".const")
for _vec, _count in (("", 0), (".v2", 2), (".v4", 4)):
    ISA.op(
        f"ld{{.ss}}{_vec}.type {'{d}' if _count else 'd'}, [a]",
        ss=_SPACES,
        type=_ANY,
        types=lambda type, _n=_count, **_: {"d": (type, _n)},
        effect=Effect.LOAD,
        cost=Cost.LOAD_STORE,
        ref="ld",
    )(_none)
    ISA.op(
        f"st{{.ss}}{_vec}.type [a], {'{b}' if _count else 'b'}",
        ss=_SPACES,
        type=_ANY,
        types=lambda type, _n=_count, **_: {"b": (type, _n)},
        writes=(),
        effect=Effect.STORE,
        cost=Cost.LOAD_STORE,
        ref="st",
    )(_none)
ISA.op("bra{.uni} target", types={"target": "label"}, writes=(), effect=Effect.BRANCH, cost=Cost.CONTROL, ref="bra")(
    _none
)
ISA.op(
    "brx.idx a, list",
    types={"a": "u32", "list": "label"},
    writes=(),
    effect=Effect.BRANCH,
    cost=Cost.CONTROL,
    ref="brx",
)(_none)
ISA.op("ret", effect=Effect.EXIT, cost=Cost.CONTROL, ref="ret")(_none)
ISA.op("cp.async.wait_group #n", effect=Effect.ASYNC, cost=Cost.ASYNC, since=((7, 0), 80), ref="cp")(_none)
ISA.op(
    "elect.sync d|p, a",
    types={"d": "b32", "p": "pred", "a": "u32"},
    writes=("d", "p"),
    since=((8, 0), 90),
    cost=Cost.SYNC,
    ref="elect",
)(_none)
