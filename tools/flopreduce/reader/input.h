// Bytes of one trace, readable at any offset and more than once.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

namespace flopinj::reduce {

struct InputError {
  std::string message;  // one line, what to do included
  bool permission = false;
};

// *.pb and *.sum, compressed or not, and *.pt.trace.json of torch.profiler.
bool is_trace_name(const std::string& name);
// For a line that says that a folder has no trace: which folders in it have some. "; 8 folders in
// it have: runs/*"; empty where there is none.
std::string folders_with_traces(const std::string& folder);

// A regular file is read with pread (not mapped: a file cut while it is read would raise SIGBUS). A
// pipe, FIFO, device or standard input ("-") is first copied into an unnamed temporary file, since
// the reducer reads twice; memory stays bounded, and so does the copy of a stream that holds no
// trace. The size is taken at first: a trace that grows meanwhile reads the same in both passes.
//
// A regular file is open up to the end of its first reading, and later while something reads it: a
// job may have more traces than a process may have open files. A compressed one (decompress.h) is
// in a temporary file for so long. What another profiler has recorded (import_child.h) is in one as
// a trace. Small files are read once, as long as there is room for them.
class Input {
 public:
  // Keeps an input open while it lives. Any thread.
  class Reading {
   public:
    explicit Reading(Input& input) : input_(input) { input_.begin_reading(); }
    ~Reading() { input_.end_reading(); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    Input& input_;
  };

  // `counters`: for ImportChild; of a trace it is an error.
  static std::variant<std::unique_ptr<Input>, InputError> open(const std::string& path,
                                                               const std::string& counters = {});
  // For tests and fuzzing. `bytes` is copied.
  static std::unique_ptr<Input> from_memory(std::string name, const void* bytes, size_t size);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  // Reads up to `size` bytes at `offset`; fewer at the end or on a read error, which read_failed()
  // then says; a file that was replaced or removed meanwhile is one. Any thread.
  size_t read_at(uint64_t offset, uint8_t* to, size_t size);
  bool read_failed() const { return failed_; }
  // All of its bytes, and kReadAhead more, where they are in memory; else null.
  const uint8_t* memory() const {
    return in_memory_ ? reinterpret_cast<const uint8_t*>(memory_.data()) : nullptr;
  }
  // What is said of one without a single packet, as far as its first bytes say.
  std::string not_a_trace();
  // A recorder holds its lock on the file. False where that cannot be seen, as of a recorder on
  // another machine.
  bool being_written() const;

 private:
  Input() = default;
  static std::variant<std::unique_ptr<Input>, InputError> import(std::unique_ptr<Input>,
                                                                 const std::string& path,
                                                                 const std::string& counters);
  // Into fd_ and, at first, size_; later up to that size.
  std::optional<InputError> spool(int from, bool again);
  void keep(std::string bytes);
  void begin_reading();
  void end_reading();
  std::string name_;
  std::string memory_;
  bool in_memory_ = false, is_kept_ = false;  // the latter: in kept_bytes
  uint64_t size_ = 0;
  std::atomic<int> fd_{-1};
  std::atomic<bool> failed_{false};
  // Of a regular file, which is opened again: which one it was.
  bool regular_ = false, compressed_ = false;
  uint64_t device_ = 0, inode_ = 0;
  std::mutex mutex_;
  size_t readers_ = 0;
};

// Keeps one input open at a time, for stretches of inputs that are read one after another: a file
// is opened, and decompressed, once for all of its own.
class OpenInput {
 public:
  void at(Input& input) {
    if (input_ == &input) return;
    close();
    reading_.emplace(input);
    input_ = &input;
  }
  void close() {
    reading_.reset();
    input_ = nullptr;
  }

 private:
  Input* input_ = nullptr;
  std::optional<Input::Reading> reading_;
};

}  // namespace flopinj::reduce
