#include "sections/parts/cells.h"

#include <algorithm>
#include <cinttypes>

#include "support/text.h"

namespace flopinj::reduce {

Figure flop_share(const Work& part, const Work& whole) {
  if (!part.flop_known() || whole.flop == 0) return {};
  // Nothing is nothing of whatever the rest did.
  const bool bound = whole.incomplete() > part.incomplete() && part.flop > 0;
  return {static_cast<double>(part.flop) / static_cast<double>(whole.flop),
          missing_mark(part) | mark_if(bound, Mark::kAtMost)};
}

Figure time_share(const Work& part, const Work& whole) {
  if (!part.time_known() || !whole.time_known()) return {};
  return share_figure(part.time.ns, whole.time.ns);
}

Figure gpu_time_each(const Work& work) {
  const uint64_t timed = work.launches - work.time.unknown;
  return timed > 0 ? Figure(work.time.ns / timed, gpu_time_of(work).marks()) : Figure();
}

namespace {

bool bytes_known(const Work& work) { return work.launches > 0 && work.roof.no_bytes == 0; }

Figure over_gpu_time(const Figure& amount, const Work& work) {
  if (work.time.unknown > 0) return Figure::unknown("GPU time unknown");
  const Figure rate = amount * 1e9 / Figure::exact(work.time.ns);
  // Nothing is nothing in whatever time.
  return rate.number() == 0.0 ? rate : rate.with(over_time_mark(gpu_time_of(work).marks()));
}

}  // namespace

Figure dram_bytes_of(const Work& work) {
  return bytes_known(work) ? Figure::exact(work.roof.dram_bytes)
                           : Figure::unknown("DRAM bytes not measured");
}

Figure rate_of(const Work& work) { return over_gpu_time(flop_of(work), work); }

Figure bandwidth_of(const Work& work) { return over_gpu_time(dram_bytes_of(work), work); }

Figure intensity_of(const Work& work) { return flop_of(work) / dram_bytes_of(work); }

// A kernel this far below the nearer roof is bound by neither: by latency, or by a cache. Nsight
// Compute's rule of section "Speed Of Light Throughput" has the same limit ("below 60.0% of peak
// typically indicate latency issues").
constexpr double kBindingShare = 0.6;

// Nothing where a roof is not known, or not all that is under it.
std::optional<std::string> nearer_roof(const Work& work, const std::string& slowest) {
  const Roof& r = work.roof;
  const bool unknown =
      r.no_peak > 0 || r.no_integer_peak > 0 || r.no_bytes > 0 || r.no_bandwidth > 0;
  if (!work.flop_complete() || unknown || r.ns <= 0) return std::nullopt;
  const std::string nearer = r.memory_ns >= r.compute_ns + r.integer_ns ? "memory" : slowest;
  return nearer.empty() ? std::nullopt : std::optional(nearer);
}

// Times that were taken while counters were read are too long to say "latency".
std::optional<std::string> bound_by(const Work& work, const std::string& slowest) {
  const auto nearer = nearer_roof(work, slowest);
  const auto share = roofline_of(work).number();
  if (!nearer || !share) return std::nullopt;
  if (*share >= kBindingShare) return nearer;
  return work.time.windowed > 0 ? std::nullopt : std::optional<std::string>("latency");
}

bool executed(const Report& report, std::string_view format) {
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (report.precisions[i] == format) return report.flop.by_precision[i] > 0;
  for (size_t i = 0; i < kIntegerFormats.size(); ++i)
    if (kIntegerFormats[i] == format) return report.flop.integer[i] > 0;
  return false;
}

Figure share_figure(u128 part, u128 whole) { return Figure::exact(part) / Figure::exact(whole); }

uint64_t number_of(const TraceReport& trace, const Report& report) {
  return static_cast<uint64_t>(&trace - report.traces.data());
}

std::optional<std::string> session_of(const TraceReport& trace) {
  const uint64_t session = trace.header.session_id();
  return session != 0 ? std::optional(hash_text(session)) : std::nullopt;
}

std::optional<uint32_t> pid_of(const TraceReport& trace) {
  return trace.has_header ? std::optional(trace.header.pid()) : std::nullopt;
}

std::string marks_text(Mark marks) {
  std::string text;
  const bool least = has(marks, Mark::kAtLeast) || has(marks, Mark::kMoreThan);
  const bool most = has(marks, Mark::kAtMost);
  if (least && most) return "~";  // the true number may be on either side
  if (has(marks, Mark::kAtLeast))
    text = ">=";
  else if (least)
    text = ">";
  else if (most)
    text = "<=";
  if (has(marks, Mark::kEstimate)) text += text.empty() ? "~" : " ~";
  return text;
}

std::string marked_text(Mark marks, const std::string& value) {
  const std::string text = marks_text(marks);
  return text.empty() ? value : text + " " + value;
}

std::string percent_text(double share) {
  constexpr double kLeast = 0.001, kMost = 99.95;
  const double percent = share * 100;
  if (!(percent > 0)) return "0 %";
  if (percent < kLeast) return "<0.001 %";
  if (percent >= kMost && percent < 100) return ">99.9 %";
  return percent < 1 ? printed("%#.2g %%", percent) : printed("%.1f %%", percent);
}

std::string range_text(Mark marks, double least, double most) {
  const std::string about = has(marks, Mark::kEstimate) ? "~ " : "", low = percent_text(least);
  const std::string high = percent_text(most);
  return about + (low == high ? low : low.substr(0, low.find(' ')) + "-" + high);
}

std::string share_text(const Figure& share) {
  if (!share.known()) return "-";
  if (share.most()) return range_text(share.marks(), *share.number(), *share.most());
  return marked_text(share.marks(), percent_text(*share.number()));
}

std::string share_or_why(const Figure& share) {
  return share.known() ? share_text(share) : "-  " + share.why();
}

std::string tokens_words(const StepsReport& steps) {
  const Figure& rate = steps.tokens_per_s;
  return marked_text(rate.marks(), to_grouped(static_cast<u128>(*rate.number()))) + " tokens/s";
}

std::string fixed(double value, int decimals) { return printed("%.*f", decimals, value); }

Figure figure_of(const Cell& cell) {
  Figure figure = Figure::unknown(cell.absent == "-" ? "" : cell.absent);
  if (const auto* whole = std::get_if<u128>(&cell.value)) figure = {*whole, cell.marks};
  if (const auto* real = std::get_if<double>(&cell.value)) figure = {*real, cell.marks};
  if (cell.most) figure = figure.no_more_than(*cell.most);
  return cell.least ? figure.no_less_than(*cell.least) : figure;
}

Line figure_line(const ShownFigure& figure) {
  constexpr size_t kName = 15, kValue = 13;
  std::string label = "  " + std::string(figure.name);
  label.resize(std::max(label.size() + 1, kName + 2), ' ');
  const size_t pad = kValue - std::min(kValue, display_width(figure.value));
  Line line(std::move(label));
  line.then(figure.value, figure.tone);
  if (!figure.note.empty()) line.then(std::string(pad + 2, ' ') + figure.note);
  return line.in_lines(figure.most);
}

}  // namespace flopinj::reduce
