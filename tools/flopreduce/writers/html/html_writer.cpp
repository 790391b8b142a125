#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sections/parts/cells.h"
#include "sections/parts/short_name.h"
#include "sections/parts/terms.h"
#include "sections/sections.h"
#include "sections/work_tree.h"
#include "support/text.h"
#include "writers/cell_text.h"
#include "writers/writers.h"

namespace flopinj::reduce {

// The page without its data: the parts before and after. From the files beside this one, put
// together when the project is built.
extern const std::string_view kPageBeforeData, kPageAfterData;

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kExactInDouble = uint64_t{1} << 53;

Json number_json(u128 value) {
  return value <= kExactInDouble ? Json(static_cast<uint64_t>(value)) : Json(to_decimal(value));
}

Json column_json(const Column& column) {
  Json j{{"key", column.key}, {"heading", column.heading}, {"kind", words_of(column.kind).key}};
  if (*column.meaning != '\0') j["meaning"] = column.meaning;
  return j;
}

// What the page draws from, as JSON; data.js reads it.
class PageData {
 public:
  Json& operator[](const char* key) { return data_[key]; }

  // A text of the page by its number: long names are in many tables, and in the page once.
  Json text(std::string_view raw) { return number_of(raw); }
  // The same of a kernel; people see it without what all names share.
  Json kernel(std::string_view raw) {
    const size_t number = number_of(raw);
    Json& text = texts_[number];
    if (!text.is_string()) return number;
    // Where in the name the short one begins and ends. Nothing where it is no part of it.
    const std::string whole = text, brief = printable(short_kernel_name(raw));
    const size_t begin = whole.find(brief);
    if (brief != whole && begin != whole.npos) text = {whole, begin, begin + brief.size()};
    return number;
  }

  Json section(const Section& section) {
    return {{"key", section.key},
            {"title", printable(section.title)},
            {"above", lines(section.above)},
            {"table", section.table ? table_json(*section.table) : Json(nullptr)},
            {"below", lines(section.below)}};
  }

  static Json lines(const std::vector<Line>& lines) {
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

  // The whole page.
  void write(std::ostream& out) && {
    data_["texts"] = std::move(texts_);
    out << kPageBeforeData;
    // ASCII only, and no "<": nothing in it can end the element that holds it.
    const std::string text = data_.dump(-1, ' ', true, Json::error_handler_t::replace);
    for (size_t from = 0; from < text.size();) {
      const size_t at = std::min(text.find('<', from), text.size());
      out.write(text.data() + from, static_cast<std::streamsize>(at - from));
      if (at < text.size()) out << "\\u003c";
      from = at + 1;
    }
    out << kPageAfterData;
  }

 private:
  size_t number_of(std::string_view raw) {
    const auto [entry, fresh] = numbers_.try_emplace(std::string(raw), texts_.size());
    if (fresh) texts_.push_back(printable(raw));
    return entry->second;
  }

  // As described in format.js.
  Json cell(const Cell& cell, Mark marks, bool is_kernel) {
    if (cell.empty()) return cell.absent == "-" ? Json(nullptr) : Json{{"absent", cell.absent}};
    if (const auto* raw = std::get_if<std::string>(&cell.value))
      return {{"t", is_kernel ? kernel(*raw) : text(*raw)}};
    const auto* integer = std::get_if<u128>(&cell.value);
    Json number = integer != nullptr ? number_json(*integer) : Json(std::get<double>(cell.value));
    if (marks == Mark::kNone && number.is_number()) return number;
    Json j{{"n", std::move(number)}};
    if (marks != Mark::kNone) j["m"] = marks_text(marks);
    if (cell.most) j["most"] = *cell.most;
    return j;
  }

  Json table_json(const Table& table) {
    Json j{{"key", table.key}, {"long_list", table.long_list}, {"when_empty", table.when_empty}};
    j["columns"] = Json::array();
    for (const Column& c : table.columns)
      if (c.kind != Kind::kExactFlop)  // each number shows its exact value when it is pointed at
        j["columns"].push_back(column_json(c));
    Json& rows = j["rows"] = Json::array();
    for (const auto& row : table.rows) {
      Json cells = Json::array();
      for (size_t c = 0; c < row.size(); ++c) {
        if (table.columns[c].kind == Kind::kExactFlop) continue;
        const std::string_view key = table.columns[c].key;
        Json value = cell(row[c], exact_marks(table, row, c),
                          key == "kernel" || table.key == std::string_view("compared_kernels"));
        // In a column of texts, a plain number is the number of a text.
        if (table.columns[c].kind == Kind::kText) {
          if (value.is_object() && value.contains("t"))
            value = value["t"];
          else if (value.is_number())
            value = {{"n", value}};
        }
        cells.push_back(std::move(value));
      }
      rows.push_back(std::move(cells));
    }
    return j;
  }

  Json data_;
  Json texts_ = Json::array();
  std::unordered_map<std::string, size_t> numbers_;  // raw -> texts_
};

// A figure without a name goes on with the note of the one before.
Json figures_json(const std::vector<ShownFigure>& figures) {
  Json list = Json::array();
  for (const ShownFigure& figure : figures) {
    if (*figure.name == '\0') {
      list.back()["note"] = list.back()["note"].get<std::string>() + "; " + printable(figure.note);
      continue;
    }
    list.push_back({{"name", figure.name},
                    {"value", printable(figure.value)},
                    {"note", printable(figure.note)},
                    {"warn", figure.tone == Tone::kWarn},
                    {"meaning", meaning_of_figure(figure.name)}});
  }
  return list;
}

// Widths of frames: doubles are good enough.
Json tree_json(PageData& page, const Report& report) {
  Json nodes = Json::array();
  for (const WorkNode& node : work_tree(report)) {
    nodes.push_back({node.depth, node.leaf ? page.kernel(node.name) : page.text(node.name),
                     node.leaf ? page.text(node.phase) : Json(nullptr),
                     static_cast<double>(node.work.flop), static_cast<double>(node.work.time.ns),
                     node.work.launches});
  }
  return nodes;
}

// Peaks of the devices, in the report's convention; `used`: of a precision that ran.
Json roofs_json(const Report& report) {
  Json list = Json::array();
  for (const DevicePeaksReport& device : report.utilization.devices) {
    Json peaks = Json::array();
    for (const auto& p : device.peaks)
      peaks.push_back(
          {{"name", p.precision}, {"rate", p.per_second}, {"used", executed(report, p.precision)}});
    list.push_back({{"device", printable(device.name)},
                    {"memory", device.memory ? device.memory->per_second : 0},
                    {"peaks", std::move(peaks)}});
  }
  return list;
}

// FLOP over time by device and phase. A series' bins are joined two by two until all devices'
// together are few enough for a page: sums of bins of 2^k ns are exact.
constexpr size_t kMostBins = size_t{1} << 16;

// `from_ns`: a multiple of all bins, which the page's numbers begin at: those of a clock are larger
// than JavaScript's integers.
Json series_json(PageData& page, const TimeReport::Series& series, uint64_t least_bin_ns,
                 uint64_t from_ns) {
  const uint64_t bin_ns = std::max(series.bin_ns, least_bin_ns);
  const uint64_t first = series.begin_ns / bin_ns;
  std::vector<double> bins;
  for (size_t i = 0; i < series.flop.size(); ++i) {
    const uint64_t at = (series.begin_ns + i * series.bin_ns) / bin_ns - first;
    if (at >= bins.size()) bins.resize(at + 1);
    bins[at] += static_cast<double>(series.flop[i]);
  }
  return {{"phase", page.text(series.phase)},
          {"begin_ns", first * bin_ns - from_ns},
          {"bin_ns", bin_ns},
          {"flop", bins}};
}

// Where a process's steps begin, and how long it is from one to the next in the mean.
struct StepTimes {
  uint64_t first_ns = UINT64_MAX, last_ns = 0;  // by the trace's clock
  uint32_t first = UINT32_MAX, last = 0;        // numbers

  Json json(uint64_t from_ns) const {
    const double ns = static_cast<double>(last_ns - first_ns) / (last - first);
    return {{"begin_ns", static_cast<double>(first_ns) - static_cast<double>(from_ns)},
            {"step_ns", ns},
            {"count", last - first + 1}};
  }
};
std::map<size_t, StepTimes> step_times(const Report& report) {
  std::map<size_t, StepTimes> all;
  if (!report.steps.single) return all;
  for (const StepsReport::Step& step : report.steps.steps) {
    if (step.number == 0) continue;
    StepTimes& of = all[step.trace];
    if (step.number < of.first) {
      of.first = step.number;
      of.first_ns = step.start_ns;
    }
    if (step.number > of.last) {
      of.last = step.number;
      of.last_ns = step.start_ns;
    }
  }
  std::erase_if(all, [](const auto& of) { return of.second.first_ns >= of.second.last_ns; });
  return all;
}

Json flop_over_time_json(PageData& page, const Report& report) {
  Json list = Json::array();
  const std::map<size_t, StepTimes> steps = step_times(report);
  size_t series = 1;
  for (const auto& device : report.time.devices) series += device.flop.size();
  const size_t most = std::max<size_t>(16, kMostBins / series);
  for (const auto& device : report.time.devices) {
    if (device.flop.empty()) continue;
    uint64_t bin_ns = 1;
    for (const auto& one : device.flop)
      while (one.flop.size() * one.bin_ns / bin_ns > most) bin_ns *= 2;
    uint64_t from_ns = UINT64_MAX, longest_ns = bin_ns;
    for (const auto& one : device.flop) {
      from_ns = std::min(from_ns, one.begin_ns);
      longest_ns = std::max(longest_ns, one.bin_ns);
    }
    from_ns -= from_ns % longest_ns;
    std::string label = report.traces[device.trace].name;
    if (device.id > 0) label += ", device " + std::to_string(device.id - 1);
    Json phases = Json::array();
    for (const auto& one : device.flop) phases.push_back(series_json(page, one, bin_ns, from_ns));
    list.push_back({{"label", page.text(label)}, {"phases", std::move(phases)}});
    if (const auto of = steps.find(device.trace); of != steps.end())
      list.back()["steps"] = of->second.json(from_ns);
  }
  return list;
}

// GPU time of each process by phase, in the order of the table "ranks".
Json ranks_json(PageData& page, const Report& report) {
  Json list = Json::array();
  if (report.traces.size() < 2) return list;
  for (const TraceReport& trace : report.traces) {
    Json phases = Json::array();
    for (const auto& phase : trace.phases)
      if (phase.time.ns > 0)
        phases.push_back({page.text(phase.name), static_cast<double>(phase.time.ns)});
    list.push_back(std::move(phases));
  }
  return list;
}

// The bars of the ledger, from 1 down, and the parts of each by phase.
Json lost_json(const Report& report) {
  const LostReport& lost = report.lost;
  Json lines = Json::array();
  const std::map<std::string, LostNs> phases = ns_by_phase(lost);
  double begin = 1;
  uint64_t until = 0;
  for (const LostRow& row : kLostRows) {
    if (row.parent != nullptr) continue;
    Json parts = Json::array(), of_phases = Json::array();
    bool bound = false;
    for (const LostRow& part : kLostRows) {
      const bool own = part.parent != nullptr ? std::string_view(part.parent) == row.key
                                              : &part == &row && row.first == row.last;
      if (!own) continue;
      parts.push_back(words_of(part, lost));
      bound = bound || (lost.at(part.first) > 0 && lost.sum(part.lines()).marks() != Mark::kNone);
    }
    for (const auto& [phase, of] : phases) {
      Json cells = Json::array({phase.empty() ? "before and after all kernels" : printable(phase)});
      bool any = false;
      for (size_t line = place_of(row.first); line <= place_of(row.last); ++line) {
        cells.push_back(of[line]);
        any = any || of[line] > 0;
      }
      if (any) of_phases.push_back(std::move(cells));
    }
    const uint64_t ns = ns_of(lost.ns, row);
    until += ns;
    const double end = 1 - lost.share(until);
    if (ns > 0)
      lines.push_back({{"key", row.key},
                       {"words", words_of(row, lost)},
                       {"begin", begin},
                       {"end", std::max(0.0, end)},
                       {"bound", bound},
                       {"parts", std::move(parts)},
                       {"phases", std::move(of_phases)}});
    begin = std::max(0.0, end);
  }
  uint64_t work = 0;
  for (size_t line = place_of(LostLine::kRecompute); line < kLostLines; ++line)
    work += lost.ns[line];
  if (lost.of_time()) return {{"lines", std::move(lines)}, {"hfu", nullptr}, {"mfu", nullptr}};
  return {{"lines", std::move(lines)},
          {"hfu", lost.share(work)},
          {"mfu", lost.share(lost.formula ? lost.at(LostLine::kModel) : work)}};
}

// Steps side by side, of all processes together; neighbours share a column where there are many.
// [first, steps, FLOP of a step or null, device time of a step by line of the ledger, or its wall
// time alone].
Json steps_json(const Report& report) {
  if (!report.steps.single) return Json::array();
  const LostReport& lost = report.lost;
  constexpr uint32_t kMostColumns = 512;
  uint32_t last = 0, every = 1;
  for (const StepsReport::Step& step : report.steps.steps) last = std::max(last, step.number);
  while ((last + every - 1) / every > kMostColumns) every *= 2;
  for (const LostReport::Step& step : lost.steps) every = std::max(every, step.steps);
  struct Column {
    uint64_t steps = 0, devices = 0, wall_ns = 0;
    bool counted = true;
    std::set<uint32_t> numbers;
    u128 flop = 0;
    LostNs lost{};
  };
  std::map<uint32_t, Column> columns;
  for (const StepsReport::Step& step : report.steps.steps) {
    if (step.number == 0 || (step.skipped && lost.known())) continue;
    Column& column = columns[(step.number - 1) / every];
    ++column.steps;
    column.numbers.insert(step.number);
    column.wall_ns += step.wall_ns;
    column.flop += step.work.flop;
    column.counted = column.counted && step.work.flop_complete() && step.work.launches > 0;
    column.devices += report.traces[step.trace].devices;
  }
  for (const LostReport::Step& step : lost.steps) {
    const auto found = columns.find(step.first == 0 ? UINT32_MAX : (step.first - 1) / every);
    if (found == columns.end()) continue;
    for (size_t line = 0; line < kLostLines; ++line) found->second.lost[line] += step.ns[line];
  }
  Json list = Json::array();
  for (const auto& [number, column] : columns) {
    Json ns = Json::array();
    if (lost.known())
      for (const LostRow& row : kLostRows) {
        if (row.parent != nullptr) continue;
        if (!lost.tells(row.last)) {
          ns.push_back(nullptr);
          continue;
        }
        const auto of = static_cast<double>(ns_of(column.lost, row));
        ns.push_back(std::round(of / static_cast<double>(std::max<uint64_t>(1, column.devices))));
      }
    else
      ns.push_back(column.wall_ns / column.steps);
    const uint64_t numbers = column.numbers.size();
    list.push_back({*column.numbers.begin(), numbers,
                    column.counted ? Json(static_cast<double>(column.flop / numbers)) : Json(),
                    std::move(ns)});
  }
  return list;
}

// "train.py on node1, NVIDIA H100": what a tab is called.
std::string title_of(const Report& report) {
  if (report.traces.empty()) return "FLOP report";
  const trace::Header& header = report.traces.front().header;
  std::string program = "FLOP";
  const auto base = [](const std::string& word) { return word.substr(word.rfind('/') + 1); };
  for (const std::string& word : header.command_line()) {
    if (word.starts_with('-')) continue;
    program = base(word);
    if (!program.starts_with("python")) break;
  }
  const size_t processes = report.traces.size();
  std::string title = program + (processes == 1 ? " on " + header.hostname()
                                                : ", " + to_grouped(processes) + " processes");
  std::set<std::string> chips;
  for (const DeviceReport& device : report.devices) chips.insert(device.facts.name());
  for (const std::string& chip : chips) title += ", " + chip;
  return printable(cut(title, 100));
}

// Tables for programs that people want at hand where a figure is doubted.
void add_processes(Json& sections, PageData& page, const Report& report) {
  for (const TableSource* source : table_sources()) {
    const std::string_view key = source->key();
    if (key != "processes" && key != "diagnostics") continue;
    const Table table = source->for_programs(report);
    if (table.rows.empty()) continue;
    sections.push_back(page.section({"Recorded " + std::string(table.key), {}, table, {}}));
    sections.back()["key"] = "recorded_" + std::string(table.key);
  }
}

}  // namespace

void write_html(std::ostream& out, const Report& report, std::string_view program) {
  PageData page;
  page["title"] = title_of(report);
  const auto [command, where, gpus] = screen_program(report);
  std::vector<Line> lines{Line(command, Tone::kTitle).then("   " + where), {gpus, Tone::kDim}};
  add_origin(report, lines);
  page["program"] = PageData::lines(lines);
  page["warnings"] = PageData::lines(screen_warnings(report));
  page["figures"] = figures_json(screen_figures(report));
  Json sections = Json::array();
  for (const Section& section : report_sections(report)) sections.push_back(page.section(section));
  add_processes(sections, page, report);
  page["sections"] = std::move(sections);
  page["tree"] = tree_json(page, report);
  page["roofs"] = roofs_json(report);
  page["flop_over_time"] = flop_over_time_json(page, report);
  page["ranks"] = ranks_json(page, report);
  if (report.lost.known()) page["lost"] = lost_json(report);
  if (Json steps = steps_json(report); steps.size() > 1) page["steps"] = std::move(steps);
  page["about"] = "Made by " + std::string(program) + " from " +
                  std::to_string(report.traces.size()) + " recorded process" +
                  (report.traces.size() == 1 ? "" : "es") + "; one fused multiply-add counts " +
                  std::to_string(report.fma) +
                  ". This page is one file and makes no request to any other.";
  std::move(page).write(out);
}

void write_html(std::ostream& out, const std::string& title, const std::vector<Section>& sections,
                std::string_view program, std::span<const PageSide> sides) {
  PageData page;
  page["title"] = printable(title);
  for (const auto& [name, report] : sides)
    if (report->lost.known())
      page["sides"].push_back({{"name", name},
                               {"lost", lost_json(*report)},
                               {"section", page.section(kLost.section(*report))}});
  std::vector<Line> head, warnings;
  Json list = Json::array();
  for (const Section& section : sections) {
    if (section.title.empty() && !section.table) {
      if (!section.figures.empty()) page["figures"] = figures_json(section.figures);
      for (const Line& line : section.above) {
        const Tone tone = line.parts.front().second;
        (tone == Tone::kWarn || tone == Tone::kBad ? warnings : head).push_back(line);
      }
      continue;
    }
    list.push_back(page.section(section));
    if (*section.key == '\0')
      list.back()["key"] =
          section.table ? section.table->key : "section_" + std::to_string(list.size());
  }
  page["program"] = PageData::lines(head);
  page["warnings"] = PageData::lines(warnings);
  page["sections"] = std::move(list);
  page["about"] = "Made by " + std::string(program) +
                  ". This page is one file and makes no request to any other.";
  std::move(page).write(out);
}

}  // namespace flopinj::reduce
