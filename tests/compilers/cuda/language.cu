// What the language itself asks of the device: memory spaces, calls, control flow, runtime functions.
#include <cassert>
#include <cstdio>
#include <cstring>

__constant__ float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__constant__ int from_host[4];
__device__ int counter = 40, table[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ double half = 0.5;
__device__ char text[] = "device";
__device__ const char* names[] = {"zero", "one", text};
__device__ int* where = &table[1][0];
struct Pair { short a; double b; };
__device__ Pair pairs[2] = {{1, 0.25}, {-2, 4.0}};
__device__ unsigned long long big = 0x123456789ABCDEFull;
__managed__ int managed = 3;

extern "C" __global__ void variables(float* out) {
    int i = threadIdx.x;
    int old = atomicAdd(&counter, 1);
    out[i] = weights[i & 7] * (float)half + table[i & 1][i % 3] + where[1] + (float)pairs[i & 1].b + pairs[1].a + from_host[i & 3] + managed;
    out[32 + i] = names[i % 3][i % 3] + (float)(big >> 40) + (old >= 40) + names[2][0];
}

struct Shape { __device__ virtual float area(float x) const = 0; __device__ virtual ~Shape() {} };
struct Square : Shape { float k; __device__ Square(float k) : k(k) {} __device__ float area(float x) const override { return k * x * x; } };
struct Disc : Shape { __device__ float area(float x) const override { return 3.0f * x * x + 1.0f; } };
typedef float (*Function)(float);
__device__ __noinline__ float twice(float x) { return 2.0f * x; }
__device__ __noinline__ float third(float x) { return x / 3.0f; }
__device__ Function functions[] = {twice, third, twice};
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
struct Large { int v[10]; double d; };
__device__ __noinline__ Large shifted(Large x, int by) { Large r; for (int i = 0; i < 10; ++i) r.v[i] = x.v[(i + by) % 10] + 1; r.d = x.d * by; return r; }

extern "C" __global__ void calls(const float* x, float* out, int n) {
    int i = threadIdx.x;
    Square square(0.5f);
    Disc disc;
    const Shape* shape = i % 3 ? (const Shape*)&square : (const Shape*)&disc;
    out[i] = shape->area(x[i]) + functions[i % 3](x[i]);
    out[32 + i] = fibonacci(i % 11) + 1000 * even(i % 7);
    Large large;
    for (int k = 0; k < 10; ++k) large.v[k] = k * i;
    large.d = x[i];
    Large r = shifted(large, n + i % 4);
    out[64 + i] = r.v[i % 10] + (float)r.d;
    auto lambda = [=](float y) { return y * n + i; };
    out[96 + i] = lambda(x[i]);
}

struct Arguments { const int* x; int* out; int count; short pad; unsigned char scale; float bias[3]; };
extern "C" __global__ void by_value(Arguments a, char small, double wide, int3 three) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < a.count) a.out[i] = a.x[i] * a.scale + (int)a.bias[i % 3] + small + (int)wide + three.x + three.y * three.z + a.pad;
}
extern "C" __global__ void __launch_bounds__(64, 2) by_grid_constant(const __grid_constant__ Arguments a) {
    const float* b = a.bias;
    if (threadIdx.x < a.count) a.out[threadIdx.x] = (int)(b[threadIdx.x % 3] * a.x[threadIdx.x]);
}

extern "C" __global__ void control(const int* x, int* out, int n) {
    int i = threadIdx.x, v = x[i], s = 0;
    switch (v) {
        case 0: s = 5; break;
        case 1: s = 17; break;
        case 2: s = v * 3;
        case 3: s += 11; break;
        case 4: for (int k = 0; k < i; ++k) s ^= k * k; break;
        case 5: s = -1; break;
        case 6: s = __popc(i); break;
        case 9: s = 99; break;
        default: s = 1234;
    }
    int local[16];
    for (int k = 0; k < 16; ++k) local[k] = k * v + s;
    for (int k = 0; k < n; ++k) { int t = local[(k * 7 + v) & 15]; local[k & 15] = t + (t & 1 ? k : -k); if (t == 77) break; if (t & 4) continue; s += t; }
    do { s -= 3; } while (s > 100);
    out[i] = s + local[v & 15];
    char bytes[24];
    memset(bytes, v, 24);
    memcpy(bytes + 3, local, 9);
    int sum = 0;
    for (int k = 0; k < 24; ++k) sum += bytes[k];
    out[32 + i] = sum;
    union { float f; unsigned u; } bits;
    bits.u = 0x3F800000 + v;
    struct { unsigned a : 5; int b : 7; unsigned c : 20; } field = {(unsigned)v, v - 60, (unsigned)(v * 1001)};
    field.b += i; field.c ^= i;
    out[64 + i] = (int)(bits.f * 3.0f) + field.a + field.b + (field.c >> 3);
    out[96 + i] = v > 3 ? (v > 6 ? i : -i) : (i & 1 ? v : ~v);
}

extern "C" __global__ void dynamic_shared(const int* x, int* out, int n) {
    extern __shared__ int pool[];
    float* second = (float*)(pool + n);
    pool[threadIdx.x] = x[threadIdx.x];
    second[threadIdx.x] = x[threadIdx.x] * 0.5f;
    __syncthreads();
    out[threadIdx.x] = pool[n - 1 - threadIdx.x] + (int)second[(threadIdx.x + 1) % n];
}

extern "C" __global__ void printing(int n) {
    int i = threadIdx.x;
    if (i < n) printf("thread %d of %u: %5.2f %s %c %lld %p|\n", i, blockDim.x, i * 0.25, i & 1 ? "odd" : "even", 'a' + i, 1ll << (40 + i), (void*)0);
    if (i == 0) printf("done %%\n");
}
extern "C" __global__ void asserting(int n) { assert(threadIdx.x + 1 < n && "small enough"); }
extern "C" __global__ void trapping(int n) { if (threadIdx.x == n) __trap(); }
extern "C" __global__ void clocks(long long* out) {
    long long a = clock64();
    unsigned b = clock();
    __nanosleep(100);
    out[threadIdx.x] = clock64() - a;
    out[32 + threadIdx.x] = (unsigned)clock() - b;
    unsigned long long timer;
    unsigned sm, warp, lane, count, grid;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(count));
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(grid));
    out[64 + threadIdx.x] = lane + 100 * (sm < count) + 1000 * warp + grid + (timer & 0);
}
extern "C" __global__ void spaces(int* global, int* out) {
    __shared__ int word;
    int own = 3;
    int* p = threadIdx.x % 3 == 0 ? global : threadIdx.x % 3 == 1 ? &word : &own;
    if (threadIdx.x == 0) word = 7;
    __syncthreads();
    out[threadIdx.x] = *p + 10 * __isGlobal(p) + 100 * __isShared(p) + 1000 * __isLocal(p) + 10000 * __isConstant(weights);
    out[32 + threadIdx.x] = (int)__cvta_generic_to_shared(&word) * 0 + *(int*)__cvta_shared_to_generic(__cvta_generic_to_shared(&word));
    out[64 + threadIdx.x] = __ldg(global) + __ldcg(global + 1) + __ldca(global + 2) + __ldcs(global) + __ldlu(global + 1) + __ldcv(global + 2);
    __stwb(out + 96 + threadIdx.x, 1); __stcg(out + 128 + threadIdx.x, 2); __stcs(out + 160 + threadIdx.x, 3); __stwt(out + 192 + threadIdx.x, 4);
}
extern "C" __global__ void heap(int* out) {
    int* p = new int[4];
    char* q = (char*)malloc(16);
    for (int k = 0; k < 4; ++k) p[k] = k + threadIdx.x;
    q[3] = 5;
    out[threadIdx.x] = p[3] + q[3];
    delete[] p;
    free(q);
}
extern "C" __global__ void stack(int* out, int n) {
    int* p = (int*)__builtin_alloca(4 * n);
    for (int k = 0; k < n; ++k) p[k] = k * k;
    out[threadIdx.x] = p[threadIdx.x % n];
}
template <int N, class... T> struct Sum { static __device__ int of(int x, T... rest) { return x * N + Sum<N - 1>::of(rest...); } };
template <> struct Sum<0> { static __device__ int of(int x) { return x; } };
template <class T> __device__ __noinline__ T square(T x) { return x * x; }
extern "C" __global__ void templates(const int* x, float* out) {
    out[threadIdx.x] = square(x[threadIdx.x]) + square((float)x[threadIdx.x]) + (float)square((double)x[threadIdx.x] * 0.5) + square((short)3) + square((unsigned char)20);
}
extern "C" __global__ void vectors(const float4* x, const int2* y, double2* out, uchar4* bytes, longlong4* wide) {
    int i = threadIdx.x;
    float4 a = x[i];
    int2 b = __ldg(y + i);
    out[i] = make_double2(a.x + a.w, (double)a.y * b.x + b.y);
    bytes[i] = make_uchar4(b.x, b.y, a.z, i);
    wide[i] = longlong4{i, b.x, (long long)a.x, -1};
}
extern "C" __global__ void complex_division(const float2* x, float2* out) {
    float2 a = x[threadIdx.x], b = x[31 - threadIdx.x];
    float s = b.x * b.x + b.y * b.y;
    out[threadIdx.x] = make_float2((a.x * b.x + a.y * b.y) / s, (a.y * b.x - a.x * b.y) / s);
}
