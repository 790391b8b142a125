#include "writers/html/html_writer.h"

#include <array>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "sections/parts/cells.h"
#include "sections/sections.h"
#include "sections/work_tree.h"
#include "support/text.h"
#include "writers/cell_text.h"
#include "writers/html/html_page.h"

namespace flopinj::reduce {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kExactInDouble = uint64_t{1} << 53;

Json number_json(u128 value) {
  return value <= kExactInDouble ? Json(static_cast<uint64_t>(value)) : Json(to_decimal(value));
}

// As described in writers/html/format.js.
Json cell_json(const Cell& cell, Mark marks) {
  if (cell.empty())
    return std::string_view(cell.absent) == "-" ? Json(nullptr) : Json{{"absent", cell.absent}};
  if (const auto* text = std::get_if<std::string>(&cell.value)) return printable(*text);
  const auto* integer = std::get_if<u128>(&cell.value);
  Json number = integer != nullptr ? number_json(*integer) : Json(std::get<double>(cell.value));
  if (marks == Mark::kNone && number.is_number()) return number;
  Json j{{"n", std::move(number)}};
  if (marks != Mark::kNone) j["m"] = marks_text(marks);
  return j;
}

const char* kind_word(Kind kind) {
  static constexpr std::array<const char*, 11> kWords = {
      "text", "count", "flop", "exact", "op", "ns", "bytes", "rate", "bandwidth", "ratio", "share"};
  return kWords[static_cast<size_t>(kind)];
}

Json table_json(const Table& table) {
  Json j{{"key", table.key}, {"long_list", table.long_list}, {"when_empty", table.when_empty}};
  j["columns"] = Json::array();
  for (const Column& c : table.columns)
    if (c.kind != Kind::kExactFlop)  // each number shows its exact value when it is pointed at
      j["columns"].push_back({{"key", c.key}, {"heading", c.heading}, {"kind", kind_word(c.kind)}});
  Json& rows = j["rows"] = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (size_t c = 0; c < row.size(); ++c)
      if (table.columns[c].kind != Kind::kExactFlop)
        cells.push_back(cell_json(row[c], exact_marks(table, row, c)));
    rows.push_back(std::move(cells));
  }
  return j;
}

Json lines_json(const std::vector<Line>& lines) {
  static constexpr std::array<const char*, 5> kTones = {"plain", "title", "warn", "bad", "dim"};
  Json list = Json::array();
  for (const Line& line : lines) {
    Json parts = Json::array();
    for (const auto& [text, tone] : line.parts)
      parts.push_back({printable(text), kTones[static_cast<size_t>(tone)]});
    list.push_back(std::move(parts));
  }
  return list;
}

Json section_json(const Section& section) {
  return {{"title", printable(section.title)},
          {"above", lines_json(section.above)},
          {"table", section.table ? table_json(*section.table) : Json(nullptr)},
          {"below", lines_json(section.below)}};
}

// Widths of frames: doubles are good enough.
Json tree_json(const Report& report) {
  Json names = Json::array();
  Json nodes = Json::array();
  std::unordered_map<std::string_view, size_t> index;
  for (const WorkNode& node : work_tree(report)) {
    const auto [entry, fresh] = index.try_emplace(node.name, names.size());
    if (fresh) names.push_back(printable(node.name));
    nodes.push_back({node.depth, entry->second, node.leaf ? 1 : 0,
                     static_cast<double>(node.work->flop), static_cast<double>(node.work->time.ns),
                     node.work->launches});
  }
  return {{"names", std::move(names)}, {"nodes", std::move(nodes)}};
}

// The figures on top of the page.
Json figures_json(const Report& report) {
  const Work& total = report.total;
  Json list = Json::array();
  const auto add = [&](const char* label, const Cell& cell, Kind kind, const std::string& exact) {
    list.push_back({{"label", label},
                    {"cell", cell_json(cell, cell.marks)},
                    {"kind", kind_word(kind)},
                    {"exact", exact}});
  };
  const Cell flop = exact_cell(total);
  add("executed", flop, Kind::kFlop,
      flop.empty()
          ? ""
          : human(flop, Kind::kExactFlop) + " FLOP, one FMA counts " + std::to_string(report.fma));
  add("GPU time", time_cell(total), Kind::kNanoseconds, "sum of kernels");
  add("kernel launches", total.launches, Kind::kCount,
      total.unmeasured > 0 ? to_grouped(total.unmeasured) + " without a FLOP count" : "");
  return list;
}

// What charts are drawn from: tables for programs, by key.
void add_charts(Json& data, const Report& report) {
  for (const Subject* subject : {&kRoofline, &kBusyTime})
    for (const Table& table : subject->tables(report))
      for (const std::string_view key : {"roofs", "flop_over_time"})
        if (table.key == key) data[key] = table_json(table);
  Json& processes = data["flop_over_time"]["processes"] = Json::array();
  for (const TraceReport& trace : report.traces) processes.push_back(printable(trace.name));
}

// Tables for programs that people want at hand where a figure is doubted.
Json more_json(const Report& report) {
  Json list = Json::array();
  for (const Table& table : kProcesses.tables(report)) {
    list.push_back(table_json(table));
    list.back()["title"] = "Recorded " + std::string(table.key);
  }
  return list;
}

}  // namespace

void write_html(std::ostream& out, const Report& report, std::string_view program) {
  Json data;
  data["figures"] = figures_json(report);
  data["sections"] = Json::array();
  for (const Section& section : report_sections(report))
    data["sections"].push_back(section_json(section));
  data["more"] = more_json(report);
  data["tree"] = tree_json(report);
  add_charts(data, report);
  data["about"] = "Made by " + std::string(program) + " from " +
                  std::to_string(report.traces.size()) + " recorded process" +
                  (report.traces.size() == 1 ? "" : "es") + "; one fused multiply-add counts " +
                  std::to_string(report.fma) +
                  ". This page is one file and makes no request to any other.";
  out << kPageBeforeData;
  // ASCII only, and no "<": nothing in it can end the element that holds it.
  const std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  for (size_t from = 0; from < text.size();) {
    const size_t at = std::min(text.find('<', from), text.size());
    out.write(text.data() + from, static_cast<std::streamsize>(at - from));
    if (at < text.size()) out << "\\u003c";
    from = at + 1;
  }
  out << kPageAfterData;
}

}  // namespace flopinj::reduce
