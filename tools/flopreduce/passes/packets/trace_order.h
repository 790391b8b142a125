// The order of recorded processes in every report and summary, whatever order the inputs come in:
// by rank, those without one last; then by host, process and session.
#pragma once
#include <cstdint>
#include <string>
#include <tuple>

#include "flop_trace.pb.h"

namespace flopinj::reduce {

using TraceOrder = std::tuple<bool, bool, int32_t, std::string, uint32_t, uint64_t>;

// `header` is null where it is lost.
inline TraceOrder trace_order(const trace::Header* header) {
  if (header == nullptr) return {true, true, 0, {}, 0, 0};
  return {false,         header->rank() < 0,  header->rank(), header->hostname(),
          header->pid(), header->session_id()};
}

}  // namespace flopinj::reduce
