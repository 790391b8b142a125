// The logs that options of a compilation name.
#pragma once
#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace simgpu::api {

// Where a caller wants errors, or information, and how much of it.
struct JitLog {
  char* buffer = nullptr;
  void** bytes = nullptr;  // in: room; out: what is filled

  JitLog() = default;
  JitLog(CUjit_option buffer_option, CUjit_option bytes_option, unsigned int count,
         const CUjit_option* options, void** values) {
    for (unsigned int i = 0; options != nullptr && values != nullptr && i < count; ++i) {
      if (options[i] == buffer_option) buffer = static_cast<char*>(values[i]);
      if (options[i] == bytes_option) bytes = &values[i];
    }
    if (bytes != nullptr) room_ = reinterpret_cast<uintptr_t>(*bytes) & 0xffff'ffffU;
  }
  static JitLog of_errors(unsigned int count, const CUjit_option* options, void** values) {
    return {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, count, options, values};
  }
  static JitLog of_information(unsigned int count, const CUjit_option* options, void** values) {
    return {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, count, options, values};
  }

  void write(std::string_view text) const {
    if (bytes == nullptr) return;
    const size_t fits = buffer == nullptr || room_ == 0 ? 0 : std::min(text.size(), room_ - 1);
    if (buffer != nullptr && room_ != 0) {
      std::memcpy(buffer, text.data(), fits);
      buffer[fits] = '\0';
    }
    *bytes = reinterpret_cast<void*>(fits);
  }

 private:
  size_t room_ = 0;
};

}  // namespace simgpu::api
