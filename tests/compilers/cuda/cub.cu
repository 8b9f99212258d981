// Block and warp algorithms of CUB.
#include <cub/cub.cuh>

#define ONE(x) out[(row++) * 128 + i] = (x);
extern "C" __global__ void __launch_bounds__(128) block_algorithms(const int* x, int* out) {
    using Reduce = cub::BlockReduce<int, 128>;
    using Scan = cub::BlockScan<int, 128>;
    using WarpReduce = cub::WarpReduce<int>;
    using WarpScan = cub::WarpScan<int>;
    using Histogram = cub::BlockHistogram<unsigned char, 128, 1, 16, cub::BLOCK_HISTO_ATOMIC>;
    using Discontinuity = cub::BlockDiscontinuity<int, 128>;
    __shared__ union { Reduce::TempStorage reduce; Scan::TempStorage scan; WarpReduce::TempStorage warp[4]; WarpScan::TempStorage warp_scan[4];
                       Histogram::TempStorage histogram; Discontinuity::TempStorage flags; } temporary;
    __shared__ unsigned bins[16];
    int i = threadIdx.x, row = 0, a = x[i], b;
    b = Reduce(temporary.reduce).Sum(a);
    ONE(i == 0 ? b : 0)
    __syncthreads();
    b = Reduce(temporary.reduce).Reduce(a, cuda::maximum<int>(), 100);
    ONE(i == 0 ? b : 0)
    __syncthreads();
    Scan(temporary.scan).ExclusiveSum(a, b);
    ONE(b)
    __syncthreads();
    int total;
    Scan(temporary.scan).InclusiveScan(a, b, cuda::maximum<int>(), total);
    ONE(b) ONE(total)
    __syncthreads();
    b = WarpReduce(temporary.warp[i / 32]).Sum(a);
    ONE(i % 32 ? 0 : b)
    __syncthreads();
    WarpScan(temporary.warp_scan[i / 32]).InclusiveSum(a, b);
    ONE(b)
    __syncthreads();
    unsigned char sample[1] = {(unsigned char)(a & 15)};
    Histogram(temporary.histogram).Histogram(sample, bins);
    __syncthreads();
    ONE(i < 16 ? (int)bins[i] : 0)
    int items[1] = {a}, heads[1];
    Discontinuity(temporary.flags).FlagHeads(heads, items, cuda::std::not_equal_to<int>());
    ONE(heads[0])
}
extern "C" __global__ void __launch_bounds__(64) sorting(const unsigned* x, unsigned* out) {
    using Sort = cub::BlockRadixSort<unsigned, 64, 4>;
    using Load = cub::BlockLoad<unsigned, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<unsigned, 64, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using Exchange = cub::BlockExchange<unsigned, 64, 4>;
    __shared__ union { Sort::TempStorage sort; Load::TempStorage load; Store::TempStorage store; Exchange::TempStorage exchange; } temporary;
    unsigned keys[4];
    Load(temporary.load).Load(x, keys);
    __syncthreads();
    Sort(temporary.sort).Sort(keys);
    __syncthreads();
    unsigned striped[4];
    Exchange(temporary.exchange).BlockedToStriped(keys, striped);
    for (int k = 0; k < 4; ++k) out[256 + k * 64 + threadIdx.x] = striped[k];
    __syncthreads();
    Store(temporary.store).Store(out, keys);
}
struct Less { __device__ bool operator()(float a, float b) const { return a < b; } };
extern "C" __global__ void __launch_bounds__(64) merging(const float* x, float* out) {
    using Merge = cub::BlockMergeSort<float, 64, 3>;
    using WarpMerge = cub::WarpMergeSort<float, 3, 32>;
    __shared__ union { Merge::TempStorage merge; WarpMerge::TempStorage warp[2]; } temporary;
    float items[3], other[3];
    for (int k = 0; k < 3; ++k) items[k] = other[k] = x[threadIdx.x * 3 + k];
    Merge(temporary.merge).Sort(items, Less());
    for (int k = 0; k < 3; ++k) out[threadIdx.x * 3 + k] = items[k];
    __syncthreads();
    WarpMerge(temporary.warp[threadIdx.x / 32]).Sort(other, Less());
    for (int k = 0; k < 3; ++k) out[192 + threadIdx.x * 3 + k] = other[k];
}
// Device-wide algorithms: the kernels that their dispatch launches are instantiated, and accepted or refused with the text.
void instantiate(int* x, int* y, int n) {
    size_t bytes = 0;
    cub::DeviceReduce::Sum(nullptr, bytes, x, y, n);
    cub::DeviceScan::ExclusiveSum(nullptr, bytes, x, y, n);
    cub::DeviceRadixSort::SortKeys(nullptr, bytes, x, y, n);
    cub::DeviceSelect::Unique(nullptr, bytes, x, y, y + 1, n);
    cub::DeviceHistogram::HistogramEven(nullptr, bytes, x, y, 17, 0, 16, n);
    cub::DeviceRunLengthEncode::Encode(nullptr, bytes, x, y, y, y, n);
    cub::DeviceMergeSort::SortKeys(nullptr, bytes, x, n, cuda::std::less<int>());
    cub::DeviceSegmentedReduce::Sum(nullptr, bytes, x, y, 3, y, y + 1);
}
