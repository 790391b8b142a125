// What communication costs each rank, and which rank the others waited for.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
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

Section communication_section(const Report& report) {
  Section out = kCommunicationTable.section(report);
  if (std::string words = straggler_words(report); !words.empty())
    out.below.emplace_back(std::move(words));
  return out;
}

}  // namespace

const Subject kRankCommunication = {{&kCommunicationTable}, communication_section};

}  // namespace flopinj::reduce
