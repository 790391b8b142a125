#include <decompress.h>
#include <fcntl.h>
#include <import/import.h>
#include <import/join_counters.h>
#include <import/json_events.h>
#include <import/json_text.h>
#include <import/nsight_compute.h>
#include <import/nsight_systems.h>
#include <import/play.h>
#include <import/torch_profiler.h>
#include <own_formats.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <new>
#include <utility>

namespace flopinj::import {
namespace {

// A file's bytes as they were before compression, and a hash of all that were read: a file that is
// given twice is the same recording.
class Bytes {
 public:
  explicit Bytes(int fd) : stream_(fd), hash_(XXH3_createState()) {
    if (hash_ == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(hash_);
  }
  ~Bytes() { XXH3_freeState(hash_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  // The first bytes, which read() gives again.
  std::string_view first() {
    while (filled_ < first_.size()) {
      const ssize_t count = stream_.read(first_.data() + filled_, first_.size() - filled_);
      if (count <= 0) break;
      filled_ += static_cast<size_t>(count);
    }
    return {first_.data(), filled_};
  }
  ssize_t read(char* to, size_t size) {
    ssize_t count = 0;
    if (at_ < filled_) {
      count = static_cast<ssize_t>(std::min(size, filled_ - at_));
      std::memcpy(to, first_.data() + at_, static_cast<size_t>(count));
      at_ += static_cast<size_t>(count);
    } else {
      count = stream_.read(to, size);
    }
    if (count > 0) XXH3_64bits_update(hash_, to, static_cast<size_t>(count));
    return count;
  }
  uint64_t hash_of_all() {
    std::array<char, 1U << 16> rest;
    while (read(rest.data(), rest.size()) > 0) {
    }
    return XXH3_64bits_digest(hash_);
  }
  bool damaged() const { return stream_.damaged(); }

 private:
  DecompressedStream stream_;
  XXH3_state_t* hash_;
  std::array<char, 16U << 10> first_{};
  size_t filled_ = 0, at_ = 0;
};

struct OpenFile {
  explicit OpenFile(const std::string& name)
      : fd(name == "-" ? ::dup(STDIN_FILENO) : ::open(name.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd;
};

// What each reader makes of a file: time lines, or an error.
std::string read_torch_profiler(Bytes& bytes, std::deque<Timeline>& processes) {
  Timeline& timeline = processes.emplace_back();
  TorchProfiler profiler(timeline);
  JsonEventReader reader;
  reader.read = [&](char* to, size_t size) { return bytes.read(to, size); };
  reader.event = [&](std::string_view event) { profiler.event(event); };
  reader.member = [&](std::string_view name, std::string_view value) {
    profiler.member(name, value);
  };
  const JsonEventsResult result = read_json_events(reader);
  if (!result.error.empty()) return result.error;
  if (std::string error = profiler.finish(); !error.empty()) return error;
  if (result.cut || bytes.damaged())
    timeline.warn("import.cut",
                  "the file ends before its list of events does: what came before is used");
  return {};
}

// A longer line is none of ncu's.
constexpr size_t kLongestLine = 4U << 20;

std::string read_nsight_compute(Bytes& bytes, std::deque<Timeline>& processes) {
  NsightCompute profiler(processes);
  std::string text;
  std::array<char, 1U << 16> piece;
  bool more = true;
  while (more) {
    const ssize_t count = bytes.read(piece.data(), piece.size());
    if (count < 0) return std::strerror(errno);
    more = count > 0;
    text.append(piece.data(), static_cast<size_t>(count));
    size_t at = 0;
    for (size_t end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1)
      profiler.line(std::string_view(text).substr(at, end - at));
    text.erase(0, at);
    if (text.size() > kLongestLine) return "it has a line of more than 4 MiB";
  }
  if (!text.empty()) profiler.line(text);
  std::string error = profiler.finish();
  if (error.empty() && bytes.damaged())
    processes.front().warn("import.cut", "the file is cut off: what came before is used");
  return error;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

constexpr const char* kNsightCompute = "Nsight Compute";

std::string read_any(const std::string& file, Bytes& bytes, std::deque<Timeline>& processes,
                     std::string& profiler) {
  if (const OwnFormat* const own = own_format(file); own != nullptr)
    return std::string(own->remedy);
  const std::string_view first = bytes.first();
  struct stat info {};
  if (::stat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return "it is a folder: name the files in it";
  if (first.empty()) return "it is empty: the profiler had not written it yet, or was killed";
  if (first.starts_with("SQLite format 3")) {
    profiler = "Nsight Systems";
    return file == "-" ? "a database has to be a file" : read_nsight_systems(file, processes);
  }
  const char* const begin = skip_json_space(first.data(), first.data() + first.size());
  if (begin != first.data() + first.size() && (*begin == '{' || *begin == '[')) {
    profiler = "torch.profiler";
    return read_torch_profiler(bytes, processes);
  }
  if (is_nsight_compute(first)) {
    profiler = kNsightCompute;
    return read_nsight_compute(bytes, processes);
  }
  return std::string(
             "it is neither JSON of torch.profiler, nor SQLite of nsys export, nor CSV of ncu") +
         (file.ends_with(".pb") || file.ends_with(".sum")
              ? "; flopinj report reads a trace as it is"
              : "");
}

// Gives the processes of a recording the counters of a file, whose hash comes back in `hash`.
std::string add_counters(const std::string& file, std::deque<Timeline>& processes, uint64_t& hash) {
  const auto of_file = [&](const std::string& what) { return file + ": " + what; };
  const OpenFile input(file);
  if (input.fd < 0) return of_file(std::strerror(errno));
  std::deque<Timeline> counters;
  Bytes bytes(input.fd);
  std::string profiler;
  std::string error = read_any(file, bytes, counters, profiler);
  if (!error.empty()) return of_file(error);
  if (profiler != kNsightCompute) return of_file("counters come from ncu's CSV, and it is none");
  if (counters.size() > 1) return of_file("it is of several processes");
  hash = bytes.hash_of_all();
  for (Timeline& timeline : processes)
    if (error = join_counters(counters.front(), timeline); !error.empty()) return of_file(error);
  return {};
}

}  // namespace

Imported import_file(const std::string& file, const ImportOptions& options,
                     const std::function<OpenedSink()>& open) {
  Imported result;
  const OpenFile input(file);
  if (input.fd < 0) {
    result.error = errno == ENOENT ? "no such file: export_chrome_trace() of torch.profiler, nsys "
                                     "export --type sqlite or ncu --csv --page raw writes one"
                                   : std::strerror(errno);
    return result;
  }
  std::deque<Timeline> processes;
  Bytes bytes(input.fd);
  result.error = read_any(file, bytes, processes, result.profiler);
  if (!result.error.empty()) return result;
  uint64_t hash = bytes.hash_of_all();
  if (!options.counters.empty()) {
    uint64_t of_counters = 0;
    result.error = result.profiler == kNsightCompute
                       ? "it has counters itself: --counters gives them to a recording with times"
                       : add_counters(options.counters, processes, of_counters);
    if (!result.error.empty()) return result;
    hash ^= of_counters;
  }
  const OpenedSink opened = open();
  if (!opened.sink) {
    result.error = opened.error;
    return result;
  }
  for (Timeline& timeline : processes) {
    ProcessInfo& process = timeline.process;
    process.session_id = hash + result.processes;
    if (processes.size() > 1) process.run_id = hash;
    process.command_line = {file == "-" ? "standard input" : base_name(file)};
    process.mode = process.counters ? "multiplex" : "timing";
    process.imported_from = result.profiler;
    process.clock_unit_ns = static_cast<uint32_t>(timeline.unit_ns);
    for (auto& [ordinal, device] : timeline.devices)
      if (device.name.empty()) device.name = options.gpu;
    const Played played = play(timeline, *opened.sink);
    ++result.processes;
    result.launches += played.launches;
    result.error = played.error;
    if (!result.error.empty()) return result;
  }
  if (!opened.sink->close()) result.error = opened.sink->error();
  return result;
}

}  // namespace flopinj::import
