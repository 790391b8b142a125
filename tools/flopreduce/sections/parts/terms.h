// What the figures of the first screen mean: for help, manual pages and the HTML page. A column
// says its meaning itself (parts/columns.h).
#pragma once
#include <span>
#include <string_view>

namespace flopinj::reduce {

struct Term {
  std::string_view key;  // the figure's name: "HFU"
  const char* meaning;   // ASCII, without an end mark
  // Where `flopreduce explain` finds it: a figure by its name there, or sections.
  std::string_view figure, sections = {};  // "steps", "ledger,coverage"
};
std::span<const Term> figure_terms();  // of the first screen, in its order

// Empty for a word that explains itself.
const char* meaning_of_figure(std::string_view name);

}  // namespace flopinj::reduce
