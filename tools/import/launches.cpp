#include <import/launches.h>

#include <algorithm>
#include <tuple>

namespace flopinj::import {

std::vector<Launch> launches_in_order(Timeline& t) {
  std::ranges::sort(t.calls, {}, &Call::correlation);
  std::vector<Launch> launches;
  launches.reserve(t.kernels.size());
  for (const Kernel& kernel : t.kernels) {
    const auto call = std::ranges::lower_bound(t.calls, kernel.correlation, {}, &Call::correlation);
    const bool known =
        kernel.correlation != 0 && call != t.calls.end() && call->correlation == kernel.correlation;
    launches.push_back(
        {&kernel, known ? &*call : nullptr, known ? call->start_ns : kernel.start_ns});
  }
  std::ranges::sort(launches, {}, [](const Launch& l) {
    return std::tuple(l.at_ns, l.kernel->start_ns, l.kernel->correlation);
  });
  return launches;
}

}  // namespace flopinj::import
