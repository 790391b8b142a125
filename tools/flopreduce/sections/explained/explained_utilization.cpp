// Utilization explained: numerators, time bases, and what they come to.
#include "sections/explained/explanation.h"
#include "sections/parts/cells.h"
#include "support/si_number.h"

namespace flopinj::reduce {
namespace {

std::string time_text(double ns) { return to_human_time(static_cast<u128>(ns + 0.5)); }

std::string known_text(const Figure& ns, const std::string& otherwise) {
  return ns.known() ? time_text(*ns.number()) : otherwise;
}

// "12.30 us / 49.20 us = 25.00 %", or why not.
std::string reached_text(const char* of, const UtilizationMethod& m, const Figure& time_ns,
                         const Figure& share) {
  const std::string text = std::string("  of ") + of + ": ";
  if (share.known())
    return text + time_text(*m.least_ns.number()) + " / " + time_text(*time_ns.number()) + " = " +
           marked_text(share.marks(), fixed(*share.number() * 100, 2) + " %");
  return text + "none: " + share.why() +
         (above_peak(share) ? " (" + time_text(*m.least_ns.number()) + " at peak)" : "");
}

Section method_section(const Report& report, const UtilizationMethod& m, const char* title,
                       const char* figure) {
  const UtilizationReport& u = report.utilization;
  Section s{title, {}, std::nullopt, {}};
  const auto flop = m.flop.number();
  s.above.emplace_back(
      "  FLOP: " + (flop ? marked_text(m.flop.marks(), format_si(*flop) + "FLOP") : "not known") +
      ", " + m.flop_basis);
  if (const auto least = m.least_ns.number())
    s.above.emplace_back(
        "  At peak they take " + time_text(*least) +
        (&m == &u.methods.front()
             ? ": each precision at its own peak, one after the other (below)"
             : ": executed FLOP's least time x formula / executed, at their mix of precisions"));
  s.above.emplace_back(reached_text("wall time", m, u.wall_ns, m.wall) + ", this is " + figure);
  s.above.emplace_back(reached_text("GPU time", m, m.gpu_time_ns, m.gpu_time));
  s.above.emplace_back(reached_text("busy time", m, u.busy_ns, m.busy));
  s.above.emplace_back(
      reached_text("time from the first kernel to the last", m, u.span_ns, m.span));
  return s;
}

Section times_section(const Report& report) {
  const UtilizationReport& u = report.utilization;
  const Work& total = report.total;
  Section s{"Time bases", {}, std::nullopt, {}};
  s.above.emplace_back(
      "  GPU time " + (total.time_known() ? to_human_time(total.time.ns) : std::string("unknown")) +
      ": sum over " + to_grouped(total.launches - total.time.unknown) + " kernel launches; " +
      to_grouped(total.time.estimated) + " have the mean of their kernel's other launches, " +
      to_grouped(total.time.windowed) + " have times taken while counters were read");
  s.above.emplace_back("  busy time " + known_text(u.busy_ns, "not known") +
                       ": the union of kernels on each device, devices added up");
  s.above.emplace_back(
      "  first to last kernel " + known_text(u.span_ns, "not known") +
      ": busy time and the gaps between kernels, without what comes before and after");
  s.above.emplace_back("  wall time " + known_text(u.wall_ns, u.wall_ns.why()) +
                       ": each process's recording, once for each device that it launched on");
  return s;
}

}  // namespace

std::vector<Section> explained_utilization(const Report& report) {
  const auto& methods = report.utilization.methods;
  return {method_section(report, methods.at(0), "Executed", "HFU"),
          method_section(report, methods.at(1), "By formula", "MFU"), times_section(report)};
}

}  // namespace flopinj::reduce
