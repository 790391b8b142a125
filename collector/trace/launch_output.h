// Launches on their way into the trace: in columns by thread and stream (level launches), or summed
// up in a tally that is written again and again (level tally). Used by the writer thread.
#pragma once
#include <collector/identity/recording.h>
#include <collector/trace/launch_columns.h>
#include <collector/trace/tally.h>
#include <collector/trace/trace_writer.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flopinj {

class LaunchOutput {
 public:
  using Now = std::function<uint64_t()>;  // ns

  // `writer` must outlive the output. `now` is the trace's clock, `real_now` paces what is written.
  LaunchOutput(TraceWriter& writer, Level level, Now now, Now real_now);

  void add(size_t device_slot, ThreadId, StreamId, const TimedLaunch&);
  // The time of a launch that is written already.
  void add(const TallyRow&);
  // Columns are written whole; the tally once its period has passed, or where `everything` is.
  void write(bool everything);
  // How far the times of the program's calls may be off.
  void clock_error(uint64_t ns) { clock_error_ns_ = ns; }
  void clear();  // what is not written is forgotten

  uint64_t began_ns() const { return began_ns_; }
  uint64_t began_real_ns() const { return began_real_ns_; }
  // Launches in packets, by device slot; the last ones have none where it is shorter.
  const std::vector<uint64_t>& recorded() const { return recorded_; }
  // Whether packets with launches were written since the last call.
  bool take_written() { return std::exchange(written_, false); }

 private:
  void write_columns();
  void write_tally(bool everything);
  void write_late_times(uint64_t since_ns);
  void write_blocks();
  void make_room_in_tally();

  TraceWriter& writer_;
  const Level level_;
  const Now now_, real_now_;
  const uint64_t began_ns_, began_real_ns_;
  std::unordered_map<uint64_t, LaunchColumns> columns_;  // by thread and stream
  Tally tally_;
  uint64_t tally_written_ns_, tally_written_real_ns_;
  // Level tally: one message per block of the tally.
  std::vector<RevisedMessage> tally_messages_;
  uint32_t next_key_ = RevisedMessage::kFirstTally;
  std::vector<uint64_t> added_, recorded_;
  bool written_ = false;
  uint64_t clock_error_ns_ = 0;
};

}  // namespace flopinj
