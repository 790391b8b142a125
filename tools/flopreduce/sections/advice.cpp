// What could be done about where the peak went: one rule a remedy, with what it would give back.
#include "sections/advice.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "analytic/operator_flop.h"
#include "sections/parts/cells.h"
#include "sections/parts/short_name.h"
#include "support/text.h"

namespace flopinj::reduce {

std::string lost_share_words(const LostReport& lost, uint64_t ns) {
  const double percent = 100 * lost.share(ns);
  return percent < 0.05 ? "<0.1" : fixed(percent, 1);
}

uint64_t lost_phase_ns(const LostReport& lost, std::string_view phase) {
  uint64_t ns = 0;
  for (const auto& part : lost.parts)
    if (part.phase == phase)
      for (size_t line = place_of(LostLine::kCommunication); line < kLostLines; ++line)
        ns += part.ns[line];
  return ns;
}

namespace {

// The kernel that loses most of the peak, of those of products or of the others.
std::optional<WorkGroup> slowest_kernel(const Report& report, bool products) {
  std::optional<WorkGroup> slowest;
  double most = 0;
  for (WorkGroup& kernel : group(report, {by::kKernel})) {
    const bool tensor =
        slowest_precision(kernel.flop, report.precisions, report.utilization.devices)
            .starts_with("tensor_");
    if (!kernel.work.flop_complete() || tensor != products) continue;
    const double lost_ns = static_cast<double>(kernel.work.time.ns) - kernel.work.roof.compute_ns;
    if (slowest && lost_ns <= most) continue;
    slowest = std::move(kernel);
    most = lost_ns;
  }
  return slowest;
}

std::string kernel_words(const KernelReport& kernel) {
  return shorten(printable(short_kernel_names({kernel.name}).front()), 40);
}

// What is to be done about kernels of products, or of the others.
std::string kernels_advice(const Report& report, bool products) {
  const LostReport& lost = report.lost;
  const std::optional<WorkGroup> kernel = slowest_kernel(report, products);
  if (!kernel) return "";
  const std::string name = kernel_words(report.kernels[kernel->ids[0]]);
  using enum LostLine;
  const uint64_t memory = lost.at(products ? kMatrixMemory : kOtherMemory);
  const uint64_t blocks = products ? lost.at(kMatrixBlocks) : 0;
  const uint64_t below = lost.at(products ? kMatrixBelowRoof : kOtherBelowRoof);
  if (memory >= std::max(blocks, below))
    return products ? "Products with few FLOP for each byte: larger batches help."
                    : name + " and others are at the roof of memory: fuse them.";
  if (blocks >= below) return name + ": its blocks fill the multiprocessors unevenly.";
  const Figure of_peak = utilization_of(kernel->work);
  if (!of_peak.known()) return "";
  const std::string explained = memory + blocks == 0 ? ": use ncu to see why."
                                                     : "; bytes and blocks explain " +
                                                           lost_share_words(lost, memory + blocks) +
                                                           " % of the peak: use ncu for the rest.";
  return name + " takes " +
         percent_text(quotient(kernel->work.time.ns, std::max<uint64_t>(1, lost.capacity_ns))) +
         " of the time, at " + share_text(of_peak) + " of peak" + explained;
}

// Before which kernel the longest gap is.
std::string longest_gap_advice(const Report& report) {
  const TimeReport::Gap* longest = nullptr;
  for (const auto& device : report.time.devices)
    if (!device.largest.empty() &&
        (longest == nullptr || device.largest.front().length_ns > longest->length_ns))
      longest = &device.largest.front();
  if (longest == nullptr) return "";
  return "The longest is before " + shorten(printable(longest->after), 40) +
         ": look for a synchronization.";
}

// What the host did instead of launching, where that is known of half of the time or more.
std::string host_late_advice(const Report& report) {
  const LostReport& lost = report.lost;
  const uint64_t late_ns = lost.at(LostLine::kIdleHostLate);
  if (lost.host.empty() || 2 * lost.host.front().ns < late_ns)
    return "Kernels were called for after the GPU had nothing to do: CUDA graphs help.";
  const auto& [range, ns] = lost.host.front();
  return "The host launched late: it spent " + to_human_time(ns) + " of " + to_human_time(late_ns) +
         (range.empty() ? " outside of all ranges." : " in " + shorten(printable(range), 40) + ".");
}

// What is to be done so that kernels run meanwhile.
std::string copies_advice(const Report& report) {
  uint64_t of_host = 0, pageable = 0;
  for (const CopyReport& copy : report.copies) {
    if (std::string_view(copy.direction).find("host") == std::string_view::npos) continue;
    add_saturating(of_host, copy.bytes);
    add_saturating(pageable, copy.pageable_bytes);
  }
  return "Copies ran, and no kernel did: copy beside kernels (a stream of its own, non_blocking)" +
         (pageable == 0 ? std::string(".")
                        : "; " + percent_text(quotient(pageable, of_host)) +
                              " of the bytes from and to the host were in memory that is not "
                              "pinned, which makes the host wait.");
}

std::string short_gaps_advice(const Report& report) {
  uint64_t gaps = 0;
  for (const auto& device : report.time.devices)
    for (size_t decade = 0; decade < 5; ++decade) add_saturating(gaps, device.idle[decade].gaps);
  const GpuTime& time = report.total.time;
  const uint64_t timed = report.total.launches - time.unknown;
  const std::string beside =
      timed == 0 ? ""
                 : " beside kernels of " +
                       to_human_time(static_cast<uint64_t>(quotient(time.ns, timed) + 0.5)) +
                       " in the mean";
  return to_grouped(gaps) + " gaps" + beside +
         ": fewer and larger kernels help and, if the host is late (record with --host-times), "
         "CUDA "
         "graphs.";
}

// What the tiles of products compute in vain, of operators whose sizes and kernels show it.
struct Padding {
  double ns = 0, most_ns = 0;           // of all of them, and of the one with the evidence
  std::string operator_name, evidence;  // "1000 x 1000 computed as 1024 x 1024, tiles of 128 x 128"
  size_t operators = 0;

  std::string words() const {
    return operator_name + ", " + evidence +
           (operators > 1 ? " (and " + to_grouped(operators - 1) + " more)" : std::string()) +
           ": use sizes that the tiles divide.";
  }
};

// Where a part of the work is done in vain, that part of the time is.
Padding padding_of(const Report& report) {
  Padding padding;
  for (const OperatorReport& place : report.operators.places) {
    if (place.cause != "tile padding" || !place.of_model || !place.ratio || *place.ratio <= 1 ||
        !place.work.flop_complete() || place.work.time.unknown > 0)
      continue;
    const double ns = quotient(place.work.time.ns, 1) * (1 - 1 / *place.ratio);
    padding.ns += ns;
    ++padding.operators;
    if (ns <= padding.most_ns) continue;
    padding.most_ns = ns;
    padding.operator_name = printable(place.name);
    // Behind the sizes and tiles is the kernel's name.
    padding.evidence = printable(place.evidence.substr(0, place.evidence.find(": kernel ")));
  }
  return padding;
}

// Products in formats that are slower than bf16 on the same device.
struct SlowProducts {
  double ns = 0, at_bf16_ns = 0;  // what they take, and would take at bf16's peak
  double times = 0;               // bf16's peak of theirs
  std::string formats;            // "fp32"
};

// A product in fp32 is a kernel without tensor work in an operator that multiplies matrices.
SlowProducts slow_products(const Report& report) {
  SlowProducts slow;
  if (report.utilization.devices.size() != 1) return slow;
  const DevicePeaksReport& device = report.utilization.devices.front();
  if (!device.bf16) return slow;
  const auto add = [&](size_t precision, const WorkGroup& kernels) {
    const std::string& name = report.precisions[precision];
    const auto peak = std::ranges::find(device.peaks, name, &PeakUsed::precision);
    if (peak == device.peaks.end() || !(peak->per_second > 0 && peak->per_second < *device.bf16))
      return;
    slow.ns += quotient(kernels.work.time.ns, 1);
    slow.at_bf16_ns += 1e9 * quotient(kernels.flop.by_precision[precision], 1) / *device.bf16;
    slow.times = std::max(slow.times, *device.bf16 / peak->per_second);
    if (slow.formats.find(name) == std::string::npos)
      slow.formats += (slow.formats.empty() ? "" : " and ") + name;
  };
  for (const WorkGroup& kernels : group(report, {by::kOperator, by::kKernel})) {
    if (!kernels.work.flop_complete() || kernels.work.time.unknown > 0) continue;
    const bool product = kernels.ids[0] != kNoIndex && kernels.work.matrix_flop > 0 &&
                         is_matrix_work(report.work.operators[kernels.ids[0]]);
    size_t tf32 = report.precisions.size();
    bool tensor = false;
    for (size_t i = 0; i < report.precisions.size(); ++i) {
      if (kernels.flop.by_precision[i] == 0) continue;
      tensor = tensor || report.precisions[i].starts_with("tensor_");
      if (report.precisions[i] == "tensor_tf32") tf32 = i;
    }
    if (tf32 < report.precisions.size())
      add(tf32, kernels);
    else if (!tensor && product && kernels.flop.by_precision[kFp32] > 0)
      add(kFp32, kernels);
  }
  return slow;
}

}  // namespace

std::string advice_on(const LostRow& row, const Report& report) {
  const LostReport& lost = report.lost;
  const uint64_t ns = ns_of(lost.ns, row);
  using enum LostLine;
  switch (row.last) {
    case kIdleStartEnd:
    case kProfiler:
      return "Record longer: it is of the start.";
    case kIdleCopies:
      return copies_advice(report);
    case kIdleHostLate:
      return host_late_advice(report);
    case kIdleQueued:
      return "Kernels were called for while others ran, and began later: look for what they wait "
             "for, such as events.";
    case kIdleBetweenSteps:
      return "No kernel runs for " + to_human_time(ns) +
             " between steps: look at the loader (workers, pinned memory) and at what the loop "
             "waits for.";
    case kIdleLongGaps:
      return longest_gap_advice(report);
    case kIdleShortGaps:
      return short_gaps_advice(report);
    case kCommunication:
      return to_human_time(ns) + " of " + to_human_time(u128{ns} + lost.hidden_ns) +
             " is not hidden: overlap or prefetch. Waiting for other ranks is in it.";
    case kUncounted:
      return "See --sections coverage.";
    case kInteger:
      return "Their operations are no FLOP: see --sections integer_operations.";
    case kOtherBelowRoof:
      return kernels_advice(report, false);
    case kMatrixBelowRoof:
      return kernels_advice(report, true);
    case kRecompute:
      return "It takes " + lost_share_words(lost, lost_phase_ns(lost, "recompute")) +
             " % of the time: checkpoint less, if memory allows.";
    case kPadding: {
      const Padding padding = padding_of(report);
      return padding.evidence.empty()
                 ? "Sizes that the tiles do not divide: see --sections operators."
                 : padding.words();
    }
    default:
      return "";
  }
}

namespace {

// A remedy: when it is said, and what it would give back at the most.
struct Remedy {
  const char* line;
  const char* subject;
  const char* condition;
  const char* page;
  // Nothing where there is no evidence. Null: the line's time.
  Figure (*gain_ns)(const Report&) = nullptr;
};

// With the gaps before its kernels.
Figure recompute_ns(const Report& report) {
  uint64_t ns = 0;
  for (const auto& part : report.lost.parts)
    if (part.phase == "recompute")
      add_saturating(ns, LostLines::range(0, kLostLines).ns_of(part.ns));
  return Figure::exact(u128{ns});
}
Figure whole_ns(double ns) { return ns >= 1 ? Figure::exact(static_cast<u128>(ns)) : Figure(); }
Figure padding_ns(const Report& report) { return whole_ns(padding_of(report).ns); }
Figure precision_ns(const Report& report) {
  if (report.lost.fp32_marks != Mark::kNone) return {};
  const SlowProducts slow = slow_products(report);
  return whole_ns(slow.ns - slow.at_bf16_ns);
}

constexpr const char* kOfLine = "the line is known; the gain is its time";
constexpr const char* kOfHost = "the line is known (--host-times); the gain is its time";
constexpr const char* kWhatCouldBeDone = "docs/figures.md#what-could-be-done";
constexpr const char* kOfPrecision = "precision";  // no line of the ledger
// clang-format off
constexpr Remedy kRemedies[] = {
    {"idle_copies", "copies alone", kOfLine, kWhatCouldBeDone},
    {"idle_host_late", "host late", kOfHost, kWhatCouldBeDone},
    {"idle_queued", "launched in time", kOfHost, kWhatCouldBeDone},
    {"idle_between_steps", "between steps", kOfLine, kWhatCouldBeDone},
    {"idle_long_gaps", "long gaps", kOfLine, kWhatCouldBeDone},
    {"idle_short_gaps", "short gaps", kOfLine, kWhatCouldBeDone},
    {"communication", "communication alone", kOfLine, "docs/figures.md#communication-by-rank"},
    {"other", "other kernels below peak", kOfLine, "docs/figures.md#roofline"},
    {"matrix", "products below peak", kOfLine, "docs/figures.md#roofline"},
    {"recompute", "recomputation",
     "the line is known; the gain is the phase's time, and the gaps before its kernels",
     kWhatCouldBeDone, recompute_ns},
    {"padding", "padding",
     "the line is known, and sizes and tiles explain it; the gain is that part of the time of "
     "these products", "docs/phases-and-operators.md#causes", padding_ns},
    {kOfPrecision, "precision",
     "FLOP of products in fp32 or tf32 are known, and bf16 has a higher peak; the gain is their "
     "time beyond that of these FLOP at that peak", "docs/figures.md#peaks", precision_ns},
};
// clang-format on

// Null: it is of no line.
const LostRow* row_of_remedy(const Remedy& remedy) {
  const auto* const found =
      std::ranges::find(kLostRows, std::string_view(remedy.line), &LostRow::key);
  return found == kLostRows.end() ? nullptr : &*found;
}

Figure gain_of(const Remedy& remedy, const Report& report) {
  const LostReport& lost = report.lost;
  const LostRow* const row = row_of_remedy(remedy);
  if (row == nullptr) return lost.of_time() ? Figure() : remedy.gain_ns(report);
  if (!lost.tells(row->last)) return {};
  const Figure line = lost.sum(row->lines());
  if (has(line.marks(), Mark::kAtLeast) || has(line.marks(), Mark::kAtMost)) return {};
  if (line.number().value_or(0) == 0) return {};
  return remedy.gain_ns != nullptr ? remedy.gain_ns(report) : line;
}

std::string precision_words(const Report& report) {
  const SlowProducts slow = slow_products(report);
  return "Products in " + slow.formats + " take " +
         lost_share_words(report.lost, static_cast<uint64_t>(slow.ns)) +
         " % of the time, and bf16 has " + fixed(slow.times, 1) +
         " times that peak: use mixed precision.";
}

}  // namespace

std::string Advice::sentence(const LostReport& lost) const {
  return share_text(share(lost)) + " to gain: " + subject + ". " + words;
}

std::vector<Advice> advice(const Report& report) {
  const LostReport& lost = report.lost;
  if (!lost.known() || lost.capacity_ns == 0 || report.simulated.value_or(true)) return {};
  std::vector<Advice> all;
  for (const Remedy& remedy : kRemedies) {
    const Figure gain = gain_of(remedy, report);
    if (gain.number().value_or(0) < kLeastGain * static_cast<double>(lost.capacity_ns)) continue;
    const LostRow* const row = row_of_remedy(remedy);
    std::string words = row != nullptr ? advice_on(*row, report) : precision_words(report);
    if (words.empty()) continue;
    all.push_back({remedy.line, remedy.subject, std::move(words), gain.with(Mark::kAtMost),
                   remedy.condition, remedy.page});
  }
  std::ranges::stable_sort(all, std::greater<>(),
                           [](const Advice& one) { return one.gain_ns.number().value_or(0); });
  if (all.size() > kMostAdvice) all.resize(kMostAdvice);
  return all;
}

}  // namespace flopinj::reduce
