"""Reading what the tools print, and that two of them say the same about the same object."""

from __future__ import annotations

import pytest

from ptx.accounting.assemble import Assembled, assemble
from ptx.accounting.resources import Log, Usage, physical, read_log, read_max_threads, read_usage
from ptx.decode import decode
from ptx.device import device
from ptx.errors import InternalError
from tests.accounting.ptx_texts import many_live, sample, text

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k2' for 'sm_80'
ptxas info    : Function properties for k2
    16 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads
ptxas info    : Used 40 registers, used 2 barriers, 128 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 3.425 ms
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for helper
    8 bytes stack frame, 9 bytes spill stores, 9 bytes spill loads
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers
"""
USAGE = """
Resource usage:
 Common:
  GLOBAL:0
 Function k2:
  REG:40 STACK:16 SHARED:128 LOCAL:0 CONSTANT[0]:360 CONSTANT[2]:8 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function k:
  REG:4 STACK:0 SHARED:0 LOCAL:0 TEXTURE:0 SURFACE:0 SAMPLER:0
"""


def test_each_function_has_its_own_lines() -> None:
    assert read_log(LOG, "k2") == Log(40, 2, 16, 24, 28, 128)
    assert read_log(LOG, "k") == Log(4, 0, 0, 0, 0, 0)
    assert read_usage(USAGE, "k2") == Usage(40, 16, 128, 0, 368)
    assert read_usage(USAGE, "k") == Usage(4, 0, 0, 0, 0)


@pytest.mark.parametrize("read, printed", [(read_log, LOG), (read_usage, USAGE)])
def test_a_kernel_that_is_not_there_is_no_zero(read, printed) -> None:
    with pytest.raises(InternalError, match="nothing that can be read about 'k3'"):
        read(printed, "k3")


AGREE = [(name, target) for name in ("softmax_f32_sm80", "matmul_f16_sm80") for target in ("sm_80", "sm_89", "sm_100")]


@pytest.mark.parametrize("name, target", AGREE)
def test_ptxas_and_cuobjdump_agree(tools: None, name: str, target: str) -> None:
    _agree(sample(name), target)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_they_agree_about_spills_and_shared_memory(tools: None, target: str) -> None:
    spilled = _agree(many_live(80, ".maxnreg 32"), target)
    assert spilled.registers <= 32 and spilled.spill_stores > 0 and spilled.spill_loads > 0 and spilled.stack > 0
    body = ".shared .align 4 .b8 s[64]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; st.shared.u32 [%r2], %r1; bar.sync 1; ret;"
    shared = _agree(text(body, ".reqntid 32"), target)
    assert shared.shared == 64 and shared.barriers >= 1


def _agree(source: str, target: str) -> Log:
    assembled = assemble(source, decode(source), target)
    assert isinstance(assembled, Assembled)
    (kernel,) = assembled.sass
    log, usage = read_log(assembled.log, kernel), read_usage(assembled.usage, kernel)
    system = usage.shared - log.shared
    assert physical(assembled, kernel)["launch__registers_per_thread"] == usage.registers
    assert (usage.registers, usage.stack) == (log.registers, log.stack)
    assert system in (0, device(target).reserved)
    local = sum(opcode.startswith(("LDL", "STL")) for _, opcode, _ in assembled.sass[kernel][1])
    assert bool(local) == bool(log.spill_stores + log.spill_loads + log.stack)
    return log


@pytest.mark.parametrize("head, threads", [("", None), (".maxntid 64, 2", 128), (".reqntid 96", None)])
def test_the_largest_block_that_the_code_names(tools: None, head: str, threads: int | None) -> None:
    source = text("mov.u32 %r1, %tid.x; ret;", head)
    assembled = assemble(source, decode(source), "sm_90" if "reqntid" in head else "sm_80")
    assert isinstance(assembled, Assembled)
    assert read_max_threads(assembled.attributes, "k") == threads
