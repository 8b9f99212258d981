__constant__ float table[4] = {1.f, 2.5f, -3.f, 0};
__device__ int counter = 7;
__device__ int *pointer = &counter;
struct Pair { int a; char b; double c; };
__device__ Pair pair = {1, 2, 3.0};
__device__ int (*chosen)(int);
extern __shared__ int dynamic[];
__noinline__ __device__ int add(int x, Pair s) { return x * 2 + s.a + (int)s.c; }
__noinline__ __device__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
extern "C" __global__ void __launch_bounds__(128, 2) kernel(int* p, Pair s, int n) {
  __shared__ int sh[32];
  int i = threadIdx.x;
  sh[i & 31] = p[i]; __syncthreads();
  p[i] = add(sh[31 - (i & 31)], s) + factorial(n) + dynamic[i] + (int)table[i & 3] + pointer[0] + pair.b;
  if (chosen) p[i] += chosen(n);
  asm volatile("{ .reg .pred q; setp.eq.u32 q, %0, 1; @q bra L; add.u32 %0, %0, 1; L: }" : "+r"(n));
  asm volatile("{ .reg .pred q; .reg .b32 t; setp.eq.u32 q, %0, 1; L: { .reg .b32 t; mov.u32 t, 3; @!q add.u32 %0, %0, t; } @q bra L; }" : "+r"(n));
  p[i + 1] = n;
}
