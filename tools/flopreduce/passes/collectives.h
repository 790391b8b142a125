// The same collectives on several ranks, compared by their durations.
//
// A collective ends on all of its ranks at once and begins when each of them comes to it, so the
// rank that came last has the shortest time. Clocks of different hosts are not compared: the n-th
// launch of a kernel in a step is the same collective on all ranks, where they launched it equally
// often in each step, and where the times from each of its ends to the next agree. These times
// differ between communicators: only ranks of one communicator are compared.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "report/communication.h"

namespace flopinj::reduce {

class Collectives {
 public:
  using Waiting = CommunicationReport::Waiting;
  // `length_ns` 0: not known.
  void add(uint32_t device, uint32_t kernel, uint32_t step, uint64_t begin_ns, uint64_t length_ns);
  // Those of other devices, or of other parts of a trace.
  void add(Collectives&& o);
  // Of the devices whose collectives were found on others, too. Only devices of one run are
  // compared.
  std::map<uint32_t, Waiting> compare(const std::function<size_t(uint32_t device)>& run_of);

 private:
  static constexpr size_t kMost = size_t{1} << 21;  // with so many nothing is compared
  struct One {
    uint32_t step;
    uint64_t begin_ns, length_ns;
    uint64_t end_ns() const { return begin_ns + length_ns; }
  };
  using Launches = std::vector<One>;  // of a kernel on a device
  using OfDevices = std::vector<std::pair<uint32_t, const Launches*>>;
  static bool agree(const Launches& a, const Launches& b);
  static void compare(const OfDevices& devices, std::map<uint32_t, Waiting>& waiting);
  static void add_up(const OfDevices& devices, std::map<uint32_t, Waiting>& waiting);

  std::map<uint32_t, std::map<uint32_t, Launches>> kernels_;  // by device
  size_t launches_ = 0;
};

}  // namespace flopinj::reduce
