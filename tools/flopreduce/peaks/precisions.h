// In which precisions a product may have run, where no counter says it: by its kernel's name, or by
// the type of its operands. The table is data, precisions.tsv: a kernel or type that is missing
// gets a line there.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "peaks/peaks.h"

namespace flopinj::reduce {

// Of kPrecisionNames.
class PrecisionSet {
 public:
  PrecisionSet() = default;
  void add(size_t precision) { bits_ |= 1U << precision; }
  PrecisionSet& operator|=(PrecisionSet o) {
    bits_ |= o.bits_;
    return *this;
  }
  bool has(size_t precision) const { return (bits_ >> precision & 1) != 0; }
  bool empty() const { return bits_ == 0; }
  bool operator==(const PrecisionSet&) const = default;
  // "fp32 or tensor_tf32"
  std::string text() const;

 private:
  uint32_t bits_ = 0;
};

// What a kernel does.
struct KernelPrecisions {
  bool product = true;      // or may be one
  PrecisionSet precisions;  // empty: nothing says it
};
// `kernel` is mangled or not.
KernelPrecisions precisions_of_kernel(std::string_view kernel);

// Of a product of operands with these types, as PyTorch prints them: "BFloat16, BFloat16, -". Empty
// where a type is not known, or there is none.
PrecisionSet precisions_of_types(std::string_view types);

// Of the table; of a bad one its first bad line.
std::string wrong_in_precisions(std::string_view text);

}  // namespace flopinj::reduce
