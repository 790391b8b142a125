// What could be done about where the peak went, and how much of the devices' time it would give
// back at the most.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace flopinj::reduce {

// Gains are upper bounds, each of one remedy by itself: they do not add up.
struct Advice {
  std::string line;  // of lost; "precision" for products in a slower format than the device has
  std::string subject, words;  // "host late", and a sentence with what is known of it
  Figure gain_ns;              // device time, "<="
  const char* condition;       // when it is said, and what the gain is
  const char* page;            // of the documentation

  Figure share(const LostReport& lost) const { return gain_ns / Figure::exact(lost.capacity_ns); }
  // "<= 19.7 % to gain: recomputation. It takes ..."
  std::string sentence(const LostReport& lost) const;
};

inline constexpr double kLeastGain = 0.03;  // of device time: less is not worth a sentence
inline constexpr size_t kMostAdvice = 3;

// The largest gains first, at most kMostAdvice. None of a line that is not known or is a bound, nor
// of a simulated GPU, whose times are no reason to change a program.
std::vector<Advice> advice(const Report& report);

// What is to be done about one line, however small it is; empty where nothing is known.
std::string advice_on(const LostRow& row, const Report& report);

// A share of the ledger's time as it is printed, without its unit: "12.3".
std::string lost_share_words(const LostReport& lost, uint64_t ns);
// GPU time of a phase in the ledger.
uint64_t lost_phase_ns(const LostReport& lost, std::string_view phase);

}  // namespace flopinj::reduce
