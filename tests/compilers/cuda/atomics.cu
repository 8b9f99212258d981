// Atomic functions of all types and scopes, and cuda::atomic of libcu++.
#include <cuda/atomic>

extern "C" __global__ void integer_atomics(int* s, unsigned* u, long long* l, unsigned long long* w, const int* x) {
    __shared__ int shared[8];
    __shared__ unsigned long long wide[4];
    int i = threadIdx.x, v = x[blockIdx.x * blockDim.x + i];
    if (i < 8) shared[i] = 0;
    if (i < 4) wide[i] = ~0ull;
    __syncthreads();
    atomicAdd(s, v); atomicSub(s + 1, v); atomicMin(s + 2, v); atomicMax(s + 3, v); atomicAnd(s + 4, v | 3); atomicOr(s + 5, v);
    atomicXor(s + 6, v); atomicAdd_block(s + 7, v); atomicAdd_system(s + 8, v); atomicMax_block(s + 9, v); atomicMin_system(s + 10, v);
    atomicAdd(u, (unsigned)v); atomicMin(u + 1, (unsigned)v); atomicMax(u + 2, (unsigned)v); atomicInc(u + 3, 100); atomicDec(u + 4, 50);
    atomicInc_block(u + 5, 7); atomicDec_system(u + 6, 9); atomicSub(u + 7, 1u);
    atomicMin(l, (long long)v * 77777777777LL); atomicMax(l + 1, (long long)v * 77777777777LL);
    atomicAdd(w, (unsigned long long)v); atomicMin(w + 1, (unsigned long long)v); atomicMax(w + 2, (unsigned long long)v << 3);
    atomicAnd(w + 3, ~(1ull << (v & 63))); atomicOr(w + 4, 1ull << (v & 63)); atomicXor(w + 5, (unsigned long long)v << 20);
    atomicAdd_system(w + 6, 1ull);
    int seen = s[11], want;
    do { want = seen; seen = atomicCAS(s + 11, want, want * 3 + 1); } while (seen != want);
    atomicCAS_block(s + 12, 0, 5); atomicCAS_system(u + 8, 0u, 6u); atomicCAS(w + 7, 0ull, 1ull << 40);
    atomicCAS((unsigned short*)(u + 9) + 1, (unsigned short)0, (unsigned short)77);
    if (i == 0 && blockIdx.x == 0) { s[13] = atomicExch(s + 14, 9); w[8] = atomicExch(w + 9, 10ull); }
    atomicAdd(shared + (v & 7), v); atomicMin(wide + (v & 3), (unsigned long long)i);
    __syncthreads();
    if (i < 8) atomicAdd(s + 16 + i, shared[i]);
    if (i < 4) atomicAdd(w + 12 + i, wide[i]);
}
extern "C" __global__ void float_atomics(float* f, double* d, float2* f2, float4* f4, const float* x) {
    __shared__ float shared[2];
    __shared__ double wide;
    int i = threadIdx.x;
    float v = x[i];
    if (i == 0) shared[0] = 0.0f, shared[1] = 0.0f, wide = 0.0;
    __syncthreads();
    atomicAdd(f, v); atomicAdd_block(f + 1, v); atomicAdd_system(f + 2, v); atomicAdd(d, (double)v); atomicAdd_block(d + 1, (double)v);
    atomicAdd(shared + (i & 1), v); atomicAdd(&wide, (double)v * v);
    if (i == 0) f[3] = atomicExch(f + 4, 2.5f);
#if __CUDA_ARCH__ >= 900
    atomicAdd(f2, make_float2(v, -v)); atomicAdd(f4, make_float4(v, 1.0f, -v, 2.0f));
#endif
    __syncthreads();
    if (i < 2) f[5 + i] = shared[i];
    if (i == 0) d[2] = wide;
}
template <cuda::thread_scope S>
__device__ void scoped(int* s, unsigned long long* w, float* f, double* d, int v) {
    cuda::atomic_ref<int, S> a(*s);
    a.fetch_add(v, cuda::memory_order_relaxed); a.fetch_sub(1, cuda::memory_order_acquire); a.fetch_xor(v & 15, cuda::memory_order_release);
    cuda::atomic_ref<int, S> m(s[1]);
    m.fetch_max(v, cuda::memory_order_acq_rel);
    cuda::atomic_ref<int, S> k(s[2]);
    k.fetch_min(v, cuda::memory_order_seq_cst);
    cuda::atomic_ref<unsigned long long, S> b(*w);
    b.fetch_or(1ull << (v & 63)); b.fetch_and(~0ull, cuda::memory_order_relaxed);
    unsigned long long e = 0;
    cuda::atomic_ref<unsigned long long, S> c(w[1]);
    c.compare_exchange_strong(e, 42ull, cuda::memory_order_acq_rel, cuda::memory_order_acquire);
    cuda::atomic_ref<float, S> g(*f);
    g.fetch_add(1.0f);
    cuda::atomic_ref<double, S> h(*d);
    h.fetch_add(0.5, cuda::memory_order_relaxed);
    cuda::atomic_ref<int, S> t(s[3]);
    if (v == 1) t.store(11, cuda::memory_order_release);
    s[4] = t.load(cuda::memory_order_acquire) & 0;
    cuda::atomic_ref<int, S> x(s[5]);
    x.exchange(3);
}
extern "C" __global__ void cuda_atomics(int* s, unsigned long long* w, float* f, double* d) {
    int v = threadIdx.x;
    scoped<cuda::thread_scope_block>(s, w, f, d, v);
    scoped<cuda::thread_scope_device>(s + 8, w + 2, f + 1, d + 1, v);
    scoped<cuda::thread_scope_system>(s + 16, w + 4, f + 2, d + 2, v);
    __shared__ cuda::atomic<unsigned char, cuda::thread_scope_block> byte;
    __shared__ cuda::atomic<short, cuda::thread_scope_block> half;
    if (v == 0) { new (&byte) cuda::atomic<unsigned char, cuda::thread_scope_block>(250); half.store(0); }
    __syncthreads();
    byte.fetch_add(1);
    half.fetch_add((short)v);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device);
    __syncthreads();
    if (v == 0) { s[24] = byte.load(); s[25] = half.load(cuda::memory_order_relaxed); }
}
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
struct alignas(16) Wide { unsigned long long a, b; };
extern "C" __global__ void wide_atomics(Wide* x) {
    Wide old = atomicExch(x, Wide{threadIdx.x, 7});
    Wide next = atomicCAS(x + 1, Wide{0, 0}, Wide{old.a, old.b});
    x[2 + threadIdx.x] = next;
}
#endif
