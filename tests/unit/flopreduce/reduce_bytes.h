// Traces held in memory, through the whole reducer.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "passes/reducer.h"
#include "passes/summary/condense.h"
#include "support/trace_builder.h"
#include "writers/writers.h"

namespace flopinj::reduce {
// Of sections/sections.h, whose names are short ones.
std::vector<Section> report_sections(const Report&);
std::vector<Table> report_tables(const Report&);
}  // namespace flopinj::reduce

namespace flopinj::test {

inline reduce::Report reduce_bytes(const std::vector<std::string>& traces,
                                   reduce::ReduceOptions options = {}) {
  options.choose_copies = reduce::most_complete;
  options.flop_over_time = true;
  reduce::Reducer reducer(std::move(options));
  int number = 0;
  for (const auto& bytes : traces)
    reducer.add(
        reduce::Input::from_memory("trace" + std::to_string(number++), bytes.data(), bytes.size()));
  return reducer.any_input() ? reducer.run() : reduce::Report{};
}

// A trace or summary in memory, and a summary of several.
struct Named {
  std::string name, bytes;
};
struct Merged {
  std::string bytes;
  uint64_t recordings = 0;
  std::vector<std::string> errors, damaged;
};

inline Merged merge_bytes(const std::vector<Named>& inputs) {
  reduce::Merge merge;
  for (const auto& i : inputs)
    merge.add(reduce::Input::from_memory(i.name, i.bytes.data(), i.bytes.size()));
  merge.choose();
  Merged merged;
  merged.recordings = merge.recordings();
  merge.write([&](std::string_view bytes) { merged.bytes += bytes; });
  merged.errors = merge.errors();
  merged.damaged = merge.damaged();
  return merged;
}

inline std::string json_text_of(const reduce::Report& report) {
  std::ostringstream out;
  reduce::write_json(out, reduce::report_tables(report));
  return out.str();
}

inline nlohmann::ordered_json json_of(std::span<const reduce::Table> tables) {
  std::ostringstream out;
  reduce::write_json(out, tables);
  return nlohmann::ordered_json::parse(out.str());
}

inline nlohmann::json json_of(const reduce::Report& report) {
  return nlohmann::json::parse(json_text_of(report));
}

// The row of a table that has this text in a column; null where there is none.
inline nlohmann::json row_of(const nlohmann::json& report, const char* table, const char* column,
                             const std::string& text) {
  for (const auto& row : report[table])
    if (row[column] == text) return row;
  return nullptr;
}

// The part of a report that is the same for a summary and for its traces: everything but single
// moments and the names of files.
inline nlohmann::json timeless_json_of(const reduce::Report& report) {
  auto json = json_of(report);
  for (const char* moments : {"largest_gaps", "flop_over_time"}) json.erase(moments);
  for (auto& process : json["processes"]) process.erase("files");
  for (auto& damage : json["damage"]) damage.erase("file");
  std::sort(json["damage"].begin(), json["damage"].end());
  auto& screen = json["screen"];
  screen.erase(std::remove_if(screen.begin(), screen.end(),
                              [](const auto& row) { return row["part"] == "warning"; }),
               screen.end());
  for (auto& row : json["notices"]) {  // "FILE: the trace was not closed ..."
    const std::string text = row["notice"];
    const size_t name = text.find(" not closed");
    if (name != text.npos) row["notice"] = text.substr(name);
  }
  return json;
}

inline std::string text_of(const reduce::Report& report) {
  std::ostringstream out;
  reduce::write_text(out, reduce::report_sections(report), {});
  return out.str();
}

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
