// Feeds any bytes to the readers, without a report: framing, routing, definitions, revisions, every
// launch, tally and group of sequence numbers. Built by the preset fuzz-fast it takes over 20,000
// inputs a second of CPU time. It checks that the readers agree: batches are the same whether they
// are found by their form or by their check sums, and each way to read a batch visits all launches.
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crc32c.h"
#include "flop_trace_fields.h"
#include "passes/definitions.h"
#include "passes/packets/revisions.h"
#include "passes/router.h"
#include "passes/sequence/sequence_groups.h"
#include "reader/launch_batch.h"
#include "reader/message.h"
#include "reader/packet_reader.h"
#include "reader/pattern_calls.h"
#include "reader/pattern_table.h"
#include "reader/tally_batch.h"
#include "trace_mutations.h"

namespace {

using namespace flopinj::reduce;
using Field = flopinj::trace_fields::TracePacketField;

// An input of libFuzzer's and traces that are made of it, always the same ones: what the fuzzer
// does for each of its inputs takes longer than to read one.
constexpr int kInputsOfOne = 16;

void check(bool holds) {
  if (!holds) std::abort();
}

void read_launches(std::string_view body, const PatternCalls& patterns, SequenceGroups& groups,
                   DamageLog& damage) {
  LaunchBatchReader batch;
  if (!batch.open({body.data(), body.size() - kReadAhead}, damage)) return;
  uint64_t numbered = 0, alike = 0;
  std::vector<LaunchCall> room;
  for (const LaunchCall& call : batch.calls(patterns, room)) numbered += call.launches;
  batch.for_each_stretch([&](const auto& stretch) { alike += stretch.end - stretch.begin; });
  check(numbered == batch.size() && alike == batch.size());
  groups.launches(batch, patterns, damage);
}

void read_tallies(const Packet& packet, DamageLog& damage) {
  TallyBatchReader batch;
  TallyRow row;
  if (!batch.open(packet.body, damage)) return;
  while (batch.next(row)) {
  }
}

void read_patterns(const Packet& packet, PatternTable& patterns, DamageLog& damage) {
  flopinj::trace::Interned message;
  if (!parse_message(message, packet.body)) return;
  for (const auto& pattern : message.patterns()) patterns.add(pattern, damage);
}

// The packets that are found where batches are taken by their form, by their places; nothing where
// one of them is damaged: who does not trust its form may find packets inside of it.
std::optional<std::vector<uint64_t>> places_by_form(Input& input) {
  DamageLog damage;
  PacketReader reader(input, damage, Batches::kRead);
  std::vector<uint64_t> found;
  Packet packet;
  while (reader.next(packet)) {
    if (packet.damaged) return std::nullopt;
    found.push_back(packet.offset);
  }
  return found;
}

}  // namespace

// Tables of ids are large for some inputs: their memory is kept for the next one.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  return 0;
}

namespace {

void read(std::string_view bytes) {
  const auto input = Input::from_memory("fuzz", bytes.data(), bytes.size());
  TraceTables tables;
  Router router(tables);
  DefinitionPass definitions(tables);
  Revisions revisions;
  SequenceGroups groups;
  DamageLog damage;
  std::vector<uint64_t> found;
  std::map<uint32_t, std::vector<std::string>> batches;  // by trace: read when all patterns are
  for_each_packet(*input, 0, router, Batches::kCheck, damage, [&](uint32_t trace, Packet& packet) {
    found.push_back(packet.offset);
    if (trace == kNoIndex || !revisions.newest_so_far(trace, 0, packet, damage)) return;
    PatternTable& patterns = tables.traces[trace].patterns;
    switch (static_cast<Field>(packet.body_field)) {
      case Field::launch_batch:
        batches[trace].emplace_back(packet.body.data(), packet.body.size() + kReadAhead);
        return;
      case Field::tally_batch:
        return read_tallies(packet, damage);
      case Field::sequence_groups: {
        flopinj::trace::SequenceGroups message;
        if (parse_message(message, packet.body)) groups.add(message, damage);
        return;
      }
      case Field::interned:
        read_patterns(packet, patterns, damage);
        break;
      default:
        break;
    }
    definitions.packet(trace, packet, damage);
  });
  for (const auto& [trace, of_trace] : batches) {
    SequenceGroups groups_of_launches;
    const PatternCalls patterns(tables.traces[trace].patterns);
    for (const auto& body : of_trace) read_launches(body, patterns, groups_of_launches, damage);
    groups_of_launches.take(damage);
  }
  groups.take(damage);
  check(places_by_form(*input).value_or(found) == found);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  flopinj::test::TraceRandom random(flopinj::crc32c(data, size) | 1U);
  std::string variant(bytes);
  for (int i = 1; i < kInputsOfOne; ++i) {
    variant = flopinj::test::changed_trace(i % 4 == 1 ? bytes : variant, size + 64, random);
    read(variant);
  }
  return 0;
}
