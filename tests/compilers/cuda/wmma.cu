// The tensor-core functions of mma.h.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

template <int M, int N, int K, class F, class S, class C, class LA, class LB>
__device__ void product(const S* a, const S* b, C* d) {
    wmma::fragment<wmma::matrix_a, M, N, K, F, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, F, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, C> fc, fd;
    wmma::fill_fragment(fc, (C)1);
    wmma::load_matrix_sync(fa, a, std::is_same<LA, wmma::row_major>::value ? K : M);
    wmma::load_matrix_sync(fb, b, std::is_same<LB, wmma::row_major>::value ? N : K);
    wmma::mma_sync(fd, fa, fb, fc);
    for (int i = 0; i < fd.num_elements; ++i) fd.x[i] += fd.x[i];
    wmma::store_matrix_sync(d, fd, N, wmma::mem_row_major);
}
using R = wmma::row_major;
using L = wmma::col_major;
extern "C" __global__ void wmma_f16(const __half* a, const __half* b, float* d, __half* h) {
    product<16, 16, 16, __half, __half, float, R, L>(a, b, d);
    product<32, 8, 16, __half, __half, float, L, R>(a, b, d + 256);
    product<8, 32, 16, __half, __half, float, R, R>(a, b, d + 512);
    product<16, 16, 16, __half, __half, __half, L, L>(a, b, h);
}
extern "C" __global__ void wmma_i8(const signed char* a, const signed char* b, int* d) {
    product<16, 16, 16, signed char, signed char, int, R, L>(a, b, d);
    product<32, 8, 16, unsigned char, unsigned char, int, R, R>((const unsigned char*)a, (const unsigned char*)b, d + 256);
}
extern "C" __global__ void wmma_tiny(const int* a, const int* b, int* d) {
    wmma::fragment<wmma::matrix_a, 8, 8, 32, wmma::experimental::precision::s4, R> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, wmma::experimental::precision::s4, L> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 32, int> fc;
    wmma::fill_fragment(fc, 2);
    wmma::load_matrix_sync(fa, a, 32);
    wmma::load_matrix_sync(fb, b, 32);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d, fc, 8, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 8, 8, 128, wmma::experimental::precision::b1, R> ba;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, wmma::experimental::precision::b1, L> bb;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> bc;
    wmma::fill_fragment(bc, 0);
    wmma::load_matrix_sync(ba, a, 128);
    wmma::load_matrix_sync(bb, b, 128);
    wmma::bmma_sync(bc, ba, bb, bc);
    wmma::store_matrix_sync(d + 64, bc, 8, wmma::mem_row_major);
}
#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
extern "C" __global__ void wmma_new(const __nv_bfloat16* a, const __nv_bfloat16* b, const float* s, const float* t, const double* p,
                                    const double* q, float* d, double* e) {
    product<16, 16, 16, __nv_bfloat16, __nv_bfloat16, float, R, L>(a, b, d);
    product<16, 16, 8, wmma::precision::tf32, float, float, R, L>(s, t, d + 256);
    product<8, 8, 4, double, double, double, R, L>(p, q, e);
    product<8, 8, 4, double, double, double, L, R>(p, q, e + 64);
}
#endif
