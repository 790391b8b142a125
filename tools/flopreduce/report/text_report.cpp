#include "report/text_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "report/text_table.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

std::string percent(u128 part, u128 whole) {
  if (whole == 0) return "-";
  return fixed(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
}

std::string flop_cell(const Work& w) {
  if (!w.flop_known()) return "not measured";
  return (w.flop_complete() ? "" : ">= ") + to_human(w.flop, "FLOP");
}
std::string exact_cell(const Work& w) {
  if (!w.flop_known()) return "-";
  return std::string(w.flop_complete() ? "" : ">= ") + (w.varying > 0 ? "~ " : "") +
         to_grouped(w.flop);
}
std::string time_cell(const Work& w) {
  if (!w.time_known()) return "unknown";
  return std::string(w.time.unknown > 0 ? ">= " : "") + (w.time.windowed > 0 ? "<= " : "") +
         to_human_time(w.time.ns);
}

class TextReport {
 public:
  TextReport(std::ostream& out, const Report& report, const TextOptions& options)
      : out_(out), report_(report), options_(options), style_{options.color} {}
  void write();

 private:
  void title(const std::string& text) { out_ << '\n' << style_.bold(text) << '\n'; }
  void print(const TextTable& table) { table.print(out_, options_.width, style_); }
  void heading();
  void phases();
  void precisions();
  void ratio();
  void kernels();
  void ranges();
  void ledger();
  void overhead();
  void warnings();

  std::ostream& out_;
  const Report& report_;
  const TextOptions& options_;
  Style style_;
};

void TextReport::heading() {
  if (report_.simulated.value_or(false))
    out_ << style_.warn("SIMULATED: recorded on simgpu; no number here was read on hardware.")
         << "\n";
  else if (!report_.simulated.has_value())
    out_ << style_.warn(
                "A header is lost: it is not known whether these numbers were read on hardware.")
         << "\n";
  if (report_.partial)
    out_ << style_.bad("PARTIAL: something is missing from these traces; see Damage below.")
         << "\n";
  out_ << style_.bold("FLOP of " + to_grouped(report_.total.launches) + " kernel launches")
       << " (one FMA counts " << report_.fma << ")\n\n";
  out_ << "  total     " << style_.bold(flop_cell(report_.total));
  if (report_.total.flop_known())
    out_ << (report_.total.flop_exact() ? "   exactly " : "   ") << exact_cell(report_.total);
  out_ << "\n  GPU time  " << time_cell(report_.total) << "   sum of kernels\n";
  if (report_.total.varying > 0)
    out_ << "  " << to_grouped(report_.total.varying)
         << " launches are of kernels whose samples disagree: their FLOP are estimates (~).\n";
  if (report_.total.unscreened > 0)
    out_ << "  " << to_grouped(report_.total.unscreened)
         << " launches have a count of instructions alone: whether they do tensor work is not "
            "known.\n";
  if (report_.total.unmeasured > 0)
    out_ << "  "
         << style_.warn(to_grouped(report_.total.unmeasured) +
                        " launches have no FLOP count; see Ledger below.")
         << "\n";
  const GpuTime& time = report_.total.time;
  if (time.estimated > 0)
    out_ << "  " << to_grouped(time.estimated)
         << " launches stand in GPU time with their kernel's mean.\n";
  if (time.windowed > 0)
    out_ << "  " << to_grouped(time.windowed)
         << " launches were timed only while counters were read: their time is an upper bound "
            "(<=).\n";
  if (time.unknown > 0) out_ << "  " << to_grouped(time.unknown) << " launches have no time.\n";
}

void TextReport::phases() {
  title("By phase");
  TextTable table({"phase", "FLOP", "exact", "share", "launches", "GPU time"});
  for (const auto& p : report_.phases)
    table.add({printable(p.name), flop_cell(p.work), exact_cell(p.work),
               percent(p.work.flop, report_.total.flop), to_grouped(p.work.launches),
               time_cell(p.work)});
  print(table);
}

void TextReport::precisions() {
  title("By precision");
  TextTable table({"precision", "FLOP", "exact", "share"});
  const std::string mark = report_.total.flop_complete() ? "" : ">= ";
  for (size_t i = 0; i < report_.precisions.size(); ++i) {
    const u128 flop = report_.flop.by_precision[i];
    if (flop > 0)
      table.add({printable(report_.precisions[i]), mark + to_human(flop, "FLOP"),
                 mark + to_grouped(flop), percent(flop, report_.total.flop)});
  }
  for (size_t i = 0; i < kIntegerFormats.size(); ++i)  // apart from FLOP: no share
    if (const u128 operations = report_.flop.integer[i]; operations > 0)
      table.add({std::string(kIntegerFormats[i]), mark + to_human(operations, "OP"),
                 mark + to_grouped(operations), ""});
  if (table.empty())
    out_ << "  none counted\n";
  else
    print(table);
}

void TextReport::ratio() {
  const RatioReport& r = report_.ratio;
  title("Backward / forward");
  if (r.ratio)
    out_ << "  " << fixed(*r.ratio, 4);
  else if (r.ratio_partial)
    out_ << "  about " << fixed(*r.ratio_partial, 4) << ", of the measured part alone";
  else
    out_ << "  not known: no forward or no backward launches";
  if (r.matrix_ratio) out_ << "   matrix work alone " << fixed(*r.matrix_ratio, 4);
  if (r.expected)
    out_ << "   expected " << fixed(*r.expected, 4) << " (2 - f1, first layer "
         << fixed(*r.first_layer_share * 100, 2) << " %)";
  out_ << "\n";
}

void TextReport::kernels() {
  title("Top kernels");
  TextTable table({"kernel", "FLOP", "share", "launches", "GPU time", "note"});
  for (size_t i = 0; i < std::min(options_.top, report_.kernels.size()); ++i) {
    const KernelReport& k = report_.kernels[i];
    std::string note;
    if (k.work.varying > 0) note += " varying";
    if (k.merged_launches > 0) note += " merged";
    if (k.opaque_launches > 0) note += " no-parameters";
    table.add({printable(k.name), flop_cell(k.work), percent(k.work.flop, report_.total.flop),
               to_grouped(k.work.launches), time_cell(k.work), note.empty() ? "" : note.substr(1)});
  }
  if (table.empty())
    out_ << "  no launches\n";
  else
    print(table);
  if (report_.kernels.size() > options_.top)
    out_ << style_.dim("  and " + to_grouped(report_.kernels.size() - options_.top) +
                       " more: --top N")
         << "\n";
}

void TextReport::ranges() {
  std::vector<const RangeReport*> top;
  for (const auto& r : report_.ranges) top.push_back(&r);
  if (top.empty()) return;
  title("Top ranges (inclusive)");
  std::stable_sort(top.begin(), top.end(), [](const auto* a, const auto* b) {
    return a->inclusive.flop > b->inclusive.flop;
  });
  TextTable table({"range", "FLOP", "share", "launches", "GPU time"});
  for (size_t i = 0; i < std::min(options_.top, top.size()); ++i) {
    const Work& w = top[i]->inclusive;
    table.add({printable(top[i]->path), flop_cell(w), percent(w.flop, report_.total.flop),
               to_grouped(w.launches), time_cell(w)});
  }
  print(table);
  if (top.size() > options_.top)
    out_ << style_.dim("  and " + to_grouped(top.size() - options_.top) + " more: --top N") << "\n";
}

void TextReport::ledger() {
  title("Ledger");
  TextTable table(
      {"device", "launches", "= measured", "+ extrapolated", "+ unmeasured", "+ dropped"});
  const auto line = [&](const std::string& name, const LedgerLine& l) {
    table.add({name, to_grouped(l.launches), to_grouped(l.measured), to_grouped(l.extrapolated),
               to_grouped(l.unmeasured), to_grouped(l.dropped)});
  };
  constexpr size_t kMostDevices = 32;
  if (report_.devices.size() > 1) {
    for (size_t i = 0; i < std::min(report_.devices.size(), kMostDevices); ++i) {
      const auto& d = report_.devices[i];
      const auto& trace = report_.traces[d.trace];
      line("pid " + std::to_string(trace.header.pid()) + " " +
               (d.facts.id() == 0 ? "device unknown"
                                  : "GPU " + std::to_string(d.facts.id() - 1) + " " +
                                        printable(cut(d.facts.name(), 40))),
           d.ledger);
    }
  }
  line("all devices", report_.ledger.total);
  print(table);
  if (report_.devices.size() > kMostDevices)
    out_ << "  and " << report_.devices.size() - kMostDevices << " more devices: --format json\n";
  const auto reasons = [&](const char* what, const std::vector<Reason>& list) {
    for (const auto& r : list)
      out_ << "  " << what << ": " << to_grouped(r.launches) << "  " << printable(r.reason) << "\n";
  };
  reasons("unmeasured", report_.ledger.unmeasured);
  reasons("dropped", report_.ledger.dropped);
  reasons("duplicate records removed", report_.ledger.duplicates);
  for (const auto& text : report_.ledger.disagreements)
    out_ << "  " << style_.bad("does not balance: " + text) << "\n";
}

void TextReport::overhead() {
  title("The profiler's own cost");
  TextTable table(
      {"process", "callbacks", "windows", "start-up", "helper CPU", "written", "share of wall"});
  for (const auto& t : report_.traces) {
    if (!t.has_overhead) continue;
    const auto& o = t.overhead;
    u128 cost = o.launch_callback_ns();
    add_saturating(cost, o.window_ns());
    add_saturating(cost, o.startup_ns());
    table.add({"pid " + std::to_string(t.header.pid()), to_human_time(o.launch_callback_ns()),
               to_human_time(o.window_ns()), to_human_time(o.startup_ns()),
               to_human_time(o.helper_cpu_ns()), to_human(o.bytes_written(), "B"),
               percent(cost, o.wall_ns())});
  }
  if (table.empty())
    out_ << "  not in these traces\n";
  else
    print(table);
}

void TextReport::warnings() {
  bool any = false;
  for (const auto& t : report_.traces) {
    constexpr size_t kMost = 20;
    for (size_t i = 0; i < std::min(t.diagnostics.size(), kMost); ++i) {
      const auto& d = t.diagnostics[i];
      if (d.severity() == trace::Diagnostic::INFO) continue;
      if (!any) title("Diagnostics");
      any = true;
      const std::string text = "pid " + std::to_string(t.header.pid()) + ": " +
                               printable(cut(d.message(), 1000)) + " [" +
                               printable(cut(d.code(), 100)) + "]";
      out_ << "  "
           << (d.severity() == trace::Diagnostic::ERROR ? style_.bad("error")
                                                        : style_.warn("warning"))
           << " " << text << "\n";
    }
    if (t.diagnostics.size() > kMost) out_ << "  and more of this process: --format json\n";
  }
  if (report_.damage.empty() && report_.errors.empty()) return;
  title("Damage");
  for (const auto& e : report_.errors) out_ << "  " << style_.bad("not used: ") << e << "\n";
  for (const auto& d : report_.damage)
    out_ << "  " << printable(d.file) << ": " << to_grouped(d.count) << " "
         << damage_text(d.kind).meaning << "\n";
}

void TextReport::write() {
  heading();
  phases();
  precisions();
  ratio();
  kernels();
  ranges();
  ledger();
  overhead();
  warnings();
}

}  // namespace

void write_text(std::ostream& out, const Report& report, const TextOptions& options) {
  TextReport(out, report, options).write();
}

}  // namespace flopinj::reduce
