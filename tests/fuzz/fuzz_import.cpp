// A file of torch.profiler's, whole or in the pieces in which a pipe gives it: its events make time
// lines, or it is refused. Or lines of Nsight Compute's, whose counters are joined with the same
// launches. No input may crash it, and pieces change nothing.
#include <import/join_counters.h>
#include <import/json_events.h>
#include <import/nsight_compute.h>
#include <import/torch_profiler.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>

namespace {

using namespace flopinj::import;

struct Read {
  bool cut = false;
  std::string error, refused;
  size_t ranges = 0, calls = 0, kernels = 0, copies = 0, texts = 0;
  bool operator==(const Read&) const = default;
};

Read read(std::string_view bytes, size_t piece) {
  Timeline timeline;
  TorchProfiler profiler(timeline);
  JsonEventReader reader;
  reader.read = [&](char* to, size_t size) {
    const size_t count = bytes.copy(to, std::min(size, piece));
    bytes.remove_prefix(count);
    return static_cast<ssize_t>(count);
  };
  reader.event = [&](std::string_view event) { profiler.event(event); };
  reader.member = [&](std::string_view name, std::string_view value) {
    profiler.member(name, value);
  };
  const JsonEventsResult result = read_json_events(reader);
  Read done;
  done.error = result.error;
  done.cut = result.cut;
  done.refused = profiler.finish();
  done.ranges = timeline.ranges.size();
  done.calls = timeline.calls.size();
  done.kernels = timeline.kernels.size();
  done.copies = timeline.copies.size();
  done.texts = timeline.texts.size();
  return done;
}

std::string read_lines(std::string_view bytes, std::deque<Timeline>& processes) {
  NsightCompute profiler(processes);
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    profiler.line(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return profiler.finish();
}

// Every launch has its own counters again.
void check_counters(std::string_view bytes) {
  std::deque<Timeline> counters, launches;
  if (!read_lines(bytes, counters).empty()) return;
  read_lines(bytes, launches);
  Timeline& recording = launches.front();
  recording.counted.clear();
  if (!join_counters(counters.front(), recording).empty()) std::abort();
  if (recording.counted.size() != recording.kernels.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (is_nsight_compute(bytes)) {
    check_counters(bytes);
    return 0;
  }
  if (read(bytes, SIZE_MAX) != read(bytes, 7)) std::abort();
  return 0;
}
