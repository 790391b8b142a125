// Which process's recording a packet belongs to.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "reader/damage.h"
#include "reader/input.h"
#include "reader/packet_reader.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Recordings that are read of one input: a file of a few MiB must not ask for gigabytes.
inline constexpr uint32_t kMostInSummary = 1U << 17;

// The format versions that are read, and what is said of a file with another one.
inline constexpr uint32_t kFormatMajor = 1;
std::string other_version(uint32_t format_major);

// Whether a summary's header replaces one that is lost: then nothing is known of the process.
inline bool stands_for_lost(const trace::Header& header) {
  return header.summary() && header.pid() == 0 && header.hostname().empty() &&
         header.producer().empty();
}

// Of sessions that are in several inputs as a whole: the input with the summary that counts, or
// nothing where the parts of a trace do.
using ChosenCopies = std::map<uint64_t, std::optional<uint32_t>>;

// Files of one session are parts of one trace, and one file may hold several traces: a Header
// changes the current one. Call start() for each input.
class Router {
 public:
  explicit Router(TraceTables& tables) : tables_(tables) {}  // which are empty
  void start(uint32_t input);
  // Leaves out recordings of the other kind, and counts them.
  void use_only(bool simulated) { simulated_ = simulated; }
  uint64_t left_out() const { return left_out_; }  // of this input
  // Without it the first of several whole copies counts, and copies() has inputs that hold some.
  void use_copies(const ChosenCopies& chosen) { chosen_ = &chosen; }
  const std::set<uint32_t>& copies() const { return copies_; }
  // The trace of this packet, or kNoIndex for a packet to leave out: seen before, or of an unknown
  // version.
  uint32_t route(const Packet& packet, DamageLog& damage);
  // Of the last packet: its trace, even where it is left out because it was seen before, and that
  // trace's last sequence number before it.
  uint32_t current() const { return current_; }
  uint32_t sequence_before() const { return sequence_before_; }

 private:
  uint32_t trace_for_header(const Packet& packet, DamageLog& damage);
  uint32_t find_or_add(uint64_t session);
  bool header_is_lost(const Packet& packet) const;
  bool known_elsewhere(const trace::Header& header);

  TraceTables& tables_;
  std::unordered_map<uint64_t, uint32_t> by_session_;       // trace; without 0
  std::unordered_map<uint64_t, uint32_t> without_session_;  // by input and number in it
  uint32_t input_ = 0;
  uint32_t current_ = kNoIndex;
  uint32_t sequence_before_ = 0;
  uint32_t sessions_in_input_ = 0;
  uint32_t nameless_ = 0;       // recordings of this input whose header is lost
  uint32_t last_in_input_ = 0;  // sequence number of the packet before in it
  bool in_summary_ = false;
  std::optional<bool> simulated_;
  const ChosenCopies* chosen_ = nullptr;
  std::set<uint32_t> copies_;  // inputs
  uint64_t left_out_ = 0;
  bool refused_ = false;
  bool repeated_ = false;  // inside a recording that another input has
};

// Calls visit(trace or kNoIndex, packet) for every packet of an input, which is the router's next.
template <typename Visit>
void for_each_packet(Input& input, uint32_t index, Router& router, Batches batches,
                     DamageLog& damage, Visit&& visit) {
  PacketReader reader(input, damage, batches);
  router.start(index);
  Packet packet;
  while (reader.next(packet)) {
    const uint32_t trace = router.route(packet, damage);
    visit(trace, packet);
  }
  if (input.read_failed()) damage.add(Damage::kTornTail);
}

}  // namespace flopinj::reduce
