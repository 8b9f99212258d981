"""Random PTX programs from seeds: arithmetic of all widths, predicates, guards, loops, divergence, shared memory,
warp operations.

A *body* is one program; a *batch* is a kernel with several bodies, chosen by %ctaid.x, so that one compilation serves
many programs. Each thread loads its registers from `in`, runs the body, and stores all of them to `out`. Memory
operations stay inside a kilobyte of global scratch a CTA, a kilobyte of shared memory, and 64 bytes of local memory a
thread; addresses are random in there, so threads race, and both engines must resolve the races alike.

A *uniform* batch has no branch that depends on a lane: the compiled engine then runs without masks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np

from interp.kits.python import PythonKit
from interp.ops import ISA
from ptx.errors import Unsupported
from ptx.record import Op
from tests.differential import asynchronous, forms
from tests.differential.forms import POOLS, register, word
from tests.differential.frame import HEADER, LOADS, SCRATCH, STORES

ELSEWHERE = ("mma.variant", "wmma.", "red.async", "st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes.b128",
             *(f"{n}{{.sem,.scope,.ss}}{{.hint}}.vec" for n in ("atom", "red")),
             *(f"{n}{{.sem,.scope,.ss}}.op{{.noftz}}{{.hint}}.vec" for n in ("atom", "red")))  # fmt: skip
"""How the syntax lines begin of records that are not drawn here; suites of their own run them on both engines."""
_BY_NAME: dict[str, list[Op]] = {}
for _op in ISA.ops:
    _BY_NAME.setdefault(_op.name, []).append(_op)


@dataclass
class Body:
    """One program: its lines, and what it is made of."""

    seed: int
    lines: list[str] = field(default_factory=list)
    records: list[Op] = field(default_factory=list)
    loops: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """A kernel text with its bodies. `threads`: of a CTA; `first_line`, one past the last: PTX lines of each body."""

    text: str
    bodies: tuple[Body, ...]
    threads: int
    spans: tuple[tuple[int, int], ...]
    seed: int


class _Writer:
    """Writes one body."""

    def __init__(self, seed: int, label: str, uniform: bool, full: bool, size: int, variety: int) -> None:
        self.rng = Random(f"gpuemu body {seed}")
        self.body = Body(seed)
        self.label, self.uniform, self.full, self.size, self.variety = label, uniform, full, size, variety
        self.depth = 0  # of lane-dependent control flow
        self.nesting = 0
        self.labels = 0
        self.left = False  # some lanes may have ended

    def put(self, text: str) -> None:
        self.body.lines.append(f"\t{text};")

    def record(self, op: Op) -> None:
        self.body.records.append(op)

    def opcode(self, name: str, index: int = 0, **fixed: str) -> str:
        """A random opcode of a record by name, drawn."""
        op = _BY_NAME[name][index]
        self.record(op)
        return forms.opcode(op, self.rng, fixed, self.variety)[0]

    def record_of(self, start: str, index: int = 0) -> Op:
        """The record whose syntax line starts so; of several the one at `index`."""
        return [o for o in ISA.ops if o.syntax.startswith(start)][index]

    def draw_syntax(self, start: str, index: int = 0, /, **fixed: str) -> str:
        """A random opcode of the record whose syntax line starts so, drawn; of several the one at `index`."""
        op = self.record_of(start, index)
        self.record(op)
        known = {k: v for k, v in fixed.items() if k in op.choices or k in op.flags}
        return forms.opcode(op, self.rng, known, self.variety)[0]

    def fresh(self) -> str:
        self.labels += 1
        return f"{self.label}_{self.labels}"

    def write(self) -> Body:
        for line in LOADS:
            self.put(line)
        for _ in range(self.size):
            self.statement()
        for line in STORES:
            self.put(line)
        return self.body

    # ---------------------------------------------------------------- statements
    def statement(self) -> None:
        rng = self.rng
        together = self.depth == 0
        choices = [
            (50, self.pure),
            (8, self.guarded),
            (10, self.memory),
            (4, self.atomic),
            (3, self.wide),
            (3, self.special),
            (2, self.fence),
            (7 if self.nesting < 2 else 0, self.branch),
            (4 if self.nesting < 2 else 0, self.loop),
            (6 if together else 2, self.exchange),
            (4 if together else 0, self.shared_exchange),
            (2, self.async_copy),
            (3 if together and self.full and not self.left else 0, self.matrix),
            (1 if together and not self.uniform and self.nesting == 0 else 0, self.leave),
            (6 if together and self.full and not self.left else 0, self.asynchronous),
        ]
        rng.choices([c for _, c in choices], [w for w, _ in choices])[0]()

    def pure(self) -> None:
        drawn = forms.draw(self.rng.choice(forms.PURE), self.rng, self.variety)
        self.record(drawn.op)
        self.put(drawn.text)

    def guarded(self) -> None:
        drawn = forms.draw(self.rng.choice(forms.PURE), self.rng, self.variety)
        self.record(drawn.op)
        self.put(f"@{self.rng.choice(('', '!'))}{register(1, self.rng)} {drawn.text}")

    def guard(self) -> str:
        return f"@{self.rng.choice(('', '!'))}{register(1, self.rng)} " if self.rng.random() < 0.25 else ""

    def address(self, space: str, size: int) -> str:
        """A register (with offset) that holds an aligned address inside the space's area."""
        rng = self.rng
        reach = {"local": 64, "const": 256, "table": 256}.get(space, SCRATCH)
        offset = rng.choice((0, 0, size, 2 * size)) if reach > 4 * size else 0
        self.put(f"and.b32 %t7, {register(32, rng)}, {(reach // 2 - 1) & ~(size - 1)}")
        if space == "shared":
            self.body.shared = True
            self.put("add.u32 %t7, %t7, %t4")
            return f"%t7+{offset}"
        self.put("cvt.u64.u32 %a4, %t7")
        base = {"global": "%a2", "generic": "%a2", "local": "%a3"}.get(space)
        if base is None:
            self.put(f"mov.u64 %a5, {'fixed' if space == 'const' else 'table'}")
            base = "%a5"
        self.put(f"add.u64 %a4, %a4, {base}")
        if space == "generic":
            kind = rng.choice(("global", "shared", "local"))
            if kind != "global":
                self.body.shared |= kind == "shared"
                self.put(f"and.b32 %t7, %t7, {(64 // 2 - 1) & ~(size - 1)}")
                self.put("cvt.u64.u32 %a4, %t7")
                self.put("cvt.u64.u32 %a5, %t4" if kind == "shared" else "mov.u64 %a5, %a3")
                self.put("add.u64 %a4, %a4, %a5")
                self.put(f"cvta.{kind}.u64 %a4, %a4")
                return "%a4"
        return f"%a4+{offset}"

    def memory(self) -> None:
        rng = self.rng
        space = rng.choice(("global", "global", "shared", "shared", "local", "generic", "const", "table"))
        store = space not in ("const", "table") and rng.random() < 0.5
        name = "st" if store else "ld"
        ss = "" if space == "generic" else ".global" if space == "table" else f".{space}"
        op = self.record_of(f"{name}{{.order}}")
        type = rng.choice([t for t in op.choices["type"] if t != ".b128"])
        n = int(type[2:])
        count = rng.choice([1, 1, 2, 4] if n < 64 else [1, 1, 2])
        self.record(op)
        where = self.address(space, n // 8 * count)
        order = rng.choice(("", "", ".volatile", ".relaxed.gpu")) if ss in (".global", ".shared") else ""
        cache = rng.choice(("", "", ".ca" if not store else ".wb", ".cg")) if order == "" and ss == ".global" else ""
        text = f"{name}{order}{ss}{cache}{'' if count == 1 else f'.v{count}'}{type}"
        wide = max(n, 16) if type[1] != "f" and rng.random() < 0.7 else max(n, 16) if n != 8 else 16
        if type[1] in "us" and n < 64 and rng.random() < 0.2:
            wide = min(2 * max(n, 16), 64)
        stem, number = POOLS[wide]
        names = [f"{stem}{i}" for i in rng.sample(range(number), count)]
        value = names[0] if count == 1 else "{" + ", ".join(names) + "}"
        self.put(self.guard() + (f"{text} [{where}], {value}" if store else f"{text} {value}, [{where}]"))

    def atomic(self) -> None:
        rng = self.rng
        space = rng.choice(("global", "shared", "generic"))
        name = rng.choice(("atom", "red"))
        cas = name == "atom" and rng.random() < 0.3
        op = _BY_NAME[name][1 if cas else 0]
        fixed = {"ss": "" if space == "generic" else f".{space}", "hint": ""}
        text, mods = forms.opcode(op, rng, fixed, self.variety)
        self.record(op)
        n = forms.width(mods["type"])
        where = self.address(space, n // 8)
        values = ", ".join(register(n, rng) for _ in range(2 if cas else 1))
        target = f"{register(n, rng)}, " if name == "atom" else ""
        self.put(self.guard() + f"{text} {target}[{where}], {values}")

    def wide(self) -> None:
        """A load, store, exchange, or comparison and exchange, of 128 bits."""
        rng = self.rng
        space = rng.choice(("global", "shared", "generic"))
        op = rng.choice([o for o in _BY_NAME["ld"] + _BY_NAME["st"] + _BY_NAME["atom"] if ".b128" in o.syntax
                         and not o.syntax.startswith(ELSEWHERE)])
        if op.name != "atom":
            space = rng.choice((space, "local", "const")) if op.name == "ld" else rng.choice((space, "local"))
        fixed = {"ss": "" if space == "generic" else f".{space}", **dict.fromkeys(("hint", "nc", "prefetch"), "")}
        fixed |= {"l1": "", "l2": ""}
        if space != "global" or op.name == "atom":
            fixed |= {"cop": ""}
        if space not in ("global", "shared"):
            fixed |= {"order": ""}
        text, mods = forms.opcode(op, rng, fixed, self.variety)
        if mods.get("order") and mods.get("cop"):
            text = text.replace(f".{mods['cop']}", "")
        self.record(op)
        where, words = self.address(space, 16), [f"%x{i}" for i in rng.sample(range(4), 3)]
        if op.name == "ld":
            operands = f"{words[0]}, [{where}]"
        elif op.name == "st":
            operands = f"[{where}], {words[0]}"
        else:
            operands = f"{words[0]}, [{where}], {', '.join(words[1 : 3 if 'cas' in op.syntax else 2])}"
        self.put(f"{self.guard()}{text} {operands}")

    def special(self) -> None:
        rng = self.rng
        name = rng.choice(
            (
                "%tid.x",
                "%tid.y",
                "%ntid.x",
                "%ctaid.x",
                "%nctaid.x",
                "%laneid",
                "%warpid",
                "%nwarpid",
                "%lanemask_eq",
                "%lanemask_lt",
                "%lanemask_le",
                "%lanemask_gt",
                "%lanemask_ge",
                "%clock",
                "%clock64",
                "%smid",
                "%nsmid",
                "%globaltimer",
                "%clock_hi",
                "%dynamic_smem_size",
                "%total_smem_size",
            )
        )
        self.record(_BY_NAME["mov"][0])
        wide = name in ("%clock64", "%globaltimer")
        self.put(self.guard() + f"mov.u{64 if wide else 32} {register(64 if wide else 32, rng)}, {name}")

    def fence(self) -> None:
        name = self.rng.choice(("membar", "fence", "prefetch", "nanosleep"))
        if name == "prefetch":
            self.put(f"{self.opcode(name, ss='.global')} [%a2+{self.rng.choice((0, 64, 1 << 20))}]")
        elif name == "nanosleep" and name in _BY_NAME:
            self.put(f"{self.opcode(name)} 20")
        elif name in ("membar", "fence"):
            self.put(self.opcode(name))

    # ---------------------------------------------------------------- control flow
    def condition(self) -> tuple[str, bool]:
        """A predicate for a branch, and whether lanes may differ in it."""
        rng = self.rng
        if self.uniform or rng.random() < 0.3:
            self.put("ld.param.u32 %t8, [p_number]")
            self.put(f"xor.b32 %t8, %t8, {rng.getrandbits(8)}")
            self.put(f"setp.{rng.choice(('lt', 'gt'))}.u32 %pt0, %t8, 128")
            return "%pt0", False
        how = rng.randrange(3)
        if how == 0:
            self.put(f"setp.lt.u32 %pt0, %t0, {rng.randrange(1, 64)}")
        elif how == 1:
            self.put(f"and.b32 %t8, %t0, {rng.choice((1, 2, 5, 16))}")
            self.put("setp.eq.u32 %pt0, %t8, 0")
        else:
            self.put(f"mov.pred %pt0, {register(1, rng)}")
        return "%pt0", True

    def nested(self, count: int, lanes: bool) -> None:
        self.depth += lanes
        self.nesting += 1
        for _ in range(count):
            self.statement()
        self.nesting -= 1
        self.depth -= lanes

    def branch(self) -> None:
        rng = self.rng
        predicate, lanes = self.condition()
        other, end = self.fresh(), self.fresh()
        self.record(_BY_NAME["bra"][0])
        uni = "" if lanes else rng.choice(("", ".uni"))
        self.put(f"@{rng.choice(('', '!'))}{predicate} bra{uni} {other}")
        self.nested(rng.randrange(1, 5), lanes)
        if rng.random() < 0.6:
            self.put(f"bra.uni {end}")
            self.body.lines.append(f"{other}:")
            self.nested(rng.randrange(1, 4), lanes)
            self.body.lines.append(f"{end}:")
        else:
            self.body.lines.append(f"{other}:")

    def loop(self) -> None:
        """Up to four turns; with lanes, each its own number; sometimes with an exit in the middle."""
        rng = self.rng
        self.body.loops = True
        lanes = not self.uniform and rng.random() < 0.6
        counter = f"%t{10 + self.nesting}"
        if lanes:
            self.put(f"and.b32 {counter}, {rng.choice(('%t0', register(32, rng)))}, {rng.choice((1, 3))}")
        else:
            self.put(f"mov.u32 {counter}, {rng.randrange(1, 4)}")
        top, out = self.fresh(), self.fresh()
        self.body.lines.append(f"{top}:")
        self.nested(rng.randrange(1, 4), lanes)
        if lanes and rng.random() < 0.4:
            self.put(f"@{register(1, rng)} bra {out}")
            self.nested(rng.randrange(1, 3), lanes)
        self.put(f"sub.s32 {counter}, {counter}, 1")
        self.put(f"setp.ge.s32 %pt1, {counter}, 0")
        self.record(_BY_NAME["bra"][0])
        self.put(f"@%pt1 bra {top}")
        self.body.lines.append(f"{out}:")

    def leave(self) -> None:
        predicate, _ = self.condition()
        name = self.rng.choice(("ret", "exit"))
        self.record(_BY_NAME[name][0])
        self.put(f"@{predicate} {name}")
        self.left = True

    # ---------------------------------------------------------------- between threads
    def members(self) -> str:
        """A member mask: all lanes, or under divergence the lanes that are together."""
        if self.depth == 0:
            return "-1" if self.rng.random() < 0.8 else "0xffffffff"
        self.record(_BY_NAME["activemask"][0])
        self.put("activemask.b32 %t9")
        return "%t9"

    def exchange(self) -> None:
        rng = self.rng
        name = rng.choice(("shfl", "shfl", "vote", "vote", "match", "match", "redux", "bar.warp", "elect"))
        members = self.members()
        r = register(32, rng)
        if name == "bar.warp":
            op = next(o for o in _BY_NAME["bar"] if ".warp" in o.syntax)
            self.record(op)
            self.put(f"bar.warp.sync {members}")
        elif name == "shfl":
            pair = rng.choice(("", f"|{register(1, rng)}"))
            lane = rng.choice((register(32, rng), str(rng.randrange(32))))
            clamp = rng.choice((31, 0, 0x1F1F & 0x1C1F, 0x181F, register(32, rng)))
            self.put(f"{self.opcode('shfl')} {r}{pair}, {register(32, rng)}, {lane}, {clamp}, {members}")
        elif name == "vote":
            index = rng.randrange(2)
            text = self.opcode("vote", index)
            self.put(f"{text} {r if 'ballot' in text else register(1, rng)}, {register(1, rng)}, {members}")
        elif name == "match":
            index = rng.randrange(2)
            text = self.opcode("match", index)
            pair = rng.choice(("", f"|{register(1, rng)}")) if index else ""
            self.put(f"{text} {r}{pair}, {register(64 if 'b64' in text else 32, rng)}, {members}")
        elif name == "redux":
            self.put(f"{self.opcode('redux')} {r}, {register(32, rng)}, {members}")
        elif "elect" in _BY_NAME:
            self.put(f"{self.opcode('elect')} {r}|{register(1, rng)}, {members}")

    def shared_exchange(self) -> None:
        """Every thread stores a word and reads another thread's behind a barrier."""
        rng = self.rng
        self.body.shared = True
        name = rng.choice(("bar", "barrier"))
        barrier = self.draw_syntax(f"{name}{{.cta}}.sync") + f" {rng.choice((0, 0, 1, 7))}"
        self.put(f"{self.opcode('bar')} 0")
        self.put("mad.lo.u32 %t7, %t0, 8, %t4")
        self.put(f"st.shared.b64 [%t7], {register(64, rng)}")
        self.put(barrier)
        self.put(f"xor.b32 %t7, %t0, {rng.choice((1, 7, 16, 32))}")
        self.put("mad.lo.u32 %t7, %t7, 8, %t4")
        self.put(f"ld.shared.b64 {register(64, rng)}, [%t7]")

    def async_copy(self) -> None:
        rng = self.rng
        size = rng.choice((4, 8, 16))
        self.body.shared = True
        copies = [o for o in _BY_NAME["cp"] if o.syntax.startswith("cp.async.cop")]
        by_head = {o.syntax.split(" ")[0]: o for o in _BY_NAME["cp"]}
        source = self.address("global", size)
        self.put(f"add.u64 %a6, {source.partition('+')[0]}, 0")
        target = self.address("shared", size)
        mods = {"cop": ".ca" if size < 16 else rng.choice((".ca", ".cg")), "hint": ""}
        self.record(copies[0])
        text = forms.opcode(copies[0], rng, mods, self.variety)[0]
        count = rng.choice(("", f", {rng.randrange(0, size + 1)}", f", {register(32, rng)}"))
        self.put(self.guard() + f"{text} [{target}], [%a6], {size}{count}")
        for head, chance in (("cp.async.commit_group", 0.8), ("cp.async.wait_group", 0.5), ("cp.async.wait_all", 0.3)):
            if rng.random() < chance:
                self.record(by_head[head])
                self.put(head + (f" {rng.randrange(2)}" if head.endswith("wait_group") else ""))

    def asynchronous(self) -> None:
        choices = asynchronous.STATEMENTS
        self.rng.choices([f for _, f in choices], [w for w, _ in choices])[0](self)

    def matrix(self) -> None:
        rng = self.rng
        name = rng.choice(("mma", "mma", "ldmatrix", "movmatrix", "stmatrix"))
        if name == "movmatrix":
            self.put(f"{self.opcode(name)} {register(32, rng)}, {register(32, rng)}")
        elif name in ("ldmatrix", "stmatrix"):
            if name not in _BY_NAME:
                return
            self.body.shared = True
            text = self.opcode(name, ss=".shared")
            count = int(text.partition(".x")[2][0])
            self.put(f"and.b32 %t7, {register(32, rng)}, {SCRATCH - 16}")
            self.put("add.u32 %t7, %t7, %t4")
            names = "{" + ", ".join(f"%r{i}" for i in rng.sample(range(12), count)) + "}"
            self.put(f"{text} {names}, [%t7]" if name == "ldmatrix" else f"{text} [%t7], {names}")
        else:
            self.multiply()

    def multiply(self) -> None:
        rng = self.rng
        op = rng.choice([o for o in _BY_NAME["mma"] if o.since[1] <= 90 and not o.syntax.startswith(ELSEWHERE)])
        while True:
            text, mods = forms.opcode(op, rng, variety=self.variety)
            try:
                op.meaning(PythonKit(90), **mods)
            except Unsupported:  # not on this device
                continue
            break
        self.record(op)
        types = forms._resolve_types(op, mods)
        parts = []
        for spec in op.operands:
            type, count = types[spec.name]
            pool, number = POOLS[forms.width(type)]
            ids = rng.sample(range(number), count) if count <= number else [rng.randrange(number) for _ in range(count)]
            parts.append("{" + ", ".join(f"{pool}{i}" for i in ids) + "}")
        self.put(f"{text} {', '.join(parts)}")


def batch(seed: int, count: int, size: int = 14, variety: int = 0) -> Batch:
    """A batch of `count` bodies of about `size` statements each, from one seed.

    `variety`: how many choices of modifiers each record has, 0 for all of them; few keep the number of handlers that
    have to be compiled small."""
    rng = Random(f"gpuemu batch {seed}")
    uniform = rng.random() < 0.25
    threads = rng.choice((64, 64, 32, 96)) if rng.random() < 0.75 else rng.choice((48, 40, 7))
    table = ", ".join(str(rng.getrandbits(8)) for _ in range(256))
    lines = HEADER.format(table=table).splitlines()
    lines.append("\tmov.u32 %t1, %ctaid.x;")
    bodies, spans = [], []
    for i in range(1, count):
        lines.append(f"\tsetp.eq.u32 %pt0, %t1, {i};")
        lines.append(f"\t@%pt0 bra.uni B{i};")
    for i in range(count):
        body = _Writer(seed * 1000 + i, f"L{i}", uniform, threads % 32 == 0, size, variety).write()
        lines.append(f"B{i}:")
        first = len(lines) + 1
        lines += body.lines
        spans.append((first, len(lines) + 1))
        bodies.append(body)
    lines.append("}")
    return Batch("\n".join(lines) + "\n", tuple(bodies), threads, tuple(spans), seed)


def inputs(seed: int, bodies: int, threads: int) -> np.ndarray:
    """Input words of all threads, as bytes: special values, small numbers, floats and random bits."""
    rng = Random(f"gpuemu inputs {seed}")
    words: list[bytes] = []
    for _ in range(bodies * threads):
        words += [word(rng, 32).to_bytes(4, "little") for _ in range(12)]
        words += [word(rng, 64).to_bytes(8, "little") for _ in range(8)]
        words += [word(rng, 16).to_bytes(2, "little") for _ in range(8)]
    return np.frombuffer(b"".join(words), np.uint8).copy()
