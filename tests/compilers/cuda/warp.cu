// Warp functions, cooperative groups without clusters, reductions of a warp.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

#define ONE(x) out[(row++) * 64 + i] = (unsigned)(x);
#define ALL 0xFFFFFFFFu

extern "C" __global__ void warp_functions(const unsigned* x, unsigned* out) {
    int i = threadIdx.x, row = 0, lane = i & 31;
    unsigned a = x[i];
    int p, pred;
    ONE(__shfl_sync(ALL, a, 5)) ONE(__shfl_up_sync(ALL, a, 3)) ONE(__shfl_down_sync(ALL, a, 7)) ONE(__shfl_xor_sync(ALL, a, 9))
    ONE(__shfl_sync(ALL, a, lane * 3, 8)) ONE(__shfl_up_sync(ALL, a, 2, 16)) ONE(__shfl_down_sync(ALL, a, 1, 4))
    ONE(__shfl_xor_sync(ALL, a, 1, 2)) ONE(__float_as_uint(__shfl_sync(ALL, __uint_as_float(a), 31)))
    ONE(__double2hiint(__shfl_xor_sync(ALL, (double)a, 16))) ONE(__shfl_down_sync(ALL, (long long)a << 20, 4) >> 22)
    ONE(__all_sync(ALL, a != 7)) ONE(__any_sync(ALL, a == 7)) ONE(__uni_sync(ALL, a > 3)) ONE(__ballot_sync(ALL, a & 1)) ONE(__activemask())
    ONE(__match_any_sync(ALL, a & 3)) ONE(__match_any_sync(ALL, (unsigned long long)(a & 1) << 40))
    ONE(__match_all_sync(ALL, a & 0, &p)) ONE(p) ONE(__match_all_sync(ALL, (long long)a, &pred)) ONE(pred)
#if __CUDA_ARCH__ >= 800
    ONE(__reduce_add_sync(ALL, a)) ONE(__reduce_min_sync(ALL, a)) ONE(__reduce_max_sync(ALL, a)) ONE(__reduce_add_sync(ALL, (int)a))
    ONE(__reduce_min_sync(ALL, (int)a)) ONE(__reduce_max_sync(ALL, (int)a)) ONE(__reduce_and_sync(ALL, a)) ONE(__reduce_or_sync(ALL, a))
    ONE(__reduce_xor_sync(ALL, a))
#endif
    __syncwarp();
    if (lane < 20) { ONE(__shfl_sync(0xFFFFF, a, (lane + 1) % 20)) ONE(__ballot_sync(0xFFFFF, a & 2)) ONE(__activemask()) } else { row += 3; }
    if (a & 1) { unsigned m = __activemask(); ONE(__popc(m)) ONE(__shfl_sync(m, a, __ffs(m) - 1)) }
    __syncthreads();
    ONE(__syncthreads_count(a & 1)) ONE(__syncthreads_and(a != 7)) ONE(__syncthreads_or(a == 7))
}
extern "C" __global__ void group_functions(const int* x, int* out) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    auto warp = cg::tiled_partition<32>(block);
    int i = threadIdx.x, row = 0, a = x[i];
    ONE(block.thread_rank()) ONE(block.size()) ONE(tile.thread_rank()) ONE(tile.meta_group_rank()) ONE(tile.shfl(a, 3)) ONE(tile.shfl_xor(a, 1))
    ONE(tile.any(a > 5)) ONE(tile.ballot(a & 1)) ONE(tile.match_any(a & 3)) ONE(cg::reduce(tile, a, cg::plus<int>())) ONE(cg::reduce(warp, a, cg::less<int>()))
    ONE(cg::reduce(warp, (long long)a, cg::greater<long long>())) ONE(cg::reduce(tile, (float)a, cg::plus<float>()))
    ONE(cg::inclusive_scan(tile, a)) ONE(cg::exclusive_scan(warp, a, cg::bit_xor<int>()))
    if (a & 1) {
        auto group = cg::coalesced_threads();
        ONE(group.size()) ONE(group.thread_rank()) ONE(group.shfl(a, 0)) ONE(group.ballot(a & 2)) ONE(cg::reduce(group, a, cg::plus<int>()))
        ONE(group.shfl_down(a, 1)) ONE(group.any(a > 6))
    } else { row += 7; }
    auto odd = cg::binary_partition(tile, a & 1);
    ONE(odd.size()) ONE(cg::reduce(odd, a, cg::greater<int>()))
    auto labelled = cg::labeled_partition(warp, a & 3);
    ONE(labelled.size()) ONE(labelled.shfl(a, 0))
    auto dynamic = cg::tiled_partition(block, 16);
    ONE(dynamic.thread_rank())
    tile.sync(); warp.sync(); block.sync();
    __shared__ int word;
    cg::invoke_one(block, [&] { word = 77; });
    block.sync();
    ONE(word)
    auto token = block.barrier_arrive();
    block.barrier_wait(std::move(token));
}
extern "C" __global__ void grid_group(int* x) {
    auto grid = cg::this_grid();
    int i = grid.thread_rank();
    x[i] = i;
    grid.sync();
    x[grid.size() + i] = x[(i + blockDim.x) % grid.size()];
}
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_group(const int* x, int* out) {
    __shared__ int mine[64];
    auto cluster = cg::this_cluster();
    int i = threadIdx.x;
    mine[i] = x[blockIdx.x * 64 + i];
    cluster.sync();
    int* other = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
    atomicAdd(other + (i + 1) % 64, 1000);
    cluster.sync();
    out[blockIdx.x * 64 + i] = other[63 - i] + (int)cluster.num_blocks() + (int)cluster.thread_rank() * 10000;
    cluster.barrier_wait(cluster.barrier_arrive());
}
#endif
