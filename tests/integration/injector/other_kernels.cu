// Another module with a kernel of the same name and parameters as one of client_kernels, that does
// other work; and one with parameters that never repeat.
#define KERNEL extern "C" __global__ void

// k multiply-adds and k additions: 3k FLOP.
KERNEL dot(int k, const float* x, float* y) {
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum = fmaf(x[0], x[0], sum) + x[0];
  y[0] = sum;
}

// Ten multiply-adds and no parameters: 20 FLOP.
KERNEL ten() {
  float sum = 1.0f;
  for (int i = 0; i < 10; ++i) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(sum));
}

// n additions, whatever seed and step are.
KERNEL dropout(int n, unsigned long long seed, int step, float* x) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] = x[i] + ((seed + static_cast<unsigned>(step)) % 2 == 0 ? 1.0f : 0.0f);
}
