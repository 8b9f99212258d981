// Single-instruction functions: directed rounding, fast approximations, conversions, integers, SIMD in a word.
#define I int i = blockIdx.x * blockDim.x + threadIdx.x; int row = 0; if (i >= n) return;
#define ONE(x) out[(row++) * n + i] = (x);
#define FOUR(f, ...) ONE(f##_rn(__VA_ARGS__)) ONE(f##_rz(__VA_ARGS__)) ONE(f##_ru(__VA_ARGS__)) ONE(f##_rd(__VA_ARGS__))

extern "C" __global__ void rounded32(const float* x, const float* y, float* out, int n) {
    I float a = x[i], b = y[i];
    FOUR(__fadd, a, b) FOUR(__fsub, a, b) FOUR(__fmul, a, b) FOUR(__fdiv, a, b) FOUR(__fmaf, a, b, a)
    FOUR(__frcp, a) FOUR(__fsqrt, b) ONE(__frsqrt_rn(b)) ONE(__saturatef(a)) ONE(__fmaf_ieee_rn(a, b, b))
    FOUR(__double2float, (double)a * b) FOUR(__int2float, __float_as_int(a)) FOUR(__uint2float, __float_as_uint(a))
    FOUR(__ll2float, ((long long)__float_as_int(a) << 20) + __float_as_int(b))
    FOUR(__ull2float, ((unsigned long long)__float_as_uint(a) << 30) + __float_as_uint(b))
}
extern "C" __global__ void rounded64(const double* x, const double* y, double* out, int n) {
    I double a = x[i], b = y[i];
    FOUR(__dadd, a, b) FOUR(__dsub, a, b) FOUR(__dmul, a, b) FOUR(__ddiv, a, b) FOUR(__fma, a, b, a)
    FOUR(__drcp, a) FOUR(__dsqrt, b)
    FOUR(__ll2double, __double_as_longlong(a)) FOUR(__ull2double, (unsigned long long)__double_as_longlong(a))
    ONE(__int2double_rn(__double2hiint(a))) ONE(__uint2double_rn(__double2loint(a)))
    ONE(__hiloint2double(__double2hiint(a), __double2loint(b)))
}
extern "C" __global__ void fast32(const float* x, const float* y, float* out, int n) {
    I float a = x[i], b = y[i], s, c;
    ONE(__expf(a)) ONE(__exp10f(a)) ONE(__logf(b)) ONE(__log2f(b)) ONE(__log10f(b)) ONE(__sinf(a)) ONE(__cosf(a))
    ONE(__tanf(a)) ONE(__powf(b, a)) ONE(__fdividef(a, b)) ONE(__tanhf(a))
    __sincosf(a, &s, &c);
    ONE(s) ONE(c)
}
extern "C" __global__ void to_integers(const float* x, const double* y, long long* out, int n) {
    I float a = x[i];
    double b = y[i];
    FOUR(__float2int, a) FOUR(__float2uint, a) FOUR(__float2ll, a) FOUR(__float2ull, a)
    FOUR(__double2int, b) FOUR(__double2uint, b) FOUR(__double2ll, b) FOUR(__double2ull, b)
    ONE((long long)a) ONE((unsigned char)b) ONE((short)a) ONE(__float_as_int(a)) ONE(__double_as_longlong(b))
}
extern "C" __global__ void integers(const unsigned* x, const unsigned* y, unsigned* out, int n) {
    I unsigned a = x[i], b = y[i], c = a ^ (b << 1);
    int s = a, t = b;
    unsigned long long w = ((unsigned long long)a << 32) | b;
    ONE(__brev(a)) ONE((unsigned)(__brevll(w) >> 13)) ONE(__byte_perm(a, b, c)) ONE(__clz(a)) ONE(__clzll(w)) ONE(__ffs(a))
    ONE(__ffsll(w)) ONE(__popc(a)) ONE(__popcll(w)) ONE(__fns(a, b & 31, (int)(c % 7) - 3))
    ONE(__funnelshift_l(a, b, c)) ONE(__funnelshift_lc(a, b, c)) ONE(__funnelshift_r(a, b, c)) ONE(__funnelshift_rc(a, b, c))
    ONE(__hadd(s, t)) ONE(__rhadd(s, t)) ONE(__uhadd(a, b)) ONE(__urhadd(a, b)) ONE(__mul24(s, t)) ONE(__umul24(a, b))
    ONE(__mulhi(s, t)) ONE(__umulhi(a, b)) ONE(__sad(s, t, c)) ONE(__usad(a, b, c))
    ONE((unsigned)__mul64hi((long long)w, (long long)c << 31)) ONE((unsigned)__umul64hi(w, (unsigned long long)c << 30))
    ONE(__dp4a(s, t, (int)c)) ONE(__dp4a(a, b, c)) ONE(__dp2a_lo(s, t, (int)c)) ONE(__dp2a_hi(s, t, (int)c))
    ONE(__dp2a_lo(a, b, c)) ONE(__dp2a_hi(a, b, c)) ONE(abs(s)) ONE(min(s, t)) ONE(max(s, t)) ONE(umin(a, b)) ONE(umax(a, b))
    ONE((unsigned)llabs((long long)w)) ONE(s / (t | 1)) ONE(s % (t | 1)) ONE(a / (b | 1)) ONE(a % (b | 1)) ONE(s / 7) ONE(a % 10)
    ONE((unsigned)(w / (c | 1))) ONE((unsigned)((long long)w % ((long long)c | 1))) ONE(s >> (c & 31)) ONE(a << (c & 31))
    ONE((unsigned)(w >> (c & 63))) ONE((a & b) | (~a & c)) ONE((unsigned short)(a * b)) ONE((unsigned)(signed char)(a + b))
    ONE((unsigned)(((unsigned __int128)w * w) >> 70)) ONE((unsigned)((__int128)w * (__int128)(long long)(w ^ c) >> 64))
    ONE((unsigned)(((unsigned __int128)w << 40) / (w ^ c | 1))) ONE((unsigned)((((__int128)w << 40) + c) % ((long long)c | 1)))
}
#define V2(f) ONE(f(a, b))
#define V1(f) ONE(f(a))
extern "C" __global__ void simd(const unsigned* x, const unsigned* y, unsigned* out, int n) {
    I unsigned a = x[i], b = y[i], c = a ^ (b << 1);
    bool p, q;
    V1(__vabs2) V1(__vabs4) V2(__vabsdiffs2) V2(__vabsdiffs4) V2(__vabsdiffu2) V2(__vabsdiffu4) V1(__vabsss2) V1(__vabsss4)
    V2(__vadd2) V2(__vadd4) V2(__vaddss2) V2(__vaddss4) V2(__vaddus2) V2(__vaddus4) V2(__vavgs2) V2(__vavgs4) V2(__vavgu2)
    V2(__vavgu4) V2(__vcmpeq2) V2(__vcmpeq4) V2(__vcmpges2) V2(__vcmpges4) V2(__vcmpgeu2) V2(__vcmpgeu4) V2(__vcmpgts2)
    V2(__vcmpgts4) V2(__vcmpgtu2) V2(__vcmpgtu4) V2(__vcmples2) V2(__vcmples4) V2(__vcmpleu2) V2(__vcmpleu4) V2(__vcmplts2)
    V2(__vcmplts4) V2(__vcmpltu2) V2(__vcmpltu4) V2(__vcmpne2) V2(__vcmpne4) V2(__vhaddu2) V2(__vhaddu4) V2(__vmaxs2)
    V2(__vmaxs4) V2(__vmaxu2) V2(__vmaxu4) V2(__vmins2) V2(__vmins4) V2(__vminu2) V2(__vminu4) V1(__vneg2) V1(__vneg4)
    V1(__vnegss2) V1(__vnegss4) V2(__vsads2) V2(__vsads4) V2(__vsadu2) V2(__vsadu4) V2(__vseteq2) V2(__vseteq4) V2(__vsetges2)
    V2(__vsetges4) V2(__vsetgeu2) V2(__vsetgeu4) V2(__vsetgts2) V2(__vsetgts4) V2(__vsetgtu2) V2(__vsetgtu4) V2(__vsetles2)
    V2(__vsetles4) V2(__vsetleu2) V2(__vsetleu4) V2(__vsetlts2) V2(__vsetlts4) V2(__vsetltu2) V2(__vsetltu4) V2(__vsetne2)
    V2(__vsetne4) V2(__vsub2) V2(__vsub4) V2(__vsubss2) V2(__vsubss4) V2(__vsubus2) V2(__vsubus4)
    ONE(__viaddmax_s16x2(a, b, c)) ONE(__viaddmax_s16x2_relu(a, b, c)) ONE(__viaddmax_s32(a, b, c)) ONE(__viaddmax_s32_relu(a, b, c))
    ONE(__viaddmax_u16x2(a, b, c)) ONE(__viaddmax_u32(a, b, c)) ONE(__viaddmin_s16x2(a, b, c)) ONE(__viaddmin_s16x2_relu(a, b, c))
    ONE(__viaddmin_s32(a, b, c)) ONE(__viaddmin_u16x2(a, b, c)) ONE(__vibmax_s16x2(a, b, &p, &q)) ONE(p + 2 * q)
    ONE(__vibmax_s32(a, b, &p)) ONE(p) ONE(__vibmin_u16x2(a, b, &p, &q)) ONE(p + 2 * q) ONE(__vimax3_s16x2(a, b, c))
    ONE(__vimax3_s16x2_relu(a, b, c)) ONE(__vimax3_s32(a, b, c)) ONE(__vimax3_s32_relu(a, b, c)) ONE(__vimax3_u16x2(a, b, c))
    ONE(__vimax_s16x2_relu(a, b)) ONE(__vimax_s32_relu(a, b)) ONE(__vimin3_s16x2(a, b, c)) ONE(__vimin3_s32_relu(a, b, c))
    ONE(__vimin3_u32(a, b, c)) ONE(__vimin_s16x2_relu(a, b)) ONE(__vimin_s32_relu(a, b))
}
