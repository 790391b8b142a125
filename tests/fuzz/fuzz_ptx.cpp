// Any text as PTX: it is decoded, or refused with a line that names the place.
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "ptx/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMostMemory = uint64_t{1} << 24;
  std::vector<std::unique_ptr<std::byte[]>> memory;
  try {
    const simgpu::ptx::Program program = simgpu::ptx::decode(
        simgpu::ptx::parse({reinterpret_cast<const char*>(data), size}), [&](uint64_t bytes) {
          if (bytes > kMostMemory || memory.size() > 1000) throw std::bad_alloc();
          memory.push_back(std::make_unique<std::byte[]>(bytes));
          return reinterpret_cast<uint64_t>(memory.back().get());
        });
    for (const simgpu::ptx::Kernel& kernel : program.kernels)
      if (kernel.routine >= program.routines.size()) std::abort();
  } catch (const simgpu::ptx::TextError& error) {
    if (std::string_view(error.what()).substr(0, 5) != "line ") std::abort();
  } catch (const std::bad_alloc&) {  // more memory than a device would give
  }
  return 0;
}
