// Sections as Markdown with tables (GitHub Flavored Markdown), for comments on pull requests and
// for notes.
#pragma once
#include <ostream>
#include <span>

#include "sections/parts/table.h"

namespace flopinj::reduce {

// Numbers as people read them, to the right; of long tables the first `top` rows. Every text is
// escaped: nothing in a name is taken for Markdown or HTML.
void write_markdown(std::ostream& out, std::span<const Section> sections, size_t top);

}  // namespace flopinj::reduce
