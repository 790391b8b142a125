// The real CUPTI's host API, when one is installed: it works without GPU and driver. An independent
// witness for the metric table.
#pragma once
#include <cupti_profiler_host.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

class RealHost {
 public:
  // SIMGPU_TEST_REAL_CUPTI, else libcupti.so.13 beside the headers of the build or under
  // /usr/local/cuda. Nothing when there is none.
  static std::optional<RealHost> find();

  std::vector<std::string> chips() const;
  std::set<std::string> base_metrics(const char* chip) const;
  size_t passes(const char* chip, const std::vector<std::string>& metrics) const;

 private:
  explicit RealHost(void* library) : library_(library) {}
  template <class Function>
  Function* symbol(const char* name) const;

  void* library_;
};
