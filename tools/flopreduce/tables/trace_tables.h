// Everything pass one learns from all traces.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "flop_trace.pb.h"
#include "reader/damage.h"
#include "reader/pattern_table.h"
#include "tables/id_map.h"
#include "tables/kernel_code.h"
#include "tables/kernels.h"
#include "tables/names.h"
#include "tables/recorded.h"
#include "tables/samples.h"
#include "tables/steps.h"

namespace flopinj::reduce {

struct MetricGroup {
  uint32_t device = 0;            // TraceTables::devices
  uint32_t name = 0;              // NamePool
  std::vector<uint32_t> metrics;  // NamePool
  bool required = false;
  std::vector<NeededIf> needed_if;
  bool unavailable = false;
  std::optional<uint32_t> instead_of;  // NamePool
};

// A device as one process saw it.
struct Device {
  uint32_t trace = 0;  // TraceTables::traces
  uint32_t id = 0;     // in that trace; 0 for launches whose device is not known
  trace::Device facts;
  uint32_t chip = 0;             // TraceTables::chips: devices of one kind share counters
  uint64_t ledger_launches = 0;  // as the trace's own ledger says
  uint64_t ledger_recorded = 0;
  uint64_t ledger_dropped = 0;
  std::optional<trace::DeviceTimes> times;  // of a recording in a summary
};

// A kernel function of one trace.
struct Function {
  uint32_t name = 0;  // NamePool: mangled
  uint32_t registers_per_thread = 0, static_shared_bytes = 0;
  uint64_t code_hash = 0;  // 0: not known
  KernelCode code;
};

// A number that a range was given, summed up.
struct RangeNumber {
  uint32_t path = 0;  // PathTable
  uint32_t name = 0;  // NamePool
  uint64_t times = 0, total = 0;
};

// One process's recording.
struct TraceState : Recorded {
  uint64_t session = 0;
  std::vector<uint32_t> inputs;  // files it is in, as indices of the reducer's inputs
  bool from_summary = false;     // as its header says
  bool has_summary = false;      // it is a recording in a summary, made of other files
  bool goes_on = false;          // the program was still running when its trace was read
  trace::Summary summary;
  // Whether launches say that they are the first one of a call of an operator.
  bool records_calls() const { return header.calls() && (!has_summary || summary.version() >= 2); }
  DamageLog damage;  // of such a recording; of others it is the file's

  IdMap strings, functions, signatures, paths, streams, threads, groups, devices;
  IdMap stream_numbers;  // of what `streams` gives the device of: CUPTI's, in its context
  std::unordered_set<uint32_t> green_streams;  // ids of `streams`, of green contexts
  PatternTable patterns;
  StepTable steps;
  SkippedSteps skipped_steps;  // whose launches are not read
  std::vector<RangeNumber> numbers;
  std::vector<MetricGroup> group_list;
  std::vector<Function> function_facts;  // what `functions` gives the index of
  uint32_t last_sequence = 0;
  uint32_t device_count = 0;  // of TraceTables::devices

  // Of a range path's id, 0 being no range; kNoIndex where it is not defined.
  uint32_t path(uint64_t id) const {
    if (id == 0) return PathTable::kRoot;
    return id <= UINT32_MAX ? paths.get(static_cast<uint32_t>(id)) : kNoIndex;
  }

  // What is alike in both has memory once.
  void share_with(const TraceState& other);
  // Index of the device with id 0, which TraceTables::join() gives every trace.
  uint32_t unknown_device() const { return devices.get(1); }
  // The stream's, or that one.
  uint32_t device_of(uint32_t stream) const {
    const uint32_t device = streams.get(stream);
    return device != kNoIndex ? device : unknown_device();
  }
};

// Ranges that launches have by what a user's file says of them, instead of those in the trace.
// phases/given_names.h fills it, before phases are decided.
struct GivenPaths {
  std::vector<uint32_t> of_path;  // by PathTable index: what takes its place; empty: nothing does
  std::unordered_map<uint64_t, uint32_t> of_kernel;  // by key(); goes before

  static uint64_t key(uint32_t path, uint32_t kernel_name) {
    return static_cast<uint64_t>(path) << 32 | kernel_name;
  }
  // `kernel_name`: NamePool.
  uint32_t of(uint32_t path, uint32_t kernel_name) const {
    if (of_path.empty()) return path;
    const auto found = of_kernel.find(key(path, kernel_name));
    return found == of_kernel.end() ? of_path[path] : found->second;
  }
};

struct TraceTables {
  NamePool names;
  SignatureTable signatures;
  PathTable paths;
  DeviceSamples samples_by_device;
  std::deque<Device> devices;
  std::deque<TraceState> traces;
  std::unordered_set<uint32_t> never_measured;    // NamePool: kernels that no process measures
  std::unordered_map<uint32_t, KernelCode> code;  // by signature, where something is said of it

  // Null where nothing is said.
  const KernelCode* code_of(uint32_t signature) const {
    const auto found = code.find(signature);
    return found == code.end() ? nullptr : &found->second;
  }

  // Filled by end_trace(), and join() when pass one is over.
  SampleTable samples_by_chip;
  std::vector<std::string> chips;
  std::vector<bool> no_device;           // per chip: nothing says which device it is
  std::vector<RequiredGroups> required;  // per chip: what a FLOP count needs
  GivenPaths given;

  // The ranges that launches of a signature count in: those around them, unless a user's file says
  // otherwise. Both are indices.
  uint32_t path_of(uint32_t path, uint32_t signature) const {
    return given.of(path, signatures[signature].name);
  }

  // One range as "name", or "domain:name" outside NVTX's default domain; at most 256 bytes.
  std::string range_label(uint32_t path) const;
  // The path as one string, "/" between levels, at most 1 KiB.
  std::string path_string(uint32_t path, bool escaped = false) const;

  // The device with this id in a trace, added when it is new. Ids above a limit share device 0.
  uint32_t device_index(uint32_t trace, uint32_t id);
  // To be called when another trace, or none, is read after this one; more of it may come later.
  // Its definitions are kept in little memory.
  void end_trace(uint32_t trace);
  // Gives devices of one kind one chip index, and joins their samples and required groups.
  void join();

 private:
  void give_chips();
  void join_metrics();
  void note_what_was_not_asked();  // RequiredGroups::tensor_not_asked

  std::map<std::string, uint32_t> chip_of_kind_;
  size_t with_chip_ = 0;  // of devices
};

}  // namespace flopinj::reduce
