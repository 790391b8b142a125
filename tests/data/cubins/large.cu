// More than 4 KiB of parameters: described by records of the second version. See make.sh.
struct Large {
  int values[1100];
};

extern "C" __global__ void large(const __grid_constant__ Large table, float* to, char c, int k) {
  to[threadIdx.x] = static_cast<float>(table.values[k] + c);
}
