#include "support/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace flopinj::reduce {
namespace {

constexpr auto kSilentFor = std::chrono::seconds(1);
constexpr auto kPeriod = std::chrono::milliseconds(100);
constexpr size_t kWidth = 40;

}  // namespace

Progress::Progress(uint64_t total, bool wanted)
    : total_(std::max<uint64_t>(1, total)),
      wanted_(wanted && ::isatty(STDERR_FILENO) != 0),
      next_(began_ + kSilentFor) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::add(uint64_t done) {
  const std::lock_guard lock(lock_);
  done_ = std::min(total_, done_ + done);
  const auto now = Clock::now();
  if (!wanted_ || now < next_) return;
  next_ = now + kPeriod;
  shown_ = true;
  const double part = static_cast<double>(done_) / static_cast<double>(total_);
  const auto filled = static_cast<size_t>(part * static_cast<double>(kWidth));
  const double left = std::chrono::duration<double>(now - began_).count() / part * (1 - part);
  std::fprintf(stderr, "\rreading [%s%s] %3.0f %%, %.0f s left\x1b[K",
               std::string(filled, '#').c_str(), std::string(kWidth - filled, ' ').c_str(),
               100 * part, left);
}

}  // namespace flopinj::reduce
