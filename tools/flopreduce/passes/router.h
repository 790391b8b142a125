// Which process's recording a packet belongs to, the same way in both passes.
#pragma once
#include <cstdint>

#include "model/model.h"
#include "reader/damage.h"
#include "reader/packet_reader.h"

namespace flopinj::reduce {

// The format versions this reader knows.
inline constexpr uint32_t kFormatMajor = 1;

// Files of one session are parts of one trace, and one file may hold several traces: a Header
// changes the current one. Call start() for each input, inputs in the same order in both passes;
// reset() between the passes.
class Router {
 public:
  explicit Router(Model& model) : model_(model) {}
  void reset();
  void start(uint32_t input);
  // The trace of this packet, or kNoIndex for a packet to leave out: seen before, or of an unknown
  // version.
  uint32_t route(const Packet& packet, DamageLog& damage);

 private:
  uint32_t trace_for_header(const Packet& packet, DamageLog& damage);
  uint32_t find_or_add(uint64_t session);
  bool known_elsewhere(const trace::Header& header) const;

  Model& model_;
  uint32_t input_ = 0;
  uint32_t current_ = kNoIndex;
  uint32_t sessions_in_input_ = 0;
  bool refused_ = false;
  bool repeated_ = false;  // inside a recording that another input has
};

}  // namespace flopinj::reduce
