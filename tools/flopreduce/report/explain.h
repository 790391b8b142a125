// The derivation of one figure: which signatures it is made of, and what each of them was counted
// from.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace flopinj::reduce {

// A signature's part of the figure.
struct Contribution {
  const SignatureReport* signature = nullptr;
  Work work;                        // of the launches that belong to the figure
  std::vector<std::string> ranges;  // they were launched in, most FLOP first, a few
  size_t ranges_left_out = 0;
};

struct Explanation {
  const char* kind = "";  // "total", "phase", "kernel", "range"
  std::string name;
  Work work;
  std::vector<Contribution> contributions;  // most FLOP first; they add up to `work`
};

// What people may ask about.
struct Figure {
  const char* kind = "";
  std::string name;
};

// Figures that `name` may mean: those named so, or else those that have it in their name in any
// case. "total" is the whole.
std::vector<Figure> figures_named(const Report& report, std::string_view name);
// The names nearest to one that is not known, at most three.
std::vector<Figure> figures_near(const Report& report, std::string_view name);

// The report must hold its rows (ReduceOptions::keep_rows), and outlive the explanation.
Explanation explain(const Report& report, const Figure& figure);

}  // namespace flopinj::reduce
