// What the words of a report mean: figures of the first screen, and columns of tables. Help, manual
// pages, the HTML page and docs/metrics.md have them from here.
#pragma once
#include <span>
#include <string_view>

namespace flopinj::reduce {

struct Term {
  // A figure's name ("HFU") or a column's key ("flop_share"); TABLE.KEY where it is of one table
  // only.
  std::string_view key;
  std::string_view meaning;  // ASCII, without an end mark
};
std::span<const Term> figure_terms();  // of the first screen, in its order
std::span<const Term> column_terms();

// Empty for a word that explains itself.
std::string_view meaning_of_figure(std::string_view name);
std::string_view meaning_of_column(std::string_view table, std::string_view key);

}  // namespace flopinj::reduce
