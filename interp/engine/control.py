"""Emit the dispatcher: the native function that runs one warp until it ends, waits, runs out of fuel or faults.

    i64 @run_warp(ptr %ctx, ptr %warp) -> STATUS_* of interp.runtime.layout

State lives in the warp frame: `pending[region]`, the lanes that want to run a region next; `parked[region]` and
`barrier[region]`, lanes that wait to continue there and for which barrier (-1: for other lanes of the warp).

Lanes are scheduled by thread frontiers: of all regions with pending lanes, the lowest in reverse postorder runs next,
so lanes that took different paths meet again early. As long as all lanes are together, transfers are plain jumps. A
back edge burns fuel; when it is gone the warp yields and the next search starts behind the region it was in (`CURSOR`).

Lowest-first alone would starve a lane that holds a lock others spin on. So a *polling* edge (see `interp.engine.plan`)
taken PATIENCE times while other lanes wait makes the next TURNS searches start behind it, and after POLLS of them the
warp yields.

A `.sync` instruction runs once for each member mask among the lanes that have come to it, when all live lanes of that
mask have.
"""

from __future__ import annotations

from interp.engine.plan import Plan, Region, awaits_cluster
from interp.runtime import layout as L
from interp.runtime.layout import CTX, WARP, WARP_WORDS
from ptx import ir
from ptx.isa import Effect

_PENDING = WARP_WORDS * 8
PATIENCE = 100
"""Turns of a polling loop before other lanes of the warp go first: early costs reconvergence, late costs time."""
TURNS = 64
"""Searches in which they do: a critical section is seldom more regions long."""
POLLS = 500
"""Turns of a polling loop before other warps run: a full device has thousands of warps that may all wait for one."""


def emit_dispatcher(plan: Plan, counters: bool, externs: dict[str, str]) -> str:
    """The text of `run_warp` for a plan; declarations that it needs are added to `externs`."""
    externs["@llvm.ctpop.i32"] = "declare i32 @llvm.ctpop.i32(i32)"
    externs["@llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1)"
    return _Dispatcher(plan, counters).emit()


class _Dispatcher:
    def __init__(self, plan: Plan, counters: bool) -> None:
        self.plan, self.counters = plan, counters
        self.n = len(plan.regions)
        self.lines: list[str] = []
        self.count = 0
        self.any_waits = any(r.waits for r in plan.regions)
        self.fair = plan.diverges and bool(plan.polling)

    # ---------------------------------------------------------------- text
    def value(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def put(self, text: str) -> None:
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}.{self.count}"

    def field(self, pointer: str, index: int) -> str:
        return self.value(f"getelementptr i64, ptr {pointer}, i64 {index}")

    def mask_at(self, array: int, region: str) -> str:
        """Address of an i32 of one of the three region arrays (0 pending, 1 parked, 2 barrier)."""
        base = self.value(f"getelementptr i8, ptr %warp, i64 {_PENDING + 4 * self.n * array}")
        return self.value(f"getelementptr i32, ptr {base}, i64 {region}")

    def or_into(self, address: str, mask: str) -> None:
        old = self.value(f"load i32, ptr {address}, align 4")
        new = self.value(f"or i32 {old}, {mask}")
        self.put(f"store i32 {new}, ptr {address}, align 4")

    def popcount(self, mask: str) -> str:
        lanes = self.value(f"call i32 @llvm.ctpop.i32(i32 {mask})")
        return self.value(f"zext i32 {lanes} to i64")

    def bump(self, address: str, amount: str) -> str:
        old = self.value(f"load i64, ptr {address}, align 8")
        new = self.value(f"add i64 {old}, {amount}")
        self.put(f"store i64 {new}, ptr {address}, align 8")
        return new

    # ---------------------------------------------------------------- the function
    def emit(self) -> str:
        self.put("%mask.v = alloca i32, align 4")
        self.put("%waiting.v = alloca i32, align 4")
        self.put("%i.v = alloca i64, align 8")
        self.put("%first.v = alloca i64, align 8")
        self.put("%todo.v = alloca i32, align 4")
        for name, start in (("base", 0), ("turns", 0), ("patience", PATIENCE), ("polls", POLLS)):
            if self.plan.polling:
                self.put(f"%{name}.v = alloca i64, align 8")
                self.put(f"store i64 {start}, ptr %{name}.v, align 8")
        self._entry()
        self._search()
        for index, region in enumerate(self.plan.regions):
            self._region(index, region)
        body = "\n".join(self.lines)
        return f"define i64 @run_warp(ptr noalias %ctx, ptr noalias %warp) nounwind {{\n{body}\n}}\n"

    def _entry(self) -> None:
        """Sum up who is waiting; start at the cursor."""
        cursor = self.value(f"load i64, ptr {self.field('%warp', WARP['CURSOR'])}, align 8")
        self.put(f"store i64 {cursor}, ptr %first.v, align 8")
        self.put(f"store i64 0, ptr {self.field('%warp', WARP['CURSOR'])}, align 8")
        self.put("store i32 0, ptr %waiting.v, align 4")
        self.put("store i64 0, ptr %i.v, align 8")
        self.put("br label %sum")
        self.label("sum")
        i = self.value("load i64, ptr %i.v, align 8")
        m = self.value(f"load i32, ptr {self.mask_at(0, i)}, align 4")
        self.or_into("%waiting.v", m)
        step = self.value(f"add i64 {i}, 1")
        self.put(f"store i64 {step}, ptr %i.v, align 8")
        more = self.value(f"icmp ult i64 {step}, {self.n}")
        self.put(f"br i1 {more}, label %sum, label %search")

    def _search(self) -> None:
        """Pick the next region with pending lanes, or leave."""
        self.label("search")
        waiting = self.value("load i32, ptr %waiting.v, align 4")
        none = self.value(f"icmp eq i32 {waiting}, 0")
        first = self.value("load i64, ptr %first.v, align 8")
        self.put(f"store i64 {first}, ptr %i.v, align 8")
        self.put(f"store i64 {self._next_start() if self.fair else 0}, ptr %first.v, align 8")
        self.put(f"br i1 {none}, label %idle, label %look")
        self.label("look")
        i = self.value("load i64, ptr %i.v, align 8")
        past = self.value(f"icmp uge i64 {i}, {self.n}")
        here = self.value(f"select i1 {past}, i64 0, i64 {i}")
        address = self.mask_at(0, here)
        m = self.value(f"load i32, ptr {address}, align 4")
        step = self.value(f"add i64 {here}, 1")
        self.put(f"store i64 {step}, ptr %i.v, align 8")
        empty = self.value(f"icmp eq i32 {m}, 0")
        self.put(f"br i1 {empty}, label %look, label %go")
        self.label("go")
        self.put(f"store i32 0, ptr {address}, align 4")
        rest = self.value(f"xor i32 {waiting}, {m}")
        self.put(f"store i32 {rest}, ptr %waiting.v, align 4")
        self.put(f"store i32 {m}, ptr %mask.v, align 4")
        cases = " ".join(f"i64 {i}, label %region{i}" for i in range(self.n))
        self.put(f"switch i64 {here}, label %idle [ {cases} ]")
        self._idle()

    def _next_start(self) -> str:
        """Where the search after this one starts: behind a polling loop while its lanes give way, else at 0."""
        turns = self.value("load i64, ptr %turns.v, align 8")
        some = self.value(f"icmp sgt i64 {turns}, 0")
        less = self.value(f"sub i64 {turns}, 1")
        self.put(f"store i64 {self.value(f'select i1 {some}, i64 {less}, i64 0')}, ptr %turns.v, align 8")
        base = self.value("load i64, ptr %base.v, align 8")
        return self.value(f"select i1 {some}, i64 {base}, i64 0")

    def _idle(self) -> None:
        """Nothing pending: all lanes have ended, or wait at a barrier, or for lanes that never come."""
        self.label("idle")
        live = self.value(f"load i64, ptr {self.field('%warp', WARP['LIVE'])}, align 8")
        done = self.value(f"icmp eq i64 {live}, 0")
        self.put(f"br i1 {done}, label %done, label %parked")
        self.label("parked")
        self.put("store i64 0, ptr %i.v, align 8")
        self.put("br label %scan")
        self.label("scan")
        i = self.value("load i64, ptr %i.v, align 8")
        m = self.value(f"load i32, ptr {self.mask_at(1, i)}, align 4")
        b = self.value(f"load i32, ptr {self.mask_at(2, i)}, align 4")
        some = self.value(f"icmp ne i32 {m}, 0")
        real = self.value(f"icmp sge i32 {b}, 0")
        at_barrier = self.value(f"and i1 {some}, {real}")
        self.put(f"br i1 {at_barrier}, label %barrier, label %scan.next")
        self.label("scan.next")
        step = self.value(f"add i64 {i}, 1")
        self.put(f"store i64 {step}, ptr %i.v, align 8")
        more = self.value(f"icmp ult i64 {step}, {self.n}")
        self.put(f"br i1 {more}, label %scan, label %stuck")
        for name, status in (
            ("done", L.STATUS_DONE), ("barrier", L.STATUS_BARRIER), ("stuck", L.STATUS_STUCK),
            ("fuel", L.STATUS_FUEL), ("fault", L.STATUS_FAULT),
        ):  # fmt: skip
            self.label(name)
            self.put(f"ret i64 {status}")

    # ---------------------------------------------------------------- regions
    def _region(self, index: int, region: Region) -> None:
        self.label(f"region{index}")
        if region.waits:
            self._gather(index, region)
        mask = self.value("load i32, ptr %mask.v, align 4")
        if self.counters:
            counters = self.value(f"load ptr, ptr {self.field('%ctx', CTX['COUNTERS'])}, align 8")
            self.bump(self.field(counters, 2 * index), "1")
            self.bump(self.field(counters, 2 * index + 1), self.popcount(mask))
        result = self.value(f"call i64 @r{index}(ptr %ctx, ptr %warp, i32 {mask})")
        if region.touches_machine:
            kind = self.value(f"load i64, ptr {self.field('%ctx', CTX['FAULT'])}, align 8")
            bad = self.value(f"icmp ne i64 {kind}, 0")
            fine = self.fresh("fine")
            self.put(f"br i1 {bad}, label %fault, label %{fine}")
            self.label(fine)
        self._transfer(index, region, mask, result)

    def _gather(self, index: int, region: Region) -> None:
        """Wait until every live lane of a member mask has arrived at this region."""
        parked = self.mask_at(1, str(index))
        self.or_into(parked, self.value("load i32, ptr %mask.v, align 4"))
        here = self.value(f"load i32, ptr {parked}, align 4")
        self.put(f"store i32 -1, ptr {self.mask_at(2, str(index))}, align 4")
        live = self.value(f"load i64, ptr {self.field('%warp', WARP['LIVE'])}, align 8")
        away = self.value(f"xor i32 {here}, -1")
        absent = self.value(f"and i32 {self.value(f'trunc i64 {live} to i32')}, {away}")
        go = self.fresh("together")
        members = self._members(region)
        if not isinstance(members, int):
            self._gather_groups(index, members, parked, here, absent, go)
            return
        missing = self.value(f"and i32 {absent}, {members}")
        complete = self.value(f"icmp eq i32 {missing}, 0")
        self.put(f"br i1 {complete}, label %{go}, label %search")
        self.label(go)
        self.put(f"store i32 0, ptr {parked}, align 4")
        self.put(f"store i32 {here}, ptr %mask.v, align 4")

    def _gather_groups(self, index: int, members: str, parked: str, here: str, absent: str, go: str) -> None:
        """The first group of lanes with one member mask that is complete goes on; the rest is looked at again."""
        group, next_ = self.fresh("group"), self.fresh("next")
        self.put(f"store i32 {here}, ptr %todo.v, align 4")
        self.put(f"br label %{group}")
        self.label(group)
        todo = self.value("load i32, ptr %todo.v, align 4")
        lane = self.value(f"call i32 @llvm.cttz.i32(i32 {todo}, i1 true)")
        mask = self.value(f"load i32, ptr {self.value(f'getelementptr i32, ptr {members}, i32 {lane}')}, align 4")
        missing = self.value(f"and i32 {absent}, {mask}")
        complete = self.value(f"icmp eq i32 {missing}, 0")
        # the lane itself belongs to the group even if its mask does not say so: the instruction reports that
        named = self.value(f"or i32 {mask}, {self.value(f'shl i32 1, {lane}')}")
        self.put(f"br i1 {complete}, label %{go}, label %{next_}")
        self.label(next_)
        left = self.value(f"and i32 {todo}, {self.value(f'xor i32 {named}, -1')}")
        self.put(f"store i32 {left}, ptr %todo.v, align 4")
        self.put(f"br i1 {self.value(f'icmp eq i32 {left}, 0')}, label %search, label %{group}")
        self.label(go)
        run = self.value(f"and i32 {here}, {named}")
        rest = self.value(f"xor i32 {here}, {run}")
        self.put(f"store i32 0, ptr {parked}, align 4")
        self.or_into(self.mask_at(0, str(index)), rest)
        self.or_into("%waiting.v", rest)
        self.put(f"store i32 {run}, ptr %mask.v, align 4")

    def _members(self, region: Region) -> int | str:
        """The member mask of the region's first instruction (-1: all lanes), or the address of the lanes' own masks."""
        step = region.steps[0]
        for spec, operand in step.form.bind(step.inst):
            if spec.name != "members":
                continue
            if isinstance(operand, ir.Imm):
                return ((operand.value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
            if isinstance(operand, ir.Reg) and operand.name in self.plan.slots:
                return self.value(f"getelementptr i8, ptr %warp, i64 {self.plan.slots[operand.name]}")
        return -1

    def _transfer(self, index: int, region: Region, mask: str, result: str) -> None:
        end = region.end
        if end is None:
            if region.targets:
                self._go(index, region.targets[0], mask)
            else:
                self._exit(mask)
            return
        effect = end.form.op.effect
        if effect is Effect.BARRIER:
            self._barrier(region, mask, result)
        elif effect is Effect.BRANCH and end.inst.guard is None:
            self._go(index, region.targets[0], mask)
        elif end.inst.guard is None:
            self._trap(end.site) if end.inst.op == "trap" else self._exit(mask)
        else:
            self._split(index, region, mask, result)

    def _split(self, index: int, region: Region, mask: str, result: str) -> None:
        """A guarded branch or exit."""
        assert region.end is not None
        bits = self.value(f"trunc i64 {result} to i32")
        taken = self.value(f"and i32 {mask}, {bits}")
        rest = self.value(f"xor i32 {mask}, {taken}")
        none, all_, both = self.fresh("none"), self.fresh("all"), self.fresh("both")
        leaves = region.end.form.op.effect is Effect.EXIT
        fall = region.targets[0] if leaves else region.targets[1]
        zero = self.value(f"icmp eq i32 {taken}, 0")
        self.put(f"br i1 {zero}, label %{none}, label %{all_}.test")
        self.label(f"{all_}.test")
        full = self.value(f"icmp eq i32 {rest}, 0")
        self.put(f"br i1 {full}, label %{all_}, label %{both}")
        self.label(none)
        self._go(index, fall, mask)
        self.label(all_)
        if leaves:
            self._trap(region.end.site) if region.end.inst.op == "trap" else self._exit(mask)
        else:
            self._go(index, region.targets[0], mask)
        self.label(both)
        self.or_into(self.mask_at(0, str(fall)), rest)
        if leaves:
            self.or_into("%waiting.v", rest)
            self._trap(region.end.site) if region.end.inst.op == "trap" else self._exit(taken)
        else:
            self.or_into(self.mask_at(0, str(region.targets[0])), taken)
            self.or_into("%waiting.v", mask)
            if any((index, t) in self.plan.back_edges for t in region.targets):
                self._burn(index, any((index, t) in self.plan.polling for t in region.targets))
            self.put("br label %search")

    def _go(self, index: int, target: int, mask: str) -> None:
        """All lanes of `mask` continue at a region."""
        back, polling = (index, target) in self.plan.back_edges, (index, target) in self.plan.polling
        if self.plan.diverges or back:
            yield_, direct = self.fresh("queue"), self.fresh("direct")
            waiting = self.value("load i32, ptr %waiting.v, align 4")
            together = self.value(f"icmp eq i32 {waiting}, 0")
            if back:
                fuel = self.value(f"load i64, ptr {self.field('%ctx', CTX['FUEL'])}, align 8")
                left = self.value(f"icmp sgt i64 {fuel}, 0")
                together = self.value(f"and i1 {together}, {left}")
            if polling:
                polls = self.value("load i64, ptr %polls.v, align 8")
                together = self.value(f"and i1 {together}, {self.value(f'icmp sgt i64 {polls}, 0')}")
            self.put(f"br i1 {together}, label %{direct}, label %{yield_}")
            self.label(yield_)
            self.or_into(self.mask_at(0, str(target)), mask)
            self.or_into("%waiting.v", mask)
            if back:
                self._burn(index, polling)
            self.put("br label %search")
            self.label(direct)
            if back:
                self.bump(self.field("%ctx", CTX["FUEL"]), "-1")
            if polling:
                self.bump("%polls.v", "-1")
        self.put(f"store i32 {mask}, ptr %mask.v, align 4")
        self.put(f"br label %region{target}")

    def _burn(self, index: int, polling: bool) -> None:
        """One unit of fuel; without any left the warp yields, lanes are pending already."""
        left = self.bump(self.field("%ctx", CTX["FUEL"]), "-1")
        empty = self.value(f"icmp slt i64 {left}, 0")
        if polling:
            polls = self.bump("%polls.v", "-1")
            empty = self.value(f"or i1 {empty}, {self.value(f'icmp slt i64 {polls}, 0')}")
        out, on = self.fresh("out"), self.fresh("on")
        self.put(f"br i1 {empty}, label %{out}, label %{on}")
        self.label(out)
        self.put(f"store i64 {index + 1}, ptr {self.field('%warp', WARP['CURSOR'])}, align 8")
        self.put("br label %fuel")
        self.label(on)
        if not (polling and self.fair):
            return
        patience = self.bump("%patience.v", "-1")
        over, fine = self.fresh("over"), self.fresh("patient")
        self.put(f"br i1 {self.value(f'icmp slt i64 {patience}, 0')}, label %{over}, label %{fine}")
        self.label(over)
        for name, value in (("patience", PATIENCE), ("base", index + 1), ("first", index + 1), ("turns", TURNS)):
            self.put(f"store i64 {value}, ptr %{name}.v, align 8")
        self.put(f"br label %{fine}")
        self.label(fine)

    def _exit(self, mask: str) -> None:
        address = self.field("%warp", WARP["LIVE"])
        live = self.value(f"load i64, ptr {address}, align 8")
        wide = self.value(f"zext i32 {mask} to i64")
        left = self.value(f"xor i64 {live}, {wide}")
        self.put(f"store i64 {left}, ptr {address}, align 8")
        lanes = self.popcount(mask)
        self.bump(self.field("%ctx", CTX["LIVE"]), self.value(f"sub i64 0, {lanes}"))
        if self.any_waits:  # lanes that waited for those that ended look again
            for i, region in enumerate(self.plan.regions):
                if region.waits:
                    parked = self.mask_at(1, str(i))
                    m = self.value(f"load i32, ptr {parked}, align 4")
                    self.put(f"store i32 0, ptr {parked}, align 4")
                    self.or_into(self.mask_at(0, str(i)), m)
                    self.or_into("%waiting.v", m)
        self.put("br label %search")

    def _barrier(self, region: Region, mask: str, result: str) -> None:
        resume = str(region.targets[0])
        self.or_into(self.mask_at(1, resume), mask)
        if region.end is not None and awaits_cluster(region.end.form):
            self.put(f"store i32 {L.CLUSTER_BARRIER}, ptr {self.mask_at(2, resume)}, align 4")
            self.put("br label %search")
            return
        number = self.value(f"and i64 {result}, 15")
        small = self.value(f"trunc i64 {number} to i32")
        self.put(f"store i32 {small}, ptr {self.mask_at(2, resume)}, align 4")
        arrived = self.value(f"getelementptr i64, ptr {self.field('%ctx', CTX['ARRIVED'])}, i64 {number}")
        self.bump(arrived, self.popcount(mask))
        expected = self.value(f"getelementptr i64, ptr {self.field('%ctx', CTX['EXPECTED'])}, i64 {number}")
        threads = self.value(f"lshr i64 {result}, 8")
        self.put(f"store i64 {threads}, ptr {expected}, align 8")
        self.put("br label %search")

    def _trap(self, site: int) -> None:
        self.put(f"store i64 {L.FAULT_TRAP}, ptr {self.field('%ctx', CTX['FAULT'])}, align 8")
        self.put(f"store i64 {site}, ptr {self.field('%ctx', CTX['FAULT_SITE'])}, align 8")
        self.put("br label %fault")
