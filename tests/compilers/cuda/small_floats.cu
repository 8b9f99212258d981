// cuda_fp8.h, cuda_fp6.h, cuda_fp4.h: conversions there and back.
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#define ONE(x) out[(row++) * n + i] = (x);

extern "C" __global__ void into_small(const float* x, const __half* h, const __nv_bfloat16* b, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = 0;
    if (i >= n) return;
    float a = x[i];
    for (int k = 0; k < 1; ++k) {
        ONE(__nv_cvt_float_to_fp8(a, __NV_SATFINITE, __NV_E4M3)) ONE(__nv_cvt_float_to_fp8(a, __NV_SATFINITE, __NV_E5M2))
        ONE(__nv_cvt_float_to_fp8(a, __NV_NOSAT, __NV_E4M3)) ONE(__nv_cvt_float_to_fp8(a, __NV_NOSAT, __NV_E5M2))
        ONE(__nv_cvt_double_to_fp8((double)a * 1.0000001, __NV_SATFINITE, __NV_E4M3))
        ONE(__nv_cvt_halfraw_to_fp8(h[i], __NV_SATFINITE, __NV_E4M3)) ONE(__nv_cvt_halfraw_to_fp8(h[i], __NV_NOSAT, __NV_E5M2))
        ONE(__nv_cvt_bfloat16raw_to_fp8(b[i], __NV_SATFINITE, __NV_E5M2)) ONE(__nv_cvt_bfloat16raw_to_fp8(b[i], __NV_NOSAT, __NV_E4M3))
        ONE(__nv_cvt_float_to_fp6(a, __NV_E2M3, cudaRoundNearest)) ONE(__nv_cvt_float_to_fp6(a, __NV_E3M2, cudaRoundNearest))
        ONE(__nv_cvt_halfraw_to_fp6(h[i], __NV_E3M2, cudaRoundNearest)) ONE(__nv_cvt_bfloat16raw_to_fp6(b[i], __NV_E2M3, cudaRoundNearest))
        ONE(__nv_cvt_float_to_fp4(a, __NV_E2M1, cudaRoundNearest)) ONE(__nv_cvt_halfraw_to_fp4(h[i], __NV_E2M1, cudaRoundNearest))
        ONE(__nv_cvt_float_to_e8m0(a, __NV_SATFINITE, cudaRoundZero)) ONE(__nv_cvt_float_to_e8m0(a, __NV_NOSAT, cudaRoundPosInf))
        ONE(__nv_cvt_bfloat16raw_to_e8m0(b[i], __NV_SATFINITE, cudaRoundPosInf))
        unsigned short two = __nv_cvt_float2_to_fp8x2(make_float2(a, -a), __NV_SATFINITE, __NV_E4M3);
        ONE((unsigned char)two) ONE((unsigned char)(two >> 8))
        two = __nv_cvt_float2_to_fp6x2(make_float2(a, -a), __NV_E3M2, cudaRoundNearest);
        ONE((unsigned char)two) ONE((unsigned char)(two >> 8))
        ONE(__nv_cvt_float2_to_fp4x2(make_float2(a, -a), __NV_E2M1, cudaRoundNearest))
        ONE(__nv_fp8_e4m3(a).__x) ONE(__nv_fp8_e5m2(7 * i).__x) ONE(__nv_fp8_e4m3((short)i).__x) ONE(__nv_fp6_e2m3(a).__x) ONE(__nv_fp4_e2m1(a).__x)
    }
}
extern "C" __global__ void from_small(const unsigned char* x, unsigned short* out, float* real, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = 0;
    if (i >= n) return;
    unsigned char a = x[i];
    ONE(__nv_cvt_fp8_to_halfraw(a, __NV_E4M3).x) ONE(__nv_cvt_fp8_to_halfraw(a, __NV_E5M2).x)
    ONE(__nv_cvt_fp6_to_halfraw(a & 63, __NV_E2M3).x) ONE(__nv_cvt_fp6_to_halfraw(a & 63, __NV_E3M2).x)
    ONE(__nv_cvt_fp4_to_halfraw(a & 15, __NV_E2M1).x) ONE(__nv_cvt_e8m0_to_bf16raw(a).x)
    __half2_raw two = __nv_cvt_fp8x2_to_halfraw2((unsigned short)(a * 257), __NV_E4M3);
    ONE(two.x) ONE(two.y)
    two = __nv_cvt_fp4x2_to_halfraw2(a, __NV_E2M1);
    ONE(two.x) ONE(two.y)
    __nv_fp8_e4m3 e4;
    e4.__x = a;
    __nv_fp8_e5m2 e5;
    e5.__x = a;
    __nv_fp8x4_e4m3 four;
    four.__x = a * 0x01010101u;
    real[i] = float(e4);
    real[n + i] = float(e5);
    real[2 * n + i] = float4(four).z;
    real[3 * n + i] = (float)(int)e4;
    real[4 * n + i] = (float)(bool)e5;
}
