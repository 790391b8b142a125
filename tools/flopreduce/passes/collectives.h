// The same collectives on several ranks, compared by their durations.
//
// A collective ends on all of its ranks at once and begins when each of them comes to it, so the
// rank that came last has the shortest time. Clocks of different hosts are not compared: the n-th
// launch of a kernel in a step is the same collective on all ranks, where they launched it equally
// often in each step, and where the times from each of its ends to the next agree. These times
// differ between communicators: only ranks of one communicator are compared.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "report/communication.h"

namespace flopinj::reduce {

class Collectives {
 public:
  using Waiting = CommunicationReport::Waiting;
  // `run`: only devices of one run are compared. `length_ns` 0: not known.
  void add(uint32_t device, uint32_t run, uint32_t kernel, uint32_t step, uint64_t begin_ns,
           uint64_t length_ns);
  // Those of other devices, or of other parts of a trace.
  void add(Collectives&& o);
  // Of the devices whose collectives were found on others, too.
  std::map<uint32_t, Waiting> compare();

 private:
  static constexpr size_t kMost = size_t{1} << 21;
  struct One {
    uint32_t step;
    uint64_t begin_ns, length_ns;
    uint64_t end_ns() const { return begin_ns + length_ns; }
  };
  using Launches = std::vector<One>;  // of a kernel on a device
  static bool agree(const Launches& a, const Launches& b);
  static void compare(const std::map<uint32_t, Launches>& devices,
                      std::map<uint32_t, Waiting>& waiting);
  static void add_up(const std::vector<std::pair<uint32_t, const Launches*>>& devices,
                     std::map<uint32_t, Waiting>& waiting);

  std::map<std::pair<uint32_t, uint32_t>, std::map<uint32_t, Launches>> kernels_;  // run, kernel
  size_t launches_ = 0;
};

}  // namespace flopinj::reduce
