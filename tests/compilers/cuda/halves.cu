// cuda_fp16.h and cuda_bf16.h: the same list for both formats, and what only one of them has.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define ONE(x) out[(row++) * n + i] = (x);
#define BIT(x) bits[(flag++) * n + i] = (x);

template <class H, class H2>
__device__ void half_functions(const H* x, const H* y, H* out, int* bits, int n, int i) {
    H a = x[i], b = y[i], c = x[(i + 1) % n];
    int row = 0, flag = 0;
    ONE(__hadd(a, b)) ONE(__hsub(a, b)) ONE(__hmul(a, b)) ONE(__hdiv(a, b)) ONE(__hfma(a, b, c)) ONE(__hadd_rn(a, b))
    ONE(__hmul_rn(a, b)) ONE(__hsub_rn(a, b)) ONE(__hadd_sat(a, b)) ONE(__hsub_sat(a, b)) ONE(__hmul_sat(a, b))
    ONE(__hfma_sat(a, b, c)) ONE(__hfma_relu(a, b, c)) ONE(__hneg(a)) ONE(__habs(a)) ONE(__hmax(a, b)) ONE(__hmin(a, b))
    ONE(__hmax_nan(a, b)) ONE(__hmin_nan(a, b)) ONE(hceil(a)) ONE(hfloor(a)) ONE(hrint(a)) ONE(htrunc(a))
    ONE(hcos(a)) ONE(hsin(a)) ONE(hexp(a)) ONE(hexp2(a)) ONE(hexp10(a)) ONE(hlog(b)) ONE(hlog2(b)) ONE(hlog10(b))
    ONE(hrcp(a)) ONE(hrsqrt(b)) ONE(hsqrt(b)) ONE(htanh(a)) ONE(htanh_approx(a)) ONE(a + b * c) ONE(-a / b)
    BIT(__heq(a, b)) BIT(__hequ(a, b)) BIT(__hge(a, b)) BIT(__hgeu(a, b)) BIT(__hgt(a, b)) BIT(__hgtu(a, b))
    BIT(__hisinf(a)) BIT(__hisnan(a)) BIT(__hle(a, b)) BIT(__hleu(a, b)) BIT(__hlt(a, b)) BIT(__hltu(a, b))
    BIT(__hne(a, b)) BIT(__hneu(a, b)) BIT((int)a) BIT((unsigned short)b) BIT((long long)a)
    H2 p = {a, b}, q = {b, c}, r = {c, a};
#define TWO(e) { H2 t = (e); ONE(t.x) ONE(t.y) }
    TWO(__hadd2(p, q)) TWO(__hsub2(p, q)) TWO(__hmul2(p, q)) TWO(__h2div(p, q)) TWO(__hfma2(p, q, r)) TWO(__hadd2_sat(p, q))
    TWO(__hadd2_rn(p, q)) TWO(__hmul2_sat(p, q)) TWO(__hfma2_relu(p, q, r)) TWO(__hfma2_sat(p, q, r)) TWO(__hcmadd(p, q, r))
    TWO(__hneg2(p)) TWO(__habs2(p)) TWO(__hmax2(p, q)) TWO(__hmin2(p, q)) TWO(__hmax2_nan(p, q)) TWO(__hmin2_nan(p, q))
    TWO(__heq2(p, q)) TWO(__hgeu2(p, q)) TWO(__hlt2(p, q)) TWO(__hisnan2(p)) TWO(__lowhigh2highlow(p)) TWO(h2ceil(p))
    TWO(h2floor(p)) TWO(h2rint(p)) TWO(h2trunc(p)) TWO(h2exp(p)) TWO(h2exp2(p)) TWO(h2log(q)) TWO(h2rcp(p)) TWO(h2rsqrt(q))
    TWO(h2sqrt(q)) TWO(h2sin(p)) TWO(h2cos(p)) TWO(h2tanh(p)) TWO(h2tanh_approx(p))
    BIT(__hbeq2(p, q)) BIT(__hbltu2(p, q)) BIT(__heq2_mask(p, q)) BIT(__hgtu2_mask(p, q))
}

extern "C" __global__ void fp16(const __half* x, const __half* y, __half* out, int* bits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) half_functions<__half, __half2>(x, y, out, bits, n, i);
}
extern "C" __global__ void bf16(const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* out, int* bits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) half_functions<__nv_bfloat16, __nv_bfloat162>(x, y, out, bits, n, i);
}

#define ROUND(f, a) ONE(f##_rn(a)) ONE(f##_rz(a)) ONE(f##_ru(a)) ONE(f##_rd(a))
extern "C" __global__ void into_halves(const float* x, const double* y, const long long* z, unsigned short* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = 0;
    if (i >= n) return;
    float a = x[i];
    long long w = z[i];
#undef ONE
#define ONE(e) { auto t = (e); out[(row++) * n + i] = *reinterpret_cast<unsigned short*>(&t); }
    ROUND(__float2half, a) ROUND(__float2bfloat16, a) ONE(__double2half(y[i])) ONE(__double2bfloat16(y[i]))
    ROUND(__int2half, (int)w) ROUND(__uint2half, (unsigned)w) ROUND(__short2half, (short)w) ROUND(__ushort2half, (unsigned short)w)
    ROUND(__ll2half, w) ROUND(__ull2half, (unsigned long long)w) ROUND(__int2bfloat16, (int)w) ROUND(__uint2bfloat16, (unsigned)w)
    ROUND(__short2bfloat16, (short)w) ROUND(__ushort2bfloat16, (unsigned short)w) ROUND(__ll2bfloat16, w)
    ROUND(__ull2bfloat16, (unsigned long long)w)
    __half2 pair = __floats2half2_rn(a, -a);
    ONE(pair.x) ONE(pair.y)
    __nv_bfloat162 other = __float22bfloat162_rn(make_float2(a, -a));
    ONE(other.x) ONE(other.y)
}
extern "C" __global__ void from_halves(const __half* x, const __nv_bfloat16* y, long long* out, float* real, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = 0;
    if (i >= n) return;
#undef ONE
#define ONE(e) out[(row++) * n + i] = (e);
    ROUND(__half2int, x[i]) ROUND(__half2uint, x[i]) ROUND(__half2short, x[i]) ROUND(__half2ushort, x[i]) ROUND(__half2ll, x[i])
    ROUND(__half2ull, x[i]) ROUND(__bfloat162int, y[i]) ROUND(__bfloat162uint, y[i]) ROUND(__bfloat162short, y[i])
    ROUND(__bfloat162ushort, y[i]) ROUND(__bfloat162ll, y[i]) ROUND(__bfloat162ull, y[i])
    ONE(__half2char_rz(x[i])) ONE(__half2uchar_rz(x[i])) ONE(__bfloat162char_rz(y[i])) ONE(__bfloat162uchar_rz(y[i]))
    ONE(__half_as_short(x[i])) ONE(__bfloat16_as_ushort(y[i]))
    real[i] = __half2float(x[i]);
    real[n + i] = __bfloat162float(y[i]);
}
extern "C" __global__ void shared_halves(const __half* x, __half* out, __nv_bfloat16* wide, int n) {
    int i = threadIdx.x;
    __half2 p = __halves2half2(__ldg(x + i), __ldcs(x + (i + 1) % n));
    __half2 q = __shfl_xor_sync(0xFFFFFFFFu, p, 3);
    __half r = __shfl_down_sync(0xFFFFFFFFu, p.x, 1);
    out[i] = __hadd(__low2half(q), r);
    atomicAdd(out + n + i % 4, p.x);
    atomicAdd(reinterpret_cast<__half2*>(out + n + 4) + i % 2, q);
    atomicAdd(wide + i % 4, __float2bfloat16(__half2float(p.y)));
    atomicAdd(reinterpret_cast<__nv_bfloat162*>(wide + 4), __floats2bfloat162_rn(1.0f, 0.5f));
}
