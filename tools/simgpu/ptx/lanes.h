// The table of instructions that work on lanes: what each is called, and the function that does it.
#pragma once
#include <initializer_list>

#include "ptx/code.h"

namespace simgpu::ptx {

// How an operand is read or written: as which type's place, which says its width and what a
// constant there means.
struct Row {
  Handler handler = nullptr;
  Type d, a, b, c;  // c, b: kNone where there is none
  uint8_t count = 0;
};

// By the name without rounding, .ftz, .sat and other words that change no type: "add.f32",
// "mul.wide.s32", "cvt.s64.s32".
using Rows = std::unordered_map<std::string, Row>;

// The best for this processor.
const Rows& rows();

// Both do the same; the second is compiled for AVX2.
void add_rows(Rows& rows);
void add_rows_avx2(Rows& rows);

}  // namespace simgpu::ptx
