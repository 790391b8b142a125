// What became of every launch, per device and in total.
#include <algorithm>

#include "sections/notices.h"
#include "sections/parts/records.h"
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
  for (const Reason& r : report.ledger.unmeasured)
    if (r.reason == kGraphOnly || r.reason == kGreenContext)
      s.below.emplace_back("    " + r.reason + ": " + reason_words(r.reason));
  add_reasons(s.below, "dropped", report.ledger.dropped);
  add_reasons(s.below, "duplicate records removed", report.ledger.duplicates);
  add_reasons(s.below, "launches that may have run more, unseen", report.ledger.unseen);
  for (const auto& text : report.ledger.disagreements)
    s.below.push_back(Line("  ").then("does not balance: " + text, Tone::kBad));
  return s;
}

void reasons_list(Fields& f, const char* key, const std::vector<Reason>& reasons,
                  const char* about = "") {
  f.list(key, reasons, about, [](Fields& reason, const Reason& r) {
    reason("reason", r.reason);
    reason("launches", r.launches);
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

void device_fields(Fields& f, const DeviceReport& d) {
  f("trace", d.trace, "index into traces");
  f("ordinal", when(d.facts.id() > 0, d.facts.id() - 1));
  f("name", d.facts.name());
  f("chip", d.facts.chip());
  f("compute_capability",
    std::to_string(d.facts.compute_major()) + "." + std::to_string(d.facts.compute_minor()));
  f("multiprocessors", d.facts.multiprocessors());
  f("memory_bytes", d.facts.memory_bytes());
  f("clock_khz", d.facts.clock_khz());
  f("memory_clock_khz", d.facts.memory_clock_khz());
  f("memory_bus_bits", d.facts.memory_bus_bits());
  f("uuid", hex(d.facts.uuid()));
  f.object("ledger", "", [&](Fields& ledger) { ledger_line_fields(ledger, d.ledger); });
}

void ledger_fields(Fields& f, const Report& report) {
  const LedgerReport& all = report.ledger;
  f.object("ledger", "what became of every launch", [&](Fields& ledger) {
    ledger_line_fields(ledger, all.total);
    ledger("duplicates_removed", all.duplicates_removed);
    ledger("balanced", all.disagreements.empty(), "the traces' own ledgers agree with their rows");
    ledger("disagreements", all.disagreements);
    ledger.object("reasons", "", [&](Fields& reasons) {
      reasons_list(reasons, "unmeasured", all.unmeasured);
      reasons_list(reasons, "dropped", all.dropped);
      reasons_list(reasons, "duplicates", all.duplicates);
      reasons_list(reasons, "unseen", all.unseen,
                   "launches that may have run work which is in no count");
    });
    ledger("extrapolated_in_graphs", all.extrapolated_in_graphs,
           "of extrapolated: kernels of graph launches, counted by other launches of the same "
           "signature");
    ledger("measured_in_graphs", all.measured_in_graphs, "of measured: kernels of graph launches");
    ledger("counted_by_graphs", all.counted_by_graphs,
           "of measured and extrapolated: launches of kernels whose counts come from graph "
           "launches only");
  });
  f.list("devices", report.devices, "", device_fields);
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

const Subject kLedger = {ledger_section, ledger_fields, ledger_tables};

}  // namespace flopinj::reduce
