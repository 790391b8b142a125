// What became of every launch, per device and in total.
#include <algorithm>

#include "sections/notices.h"
#include "sections/parts/said.h"
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

// Of a device, or in total.
struct LedgerRow {
  std::string device;
  LedgerLine line;
  const LedgerReport* total = nullptr;
};
std::vector<LedgerRow> ledger_rows(const Report& report) {
  std::vector<LedgerRow> rows;
  if (report.devices.size() > 1)
    for (const DeviceReport& d : report.devices) rows.push_back({device_name(report, d), d.ledger});
  rows.push_back({"all devices", report.ledger.total, &report.ledger});
  return rows;
}

template <typename Row, typename L>
void add_ledger(Columns<Row>& c, L line) {
  c.count(said::kLaunches, through(line, &LedgerLine::launches));
  c.count("measured", "= measured", through(line, &LedgerLine::measured),
          "launches whose counters were read")
      .main();
  c.count("extrapolated", "+ extrapolated", through(line, &LedgerLine::extrapolated),
          "launches that have their count from measured launches of their kernel");
  c.count("unmeasured", "+ unmeasured", through(line, &LedgerLine::unmeasured),
          "launches without a FLOP count")
      .main();
  c.count("dropped", "+ dropped", through(line, &LedgerLine::dropped),
          "launches that were lost on their way into the trace")
      .detail();
}

// Of all devices only.
template <typename F>
auto of_total(F get) {
  return [get](const LedgerRow& row) {
    return row.total != nullptr ? std::optional(std::invoke(get, *row.total)) : std::nullopt;
  };
}

Columns<LedgerRow> ledger_columns() {
  Columns<LedgerRow> c;
  c.text("device", "device", &LedgerRow::device);
  add_ledger(c, &LedgerRow::line);
  c.for_programs();
  c.count("measured_in_graphs", "in graphs", of_total(&LedgerReport::measured_in_graphs),
          "of measured: kernels of graph launches; null of single devices, as all that follows");
  c.count("extrapolated_in_graphs", "in graphs", of_total(&LedgerReport::extrapolated_in_graphs),
          "of extrapolated: kernels of graph launches, counted by other launches of the same "
          "signature");
  c.count("counted_by_graphs", "by graphs", of_total(&LedgerReport::counted_by_graphs),
          "of measured and extrapolated: launches of kernels whose counts come from graph launches "
          "only");
  c.count("duplicates_removed", "duplicates", of_total(&LedgerReport::duplicates_removed),
          "records that the traces have twice");
  c.flag("balanced", "balanced",
         of_total([](const LedgerReport& all) { return all.disagreements.empty(); }),
         "the traces' own ledgers agree with their rows; else ledger_disagreements says where not");
  return c;
}

const TableSource kLedgerTable("ledger", "what became of every launch, by device", ledger_columns,
                               ledger_rows);

Section ledger_section(const Report& report) {
  Table table = kLedgerTable.for_people(report);
  if (auto& rows = table.rows; rows.size() > kMostDevices + 1)
    rows.erase(rows.begin() + kMostDevices, rows.end() - 1);
  Section s{
      "Ledger",
      {Line("  What became of every launch: its counters were read, its FLOP are those of launches "
            "that were measured, or it has none.",
            Tone::kDim)},
      std::move(table),
      {}};
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

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes.substr(0, 16)) out += printed("%02x", static_cast<uint8_t>(c));
  return out;
}

Columns<DeviceReport> recorded_device_columns() {
  const auto of = [](auto get) { return through(&DeviceReport::facts, get); };
  Columns<DeviceReport> c;
  c.text("device", "device", of(&trace::Device::name));
  c.text("chip", "chip", of(&trace::Device::chip), "as CUPTI names it");
  c.count(said::kNumberOf, &DeviceReport::trace);
  c.count(said::kOrdinal, [](const DeviceReport& d) {
    return d.facts.id() > 0 ? std::optional(d.facts.id() - 1) : std::nullopt;
  });
  c.text("uuid", "UUID", [](const DeviceReport& d) { return hex(d.facts.uuid()); });
  c.count("multiprocessors", "multiprocessors", of(&trace::Device::multiprocessors));
  c.figure("memory_bytes", "memory", Kind::kBytes, exactly(of(&trace::Device::memory_bytes)));
  c.count("clock_khz", "clock", of(&trace::Device::clock_khz), "the highest");
  c.count("memory_clock_khz", "memory clock", of(&trace::Device::memory_clock_khz));
  add_ledger(c, &DeviceReport::ledger);
  c.text("compute_capability", "compute capability", [](const DeviceReport& d) {
    return std::to_string(d.facts.compute_major()) + "." + std::to_string(d.facts.compute_minor());
  });
  c.count("memory_bus_bits", "memory bus", of(&trace::Device::memory_bus_bits));
  c.figure(said::kEnergy, &DeviceReport::energy_j);
  c.figure(
      "power_w", "power", Kind::kRatio,
      [](const DeviceReport& d) {
        const auto joules = d.energy_j.number();
        if (!joules) return d.energy_j;
        return Figure(*joules / (static_cast<double>(d.energy_ns) / 1e9),
                      mark_if(has(d.energy_j.marks(), Mark::kEstimate), Mark::kEstimate));
      },
      "watts, the mean between these readings");
  return c;
}

struct ReasonRow {
  const char* fate;
  const Reason* reason;
};
std::vector<ReasonRow> reason_rows(const Report& report) {
  std::vector<ReasonRow> rows;
  const auto add = [&](const char* fate, const std::vector<Reason>& reasons) {
    for (const Reason& reason : reasons) rows.push_back({fate, &reason});
  };
  add("unmeasured", report.ledger.unmeasured);
  add("dropped", report.ledger.dropped);
  add("duplicate", report.ledger.duplicates);
  add("unseen", report.ledger.unseen);
  return rows;
}

Columns<ReasonRow> reason_columns() {
  Columns<ReasonRow> c;
  c.text("fate", "fate", &ReasonRow::fate,
         "unmeasured, dropped, duplicate (removed), or unseen: launches that may have run work "
         "which is in no count");
  c.text("reason", "reason", through(&ReasonRow::reason, &Reason::reason));
  c.count("launches", "launches", through(&ReasonRow::reason, &Reason::launches));
  return c;
}

Columns<std::string> disagreement_columns() {
  Columns<std::string> c;
  c.text("disagreement", "disagreement", std::identity());
  return c;
}

const TableSource kDeviceTable("devices", "devices, with their ledgers", recorded_device_columns,
                               &Report::devices);
const TableSource kReasonTable("ledger_reasons", "why launches are unmeasured or lost",
                               reason_columns, reason_rows);
const TableSource kDisagreements("ledger_disagreements",
                                 "where the traces' own ledgers differ from their rows",
                                 disagreement_columns,
                                 through(&Report::ledger, &LedgerReport::disagreements));

}  // namespace

const Subject kLedger = {{&kLedgerTable, &kDeviceTable, &kReasonTable, &kDisagreements},
                         ledger_section};

}  // namespace flopinj::reduce
