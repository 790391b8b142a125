// One name, two codes: FACTOR is in the code alone, not in the name or the parameters. See make.sh.
extern "C" __global__ void triton_poi_fused_mul_0(const float* in, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = in[i] * FACTOR;
}

extern "C" __global__ void the_same(float* out) { out[threadIdx.x] = 1.0F; }
