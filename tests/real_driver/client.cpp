// An ordinary program that starts CUDA and finds no device: client [libcuda.so.1]. It prints the
// answers and how many threads it has then, and ends with 5.
#include <cuda.h>
#include <dirent.h>
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* const library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return std::fprintf(stderr, "client: %s\n", dlerror()), 1;
  const auto init = reinterpret_cast<decltype(&cuInit)>(dlsym(library, "cuInit"));
  const auto get_version =
      reinterpret_cast<decltype(&cuDriverGetVersion)>(dlsym(library, "cuDriverGetVersion"));
  const auto get_count =
      reinterpret_cast<decltype(&cuDeviceGetCount)>(dlsym(library, "cuDeviceGetCount"));
  if (init == nullptr || get_version == nullptr || get_count == nullptr) return 1;

  int version = 0, count = 0;
  const int started = init(0), asked = get_version(&version), counted = get_count(&count);
  std::printf("cuInit %d, cuDriverGetVersion %d %d, cuDeviceGetCount %d\n", started, asked, version,
              counted);
  int threads = -2;  // . and ..
  DIR* const tasks = opendir("/proc/self/task");
  while (tasks != nullptr && readdir(tasks) != nullptr) ++threads;
  std::printf("threads %d\n", threads);
  return 5;
}
