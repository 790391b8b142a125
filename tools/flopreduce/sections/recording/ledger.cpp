// What became of every launch, per device and in total.
#include <algorithm>

#include "sections/parts/json_parts.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr size_t kMostDevices = 32;  // that people see

std::string device_name(const Report& report, const DeviceReport& device) {
  return report.traces[device.trace].name + " " +
         (device.facts.id() == 0 ? "device unknown"
                                 : "GPU " + std::to_string(device.facts.id() - 1) + " " +
                                       cut(device.facts.name(), 40));
}

void add_reasons(std::vector<Line>& lines, const std::string& what,
                 const std::vector<Reason>& reasons) {
  for (const auto& r : reasons)
    lines.emplace_back("  " + what + ": " + to_grouped(r.launches) + "  " + r.reason);
}

void add_graphs(std::vector<Line>& lines, const LedgerReport& ledger) {
  const auto add = [&](const char* what, uint64_t launches, const char* how) {
    if (launches > 0) lines.emplace_back(std::string(what) + to_grouped(launches) + how);
  };
  const bool by_graphs = ledger.counted_by_graphs > 0;
  add("  measured: ", ledger.measured_in_graphs, "  in graphs");
  add("  extrapolated: ", ledger.extrapolated_in_graphs,
      by_graphs ? "  in graphs, from other launches of the same signature"
                : "  in graphs, from eager launches of the same signature");
  add("  counts from graph launches only: ", ledger.counted_by_graphs, "");
}

Section ledger_section(const Report& report) {
  Table table{"ledger",
              {{"device", "device"},
               {"launches", "launches", Kind::kCount},
               {"measured", "= measured", Kind::kCount, Worth::kMain},
               {"extrapolated", "+ extrapolated", Kind::kCount},
               {"unmeasured", "+ unmeasured", Kind::kCount, Worth::kMain},
               {"dropped", "+ dropped", Kind::kCount, Worth::kDetail}}};
  const auto row = [&](std::string name, const LedgerLine& l) {
    table.rows.push_back(
        {std::move(name), l.launches, l.measured, l.extrapolated, l.unmeasured, l.dropped});
  };
  if (report.devices.size() > 1)
    for (size_t i = 0; i < std::min(report.devices.size(), kMostDevices); ++i)
      row(device_name(report, report.devices[i]), report.devices[i].ledger);
  row("all devices", report.ledger.total);

  Section s{"Ledger", {}, std::move(table), {}};
  if (report.devices.size() > kMostDevices)
    s.below.emplace_back("  and " + std::to_string(report.devices.size() - kMostDevices) +
                         " more devices: --format json");
  add_graphs(s.below, report.ledger);
  add_reasons(s.below, "unmeasured", report.ledger.unmeasured);
  if (std::ranges::find(report.ledger.unmeasured, kGraphOnly, &Reason::reason) !=
      report.ledger.unmeasured.end())
    s.below.emplace_back(
        "    graph_only: ran only in CUDA graphs, where counters are not read; a few eager steps "
        "before the capture give them a count");
  add_reasons(s.below, "dropped", report.ledger.dropped);
  add_reasons(s.below, "duplicate records removed", report.ledger.duplicates);
  add_reasons(s.below, "launches that may have run more, unseen", report.ledger.unseen);
  for (const auto& text : report.ledger.disagreements)
    s.below.push_back(Line("  ").then("does not balance: " + text, Tone::kBad));
  return s;
}

Json reasons_json(const std::vector<Reason>& reasons) {
  return list_json(reasons, [](const Reason& r) -> Json {
    return {{"reason", r.reason}, {"launches", r.launches}};
  });
}

std::string hex(const std::string& bytes) {
  static constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes.substr(0, 16)) {
    out.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    out.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return out;
}

Json device_ledger_json(const DeviceReport& d) {
  Json j;
  j["trace"] = d.trace;
  j["ordinal"] = d.facts.id() == 0 ? Json(nullptr) : Json(d.facts.id() - 1);
  j["name"] = d.facts.name();
  j["chip"] = d.facts.chip();
  j["compute_capability"] =
      std::to_string(d.facts.compute_major()) + "." + std::to_string(d.facts.compute_minor());
  j["multiprocessors"] = d.facts.multiprocessors();
  j["memory_bytes"] = d.facts.memory_bytes();
  j["clock_khz"] = d.facts.clock_khz();
  j["memory_clock_khz"] = d.facts.memory_clock_khz();
  j["memory_bus_bits"] = d.facts.memory_bus_bits();
  j["uuid"] = hex(d.facts.uuid());
  j["ledger"] = ledger_line_json(d.ledger);
  return j;
}

void ledger_json(Json& j, const Report& report) {
  const LedgerReport& ledger = report.ledger;
  Json l = ledger_line_json(ledger.total);
  l["duplicates_removed"] = ledger.duplicates_removed;
  l["balanced"] = ledger.disagreements.empty();
  l["disagreements"] = ledger.disagreements;
  l["reasons"] = {{"unmeasured", reasons_json(ledger.unmeasured)},
                  {"dropped", reasons_json(ledger.dropped)},
                  {"duplicates", reasons_json(ledger.duplicates)}};
  if (!ledger.unseen.empty()) l["reasons"]["unseen"] = reasons_json(ledger.unseen);
  if (ledger.extrapolated_in_graphs > 0)
    l["extrapolated_in_graphs"] = ledger.extrapolated_in_graphs;
  if (ledger.measured_in_graphs > 0) l["measured_in_graphs"] = ledger.measured_in_graphs;
  if (ledger.counted_by_graphs > 0) l["counted_by_graphs"] = ledger.counted_by_graphs;
  j["ledger"] = std::move(l);
  j["devices"] = list_json(report.devices, device_ledger_json);
}

Table device_ledger_table(const Report& report) {
  Table table{"devices",
              {{"device", "device"},
               {"chip", "chip"},
               {"process", "process", Kind::kCount},
               {"ordinal", "ordinal", Kind::kCount},
               {"uuid", "UUID"},
               {"multiprocessors", "multiprocessors", Kind::kCount},
               {"memory_bytes", "memory", Kind::kBytes},
               {"clock_khz", "clock", Kind::kCount},
               {"memory_clock_khz", "memory clock", Kind::kCount},
               {"launches", "launches", Kind::kCount},
               {"measured", "measured", Kind::kCount},
               {"extrapolated", "extrapolated", Kind::kCount},
               {"unmeasured", "unmeasured", Kind::kCount},
               {"dropped", "dropped", Kind::kCount}}};
  const auto number = [](uint64_t value) { return Cell(value); };
  for (const auto& d : report.devices) {
    const LedgerLine& l = d.ledger;
    table.rows.push_back({d.facts.name(), d.facts.chip(), number(d.trace),
                          d.facts.id() == 0 ? Cell::none() : number(d.facts.id() - 1),
                          hex(d.facts.uuid()), number(d.facts.multiprocessors()),
                          number(d.facts.memory_bytes()), number(d.facts.clock_khz()),
                          number(d.facts.memory_clock_khz()), l.launches, l.measured,
                          l.extrapolated, l.unmeasured, l.dropped});
  }
  return table;
}

Table reason_table(const Report& report) {
  Table table{"ledger_reasons",
              {{"fate", "fate"}, {"reason", "reason"}, {"launches", "launches", Kind::kCount}}};
  const auto add = [&](const char* fate, const std::vector<Reason>& reasons) {
    for (const auto& r : reasons) table.rows.push_back({fate, r.reason, r.launches});
  };
  add("unmeasured", report.ledger.unmeasured);
  add("dropped", report.ledger.dropped);
  add("duplicate", report.ledger.duplicates);
  return table;
}

std::vector<Table> ledger_tables(const Report& report) {
  return {device_ledger_table(report), reason_table(report)};
}

}  // namespace

const Subject kLedger = {ledger_section, ledger_json, ledger_tables};

}  // namespace flopinj::reduce
