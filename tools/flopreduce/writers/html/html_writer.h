// A report as one HTML page that needs nothing else: no network, no fonts, no other file.
#pragma once
#include <ostream>
#include <string_view>

#include "report/report.h"

namespace flopinj::reduce {

// The data stand in the page as JSON without a "<"; scripts make text nodes of them and nothing
// else. The page's policy admits its own script and style by their hashes, and no request at all.
void write_html(std::ostream& out, const Report& report, std::string_view program);

}  // namespace flopinj::reduce
