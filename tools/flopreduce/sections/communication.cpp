// What communication costs each rank, which rank the others waited for, and how fast collectives
// of known sizes were.
//
// Bus bandwidth is that of nccl-tests (doc/PERFORMANCE.md): what a collective moves through each
// rank's links in the time that it took, whatever the number of ranks, to be held against what the
// hardware has. Of n ranks and S bytes in a time t:
//   all-reduce                               S / t x 2 (n - 1) / n
//   all-gather, reduce-scatter, all-to-all   S / t x (n - 1) / n, S being what all ranks have
//   broadcast, reduce, send, receive         S / t
// The time that a rank waits for others is in t: it is a lower bound of what the links can do.
#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

using Communicating = CommunicationReport::Device;

auto of_waiting(uint64_t CommunicationReport::Waiting::*member) {
  return [member](const Communicating& d) {
    return d.waiting ? Figure::exact((*d.waiting).*member)
                     : Figure::unknown("no collective whose times several ranks have");
  };
}

Columns<Communicating> communication_columns() {
  using Waiting = CommunicationReport::Waiting;
  using Excess = CommunicationReport::Excess;
  Columns<Communicating> c;
  const auto name = [](const Communicating& d, const Report& r) { return r.traces[d.trace].name; };
  c.text(said::kProcess, name);
  c.count(said::kOrdinal, [](const Communicating& d) {
    return d.device > 0 ? std::optional(d.device - 1) : std::nullopt;
  });
  c.exact("exposed_ns", "exposed", Kind::kNanoseconds, &Communicating::alone_ns,
          "communication while no other kernel ran: line communication of lost")
      .main();
  c.exact("hidden_ns", "hidden", Kind::kNanoseconds, &Communicating::hidden_ns,
          "communication beside other kernels: it costs nothing");
  c.figure("waiting_ns", "waiting", Kind::kNanoseconds, of_waiting(&Waiting::ns),
           "in collectives, for the rank that came last: what they took longer than on that one")
      .main()
      .dash();
  c.figure("awaited_ns", "awaited", Kind::kNanoseconds, of_waiting(&Waiting::awaited_ns),
           "how long the other ranks waited for this one, their mean, in collectives that it came "
           "last to")
      .main()
      .dash();
  c.figure("last", "came last", Kind::kCount, of_waiting(&Waiting::last),
           "collectives that it came last to")
      .dash();
  c.figure("collectives", "collectives", Kind::kCount, of_waiting(&Waiting::collectives),
           "that were compared: the same kernel, launched equally often in each step, whose ends "
           "are equally far apart on these ranks")
      .dash();
  c.for_programs();
  const auto excess = [](auto member) {
    return [member](const Communicating& d) {
      return d.excess ? std::optional((*d.excess).*member) : std::nullopt;
    };
  };
  c.text("late_phase", "late in phase", excess(&Excess::phase),
         "where a rank that was waited for spent most more than the median rank");
  c.text("late_range", "late in range", excess(&Excess::range), "likewise");
  c.exact("late_ns", "late by", Kind::kNanoseconds, excess(&Excess::ns),
          "there, more than the median rank");
  c.exact("late_idle_ns", "of it idle", Kind::kNanoseconds, excess(&Excess::idle_ns),
          "of it while no kernel ran");
  c.count(said::kProcessNumber, &Communicating::trace);
  c.count(said::kRank,
          [](const Communicating& d, const Report& r) { return r.traces[d.trace].rank(); });
  return c;
}

const TableSource kCommunicationTable =
    TableSource("communication", "what communication costs each rank, and which one is waited for",
                communication_columns, [](const Report& r) { return r.communication.devices; })
        .long_list()
        .titled("Communication by rank");

// The rank that the others waited for most, where it came late to more than its share.
std::string straggler_words(const Report& report) {
  const auto& devices = report.communication.devices;
  const auto awaited = [](const Communicating& d) { return d.waiting ? d.waiting->awaited_ns : 0; };
  const auto most = std::ranges::max_element(devices, {}, awaited);
  if (most == devices.end() || awaited(*most) == 0) return "";
  const bool several =
      most->device > 0 && std::ranges::count(devices, most->trace, &Communicating::trace) > 1;
  std::string words = "  The others waited most for " + report.traces[most->trace].name +
                      (several ? ", device " + std::to_string(most->device - 1) : "") + ": " +
                      to_human_time(most->waiting->awaited_ns) + ", in " +
                      to_grouped(most->waiting->last) + " of " +
                      to_grouped(most->waiting->collectives) + " collectives.";
  if (most->excess) {
    const CommunicationReport::Excess& excess = *most->excess;
    words += " It spent " + to_human_time(excess.ns) + " more than the median rank in " +
             excess.phase + (excess.range.empty() ? "" : ", range " + printable(excess.range)) +
             (2 * excess.idle_ns > excess.ns ? ", most of it idle." : ".");
  }
  return words;
}

// Collectives that move as much, by the names of their ranges: "record_param_comms, collective =
// allreduce, ranks = [8], bytes = [4096]" (tools/import/operator_text.h).
struct Collective {
  std::string name;
  uint64_t ranks = 0, bytes = 0;
  Work work = {};
};

// What follows "KEY = ", up to the next field, without brackets; empty where there is none.
std::string_view named_field(std::string_view range, std::string_view key) {
  const size_t at = range.find(key);
  if (at == range.npos) return {};
  std::string_view value = range.substr(at + key.size());
  value = value.substr(0, value.find_first_of(",]"));
  return value.starts_with('[') ? value.substr(1) : value;
}
std::optional<uint64_t> named_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<Collective> sized_collectives(const Report& report) {
  using Key = std::tuple<std::string, uint64_t, uint64_t>;
  std::map<Key, Work> all;
  for (const WorkGroup& launches : group(report, {by::kAnyRange})) {
    if (launches.ids[0] == kNoRange) continue;
    const std::string_view range = report.ranges[launches.ids[0]].name;
    const std::string_view name = named_field(range, ", collective = ");
    const auto ranks = named_number(named_field(range, ", ranks = "));
    const auto bytes = named_number(named_field(range, ", bytes = "));
    if (!name.empty() && ranks && bytes)
      all[{std::string(name), *ranks, *bytes}].add(launches.work);
  }
  std::vector<Collective> rows;
  for (const auto& [key, work] : all)
    rows.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), work});
  std::ranges::stable_sort(rows, std::greater(),
                           [](const Collective& c) { return c.work.time.ns; });
  return rows;
}

// Of S / t; nothing where it is not known. Names are PyTorch's (torch/csrc/distributed/c10d,
// RECORD_PARAM_COMMS): "allreduce", "_allgather_base", "reduce_scatter_tensor_coalesced".
std::optional<double> on_the_bus(const Collective& c) {
  std::string name = lower(c.name);
  std::erase(name, '_');
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (c.ranks < 2) return std::nullopt;
  const double others = static_cast<double>(c.ranks - 1) / static_cast<double>(c.ranks);
  if (has("allreduce")) return 2 * others;
  if (has("allgather") || has("reducescatter") || has("alltoall")) return others;
  if (has("broadcast") || has("reduce") || has("send") || has("recv")) return 1;
  return std::nullopt;
}

Figure bus_bandwidth(const Collective& c) {
  const auto factor = on_the_bus(c);
  const GpuTime& time = c.work.time;
  if (!factor || time.ns == 0) return {};
  const auto timed = static_cast<double>(c.work.launches - time.unknown);
  const double bytes = *factor * static_cast<double>(c.bytes) * timed;
  return Figure(
      bytes / (quotient(time.ns, 1) / 1e9),
      mark_if(time.estimated > 0, Mark::kEstimate) | mark_if(time.windowed > 0, Mark::kAtLeast));
}

Columns<Collective> collective_columns() {
  Columns<Collective> c;
  c.text("collective", "collective", &Collective::name, "as PyTorch calls it").main();
  c.count("ranks", "ranks", &Collective::ranks, "that take part");
  c.exact("message_bytes", "message", Kind::kBytes, &Collective::bytes,
          "of one; where parts are gathered or scattered, of what all ranks have together")
      .main();
  add_launches(c, &Collective::work);
  add_gpu_time(c, &Collective::work);
  c.figure("bus_byte_per_s", "bus bandwidth", Kind::kBandwidth, bus_bandwidth,
           "as of nccl-tests: bytes / GPU time x 2 (n - 1) / n for an all-reduce of n ranks, (n - "
           "1) / n for all-gather, reduce-scatter and all-to-all; waiting for other ranks is in it")
      .main();
  return c;
}

const TableSource kCollectiveTable =
    TableSource("collectives", "collectives whose sizes are known, and their bus bandwidth",
                collective_columns, sized_collectives)
        .long_list()
        .titled("Collectives");

Section communication_section(const Report& report) {
  Section out = kCommunicationTable.section(report);
  if (std::string words = straggler_words(report); !words.empty())
    out.below.emplace_back(std::move(words));
  return out;
}

}  // namespace

const Subject kRankCommunication = {{&kCommunicationTable}, communication_section};
const Subject kCollectives = {{&kCollectiveTable}};

}  // namespace flopinj::reduce
