// Traces held in memory, through the whole reducer.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "passes/reducer.h"
#include "passes/summary/condense.h"
#include "support/trace_builder.h"
#include "writers/writers.h"

// Compiled once, with optimization, beside what is defined in reduce_bytes.cpp: tests are not
// optimized, and read much JSON.
extern template class nlohmann::basic_json<>;

namespace flopinj::reduce {
// Of sections/sections.h, whose names are short ones.
std::vector<Section> report_sections(const Report&);
std::vector<Table> report_tables(const Report&);
}  // namespace flopinj::reduce

namespace flopinj::test {

reduce::Report reduce_bytes(const std::vector<std::string>& traces,
                            reduce::ReduceOptions options = {});

// A trace or summary in memory, and a summary of several.
struct Named {
  std::string name, bytes;
};
struct Merged {
  std::string bytes;
  uint64_t recordings = 0;
  std::vector<std::string> errors, damaged;
};
Merged merge_bytes(const std::vector<Named>& inputs);

std::string json_text_of(const reduce::Report& report);
nlohmann::ordered_json json_of(std::span<const reduce::Table> tables);
nlohmann::json json_of(const reduce::Report& report);

// The row of a table that has this text in a column; null where there is none.
nlohmann::json row_of(const nlohmann::json& report, const char* table, const char* column,
                      const std::string& text);

// The part of a report that is the same for a summary and for its traces: everything but single
// moments and the names of files.
nlohmann::json timeless_json_of(const reduce::Report& report);

std::string text_of(const reduce::Report& report);

inline uint64_t damage_of(const reduce::Report& report, reduce::Damage kind) {
  uint64_t count = 0;
  for (const auto& d : report.damage)
    if (d.kind == kind) count += d.count;
  return count;
}

inline bool balances(const reduce::Report& report) {
  const auto& l = report.ledger.total;
  return l.launches == l.measured + l.extrapolated + l.unmeasured + l.dropped;
}

// Nine SASS counters with these values and zeros elsewhere: fadd fmul ffma dadd dmul dfma hadd hmul
// hfma.
inline std::vector<double> sass(double fadd, double fmul, double ffma, double dfma = 0,
                                double hfma = 0) {
  return {fadd, fmul, ffma, 0, 0, dfma, 0, 0, hfma};
}

// Header, device, thread, stream and the required group "sass" with id 1.
inline TraceBuilder started(uint64_t session = 1, const std::string& chip = "GH100",
                            bool simulated = false, bool calls = false) {
  TraceBuilder t;
  t.header(session, simulated, 1, static_cast<uint32_t>(100 + session), 0, calls);
  t.device(1, chip);
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  return t;
}

}  // namespace flopinj::test
