// Pass one: everything but launches. Names, signatures, range paths, samples, ledger, overhead,
// diagnostics.
#pragma once
#include <memory>
#include <protozero/data_view.hpp>

#include "reader/damage.h"
#include "reader/packet_reader.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

class DefinitionPass {
 public:
  // `of_patterns`: where damage in launch patterns is counted; null: with the rest.
  explicit DefinitionPass(TraceTables& tables, DamageLog* of_patterns = nullptr)
      : tables_(tables), of_patterns_(of_patterns) {}
  void packet(uint32_t trace, const Packet& packet, DamageLog& damage);
  // Of summaries all training steps one by one, and readings of energy: only the steps' table needs
  // them.
  void read_single_steps() { single_steps_ = true; }
  // Of single steps of summaries: where all recordings together have no more, each is known in
  // every report, as of a trace.
  static constexpr size_t kMostSingleSteps = 1U << 16;
  // After the last packet.
  void end_steps();

 private:
  void interned(const trace::Interned& message);
  void function(const trace::Interned::Function& m);
  void signature(const trace::Interned::Signature& m);
  void range_path(const trace::Interned::RangePath& m);
  void range_numbers(const trace::RangeNumbers& m);
  void copy_sums(trace::CopySums& m);
  void device(const trace::Device& facts);
  void metric_group(const trace::MetricGroup& group);
  void counter_samples(protozero::data_view body);
  void ledger(trace::Ledger& ledger);
  void diagnostic(trace::Diagnostic& diagnostic);

  void define(IdMap& ids, uint32_t id, uint32_t index);
  // The name of a string id; the empty name for 0; counted as damage when undefined.
  uint32_t name_of(uint32_t string_id);
  uint32_t intern_name(std::string_view name);

  TraceTables& tables_;
  DamageLog* const of_patterns_;
  TraceState* trace_ = nullptr;  // of the packet at hand
  uint32_t trace_index_ = 0;
  DamageLog* damage_ = nullptr;
  size_t metric_names_ = 0;
  // Packets of definitions have many small messages in them.
  static constexpr size_t kArenaBlock = 32U << 10;
  std::unique_ptr<char[]> arena_block_ = std::make_unique_for_overwrite<char[]>(kArenaBlock);
  bool single_steps_ = false;
  size_t steps_in_summaries_ = 0;
};

}  // namespace flopinj::reduce
