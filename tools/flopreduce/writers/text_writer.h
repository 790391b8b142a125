// A report on a terminal.
#pragma once
#include <ostream>
#include <span>

#include "report/report.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

struct TextOptions {
  bool color = false;
  size_t width = 100;  // columns of the terminal
  size_t top = 10;     // lines of long tables
  bool fit = false;    // no line is wider than that: columns go, prose is broken
};
void write_text(std::ostream& out, const Report& report, const TextOptions& options);
// The same for any sections.
void write_text(std::ostream& out, std::span<const Section> sections, const TextOptions& options);

}  // namespace flopinj::reduce
