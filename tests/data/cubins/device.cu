// A kernel that launches kernels, one that launches graphs, one that calls a function. See make.sh.
__global__ void child(float* x) { x[threadIdx.x] += 1.0F; }

extern "C" __global__ void launches_child(float* x) { child<<<1, 32>>>(x); }

extern "C" __global__ void launches_graph(cudaGraphExec_t graph) {
  cudaGraphLaunch(graph, cudaStreamGraphFireAndForget);
}

__noinline__ __device__ float called(float x) { return x * SCALE; }

extern "C" __global__ void calls(float* x) { x[0] = called(x[1]); }
