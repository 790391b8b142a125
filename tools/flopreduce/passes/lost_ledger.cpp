#include "passes/lost_ledger.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "passes/lost_marks.h"
#include "passes/model_work.h"
#include "report/operators/operator_join.h"
#include "support/packed_lists.h"

namespace flopinj::reduce {
namespace {

// Two processes that used one GPU at once: neither had all of it.
bool share_a_device(const TraceTables& tables, const Report& report) {
  struct Use {
    std::string uuid;
    uint64_t begin_ns, end_ns;
    uint32_t trace;
  };
  std::vector<Use> uses;
  for (const DeviceReport& device : report.devices) {
    const TraceState& trace = tables.traces[device.trace];
    const auto begin = trace.start_ns(), wall = trace.recorded_ns();
    if (device.facts.uuid().empty() || device.ledger.launches == 0 || !begin || !wall) continue;
    uint64_t end = *begin;
    add_saturating(end, *wall);
    uses.push_back(
        {trace.header.hostname() + '\0' + device.facts.uuid(), *begin, end, device.trace});
  }
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
    return std::tie(a.uuid, a.begin_ns, a.trace) < std::tie(b.uuid, b.begin_ns, b.trace);
  });
  return std::adjacent_find(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
           return a.uuid == b.uuid && a.trace != b.trace && b.begin_ns < a.end_ns;
         }) != uses.end();
}

// Of such a summary, in which kernels did.
bool kernels_at_once(const TraceTables& tables, const Totals& totals) {
  for (size_t i = 0; i < tables.devices.size(); ++i) {
    const DeviceTime& time = totals.devices[i];
    if (only_times(tables.devices[i]) &&
        (time.kernel_ns != time.busy.busy_ns || time.busy.late > 0))
      return true;
  }
  return false;
}

// Time of one device in one place: beside communication, and of it while no kernel ran.
struct InPlace {
  uint32_t device = 0;  // TraceTables::devices
  uint64_t ns = 0, idle_ns = 0;

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.device, of.ns, of.idle_ns);
  }
};
using InPlaces = PackedLists<uint64_t, InPlace>;  // by DeviceSplit::key()

InPlace in_place(uint32_t device, const LostTime& time) {
  u128 all = 0, idle = 0;
  for (size_t line = 0; line < kLostLines; ++line) {
    if (line == place_of(LostLine::kCommunication)) continue;
    add_saturating(all, time.fs[line]);
    if (line < place_of(LostLine::kCommunication)) add_saturating(idle, time.fs[line]);
  }
  const auto ns = [](u128 fs) { return static_cast<uint64_t>(fs / kFsInNs); };
  return {device, ns(all), ns(idle)};
}

// Not half-way between two: of two ranks one is compared with the other.
uint64_t of_median_rank(std::vector<uint64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

using RunOf = std::function<size_t(uint32_t device)>;
using Waiting = std::map<uint32_t, CommunicationReport::Waiting>;  // devices that are compared

// Of devices that others wait for, the place where each exceeds the median of the compared devices
// of its run most.
std::map<uint32_t, CommunicationReport::Excess> excesses_of(const ReportSources& from,
                                                            const InPlaces& places,
                                                            const RunOf& run_of,
                                                            const Waiting& waiting) {
  struct Worst {
    uint64_t place = 0, ns = 0, idle_ns = 0;
  };
  struct Compared {
    std::vector<uint64_t> ns, idle_ns;
    // A device without launches in the place has spent no time there.
    InPlace median(size_t devices) {
      ns.resize(devices);
      idle_ns.resize(devices);
      return {0, of_median_rank(ns), of_median_rank(idle_ns)};
    }
  };
  std::map<size_t, size_t> devices_in;  // run
  for (const auto& [device, of] : waiting) ++devices_in[run_of(device)];
  std::map<uint32_t, Worst> worst;
  places.for_each_key([&](uint64_t place) {
    std::vector<InPlace> compared;
    std::map<size_t, Compared> of_runs;
    InPlace its;
    for (auto rows = places.rows(place); rows.next(its);) {
      if (!waiting.contains(its.device)) continue;
      compared.push_back(its);
      Compared& of_run = of_runs[run_of(its.device)];
      of_run.ns.push_back(its.ns);
      of_run.idle_ns.push_back(its.idle_ns);
    }
    std::map<size_t, InPlace> usual_in;
    for (auto& [run, of] : of_runs) usual_in.emplace(run, of.median(devices_in.at(run)));
    for (const InPlace& one : compared) {
      if (waiting.at(one.device).awaited_ns == 0) continue;
      const InPlace& usual = usual_in.at(run_of(one.device));
      Worst& most = worst[one.device];
      if (one.ns <= usual.ns + most.ns) continue;
      const uint64_t ns = one.ns - usual.ns;
      const uint64_t idle_ns = one.idle_ns - std::min(one.idle_ns, usual.idle_ns);
      most = {place, ns, std::min(ns, idle_ns)};
    }
  });
  std::map<uint32_t, CommunicationReport::Excess> excesses;
  for (const auto& [device, of] : worst)
    if (of.ns > 0)
      excesses.emplace(device, CommunicationReport::Excess{
                                   from.rules.rules()[of.place & UINT32_MAX].phase,
                                   from.tables.path_string(static_cast<uint32_t>(of.place >> 32)),
                                   of.ns, of.idle_ns});
  return excesses;
}

void add_communication(const ReportSources& from, Collectives& collectives,
                       const std::map<uint32_t, u128>& hidden_fs, const InPlaces& places,
                       Report& report) {
  const RunOf run_of = [&](uint32_t device) {
    return report.traces[from.tables.devices[device].trace].run;
  };
  const auto waiting = collectives.compare(run_of);
  const auto excesses = excesses_of(from, places, run_of, waiting);
  std::map<std::pair<size_t, uint32_t>, uint64_t> alone_ns;  // by trace and device
  for (const LostReport::Part& part : report.lost.parts)
    if (const uint64_t ns = part.ns[place_of(LostLine::kCommunication)]; ns > 0)
      add_saturating(alone_ns[{part.trace, part.device}], ns);
  for (const auto& [number, fs] : hidden_fs) {
    const Device& device = from.tables.devices[number];
    CommunicationReport::Device out{.trace = device.trace, .device = device.id};
    if (const auto found = alone_ns.find({out.trace, out.device}); found != alone_ns.end())
      out.alone_ns = found->second;
    out.hidden_ns = static_cast<uint64_t>(std::min<u128>(fs / kFsInNs, UINT64_MAX));
    if (out.alone_ns == 0 && out.hidden_ns == 0) continue;
    if (const auto found = waiting.find(number); found != waiting.end()) {
      out.waiting = found->second;
      if (const auto excess = excesses.find(number); excess != excesses.end())
        out.excess = excess->second;
    }
    report.communication.devices.push_back(std::move(out));
  }
}

// What the model's FLOP by formula are more than operators executed, at peak. Where launches are
// unmeasured it is not known.
double saved_ns(const ReportSources& from, const Report& report) {
  if (const auto given = report.utilization.given_formula_ns)
    return report.total.flop_complete() ? std::max(0.0, *given - work_of_model_ns(from, report))
                                        : 0;
  double ns = 0;
  for (const OperatorReport& place : report.operators.places)
    if (place.of_model && place.work.flop_complete())
      ns += std::max(0.0, model_at_peak(place, report)->least_ns - place.work.roof.compute_ns);
  return ns;
}

}  // namespace

std::string no_work(const Report& report) {
  if (!report.total.flop_known()) return "FLOP not measured";
  const bool peaks = report.utilization.any_peak && report.total.roof.no_peak == 0;
  return peaks ? "" : "no peak known";
}

std::string no_ledger(const TraceTables& tables, const Totals& totals, uint64_t skip_steps,
                      const Report& report) {
  const UtilizationReport& u = report.utilization;
  const Work& total = report.total;
  if (skip_steps > 0 && !report.steps.missing.empty()) return report.steps.missing;
  if (total.launches == 0) return "no launches";
  const bool of_time = !no_work(report).empty();
  if (report.ledger.total.dropped > 0) return "launches are lost";
  if (total.time.unknown > 0) return "GPU time unknown";
  if (skip_steps == 0 && !report.clocks_differ() && !u.wall_ns.known()) return u.wall_ns.why();
  if (skip_steps > 0 && !(of_time ? !report.steps.windows.empty() : report.steps.hfu.known()))
    return report.steps.hfu.why();
  if (kernels_at_once(tables, totals))
    return "a summary does not say which kernels ran at once: read its traces";
  if (!report.simulated.value_or(false) && share_a_device(tables, report))
    return "several processes used one GPU at once";
  return "";
}

class LostLedger::Builder {
 public:
  Builder(const ReportSources& from, Report& report)
      : from_(from), report_(report), join_(from.calls, from.operators) {
    for (const DeviceReport& device : report.devices)
      if (device.ledger.launches > 0) launched_.emplace(device.trace, device.facts.id());
  }

  void add(uint32_t trace, const LostPass::Devices& devices) {
    u128 beside = 0;  // idle time beside slowed launches
    for (const auto& [number, of] : devices) {
      add_saturating(beside, beside_of(of));
      add_saturating(fp32_fs_, of.fp32_fs());
    }
    for (const auto& [number, of] : devices) {
      keep_communication(number, of);
      if (!counts(number) || lacks_at_once(number, of.summed)) continue;
      LostDevice device = device_of(number, &of);
      if (beside > 0) device.windows_fs = windows_of(trace, beside_of(of), beside);
      settle_into_sums(number, device);
    }
  }

  // Why there is no ledger; empty where there is one.
  std::string build() {
    for (uint32_t number = 0; number < from_.tables.devices.size(); ++number) {
      if (!counts(number) || sums_.has(number) || problems_.contains(number) ||
          lacks_at_once(number, false))
        continue;
      LostDevice device = device_of(number, nullptr);
      settle_into_sums(number, device);
    }
    if (!problems_.empty()) return problems_.begin()->second;
    const u128 all = sums_.all_fs();
    if (all < kFsInNs) return "no device time";
    if (all / kFsInNs >= UINT64_MAX) return "times are too long to be added up";
    sums_.add_up(report_.lost);
    report_.lost.hidden_ns =
        static_cast<uint64_t>(std::min<u128>(hidden_fs_ / kFsInNs, UINT64_MAX));
    for (const auto& [range, ns] : host_ns_) report_.lost.host.push_back({range, ns});
    std::ranges::stable_sort(report_.lost.host, std::greater<>(), &LostReport::HostTime::ns);
    return "";
  }

  void finish(Collectives& collectives, const LostPass::Uneven& uneven,
              const LaunchWorths::Unknown& unknown) {
    LostReport& lost = report_.lost;
    lost.missing = build();
    if (!lost.known()) {
      std::string why = std::move(lost.missing);
      lost = {};
      lost.missing = std::move(why);
      return;
    }
    add_communication(from_, collectives, communicates_, in_places_, report_);
    const UtilizationReport& u = report_.utilization;
    lost.no_work = no_work(report_);
    lost.formula = u.model_known && !lost.of_time();
    lost.given_formula = u.given_formula_ns.has_value();
    lost.fp32_ns = static_cast<uint64_t>(std::min<u128>(fp32_fs_ / kFsInNs, UINT64_MAX));
    const double saved = skips() ? report_.steps.saved_ns : saved_ns(from_, report_);
    lost.saved_ns = lost.formula ? static_cast<uint64_t>(std::clamp(saved + 0.5, 0.0, 1e19)) : 0;
    lost.skipped_steps = from_.utilization.skip_steps;
    for (size_t i = 0; i < report_.traces.size(); ++i) {
      const uint64_t steps = from_.tables.traces[i].steps.sums().steps;
      add_saturating(lost.device_steps,
                     report_.traces[i].devices * (steps - std::min(steps, lost.skipped_steps)));
    }
    mark_lines({from_.tables, unknown, uneven, unplaced_, lost_copies_}, report_);
  }

 private:
  bool skips() const { return from_.utilization.skip_steps > 0; }
  bool counts(uint32_t number) const {
    const Device& device = from_.tables.devices[number];
    return launched_.contains({device.trace, device.id}) &&
           (!skips() || report_.steps.windows.contains(device.trace));
  }

  bool lacks_at_once(uint32_t number, bool summed) {
    const auto& times = from_.tables.devices[number].times;
    if (!times || !times->at_once() || summed) return false;
    problems_[number] = "the part of a summary that says which kernels ran at once is damaged";
    return true;
  }
  void settle_into_sums(uint32_t number, LostDevice& device) {
    if (std::string why = settle(device); !why.empty())
      problems_[number] = std::move(why);
    else
      sums_.add(number, device);
  }

  void keep_communication(uint32_t number, const DeviceSplit& of) {
    const bool any = std::ranges::any_of(
        of.places, [](const auto& place) { return place.second[LostLine::kCommunication] > 0; });
    if (!any && !of.collectives && of.split.hidden_fs() == 0) return;
    communicates_[number] = of.split.hidden_fs();
    if (!of.collectives) return;
    for (const auto& [key, time] : of.places) in_places_.add(key, in_place(number, time));
  }

  static u128 beside_of(const DeviceSplit& of) {
    u128 sum = 0;
    for (const auto& [key, time] : of.places)
      for (const u128 fs : time.beside_fs) add_saturating(sum, fs);
    return sum;
  }
  // What opening and closing windows took of the program's threads, shared out by idle time.
  u128 windows_of(uint32_t trace, u128 part, u128 all) const {
    const TraceState& state = from_.tables.traces[trace];
    if (!state.has_overhead) return 0;
    const u128 windows = u128{state.overhead.window_ns()} * kFsInNs;
    return std::min(part, static_cast<u128>(static_cast<double>(windows) * quotient(part, all)));
  }

  // `of`: null where nothing ran.
  LostDevice device_of(uint32_t number, const DeviceSplit* of) {
    const Device& device = from_.tables.devices[number];
    LostDevice out;
    out.trace = device.trace;
    out.device = device.id;
    if (skips()) {
      const StepsReport::Window& window = report_.steps.windows.at(device.trace);
      out.wall_fs = u128{window.to_ns - window.from_of(number)} * kFsInNs;
    } else if (!report_.lost.of_busy_time)
      out.wall_fs = u128{from_.tables.traces[device.trace].wall_ns().value_or(0)} * kFsInNs;
    if (of == nullptr) return out;
    const TimeSplit& split = of->split;
    if (split.any()) out.span_fs = u128{split.end_ns() - split.begin_ns()} * kFsInNs;
    out.edge_copies_fs = u128{split.edge_copies_ns()} * kFsInNs;
    lost_copies_ = lost_copies_ || split.lost_copies();
    out.unplaced_fs = split.unplaced_fs();
    out.excess_fs = split.excess_fs();
    for (const TimeSplit::Step& step : split.steps())
      out.steps.push_back({step.first, step.steps, step.time});
    add_parts(*of, out);
    if (only_times(device)) add_summed(from_.totals.devices[number], out);
    for (const auto& [path, ns] : split.host_ns())
      add_saturating(host_ns_[path == PathTable::kRoot ? "" : from_.tables.path_string(path)], ns);
    hidden_fs_ += split.hidden_fs();
    unplaced_ = unplaced_ || out.unplaced_fs > 0;
    return out;
  }

  // Such a summary has when its device was busy, and gaps by length. No kernel ran beside another
  // there (kernels_at_once()), so all launches that had a time have their part of it.
  static void add_summed(const DeviceTime& time, LostDevice& out) {
    out.span_fs = u128{time.busy.end_ns - time.busy.begin_ns} * kFsInNs;
    out.unplaced_fs -= std::min(out.unplaced_fs, time.kernel_ns * kFsInNs);
    LostTime idle;
    uint64_t below_ns = 1;
    for (const BusyTime::Decade& decade : time.busy.idle) {
      below_ns *= 10;
      const bool is_long = below_ns > TimeSplit::kLongGapNs;
      idle[is_long ? LostLine::kIdleLongGaps : LostLine::kIdleShortGaps] +=
          u128{decade.ns} * kFsInNs;
    }
    out.parts.push_back({"", "", idle});
    out.steps.push_back({0, 0, idle});
  }

  void add_parts(const DeviceSplit& of, LostDevice& out) {
    std::map<std::pair<std::string, std::string>, LostTime> parts;
    // In a fixed order: parts of a place are rounded.
    std::vector<uint64_t> keys;
    for (const auto& [key, time] : of.places) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    for (const uint64_t key : keys) {
      const LostTime& time = of.places.at(key);
      const std::string& phase = from_.rules.rules()[key & UINT32_MAX].phase;
      const auto path = static_cast<uint32_t>(key >> 32);
      join_.for_each_home(path, phase, [&](uint32_t home, const Part& part) {
        std::string layer = from_.operators.layer_name(home);
        if (layer == from_.tables.path_string(home)) layer.clear();
        LostTime its;
        for (size_t i = 0; i < its.fs.size(); ++i) its.fs[i] = part.of(time.fs[i]);
        for (size_t i = 0; i < its.beside_fs.size(); ++i)
          its.beside_fs[i] = part.of(time.beside_fs[i]);
        parts[{phase, layer}].add(its);
      });
    }
    for (auto& [where, time] : parts) out.parts.push_back({where.first, where.second, time});
  }

  const ReportSources& from_;
  Report& report_;
  OperatorJoin join_;
  std::set<std::pair<uint32_t, uint32_t>> launched_;  // trace, and device in it
  LostSums sums_;
  std::map<uint32_t, std::string> problems_;  // devices that do not add up
  std::map<uint32_t, u128> communicates_;     // of a device, hidden_fs()
  InPlaces in_places_;                        // of devices with collectives
  bool unplaced_ = false, lost_copies_ = false;
  u128 hidden_fs_ = 0, fp32_fs_ = 0;         // the latter at peak, of products in fp32
  std::map<std::string, uint64_t> host_ns_;  // LostReport::host
};

LostLedger::LostLedger(const ReportSources& from, Report& report) {
  report.lost.of_busy_time = report.clocks_differ();
  builder_ = std::make_unique<Builder>(from, report);
}

LostLedger::~LostLedger() = default;

void LostLedger::add(uint32_t trace, const LostPass::Devices& devices) {
  const std::lock_guard lock(lock_);
  builder_->add(trace, devices);
}

void LostLedger::finish(Collectives& collectives, const LostPass::Uneven& uneven,
                        const LaunchWorths::Unknown& unknown) {
  builder_->finish(collectives, uneven, unknown);
}

}  // namespace flopinj::reduce
