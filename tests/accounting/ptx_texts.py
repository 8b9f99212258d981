"""Small PTX texts for the tests of accounting, and a way to ask for everything about one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ptx.errors import Unsupported
from ptx.lower import toolchain

SAMPLES = Path(__file__).resolve().parent.parent / "ptx"

REGISTERS = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<8>;"


def text(body: str, head: str = "", target: str = "sm_80", version: str = "8.0", registers: str = REGISTERS) -> str:
    """PTX of one entry `k(u64 x, u32 n)`."""
    return (
        f".version {version}\n.target {target}\n.address_size 64\n"
        f".visible .entry k(.param .u64 x, .param .u32 n) {head}\n{{\n{registers}\n{body}\n}}\n"
    )


def many_live(count: int, head: str = "", target: str = "sm_80") -> str:
    """A kernel that loads `count` words and then stores them all, so that they live at once."""
    loads = "\n".join(f"ld.volatile.global.b32 %r{i}, [%d0+{4 * i}];" for i in range(count))
    stores = "\n".join(f"st.volatile.global.b32 [%d0+{4 * i}], %r{i};" for i in reversed(range(count)))
    registers = f".reg .b32 %r<{count}>; .reg .b64 %d<1>;"
    return text(f"ld.param.u64 %d0, [x];\n{loads}\n{stores}\nret;", head, target, registers=registers)


def sample(name: str) -> str:
    """The PTX of Triton's that tests/ptx holds under a name."""
    return (SAMPLES / f"{name}.ptx").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def tools() -> Iterator[None]:
    """Skips, with the reason, where NVIDIA's tools are not installed."""
    try:
        for name in toolchain.TOOLS:
            toolchain.tool(name)
    except Unsupported as error:
        pytest.skip(str(error))
    yield
