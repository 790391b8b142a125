// Counters of one recording for the launches of another one of the same program: Nsight Compute has
// the counters of kernels, and torch.profiler or Nsight Systems their times.
#pragma once
#include <import/timeline.h>

#include <string>
#include <string_view>

namespace flopinj::import {

// The n-th launch of a kernel in one is the n-th in the other, where both have as many launches of
// it by name, grid, block and device. Names are those of the functions, since each profiler prints
// types and parameters of its own way; functions of one name are told apart by the whole names,
// where each of one recording is always at the place of the same one of the other.
//
// Other launches have no counters. A diagnostic of `recording` says of how many they are known.
// The error otherwise.
std::string join_counters(Timeline& counters, Timeline& recording);

// "gemm" of "void lib::gemm<float, (int)4>(T1 *, int)", and of its mangled name.
std::string function_name(std::string_view kernel);

}  // namespace flopinj::import
