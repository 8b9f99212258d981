"""PTX of kernels that make one tensor copy each, for any map, coordinates and offsets: what the comparison with a GPU
(`tensor_copies`) and the tests of tensor maps run.

Entry NAME(map, args, memory) for one CTA of 128 threads. `args`, u32: five coordinates, three offsets, bytes that the
barrier expects, bytes of shared memory to give or take, the copy's place in it. Loads fill shared memory with 0xA5,
copy, wait for the barrier a while and write to `memory`: the barrier's word, whether it was done, tries, then from
byte 16 on shared memory. Stores and reductions fill shared memory from byte 16 of `memory` on.
"""

from __future__ import annotations

OPS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")

_HEAD = """
.reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %d<20>; .reg .b32 %c<5>; .reg .b16 %o<3>;
mov.u64 %d1, p_map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [p_args]; ld.param.u64 %d3, [p_mem];
ld.global.u32 %c0, [%d2]; ld.global.u32 %c1, [%d2+4]; ld.global.u32 %c2, [%d2+8]; ld.global.u32 %c3, [%d2+12];
ld.global.u32 %c4, [%d2+16]; ld.global.u16 %o0, [%d2+20]; ld.global.u16 %o1, [%d2+24]; ld.global.u16 %o2, [%d2+28];
ld.global.u32 %r1, [%d2+32]; ld.global.u32 %r2, [%d2+36]; ld.global.u32 %r3, [%d2+40];
mov.u32 %r4, shared; add.u32 %r5, %r4, 1024; add.u32 %r6, %r5, %r3;
mov.u32 %r10, %tid.x; setp.eq.u32 %p2, %r10, 0; shl.b32 %r12, %r10, 2;
"""
_LOAD = """
FILL: setp.ge.u32 %p1, %r12, %r2; @%p1 bra FILLED;
add.u32 %r13, %r5, %r12; mov.u32 %r11, 0xA5A5A5A5; st.shared.u32 [%r13], %r11; add.u32 %r12, %r12, 512; bra FILL;
FILLED: {before} @%p2 mbarrier.init.shared::cta.b64 [%r4], 1;
fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;
@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], %r1; {meet}
{copy}
mov.u32 %r20, 0;
AGAIN: mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r4], 0; @%p3 bra DONE;
add.u32 %r20, %r20, 1; setp.lt.u32 %p4, %r20, 20000; nanosleep.u32 20; @%p4 bra AGAIN;
DONE: bar.sync 0; shl.b32 %r12, %r10, 2;
DUMP: setp.ge.u32 %p1, %r12, %r2; @%p1 bra DUMPED;
add.u32 %r13, %r5, %r12; ld.shared.u32 %r14, [%r13]; cvt.u64.u32 %d5, %r12; add.u64 %d6, %d3, %d5;
st.global.u32 [%d6+16], %r14; add.u32 %r12, %r12, 512; bra DUMP;
DUMPED: {after} @!%p2 bra OUT;
ld.shared.b64 %d7, [%r4]; st.global.u64 [%d3], %d7; selp.u32 %r15, 1, 0, %p3;
st.global.u32 [%d3+8], %r15; st.global.u32 [%d3+12], %r20;
OUT: ret;
"""
_STORE = """
FILL: setp.ge.u32 %p1, %r12, %r2; @%p1 bra FILLED;
cvt.u64.u32 %d5, %r12; add.u64 %d6, %d3, %d5; ld.global.u32 %r14, [%d6+16]; add.u32 %r13, %r5, %r12;
st.shared.u32 [%r13], %r14; add.u32 %r12, %r12, 512; bra FILL;
FILLED: fence.proxy.async; bar.sync 0; @!%p2 bra OUT;
{copy} cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
OUT: ret;
"""
_RANK = (
    "mov.u32 %r30, %ctaid.x; setp.ne.u32 %p6, %r30, 0; add.u32 %r31, %r2, 16; mul.lo.u32 %r31, %r31, %r30;"
    "cvt.u64.u32 %d9, %r31; add.u64 %d3, %d3, %d9;"
)
_MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


def module(*entries: str, target: str = "sm_90a", version: str = "8.6") -> str:
    """A module of such entries."""
    head = f".version {version}\n.target {target}\n.address_size 64\n.extern .shared .align 1024 .b8 shared[];\n"
    return head + "\n".join(entries)


def _entry(name: str, body: str, cluster: int = 0) -> str:
    params = ".param .align 64 .b8 p_map[128], .param .u64 p_args, .param .u64 p_mem"
    together = f" .reqnctapercluster {cluster}" if cluster else ""
    return f".visible .entry {name}({params}){together} {{{_HEAD}{body}}}\n"


def _coordinates(count: int) -> str:
    return "{" + ", ".join(f"%c{i}" for i in range(count)) + "}"


def load(name: str, rank: int, mode: str = "tile", space: str = "shared::cluster", cluster: int = 0) -> str:
    """A load; `mode` as the instruction writes it. With `cluster` a multicast to CTAs 0 and 1, by the first."""
    count = 5 if mode.endswith("4") else rank
    places = {"im2col": rank - 2, "im2col::w": 2, "im2col::w::128": 2}.get(mode, 0)
    info = ", {" + ", ".join(f"%o{i}" for i in range(places)) + "}" if places else ""
    many, ranks = (".multicast::cluster", ", %o2") if cluster else ("", "")
    copy = (
        f"cp.async.bulk.tensor.{rank}d.{space}.global.{mode}.mbarrier::complete_tx::bytes{many} "
        f"[%r6], [%d1, {_coordinates(count)}], [%r4]{info}{ranks};"
    )
    if not cluster:
        return _entry(name, _LOAD.format(copy=f"@%p2 {copy}", before="", meet="", after=""))
    first = f"setp.eq.and.u32 %p2, %r30, 0, %p2; mov.u16 %o2, 3; @%p2 {copy} setp.eq.u32 %p2, %r10, 0;"
    body = _LOAD.format(copy="", before=_RANK, meet=_MEET + first, after=_MEET)
    return _entry(name, body, cluster)


def store(name: str, rank: int, mode: str = "tile", op: str | None = None) -> str:
    """A store, or a reduction by `op`."""
    count = 5 if mode.endswith("4") else rank
    what = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group"
    if op is not None:
        what = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.{mode}.bulk_group"
    return _entry(name, _STORE.format(copy=f"{what} [%d1, {_coordinates(count)}], [%r6];"))


def bulk_add(name: str) -> str:
    """`cp.reduce.async.bulk.add.f32` of shared memory to where the words 12 and 13 of `args` say."""
    copy = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d8], [%r6], %r2;"
    return _entry(name, _STORE.format(copy=f"ld.global.u64 %d8, [%d2+48]; {copy}"))


def replaced(name: str) -> str:
    """A 4d load in im2col mode through a copy of the map, half a MiB into `memory`, whose address was replaced by that
    in words 12 and 13 of `args` and 32 more."""
    moved = "".join(f"ld.u64 %d9, [%d1+{i}]; st.global.u64 [%d10+{i}], %d9;" for i in range(0, 128, 8))
    before = (
        f"add.u64 %d10, %d3, 524288; @!%p2 bra SKIP; ld.global.u64 %d8, [%d2+48]; add.u64 %d8, %d8, 32; {moved}"
        "membar.gl; tensormap.replace.tile.global_address.global.b1024.b64 [%d10], %d8; membar.gl;"
        "fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%d10], 128;"
        "SKIP: bar.sync 0; mov.u64 %d1, %d10;"
    )
    text = load(name, 4, "im2col")
    return text.replace("FILLED: ", f"FILLED: {before}")


def entries() -> dict[str, str]:
    """All entries of the comparison with a GPU, by name."""
    out = {"bulk_f32_0": bulk_add("bulk_f32_0"), "replace_im2col_4": replaced("replace_im2col_4")}
    out["cta_im2col_4"] = load("cta_im2col_4", 4, "im2col", "shared::cta")
    out["multi_im2col_4"] = load("multi_im2col_4", 4, "im2col", cluster=2)
    for rank in range(1, 6):
        for tag, mode, stored in (("tile", "tile", "tile"), ("im2col", "im2col", "im2col_no_offs")):
            if tag == "im2col" and rank < 3:
                continue
            out[f"load_{tag}_{rank}"] = load(f"load_{tag}_{rank}", rank, mode)
            for op in (None, *OPS):
                name = f"{op or 'store'}_{tag}_{rank}"
                out[name] = store(name, rank, stored, op)
    return out
