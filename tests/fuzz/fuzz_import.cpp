// A file of torch.profiler's, whole or in the pieces in which a pipe gives it: its events make time
// lines, or it is refused. No input may crash it, and pieces change nothing.
#include <import/json_events.h>
#include <import/torch_profiler.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace flopinj::import;

struct Read {
  bool used = false, cut = false;
  std::string error;
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
  done.used = profiler.finish();
  done.ranges = timeline.ranges.size();
  done.calls = timeline.calls.size();
  done.kernels = timeline.kernels.size();
  done.copies = timeline.copies.size();
  done.texts = timeline.texts.size();
  return done;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (read(bytes, SIZE_MAX) != read(bytes, 7)) std::abort();
  return 0;
}
