// Ranges that launches have by what a user's file says of them, instead of those in the trace.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace flopinj::reduce {

// phases/given_names.h fills it, before phases are decided.
struct GivenPaths {
  std::vector<uint32_t> of_path;  // by PathTable index: what takes its place; empty: nothing does
  std::unordered_map<uint64_t, uint32_t> of_kernel;  // by key(); goes before

  static uint64_t key(uint32_t path, uint32_t kernel_name) {
    return static_cast<uint64_t>(path) << 32 | kernel_name;
  }
  // `kernel_name`: NamePool.
  uint32_t of(uint32_t path, uint32_t kernel_name) const {
    if (of_path.empty()) return path;
    const auto found = of_kernel.find(key(path, kernel_name));
    return found == of_kernel.end() ? of_path[path] : found->second;
  }
};

}  // namespace flopinj::reduce
