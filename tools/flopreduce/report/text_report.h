// The summary for people.
#pragma once
#include <ostream>

#include "report/report.h"

namespace flopinj::reduce {

struct TextOptions {
  bool color = false;
  size_t width = 100;
  size_t top = 10;  // lines in the kernel and range tables
};
void write_text(std::ostream& out, const Report& report, const TextOptions& options);

}  // namespace flopinj::reduce
