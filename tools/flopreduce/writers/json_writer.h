// Tables as JSON (schema 3): an object with a list of rows for each table, by the table's key, each
// row an object by column. The table `figures` has one row, which is an object right there.
//
// FLOP are a number, and KEY_exact has their decimal text, since many readers round integers from
// 2^53 on. Of a bound KEY is null, and KEY_at_least or KEY_at_most has it. KEY_estimated is true
// beside an estimate. Where KEY is null for a known reason, KEY_why has it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <span>

#include "report/report.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

inline constexpr int kSchemaVersion = 3;

nlohmann::ordered_json report_json(const Report& report);
nlohmann::ordered_json tables_json(std::span<const Table> tables);

// A line for each row of a table.
void write_json(std::ostream& out, const nlohmann::ordered_json& json);

// What the JSON of every report is valid by.
nlohmann::ordered_json report_schema();

}  // namespace flopinj::reduce
