// What the whole is: launches, FLOP, GPU time, and what to know before believing them.
#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

std::string missing_words(const Report& report) {
  constexpr size_t kMost = 3;
  const std::string damage = damage_words(report, kMost);
  if (report.errors.empty()) return damage;
  return "not used: " + report.errors.front() +
         (report.errors.size() > 1 ? "; and more, see Damage below" : "") +
         (damage.empty() ? "" : "; " + damage);
}

// By flopinj doctor --count, as the recorder found.
bool never_checked(const TraceReport& trace) {
  return trace.counters.reading == CounterReading::kRead && !trace.header.simulated() &&
         trace.header.imported_from().empty() &&
         std::ranges::none_of(trace.diagnostics, [](const trace::Diagnostic& diagnostic) {
           return diagnostic.code() == "counters.checked";
         });
}

}  // namespace

void add_warnings(const Report& report, std::vector<Line>& lines) {
  if (report.simulated.value_or(false))
    lines.emplace_back("SIMULATED by simgpu" +
                           said::simulation_words(report.simulated_clock, report.ptx_counts) +
                           ": no number here was read on hardware.",
                       Tone::kWarn);
  else if (!report.simulated.has_value())
    lines.emplace_back(
        "A header is lost: it is not known whether these numbers were read on hardware.",
        Tone::kWarn);
  if (report.partial) lines.emplace_back("PARTIAL: " + missing_words(report), Tone::kBad);
  for (const std::string& notice : notices(report)) lines.emplace_back(notice, Tone::kWarn);
}

void add_origin(const Report& report, std::vector<Line>& lines) {
  u128 added = 0;
  for (const MachineCodeReport& row : report.machine_code) add_saturating(added, row.flop());
  if (report.ptx_counts && added > 0)
    lines.emplace_back("PTX counts: machine code adds ~" + to_human(added, "FLOP") +
                           " (--sections machine_code), short branches and moves.",
                       Tone::kDim);
  else if (report.ptx_counts)
    lines.emplace_back(
        "PTX counts: machine code also counts divisions, both sides of short branches, moves.",
        Tone::kDim);
  if (std::ranges::any_of(report.traces, never_checked))
    lines.emplace_back(
        "Counts of this GPU, driver and CUPTI were never compared with theory: flopinj doctor "
        "--count does.",
        Tone::kDim);
}

namespace {

// Of traces in which no launch can be read, the sum of none is no figure.
bool total_known(const Report& report) {
  return report.total.flop_known() && !(report.partial && report.total.launches == 0);
}

std::string readings_text(uint64_t n) { return to_grouped(n) + (n == 1 ? " time" : " times"); }

// Of instructions without arithmetic.
void add_code_caveats(const Work& total, std::vector<Line>& lines) {
  if (total.left_out > 0)
    lines.emplace_back("  " + to_human(total.left_out, "FLOP") +
                       " are left out: counters hold them, and the kernels' code says that their "
                       "instructions compute less (constants, moves, plain products).");
  if (total.doubtful > 0)
    lines.emplace_back("  At most " + to_human(total.doubtful, "FLOP") +
                       " are of instructions that only load constants or move values: counters do "
                       "not tell them apart" +
                       (total.bounded > 0 ? ", or bound kernels that cannot be instrumented" : "") +
                       (total.flop_at_most() ? " (<=)." : "."));
}

// Indented lines, each about some of the launches.
void add_caveats(const Report& report, std::vector<Line>& lines) {
  const Work& total = report.total;
  const auto say = [&](uint64_t launches, const char* what, Tone tone = Tone::kPlain) {
    if (launches > 0) lines.push_back(Line("  ").then(to_grouped(launches) + what, tone));
  };
  say(total.varying - total.rounded,
      " launches are of kernels whose samples disagree: their FLOP are estimates (~).");
  say(total.rounded,
      " launches are of kernels with counts rounded by the counter (no whole numbers below 2^53): "
      "their FLOP are estimates (~).");
  say(total.uncertainty.elsewhere_launches(),
      " of them are of kernels that also ran where nothing was sampled (other processes or "
      "devices, graphs): no interval.");
  if (total.agreeing > 0)
    say(total.agreeing,
        (" launches are of kernels whose samples all agree, and count with these: that the others "
         "do the same is assumed. The kernel with fewest was read " +
         readings_text(total.fewest_windows) + ": up to " +
         fixed(100 * unseen_share(total.fewest_windows), 1) +
         " % of its launches could differ unseen (95 % confidence).")
            .c_str());
  add_code_caveats(total, lines);
  say(total.bounded,
      " launches are of kernels that cannot be instrumented: their tensor FLOP are counted, all "
      "others have an upper bound.");
  say(total.unscreened,
      " launches have counts of instructions only: it is not known whether they do tensor work "
      "(>=).",
      Tone::kWarn);
  say(total.unmeasured, (" launches have no FLOP count: " + unmeasured_cause(report)).c_str(),
      Tone::kWarn);
  say(total.time.estimated,
      " launches have an estimated time: the mean of their kernel's other launches.");
  say(total.time.windowed,
      " launches were timed only while counters were read: their time is an upper bound (<=).");
  say(total.time.unknown, " launches have no time.");
}

std::string time_text(const Work& total, bool more) {
  if (!total.time_known()) return "unknown";
  const Mark end = mark_if(more, Mark::kAtLeast);
  return marked_text(gpu_time_of(total).marks() | end, to_human_time(total.time.ns));
}

}  // namespace

void add_total(const Report& report, std::vector<Line>& lines) {
  const Work& total = report.total;
  const bool more = has(end_mark(report), Mark::kAtLeast);
  const std::string at_least = more ? ">= " : "";
  lines.push_back(
      Line("FLOP of " + at_least + to_grouped(total.launches) + " kernel launches", Tone::kTitle)
          .then(" (one FMA counts " + std::to_string(report.fma) + ")"));
  lines.emplace_back("");
  Line flop("  total     ");
  const bool known = total_known(report);
  if (known) {
    const Figure executed = flop_of(total).with(mark_if(more, Mark::kAtLeast));
    const u128 whole = std::get<u128>(executed.value());
    const Mark bounds = mark_if(has(executed.marks(), Mark::kAtLeast), Mark::kAtLeast) |
                        mark_if(has(executed.marks(), Mark::kAtMost), Mark::kAtMost);
    flop.then(marked_text(bounds, to_human(whole, "FLOP")), Tone::kTitle);
    flop.then((total.flop_exact() && !more ? "   exactly " : "   ") +
              marked_text(executed.marks(), to_grouped(whole)));
  } else {
    flop.then("not measured", Tone::kTitle);
  }
  lines.push_back(std::move(flop));
  lines.emplace_back("  GPU time  " + time_text(total, more) + "   sum of kernels");
  if (const auto interval = total.interval())
    lines.emplace_back("  95 % interval of FLOP " + to_human(interval->low, "FLOP") + " to " +
                       to_human(interval->high, "FLOP"));
  add_caveats(report, lines);
}

namespace {

Section head_section(const Report& report) {
  Section s;
  add_warnings(report, s.above);
  add_origin(report, s.above);
  add_total(report, s.above);
  return s;
}

}  // namespace

const Subject kHead = {{}, head_section};

}  // namespace flopinj::reduce
