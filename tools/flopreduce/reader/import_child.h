// Recordings of other profilers, which flopimport makes traces of: a program of its own beside this
// one, so that hostile files are read there.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>

namespace flopinj::reduce {

// Whether a file that begins so may be one: JSON, an SQLite database, or CSV of Nsight Compute.
bool may_be_foreign(std::string_view first_bytes);
// Whether only another profiler names its files so.
bool has_foreign_name(std::string_view name);

// Runs flopimport on a file.
class ImportChild {
 public:
  // `counters`: a file of Nsight Compute with the counters of its launches; empty: none. error()
  // says where it cannot be run.
  ImportChild(const std::string& file, const std::string& counters);
  ~ImportChild();
  ImportChild(const ImportChild&) = delete;
  ImportChild& operator=(const ImportChild&) = delete;

  int trace() const { return trace_; }  // a pipe, with the trace; -1: there is none
  // Waits for its end, once the trace was read. Whether it is whole; error() says why not.
  bool finish();
  const std::string& error() const { return error_; }  // one line, with the file's name

 private:
  pid_t child_ = -1;
  int trace_ = -1, words_ = -1;
  std::string file_, error_;
};

}  // namespace flopinj::reduce
