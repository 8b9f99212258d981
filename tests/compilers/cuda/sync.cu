// Asynchronous copies, barriers, pipelines, fences.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;

extern "C" __global__ void copies(const int* x, int* out, int n) {
    __shared__ alignas(16) int a[2][128];
    int i = threadIdx.x;
    for (int t = 0; t < n; ++t) {
        __pipeline_memcpy_async(&a[t & 1][i], x + t * 128 + i, 4);
        if (i < 32) __pipeline_memcpy_async(&a[t & 1][4 * i], x + t * 128 + 4 * i, 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        out[t * 128 + i] = a[t & 1][127 - i];
        __syncthreads();
    }
}
extern "C" __global__ void group_copies(const int* x, int* out) {
    extern __shared__ int dynamic[];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, dynamic, x + blockIdx.x * 128, sizeof(int) * 128);
    cg::memcpy_async(block, dynamic + 128, x + blockIdx.x * 128, cuda::aligned_size_t<16>(sizeof(int) * 128));
    cg::wait_prior<1>(block);
    block.sync();
    int v = dynamic[127 - threadIdx.x];
    cg::wait(block);
    out[blockIdx.x * 128 + threadIdx.x] = v * 3 + dynamic[128 + threadIdx.x];
}
extern "C" __global__ void barriers(const int* x, int* out) {
    __shared__ alignas(16) int stage[128];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int i = threadIdx.x;
    if (i == 0) init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(stage + i, x + i, sizeof(int), bar);
    auto token = bar.arrive();
    bar.wait(std::move(token));
    int v = stage[127 - i];
    bar.arrive_and_wait();
    stage[i] = v + 1;
    bar.arrive_and_wait();
    out[i] = stage[(i + 1) & 127];
    if (i >= 64) bar.arrive_and_drop();
    else { bar.arrive_and_wait(); out[128 + i] = v; }
}
extern "C" __global__ void pipelines(const int* x, int* out, int n) {
    __shared__ alignas(16) int stage[2][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int done = 0;
    for (int t = 0; t < n; ++t) {
        for (; done < n && done < t + 2; ++done) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stage[done & 1], x + done * 128, cuda::aligned_size_t<16>(512), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[t * 128 + threadIdx.x] = stage[t & 1][threadIdx.x ^ 1] * 2;
        pipe.consumer_release();
    }
}
extern "C" __global__ void thread_pipeline(const int4* x, int4* out) {
    __shared__ int4 stage[128];
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(stage + threadIdx.x, x + threadIdx.x, cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
    cuda::pipeline_consumer_wait_prior<0>(pipe);
    out[threadIdx.x] = stage[threadIdx.x];
    pipe.consumer_release();
}
extern "C" __global__ void roles(const int* x, int* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> ready, filled;
    __shared__ int box[64];
    __shared__ cuda::counting_semaphore<cuda::thread_scope_block, 1> one;
    int i = threadIdx.x;
    if (i == 0) { init(&ready, 128); init(&filled, 128); new (&one) cuda::counting_semaphore<cuda::thread_scope_block, 1>(1); out[256] = 0; }
    __syncthreads();
    if (i < 64) {
        for (int t = 0; t < 4; ++t) { ready.arrive_and_wait(); box[i] = x[t * 64 + i] + t; (void)filled.arrive(); }
    } else {
        (void)ready.arrive();
        for (int t = 0; t < 4; ++t) { filled.arrive_and_wait(); out[t * 64 + i - 64] = box[127 - i]; if (t < 3) (void)ready.arrive(); }
    }
    __syncthreads();
    if (i % 32 == 0) { one.acquire(); out[256] += i; __threadfence_block(); one.release(); }
    __threadfence(); __threadfence_system();
}
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
#include <cuda/ptx>
extern "C" __global__ void bulk(const int* x, int* out) {
    __shared__ alignas(128) int stage[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int i = threadIdx.x;
    if (i == 0) { init(&bar, blockDim.x); cuda::device::experimental::fence_proxy_async_shared_cta(); }
    __syncthreads();
    cuda::barrier<cuda::thread_scope_block>::arrival_token token;
    if (i == 0) {
        cuda::memcpy_async(stage, x, cuda::aligned_size_t<16>(sizeof(stage)), bar);
        token = bar.arrive();
    } else token = bar.arrive();
    bar.wait(std::move(token));
    stage[i] += 5;
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncthreads();
    if (i == 0) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out, stage, sizeof(stage));
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
    }
}
#endif
