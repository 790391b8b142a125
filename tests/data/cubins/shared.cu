// Static shared memory, dynamic, and none.
extern "C" __global__ void none(float* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void fixed(float* x, int n) {
  __shared__ float s[300];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[n];
}
extern "C" __global__ void dynamic(float* x, int n) {
  extern __shared__ float s[];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[n];
}
