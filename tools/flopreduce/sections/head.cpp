// What the whole is: launches, FLOP, GPU time, and what to know before believing them.
#include "sections/cells.h"
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

void add_warnings(const Report& report, std::vector<Line>& lines) {
  if (report.simulated.value_or(false))
    lines.emplace_back("SIMULATED: recorded on simgpu; no number here was read on hardware.",
                       Tone::kWarn);
  else if (!report.simulated.has_value())
    lines.emplace_back(
        "A header is lost: it is not known whether these numbers were read on hardware.",
        Tone::kWarn);
  if (report.partial)
    lines.emplace_back("PARTIAL: something is missing from these traces; see Damage below.",
                       Tone::kBad);
}

// Of traces in which no launch can be read, the sum of none is no figure.
bool total_known(const Report& report) {
  return report.total.flop_known() && !(report.partial && report.total.launches == 0);
}

std::string windows_text(uint64_t n) { return to_grouped(n) + (n == 1 ? " window" : " windows"); }

// Indented lines, each about some of the launches.
void add_caveats(const Work& total, std::vector<Line>& lines) {
  const auto say = [&](uint64_t launches, const char* what, Tone tone = Tone::kPlain) {
    if (launches > 0) lines.push_back(Line("  ").then(to_grouped(launches) + what, tone));
  };
  say(total.varying - total.rounded,
      " launches are of kernels whose samples disagree: their FLOP are estimates (~).");
  say(total.rounded,
      " launches are of kernels with counts rounded by the counter (no whole numbers below 2^53): "
      "their FLOP are estimates (~).");
  say(total.uncertainty.elsewhere_launches(),
      " of them are of kernels that also ran where nothing was sampled (other processes or devices,"
      " graphs): no interval.");
  if (total.agreeing > 0)
    say(total.agreeing,
        (" launches stand with their kernel's samples, which agree: at least " +
         windows_text(total.fewest_windows) + " each (95 % bound on launches that differ: " +
         fixed(100 * unseen_share(total.fewest_windows), 1) + " %).")
            .c_str());
  say(total.unscreened,
      " launches have a count of instructions alone: whether they do tensor work is not known.");
  say(total.unmeasured, " launches have no FLOP count; see Ledger below.", Tone::kWarn);
  say(total.time.estimated, " launches stand in GPU time with their kernel's mean.");
  say(total.time.windowed,
      " launches were timed only while counters were read: their time is an upper bound (<=).");
  say(total.time.unknown, " launches have no time.");
}

std::string time_text(const Work& total) {
  if (!total.time_known()) return "unknown";
  return std::string(total.time.unknown > 0 ? ">= " : "") + (total.time.windowed > 0 ? "<= " : "") +
         to_human_time(total.time.ns);
}

Section head_section(const Report& report) {
  Section s;
  const Work& total = report.total;
  add_warnings(report, s.above);
  s.above.push_back(Line("FLOP of " + to_grouped(total.launches) + " kernel launches", Tone::kTitle)
                        .then(" (one FMA counts " + std::to_string(report.fma) + ")"));
  s.above.emplace_back("");
  const std::string mark = total.flop_complete() ? "" : ">= ";
  Line flop("  total     ");
  const bool known = total_known(report);
  flop.then(known ? mark + to_human(total.flop, "FLOP") : "not measured", Tone::kTitle);
  if (known)
    flop.then((total.flop_exact() ? "   exactly " : "   ") + mark +
              (total.varying > 0 ? "~ " : "") + to_grouped(total.flop));
  s.above.push_back(std::move(flop));
  s.above.emplace_back("  GPU time  " + time_text(total) + "   sum of kernels");
  if (const auto interval = total.interval())
    s.above.emplace_back("  95 % interval of FLOP " + to_human(interval->low, "FLOP") + " to " +
                         to_human(interval->high, "FLOP"));
  add_caveats(total, s.above);
  return s;
}

void head_json(Json& j, const Report& report) {
  j["schema_version"] = kSchemaVersion;
  j["simulated"] = report.simulated ? Json(*report.simulated) : Json(nullptr);
  j["partial"] = report.partial;
  j["fma"] = report.fma;
  j["total"] = work_json(report.total);
  if (!total_known(report)) j["total"]["flop"] = j["total"]["matrix_flop"] = nullptr;
}

// One row: the totals, and under which convention.
std::vector<Table> head_tables(const Report& report) {
  Table table{"report",
              {{"schema_version", "schema", Kind::kCount},
               {"simulated", "simulated", Kind::kCount},
               {"partial", "partial", Kind::kCount},
               {"fma", "FLOP of an FMA", Kind::kCount},
               {"launches", "launches", Kind::kCount},
               {"unmeasured_launches", "unmeasured", Kind::kCount},
               {"flop", "FLOP", Kind::kFlop},
               {"matrix_flop", "matrix FLOP", Kind::kFlop},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds}}};
  const Work& total = report.total;
  table.rows.push_back(
      {uint64_t{kSchemaVersion},
       report.simulated ? Cell(uint64_t{*report.simulated}) : Cell::none("not known"),
       uint64_t{report.partial}, static_cast<uint64_t>(report.fma), total.launches,
       total.unmeasured, total_known(report) ? exact_cell(total) : Cell::none(),
       total_known(report) ? Cell(total.matrix_flop, exact_cell(total).marks) : Cell::none(),
       time_cell(total)});
  return {std::move(table)};
}

}  // namespace

const Subject kHead = {head_section, head_json, head_tables};

}  // namespace flopinj::reduce
