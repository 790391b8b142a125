// The one function that checks CUPTI results, and the names of results.
#pragma once
#include <cupti_result.h>

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
  bool lasting = false;  // trying again in this process is of no use
  bool passing = false;  // another program holds what is needed, or there is too little of it
};

// For messages: "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)".
std::string describe(CUptiResult);

// True on success. Otherwise `problem` says which call failed, how, and what helps.
bool check(CUptiResult, const char* call, Problem& problem);

}  // namespace flopinj
