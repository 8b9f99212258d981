"""What every random program begins and ends with: registers from and to memory, one thread's share at a time."""

from __future__ import annotations

THREAD_IN, THREAD_OUT, SCRATCH = 128, 144, 1024
"""Bytes a thread reads and writes, and bytes of global scratch a CTA."""

HEADER = """.version 8.8
.target sm_90a
.address_size 64
.global .align 16 .b8 table[256] = {{{table}}};
.const .align 16 .b8 fixed[256] = {{{table}}};
.visible .entry batch(.param .u64 p_in, .param .u64 p_out, .param .u64 p_scratch, .param .u32 p_number)
{{
\t.reg .pred %p<6>, %pt<4>;
\t.reg .b16 %h<8>;
\t.reg .b32 %r<12>, %t<16>, %w<16>;
\t.reg .b64 %q<8>, %a<8>;
\t.reg .b128 %x<4>;
\t.shared .align 1024 .b8 area[24576];
\t.shared .align 128 .b8 map[128];
\t.shared .align 8 .b8 bars[64];
\t.local .align 16 .b8 own[64];
"""

LOADS = f"""
ld.param.u64 %a0, [p_in]
ld.param.u64 %a1, [p_out]
ld.param.u64 %a2, [p_scratch]
mov.u32 %t0, %tid.x
mov.u32 %t1, %ctaid.x
mov.u32 %t2, %ntid.x
mad.lo.u32 %t3, %t1, %t2, %t0
mad.wide.u32 %a0, %t3, {THREAD_IN}, %a0
mad.wide.u32 %a1, %t3, {THREAD_OUT}, %a1
mad.wide.u32 %a2, %t1, {SCRATCH}, %a2
mov.u32 %t4, area
mov.u64 %a3, own
ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%a0]
ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%a0+16]
ld.global.v4.b32 {{%r8, %r9, %r10, %r11}}, [%a0+32]
ld.global.v2.b64 {{%q0, %q1}}, [%a0+48]
ld.global.v2.b64 {{%q2, %q3}}, [%a0+64]
ld.global.v2.b64 {{%q4, %q5}}, [%a0+80]
ld.global.v2.b64 {{%q6, %q7}}, [%a0+96]
ld.global.v4.b16 {{%h0, %h1, %h2, %h3}}, [%a0+112]
ld.global.v4.b16 {{%h4, %h5, %h6, %h7}}, [%a0+120]
mov.b128 %x0, {{%q0, %q1}}
mov.b128 %x1, {{%q2, %q3}}
mov.b128 %x2, {{%q4, %q5}}
mov.b128 %x3, {{%q6, %q7}}
setp.lt.s32 %p0, %r0, %r6
setp.lt.s32 %p1, %r1, %r7
setp.lt.s32 %p2, %r2, %r8
setp.lt.s32 %p3, %r3, %r9
setp.lt.s32 %p4, %r4, %r10
setp.lt.s32 %p5, %r5, %r11
""".strip().splitlines()

STORES = """
mov.b128 {%a4, %a5}, %x0
xor.b64 %q0, %q0, %a4
xor.b64 %q1, %q1, %a5
mov.b128 {%a4, %a5}, %x1
xor.b64 %q2, %q2, %a4
xor.b64 %q3, %q3, %a5
mov.b128 {%a4, %a5}, %x2
xor.b64 %q4, %q4, %a4
xor.b64 %q5, %q5, %a5
mov.b128 {%a4, %a5}, %x3
xor.b64 %q6, %q6, %a4
xor.b64 %q7, %q7, %a5
st.global.v4.b32 [%a1], {%r0, %r1, %r2, %r3}
st.global.v4.b32 [%a1+16], {%r4, %r5, %r6, %r7}
st.global.v4.b32 [%a1+32], {%r8, %r9, %r10, %r11}
st.global.v2.b64 [%a1+48], {%q0, %q1}
st.global.v2.b64 [%a1+64], {%q2, %q3}
st.global.v2.b64 [%a1+80], {%q4, %q5}
st.global.v2.b64 [%a1+96], {%q6, %q7}
st.global.v4.b16 [%a1+112], {%h0, %h1, %h2, %h3}
st.global.v4.b16 [%a1+120], {%h4, %h5, %h6, %h7}
selp.b32 %t5, 1, 0, %p0
selp.b32 %t6, 2, 0, %p1
or.b32 %t5, %t5, %t6
selp.b32 %t6, 4, 0, %p2
or.b32 %t5, %t5, %t6
selp.b32 %t6, 8, 0, %p3
or.b32 %t5, %t5, %t6
selp.b32 %t6, 16, 0, %p4
or.b32 %t5, %t5, %t6
selp.b32 %t6, 32, 0, %p5
or.b32 %t5, %t5, %t6
st.global.b32 [%a1+128], %t5
ret
""".strip().splitlines()
