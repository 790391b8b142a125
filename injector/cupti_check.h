// The one function that checks CUPTI results.
#pragma once
#include <injector/cupti_api.h>

#include <string>

namespace flopinj {

// Results that the headers of CUPTI 12.6 do not name yet.
inline constexpr auto kMigNotSupported = static_cast<CUptiResult>(43);
inline constexpr auto kSliNotSupported = static_cast<CUptiResult>(44);
inline constexpr auto kWslNotSupported = static_cast<CUptiResult>(45);

// Why something cannot be done: a stable code for the trace, and one line for the user that says
// what to do.
struct Problem {
  std::string code;
  std::string line;
};

// True on success. Otherwise `problem` tells which call failed, how, and what helps.
bool check(const CuptiApi&, CUptiResult, const char* call, Problem& problem);

// CUPTI's parameter structures: zeroed, with the size it wants to see.
template <class P>
P sized(size_t size) {
  P parameters{};
  parameters.structSize = size;
  return parameters;
}

}  // namespace flopinj
