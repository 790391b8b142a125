// The file of --metrics-file, for the textfile collector of Prometheus' node exporter: what the
// library knows of its recording without flopreduce. On the writer's thread.
#pragma once
#include <collector/identity/recording.h>
#include <collector/trace/sink/whole_file.h>

#include <span>
#include <string>
#include <string_view>

namespace flopinj {

class MetricsFile {
 public:
  // Of this process. False, and why, where `pattern` is no name of a file.
  bool open(const std::string& pattern, const ProcessInfo&, std::string& why);
  bool is_open() const { return !file_.name.empty(); }
  // At most once in 5 s. `status`: the answer to a request for it.
  bool is_due(uint64_t now_ns) const { return is_open() && now_ns >= due_ns_; }
  // 0, or errno's: then the file is as it was.
  int write(uint64_t now_ns, std::string_view status, std::span<const DeviceEnergy>);
  // At the end of the recording: a node exporter serves a file as long as it is there.
  void remove() const {
    if (is_open()) file_.remove();
  }
  const std::string& name() const { return file_.name; }

 private:
  WholeFile file_;
  std::string labels_;
  uint64_t due_ns_ = 0;
};

}  // namespace flopinj
