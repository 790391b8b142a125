// What communication costs each device, and which one the others waited for.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flopinj::reduce {

struct CommunicationReport {
  // Of a collective that several ranks took part in each rank has its own time, and the one that
  // came last has the shortest: what the others took longer they waited.
  struct Waiting {
    uint64_t collectives = 0;           // that were compared
    uint64_t ns = 0;                    // that it waited in them
    uint64_t last = 0, awaited_ns = 0;  // that it came last to, and the others waited for it there
  };
  // The place where a device's time exceeds the median of the compared devices most.
  struct Excess {
    std::string phase, range;
    uint64_t ns = 0, idle_ns = 0;  // idle: of it, while no kernel ran
  };
  struct Device {
    size_t trace = 0;                      // Report::traces
    uint32_t device = 0;                   // in that trace
    uint64_t alone_ns = 0, hidden_ns = 0;  // no other kernel ran; another one did
    std::optional<Waiting> waiting = {};
    std::optional<Excess> excess = {};  // of one that was waited for
  };
  std::vector<Device> devices;  // that communicate
};

}  // namespace flopinj::reduce
