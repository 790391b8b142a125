// HTML pages that need nothing else: no network, no fonts, no other file.
//
// The data are in the page as JSON without a "<"; scripts make text nodes of them and nothing else.
// The page's policy admits its own script and style by their hashes, and no request at all.
#pragma once
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// `program`: "flopreduce 1.2".
void write_html(std::ostream& out, const Report& report, std::string_view program);

// A page of any sections, such as a comparison's; `title` is its heading.
void write_html(std::ostream& out, const std::string& title, const std::vector<Section>& sections,
                std::string_view program);

}  // namespace flopinj::reduce
