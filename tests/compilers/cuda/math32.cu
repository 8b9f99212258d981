static __device__ __forceinline__ float norm(int k, const float* a) { return normf(k, a); }
static __device__ __forceinline__ float rnorm(int k, const float* a) { return rnormf(k, a); }
#include "math.cuh"

extern "C" __global__ void functions32(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) one_argument(x, y, out, n, i);
}
extern "C" __global__ void exact32(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) exact(x, y, out, n, i);
}
extern "C" __global__ void pairs32(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) two_arguments(x, y, out, n, i);
}
