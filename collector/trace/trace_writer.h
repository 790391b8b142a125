// Encodes packets and hands them to the sink: framing, check sums, sequence numbers, definitions
// before uses.
//
// Encodes with protozero; field numbers come from flop_trace.proto through the generated
// flop_trace_fields.h. Packets are gathered until flush(), which hands them to the sink in one
// piece; past kMaxGroupBytes that happens by itself. No packet is larger than kMaxPacketBytes: long
// lists are spread over several, single values that are too long are cut. Used only by the writer
// thread. After the sink failed, every call does nothing and ok() is false. Throws only
// std::bad_alloc.
#pragma once
#include <collector/base/assert.h>
#include <collector/identity/copy_time.h>
#include <collector/identity/recording.h>
#include <collector/identity/signature_table.h>
#include <collector/ranges/range_numbers.h>
#include <collector/ranges/steps.h>
#include <collector/schedule/metric_plan.h>
#include <collector/trace/launch_columns.h>
#include <collector/trace/launch_patterns.h>
#include <collector/trace/ledger.h>
#include <collector/trace/sample_batch.h>
#include <collector/trace/sink/sink.h>
#include <collector/trace/trace_definitions.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

inline constexpr uint32_t kFormatMajor = 1;
inline constexpr uint32_t kFormatMinor = 16;
inline constexpr size_t kMaxPacketBytes = 4U << 20;
inline constexpr size_t kMaxGroupBytes = 8U << 20;
inline constexpr size_t kMaxTallyRows = 32'768;  // of about 90 bytes at most

// A message that is written again and again, each time in place of the time before last: see
// Revised in the format. Where the sink cannot rewrite, every revision is appended.
class RevisedMessage {
 public:
  static constexpr uint32_t kLedger = 1, kOverhead = 2, kSteps = 3;  // keys
  static constexpr uint32_t kNumbers = 4, kEnergy = 5, kCopies = 6, kFirstTally = 7;
  explicit RevisedMessage(uint32_t key) : key_(key) {}

 private:
  friend class TraceWriter;
  struct Place {
    uint64_t offset = 0;
    uint32_t sequence = 0;
    uint64_t revision = 0;  // the newest one there
  };
  uint32_t key_;
  uint64_t revision_ = 0;
  size_t room_ = 0;  // bytes of the message in each of its places
  std::vector<Place> places_;
};

struct StepSums;

// In which a device copied.
struct CopyInterval {
  uint64_t start_ns = 0, end_ns = 0;
};
// A row of CopySums of the format.
struct CopySum {
  DeviceId device;
  CopyKind kind = CopyKind::kOther;
  uint64_t copies = 0, bytes = 0, pageable_bytes = 0, total_ns = 0;
};

class TraceWriter {
 public:
  explicit TraceWriter(std::unique_ptr<Sink>);

  void header(const ProcessInfo&, Level);
  void device(DeviceId, const DeviceInfo&);
  void metric_group(GroupId, DeviceId, const MetricGroupPlan&);
  void definitions(const Definitions&);  // nothing is written where all lists are empty
  // Nothing where it is empty. Times of calls may be off by `clock_error_ns`.
  void launches(LaunchColumns&, uint64_t clock_error_ns = 0);
  void tallies(std::span<const TallyRow>, uint64_t begin_ns, uint64_t end_ns);  // likewise
  // Sums since begin_ns that replace those written under this key before; at most kMaxTallyRows.
  void tally(RevisedMessage&, std::span<const TallyRow>, uint64_t begin_ns, uint64_t end_ns);
  void steps(std::span<const Step>);  // nothing where there are none
  void steps(RevisedMessage&, const StepSums&);
  void numbers(std::span<const RangeNumber>);
  void numbers(RevisedMessage&, std::span<const RangeNumber>);
  void samples(const SampleBatch&);  // nothing where values are no multiple of the samples
  void ledger(const LedgerSnapshot&);
  void ledger(RevisedMessage&, const LedgerSnapshot&);
  void self_overhead(const OverheadSnapshot&);
  void self_overhead(RevisedMessage&, const OverheadSnapshot&);
  void energy(std::span<const DeviceEnergy>);
  void energy(RevisedMessage&, std::span<const DeviceEnergy>);
  // In order, none of which overlap; nothing where there are none.
  void copies(DeviceId, std::span<const CopyInterval>);
  void copy_sums(std::span<const CopySum>);
  void copy_sums(RevisedMessage&, std::span<const CopySum>);
  void diagnostic(const Diagnostic&);
  void end(EndReason, uint64_t time_ns);
  // After the sink has failed, once: an error and the end, in place of what could not be written,
  // where the sink still has room for so much. The recording ends at `until_ns`.
  void last_words(const Diagnostic& why, uint64_t until_ns);
  bool flush();  // ok()
  bool close();  // flushes, then closes the sink; ok()

  bool ok() const { return ok_; }
  const Sink& sink() const { return *sink_; }
  uint64_t packets() const { return sequence_; }
  // Of all packets so far, those not flushed included; the trace's size where nothing was
  // rewritten.
  uint64_t bytes() const { return bytes_ + rewritten_bytes_; }

 private:
  template <class Fill>
  void packet(Fill&& fill);
  template <class Fill>
  void revise(RevisedMessage&, size_t room, Fill&& fill);
  void patterns(uint32_t from_row);

  void remember_end();

  struct End {
    uint64_t offset;
    uint32_t packets;  // before it
  };
  struct Rewrite {
    uint64_t offset;
    std::string framed;
  };

  std::unique_ptr<Sink> sink_;
  std::string body_, framed_, revised_;
  LaunchPatterns patterns_;
  std::vector<LaunchPatterns::Run> pattern_runs_;
  std::vector<Rewrite> rewrites_;  // to be done once framed_ is written
  uint32_t sequence_ = 0;
  uint64_t bytes_ = 0;    // appended
  std::deque<End> ends_;  // of the last groups of packets that the sink has, the oldest first
  uint64_t rewritten_bytes_ = 0;
  bool ok_ = true;
  OneThread thread_;
};

}  // namespace flopinj
