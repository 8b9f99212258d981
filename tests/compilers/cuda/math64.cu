#include "math.cuh"

extern "C" __global__ void functions64(const double* x, const double* y, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) one_argument(x, y, out, n, i);
}
extern "C" __global__ void exact64(const double* x, const double* y, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) exact(x, y, out, n, i);
}
extern "C" __global__ void pairs64(const double* x, const double* y, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) two_arguments(x, y, out, n, i);
}
