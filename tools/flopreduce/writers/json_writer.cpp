#include "writers/json_writer.h"

#include <nlohmann/json.hpp>

#include "sections/sections.h"

namespace flopinj::reduce {

void write_json(std::ostream& out, const nlohmann::ordered_json& json) {
  out << json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void write_json(std::ostream& out, const Report& report, bool signatures) {
  write_json(out, report_json(report, signatures));
}

}  // namespace flopinj::reduce
