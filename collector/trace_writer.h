// Encodes packets and hands them to the sink: framing, check sums, sequence numbers, definitions
// before uses.
//
// Encodes with protozero; field numbers come from flop_trace.proto through the generated
// flop_trace_fields.h. Used by the writer thread alone. After the sink failed, every call does
// nothing and ok() is false.
#pragma once
#include <collector/launch_columns.h>
#include <collector/ledger.h>
#include <collector/metric_plan.h>
#include <collector/model.h>
#include <collector/range_paths.h>
#include <collector/signature_table.h>
#include <collector/sink.h>

#include <cstdint>
#include <span>
#include <string>

namespace flopinj {

inline constexpr uint32_t kFormatMajor = 1;
inline constexpr uint32_t kFormatMinor = 0;
inline constexpr size_t kMaxPacketBytes = 4U << 20;

struct StreamDefinition {
  StreamId id;
  DeviceId device;
  uint32_t context = 0, stream = 0;
};
struct ThreadDefinition {
  ThreadId id;
  uint32_t os_tid = 0;
  StringId name;
};
struct Definitions {
  std::vector<StringDefinition> strings;
  std::vector<const KernelFunction*>
      functions;  // their names are interned by the caller: see function_names
  std::vector<StringId> function_names;  // parallel to functions
  std::vector<const Signature*> signatures;
  std::vector<PathDefinition> paths;
  std::vector<StreamDefinition> streams;
  std::vector<ThreadDefinition> threads;
};

struct SampleBatch {
  GroupId group;
  uint32_t window = 0;
  std::vector<SignatureId> signatures;
  std::vector<PathId> paths;
  std::vector<double> values;  // signatures.size() x metrics, sample by sample
};

class TraceWriter {
 public:
  explicit TraceWriter(std::unique_ptr<Sink>);

  void header(const ProcessInfo&, Level);
  void device(DeviceId, const DeviceInfo&);
  void metric_group(GroupId, DeviceId, const MetricGroupPlan&);
  void definitions(const Definitions&);  // nothing is written where all lists are empty
  void launches(const LaunchColumns&);
  void tallies(std::span<const TallyRow>, uint64_t begin_ns, uint64_t end_ns);
  void samples(const SampleBatch&);
  void ledger(const LedgerSnapshot&);
  void self_overhead(const OverheadSnapshot&);
  void diagnostic(Severity, std::string_view code, std::string_view message, uint64_t time_ns);
  void end(EndReason, uint64_t time_ns);
  bool close();

  bool ok() const { return ok_; }
  const Sink& sink() const { return *sink_; }
  uint64_t packets() const { return sequence_; }

 private:
  template <class Fill>
  void packet(Fill&& fill);

  std::unique_ptr<Sink> sink_;
  std::string body_, framed_;
  uint32_t sequence_ = 0;
  bool ok_ = true;
};

}  // namespace flopinj
