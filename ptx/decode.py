"""PTX text → `ir.Module`, remembered on disk: a launch of a kernel seen before does not parse.

The key is the text itself plus a digest of everything that makes the IR from it (this package's sources and
msgspec's version), so an entry can never be of another format; one that does not decode all the same is parsed again.
Measured: 6,000 instructions take 20 ms, where parsing them takes 200.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from ptx import cache as disk
from ptx import ir
from ptx.carry import with_carry_flag
from ptx.device_runtime import with_device_runtime
from ptx.parse import parse
from ptx.spaces import with_spaces

_SOURCES = (
    "blocks", "carry", "constants", "decode", "device_runtime", "ir", "parse", "read", "scope", "source_map", "spaces",
    "syntax", "types", "variables",
)  # fmt: skip


@cache
def _maker() -> str:
    """Digest of what turns text into IR."""
    here = Path(__file__).parent
    parts = [(here / f"{name}.py").read_bytes() for name in _SOURCES]
    parts += [(here / name).read_bytes() for name in ("grammar.lark", "device_runtime.ptx")]
    return disk.digest(msgspec.__version__, *parts)


@cache
def _decoder() -> msgspec.msgpack.Decoder[ir.Module]:
    return msgspec.msgpack.Decoder(ir.Module)


def decode(text: str) -> ir.Module:
    """The module of a PTX text, from the cache or by `parse`, with the carry flag as an operand, no space left out, and
    the functions of the device's runtime. Raises what `parse` raises; errors are not cached."""
    key = disk.digest(_maker(), text)
    if (data := disk.get("ptx", key)) is not None:
        try:
            return _decoder().decode(data)
        except msgspec.DecodeError:  # of ValidationError too: the entry is whole but not of this format
            pass
    module = with_spaces(with_carry_flag(with_device_runtime(parse(text))))
    disk.put("ptx", key, msgspec.msgpack.encode(module))
    return module
