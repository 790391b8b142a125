// Figures and cells that many tables have.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "report/report.h"
#include "sections/parts/table.h"
#include "support/text.h"

namespace flopinj::reduce {

Figure counted_gpu_time_share(const Report& report);  // of launches with a count
// A part's FLOP of all: marked where launches of the part, or of the rest, have no count.
Figure flop_share(const Work& part, const Work& whole);

Figure time_share(const Work& part, const Work& whole);  // of GPU time
Figure gpu_time_each(const Work& work);                  // mean of a launch
// Over GPU time. Marked ">" where the time is of launches that were slowed by reading counters.
Figure rate_of(const Work& work);       // FLOP/s
Figure bandwidth_of(const Work& work);  // B/s of DRAM
Figure intensity_of(const Work& work);  // FLOP for each byte of DRAM traffic
Figure dram_bytes_of(const Work& work);
// The roof that limits a kernel: "memory", `slowest` (the precision that takes most of the time at
// peak), or "latency" where none does. Nothing where that is not known.
std::optional<std::string> bound_by(const Work& work, const std::string& slowest);
std::optional<std::string> nearer_roof(const Work& work, const std::string& slowest);

// Nothing instead of an empty text; a getter of it.
inline std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}
template <typename F>
auto or_null(F get) {
  return [get](const auto& row) { return text_or_null(std::invoke(get, row)); };
}
// The same of 0.
template <typename F>
auto unless_zero(F get) {
  return [get](const auto& row) {
    const auto value = std::invoke(get, row);
    return value != 0 ? std::optional(value) : std::nullopt;
  };
}
Figure share_figure(u128 part, u128 whole);  // nothing where the whole is 0

// Of a process.
uint64_t number_of(const TraceReport& trace, const Report& report);  // from 0; one of its traces
std::optional<std::string> session_of(const TraceReport& trace);
std::optional<uint32_t> pid_of(const TraceReport& trace);
// A getter of what the row's process has.
template <typename F>
auto of_trace(F get) {
  return [get](const auto& row, const Report& report) {
    return std::invoke(get, report.traces[row.trace]);
  };
}
// False for a format that no launch used: its peak does not matter to the report.
bool executed(const Report& report, std::string_view format);

Figure figure_of(const Cell& cell);  // not known where it is a text

// ">=", ">", "<=", "~" or several; empty for none.
std::string marks_text(Mark marks);
std::string marked_text(Mark marks, const std::string& value);  // ">= 37.1 %"

// "37.1 %", "0.17 %", "<0.001 %": at least two significant digits, and never all or nothing for
// what is not.
std::string percent_text(double share);
// "12.3-24.6 %", of a share that is known to lie between two.
std::string range_text(Mark marks, double least, double most);
std::string share_text(const Figure& share);  // with its marks; "-" where it is not known
std::string share_or_why(const Figure& share);
std::string tokens_words(const StepsReport& steps);  // "10,455 tokens/s"

// "0.1234" with that many decimals.
std::string fixed(double value, int decimals);

}  // namespace flopinj::reduce
