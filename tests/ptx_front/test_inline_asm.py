"""Source lines of inline asm blocks: the position at the beginning of the block holds for all its instructions."""

from __future__ import annotations

import ptx

TEXT = """.version 8.8
.target sm_80
.address_size 64
.visible .entry k()
{
	.reg .b16 %rs<3>;
	.reg .b64 %rd<3>;
	.loc	1 24 18
	// begin inline asm
	.loc	1 24 18
	mov.u16 %rs1, 0x0;
	.loc	1 25 18
	ld.global.b16 { %rs1 }, [ %rd1 + 0 ];

	// end inline asm
	.loc	1 25 18
	ret;
}
	.file	1 "/d/f.py"
"""


def test_the_line_in_force_at_the_beginning_holds_for_the_block() -> None:
    insts = [i for block in ptx.parse(TEXT).kernels[0].blocks for i in block.insts]
    lines = [i.loc.user.line for i in insts if i.loc.user is not None]
    assert lines == [24, 24, 25]
    assert [i.loc.ptx_line for i in insts] == [11, 13, 17]
