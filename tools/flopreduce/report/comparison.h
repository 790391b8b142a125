// Two reports side by side: what changed between two runs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/report.h"
#include "support/wide.h"

namespace flopinj::reduce {

// What each side's figures are divided by before they are compared: batch sizes, steps.
struct Normalization {
  std::string name;  // empty: none
  double a = 1, b = 1;
};
// NAME=A,B or NAME=A:B, numbers above 0: batch=64,128. False for anything else.
bool parse_normalization(const std::string& text, Normalization& out);

// One figure of both sides. A side is nothing where it is not known.
template <typename Value>
struct Pair {
  std::optional<Value> a, b;
  std::optional<double> ratio() const {  // b / a
    if (!a || !b || *a == 0) return std::nullopt;
    return static_cast<double>(*b) / static_cast<double>(*a);
  }
  // (b / normalization of B) / (a / normalization of A)
  std::optional<double> normalized(const Normalization& n) const {
    const auto r = ratio();
    return r ? std::optional(*r * n.a / n.b) : std::nullopt;
  }
};

enum class Change : uint8_t {
  kSame,      // FLOP agree, and launches where nothing is normalised
  kAppeared,  // only in B: another kernel, or another algorithm's
  kVanished,  // only in A
  kChanged,
};
const char* change_word(Change change);

struct ComparedWork {
  std::string name;
  std::string mangled;  // of a kernel; empty where it is several, or another on each side
  Change change = Change::kSame;
  Pair<u128> launches, flop, gpu_time_ns;
  Pair<double> flop_per_launch, time_per_launch_ns;
};

// Whether the FLOP of both sides are known and agree after normalization.
bool same_flop(const ComparedWork& work, const Normalization& normalization);

struct Comparison {
  Normalization normalization;
  // Of the whole run; shares of 1. A side is nothing where its report has no such figure.
  Pair<double> hfu, mfu, coverage, backward_forward_ratio;
  Pair<double> step_time_ns;  // median
  ComparedWork total;
  // A phase that one side lacks has 0 launches and 0 FLOP there.
  std::vector<ComparedWork> phases;
  std::vector<ComparedWork> absent_phases;  // that the rules know, and no launch of either side had
  std::vector<ComparedWork> kernels;        // largest difference of normalised GPU time first
  bool simulated = false;                   // a side is
  std::vector<GateResult> gates;            // of --fail-if
};
Comparison compare(const Report& a, const Report& b, const Normalization& normalization);

}  // namespace flopinj::reduce
