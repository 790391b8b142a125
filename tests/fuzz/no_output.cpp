// For fuzzers that have a few seconds: every launch is read, and nothing is shown.
#include "output.h"
#include "passes/launches.h"

namespace flopinj::test {

void show(reduce::Launches& launches) {
  launches.for_each([&](const reduce::TimedLaunch& launch) {
    launches.next_flop(launch);
    return true;
  });
}

void show(const reduce::Report&, std::string_view) {}

}  // namespace flopinj::test
