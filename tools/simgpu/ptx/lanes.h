// The table of instructions that work on lanes: what each is called, and the function that does it.
#pragma once
#include <initializer_list>

#include "ptx/code.h"

namespace simgpu::ptx {

// How an operand is read or written: as which type's place, which says its width and what a
// constant there means.
struct Row {
  Handler handler = nullptr;
  Type d, a, b, c;    // c, b: kNone where there is none
  uint8_t count = 0;  // of Code
};

// By the name without rounding, .ftz, .sat and other words that change no type: "add.f32",
// "mul.wide.s32", "cvt.s64.s32".
using Rows = std::unordered_map<std::string, Row>;

// The best for this processor.
const Rows& rows();

// Where a load or store finds its lanes' memory: register a + value, or value alone.
struct LaneAddresses {
  enum class Pattern : uint8_t {
    kOne,  // the same for all active lanes
    kRow,  // lane by lane the next `bytes`
    kAny
  };
  Pattern pattern = Pattern::kOne;
  uint32_t begins = 0;  // kAny: lanes that are in another sector than the one before
  uint64_t least = 0, most = 0;
  uint64_t bits = 0;    // of any of them: what is no multiple shows
  uint64_t at[kLanes];  // kAny
};
using AddressLoop = void (*)(const Warp&, const Code&, uint32_t active, uint64_t bytes,
                             LaneAddresses&);
AddressLoop address_loop();  // the best for this processor

// Both do the same; the second is compiled for AVX2.
AddressLoop add_rows(Rows& rows);
AddressLoop add_rows_avx2(Rows& rows);

}  // namespace simgpu::ptx
