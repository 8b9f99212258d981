"""`vprintf` and `__assertfail` of the device runtime: what a kernel prints, and a failed assertion.

CUDA C++ Programming Guide, 'Formatted Output' and 'Assertion'. A call copies the format, the arguments and the strings
that they point to into a buffer of the launch, in the order of execution; the host formats them afterwards
(`interp.printing`). Variadic arguments lie one behind the other, each at its natural alignment: 4 bytes for int and
char, 8 for long, pointers and double. A call that does not fit any more is dropped and counted.

A record is 64-bit words: its length in words, the CTA's index in the list that is run, the thread's index in the CTA;
then the format (length, bytes padded to words), then the arguments in order, each as its value (floats as double bits)
or, for `%s`, like the format.
"""

from __future__ import annotations

from interp.runtime.access import fault, get, locate, put
from interp.runtime.layout import CTX, FAULT_ASSERT, SPACE_GENERIC, WARP
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u8, load_u32, load_u64, native, store_u8, store_u32, u32

_PRINT, _LINEAR, _ID = 8 * CTX["PRINT"], 8 * CTX["LINEAR"], 8 * WARP["ID"]
PRINT_BYTES = 1 << 20
"""Bytes of the buffer, as CUDA's default."""
_LONGEST = 1 << 16
_PERCENT, _STAR, _POINT = ord("%"), ord("*"), ord(".")


@native
def _byte(ctx: int, warp: int, site: int, lane: int, address: int) -> int:
    """A byte of a string; 0 after a fault."""
    at = locate(ctx, warp, site, lane, i64(SPACE_GENERIC), address, i64(1), i64(0))
    return i64(load_u8(at)) if at else i64(0)


@native
def _copy_string(ctx: int, warp: int, site: int, lane: int, address: int, at: int, end: int) -> int:
    """Length and bytes of a string as words from `at` on: the place behind them, 0 where `end` is passed."""
    length = i64(0)
    while length < _LONGEST:
        c = _byte(ctx, warp, site, lane, address + length)
        if c == 0:
            break
        if at + 16 + length >= end:
            return i64(0)
        store_u8(at + 8 + length, c)
        length += 1
    put(at, length)
    return at + 8 + ((length + 7) & ~7)


@native
def _is_flag(c: int) -> bool:
    """Whether a character may stand between `%` and the conversion's length."""
    return c == 32 or c == 35 or c == 43 or c == 45 or c == _POINT or 48 <= c <= 57


@native
def _argument(ctx: int, warp: int, site: int, lane: int, address: int, size: int) -> int:
    """An argument's word, zero-extended; 0 after a fault."""
    at = locate(ctx, warp, site, lane, i64(SPACE_GENERIC), address, size, i64(0))
    if at == 0:
        return i64(0)
    return i64(load_u64(at)) if size == 8 else i64(load_u32(at))


@native
def _copy_arguments(
    ctx: int, warp: int, site: int, lane: int, format_: int, given: int, at: int, end: int, count: int
) -> int:
    """The arguments that the format names, from `at` on: the place behind them, 0 where `end` is passed. Their number
    goes to the address `count`."""
    i, from_ = i64(0), given
    put(count, i64(0))
    while i < _LONGEST:
        c = _byte(ctx, warp, site, lane, format_ + i)
        i += 1
        if c == 0:
            break
        if c != _PERCENT:
            continue
        long_ = False
        while i < _LONGEST:
            c = _byte(ctx, warp, site, lane, format_ + i)
            i += 1
            if c == _STAR:
                from_ = (from_ + 3) & ~3
                if at + 8 > end:
                    return i64(0)
                put(at, _argument(ctx, warp, site, lane, from_, i64(4)))
                put(count, get(count) + 1)
                at, from_ = at + 8, from_ + 4
            elif c == 104 or c == 76:  # h, L
                continue
            elif c == 108 or c == 106 or c == 122 or c == 116:  # l, j, z, t
                long_ = True
            elif not _is_flag(c):
                break
        if c == 0:
            break
        if c == _PERCENT:
            continue
        put(count, get(count) + 1)
        floating = c == 97 or c == 65 or 101 <= c <= 103 or 69 <= c <= 71
        size = i64(8) if long_ or floating or c == 115 or c == 112 else i64(4)
        from_ = (from_ + size - 1) & ~(size - 1)
        word = _argument(ctx, warp, site, lane, from_, size)
        from_ += size
        if at + 16 > end:
            return i64(0)
        if c == 115:
            at = _copy_string(ctx, warp, site, lane, word, at, end)
            if at == 0:
                return i64(0)
        else:
            put(at, word)
            at += 8
    return at


@symbol("system_vprintf")
def system_vprintf(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: address of the format, address of the arguments. Result: how many arguments were printed, or
    -1 where the buffer is full."""
    buffer = get(ctx + _PRINT)
    end = buffer + get(buffer + 8)
    for i in range(32):
        if not mask >> i & 1:
            continue
        lane, start = i64(i), buffer + get(buffer)
        format_, given = i64(load_u64(operands + 8 * i)), i64(load_u64(operands + 256 + 8 * i))
        at = i64(0)
        if start + 32 < end:
            put(start + 8, get(ctx + _LINEAR))
            put(start + 16, get(warp + _ID) * 32 + lane)
            at = _copy_string(ctx, warp, site, lane, format_, start + 24, end)
            if at:
                at = _copy_arguments(ctx, warp, site, lane, format_, given, at, end, start)
        if at:
            store_u32(results + 4 * i, u32(get(start)))
            put(start, (at - start) >> 3)
            put(buffer, at - buffer)
        else:
            put(buffer + 16, get(buffer + 16) + 1)
            store_u32(results + 4 * i, u32(0xFFFFFFFF))


@symbol("system_assertfail")
def system_assertfail(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: addresses of the message and the file, the line, address of the function, bytes of a character. The
    launch ends with the first lane's failure: message in the fault's address, line in its size."""
    for i in range(32):
        if mask >> i & 1:
            line = i64(load_u32(operands + 512 + 4 * i))
            fault(ctx, warp, site, i64(i), i64(FAULT_ASSERT), i64(load_u64(operands + 8 * i)), line)
