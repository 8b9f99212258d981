"""Which accesses a measured launch counts, written once against the kit, so that both engines do the same.

Before the meaning of an instruction, `measure` adds a call of a runtime function that looks at the addresses of the
lanes (`interp.runtime.measured`). What needs no address (executions, lanes, bytes of parameters and constants,
operations) comes from the counters and the form, see `interp.metrics`.

`mbarrier` operations, `tensormap.replace` and prefetches are not measured: they are synchronisation and hints. Reads of
shared memory by `wgmma` are not either: the tensor core fetches them, and no published rule says in how many pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interp.kit import Kit
from interp.kits.llvm import SPACE_CODES
from interp.ops.memory import space_name
from interp.runtime.measured import ATOMIC, PLAIN
from ptx.isa import Effect
from ptx.record import Form
from ptx.types import width

_ALL = 32
_SCRATCH = (32,)


def access_bytes(form: Form) -> int:
    """Bytes a lane of a load, store or atomic; 0 for other instructions with these effects."""
    kind, count = form.types.get("d") or form.types.get("b") or ("b8", -8)
    return width(kind) // 8 * max(count, 1) if count >= 0 else 0


def by_value(form: Form) -> str | None:
    """"param" or "const" for a load whose bytes need no address: both banks are read by broadcast."""
    if form.op.effect is not Effect.LOAD:
        return None
    space = space_name(form.mods.get("ss"))
    return space if space in ("param", "const") else None


def measure(kit: Kit, form: Form, words: Mapping[str, Any]) -> None:
    """Emit what measures an instruction; `words`: its sources by operand name, in the order of the text."""
    op = form.op
    if op.effect in (Effect.LOAD, Effect.STORE, Effect.ATOMIC):
        if access_bytes(form) and by_value(form) is None:
            how = ATOMIC if op.effect is Effect.ATOMIC else PLAIN
            _access(kit, space_name(form.mods.get("ss")), access_bytes(form), how, _ALL, words["a"])
    elif op.name in ("ldmatrix", "stmatrix"):
        lanes = 8 * int(form.mods["num"][1:])
        _access(kit, "shared" if form.mods["ss"] else "generic", 16, PLAIN, lanes, words["a"])
    elif op.syntax.startswith("st.async"):
        _access(kit, "cluster", access_bytes(form), ATOMIC, _ALL, words["a"])
    elif op.name == "cp" and "size" in form.mods and "dst" in words:
        _copy(kit, form, words)
    elif op.name == "cp" and "prefetch" not in op.syntax.partition(" ")[0]:
        many = [kit.zext(16, 32)(words["ctas"])] if "ctas" in words else []
        if "map" in words:
            mode = str(form.mods.get("mode") or form.mods.get("late"))
            boxes = 4 if mode.endswith("4") else 1  # gather4, scatter4
            halo = [kit.zext(16, 32)(words["info"][0])] if "::w" in mode else []
            kit.warp("measured_tensor", (), len(many), boxes, len(halo))(words["map"][0], *many, *halo)
        elif "size" in words:
            inside = int(".shared::cluster.shared::cta" in op.syntax)
            kit.warp("measured_bulk", (), len(many), inside)(words["size"], *many)


def _access(kit: Kit, space: str, size: int, how: int, lanes: int, address: Any) -> None:
    kit.warp("measured_access", _SCRATCH, SPACE_CODES[space], size, how, lanes)(address)


def _copy(kit: Kit, form: Form, words: Mapping[str, Any]) -> None:
    size = int(form.mods["size"])
    rest = [w for name, w in words.items() if name not in ("dst", "src")]
    # as in the meaning: without a byte count the only extra operand is a cache policy
    counted = rest and not (form.mods["hint"] and len(rest) == 1)
    kit.warp("measured_copy", _SCRATCH, size)(words["dst"], words["src"], rest[0] if counted else kit.const(32, size))


def measure_branch(kit: Kit, guard: Any) -> None:
    """Emit what notes whether the lanes of a warp part at a branch. (The traced engine does it in its step loop.)"""
    kit.warp("measured_branch", ())(guard)
