"""Lane functions of the special-function unit (`interp.special`): one loop a PTX instruction."""

from __future__ import annotations

from interp.runtime.lane import each_16, each_32, lane, pairs_32
from interp.special import approx, unit
from interp.special.lanes import WARP

_RCP_APPROX_F32 = WARP["rcp.approx.f32"]
_RSQRT_APPROX_F32 = WARP["rsqrt.approx.f32"]
_SQRT_APPROX_F32 = WARP["sqrt.approx.f32"]
_EX2_APPROX_F32 = WARP["ex2.approx.f32"]
_LG2_APPROX_F32 = WARP["lg2.approx.f32"]
_SIN_APPROX_F32 = WARP["sin.approx.f32"]
_COS_APPROX_F32 = WARP["cos.approx.f32"]
_RCP_UNIT_F32 = WARP["rcp.approx.ftz.f32"]
_RSQRT_UNIT_F32 = WARP["rsqrt.approx.ftz.f32"]
_SQRT_UNIT_F32 = WARP["sqrt.approx.ftz.f32"]
_EX2_UNIT_F32 = WARP["ex2.approx.ftz.f32"]
_LG2_UNIT_F32 = WARP["lg2.approx.ftz.f32"]
_TANH_UNIT_F32 = WARP["tanh.approx.f32"]


@lane("rcp_approx_f32", (32,), 32, approx.rcp_approx)
def rcp_approx_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _RCP_APPROX_F32(results, operands)


@lane("rsqrt_approx_f32", (32,), 32, approx.rsqrt_approx)
def rsqrt_approx_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _RSQRT_APPROX_F32(results, operands)


@lane("sqrt_approx_f32", (32,), 32, approx.sqrt_approx)
def sqrt_approx_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _SQRT_APPROX_F32(results, operands)


@lane("ex2_approx_f32", (32,), 32, approx.ex2_approx)
def ex2_approx_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _EX2_APPROX_F32(results, operands)


@lane("lg2_approx_f32", (32,), 32, approx.lg2_approx)
def lg2_approx_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _LG2_APPROX_F32(results, operands)


@lane("sin_approx_f32", (32,), 32, approx.sin_approx)
def sin_approx_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _SIN_APPROX_F32(results, operands)


@lane("cos_approx_f32", (32,), 32, approx.cos_approx)
def cos_approx_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _COS_APPROX_F32(results, operands)


@lane("rcp_unit_f32", (32,), 32, unit.rcp)
def rcp_unit_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _RCP_UNIT_F32(results, operands)


@lane("rsqrt_unit_f32", (32,), 32, unit.rsq)
def rsqrt_unit_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _RSQRT_UNIT_F32(results, operands)


@lane("sqrt_unit_f32", (32,), 32, unit.sqrt)
def sqrt_unit_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _SQRT_UNIT_F32(results, operands)


@lane("ex2_unit_f32", (32,), 32, unit.ex2)
def ex2_unit_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _EX2_UNIT_F32(results, operands)


@lane("lg2_unit_f32", (32,), 32, unit.lg2)
def lg2_unit_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _LG2_UNIT_F32(results, operands)


@lane("tanh_unit_f32", (32,), 32, unit.tanh)
def tanh_unit_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    _TANH_UNIT_F32(results, operands)


@lane("ex2_f16", (16,), 16, approx.ex2_f16)
def ex2_f16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    each_16(approx.ex2_f16, results, operands)


@lane("tanh_f16", (16,), 16, approx.tanh_f16)
def tanh_f16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    each_16(approx.tanh_f16, results, operands)


@lane("ex2_bf16", (16,), 16, approx.ex2_bf16)
def ex2_bf16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    each_16(approx.ex2_bf16, results, operands)


@lane("tanh_bf16", (16,), 16, approx.tanh_bf16)
def tanh_bf16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    each_16(approx.tanh_bf16, results, operands)



@lane("div_approx_ftz_f32", (32, 32), 32, approx.div_approx_ftz)
def div_approx_ftz_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    pairs_32(approx.div_approx_ftz, results, operands)



@lane("div_full_ftz_f32", (32, 32), 32, approx.div_full_ftz)
def div_full_ftz_f32(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    pairs_32(approx.div_full_ftz, results, operands)


@lane("rcp_seed_f64", (32,), 32, unit.rcp64h)
def rcp_seed_f64(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    each_32(unit.rcp64h, results, operands)


@lane("rsqrt_seed_f64", (32,), 32, unit.rsq64h)
def rsqrt_seed_f64(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    each_32(unit.rsq64h, results, operands)
