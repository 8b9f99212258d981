"""Generated handlers: what they look like, and that what runs is the text made now, whatever lies in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from interp.engine.traced import handlers
from interp.engine.traced.handlers import Source, Target, handler, write
from interp.ops import ISA
from ptx import ir
from ptx.record import Form

_REGISTERS = {"p": ("%p", "pred"), "h": ("%h", "b16"), "r": ("%r", "b32"), "q": ("%q", "b64")}


def form(opcode: str, kinds: str) -> Form:
    """The form of an opcode on registers of these kinds, `[` for an address."""
    name, *mods = opcode.split(".")
    operands: list[ir.Operand] = []
    for i, kind in enumerate(kinds):
        stem, type = _REGISTERS["q" if kind == "[" else kind]
        register = ir.Reg(f"{stem}{i}", type)
        operands.append(ir.Mem(register) if kind == "[" else register)
    return ISA.match(ir.Inst(name, tuple("." + m for m in mods), tuple(operands), ir.Loc(1)))


def test_a_plain_handler() -> None:
    text, kit = write(form("add.s32", "rrr"), (Source("row", 32, 32), Source("row", 32, 32)), (Target(32, "s32"),), 80)
    assert text == (
        "def handler(ctx, warp, site, mask, ops):\n"
        "    r1 = at32(row(warp, ops, 0))\n"
        "    r2 = at32(row(warp, ops, 1))\n"
        "    t6 = room32()\n"
        "    for i in range(32):\n"
        "        v3 = r1[i]\n"
        "        v4 = r2[i]\n"
        "        v5 = add32(v3, v4)\n"
        "        t6[i] = v5\n"
        "    keep32(row(warp, ops, 2), t6, mask)\n"
    )
    assert kit.constants == {} and kit.symbols == []


def test_a_handler_with_a_runtime_call() -> None:
    """A load of bytes into 32-bit registers: address, call, extension."""
    text, kit = write(form("ld.global.s8", "r["), (Source("address", 64, 64),), (Target(32, "s8"),), 80)
    assert kit.symbols == ["load_b8"]
    assert "call_warp(function_at(ops + 8 * (3 + 0)), ctx, warp, site, mask, buffer6, buffer6 + 32, 0, 1, 0, 0)" in text
    assert text.count("for i in range(32):") == 2
    assert "= sext8_32(" in text


def test_forms_that_mean_the_same_share_a_handler() -> None:
    sources, targets = (Source("row", 32, 32), Source("row", 32, 32)), (Target(32, "u32"),)
    one = write(form("add.u32", "rrr"), sources, targets, 80)[0]
    two = write(form("add.s32", "rrr"), sources, (Target(32, "s32"),), 90)[0]
    assert one == two


def test_a_source_file_in_the_cache_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUEMU_CACHE_DIR", str(tmp_path))
    handlers._home.cache_clear()
    monkeypatch.setattr(handlers, "_BY_TEXT", {})
    monkeypatch.setattr(handlers, "_BY_SHAPE", {})

    def planted(path: Path, text: str) -> None:
        path.write_text("raise SystemExit('planted')\n")

    monkeypatch.setattr(handlers, "_write_once", planted)
    try:
        made = handler(form("xor.b32", "rrr"), (Source("row", 32, 32),) * 2, (Target(32, "b32"),), 80)
    finally:
        handlers._home.cache_clear()
    assert made.address
    assert len(list(tmp_path.rglob("h*.py"))) == 1
