#include <collector/trace/sink/output_name.h>
#include <injector/process/metrics_file.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <system_error>

#include "metrics_text.h"

namespace flopinj {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr uint64_t kEveryNs = 5'000'000'000;

// Lines of a key and its value.
std::string_view value_of(std::string_view status, std::string_view key) {
  for (size_t begin = 0; begin < status.size();) {
    const size_t end = std::min(status.find('\n', begin), status.size());
    const std::string_view line = status.substr(begin, end - begin);
    if (line.starts_with(key) && line.substr(key.size()).starts_with(' '))
      return line.substr(key.size() + 1);
    begin = end + 1;
  }
  return {};
}

double status_value(std::string_view status, std::string_view key) {
  if (key == "recording") return value_of(status, "state") == "recording" ? 1 : 0;
  const std::string text(value_of(status, key));
  return text.empty() ? kUnknown : std::strtod(text.c_str(), nullptr);
}

double energy_value(const DeviceEnergy& device, std::string_view key) {
  if (!device.unavailable.empty() || device.updates == 0) return kUnknown;
  const double joules = static_cast<double>(device.millijoules) / 1e3;
  if (key == "energy_j") return joules;
  const uint64_t ns = device.end_ns - device.begin_ns;
  return key == "power_w" && ns > 0 ? joules / (static_cast<double>(ns) / 1e9) : kUnknown;
}

}  // namespace

bool MetricsFile::open(const std::string& pattern, const ProcessInfo& process, std::string& why) {
  OutputNameContext context;
  context.pid = process.pid;
  context.host = process.hostname;
  context.rank = process.rank;
  context.environment = [](const char* name) -> const char* { return std::getenv(name); };
  const OutputName name = expand_output_name(pattern, context);
  if (!name.error.empty()) return why = name.error, false;
  std::error_code error;  // the program may change its folder
  file_.name = std::filesystem::absolute(name.name, error).string();
  if (error) return why = error.message(), false;
  add_label(labels_, "pid", std::to_string(process.pid));
  if (process.rank >= 0) add_label(labels_, "rank", std::to_string(process.rank));
  add_label(labels_, "job_id", process.job_id);
  for (const Label& label : process.labels) add_label(labels_, "label_" + label.name, label.value);
  return true;
}

int MetricsFile::write(uint64_t now_ns, std::string_view status,
                       std::span<const DeviceEnergy> devices) {
  due_ns_ = now_ns + kEveryNs;
  std::string page;
  for (const Metric& metric : kMetrics) {
    std::string samples;
    if (metric.table == "status")
      add_sample(samples, metric, labels_, status_value(status, metric.key));
    if (metric.table == "devices")
      for (const DeviceEnergy& device : devices) {
        std::string labels = labels_;
        add_label(labels, metric.by, std::to_string(device.device.value - 1));
        add_sample(samples, metric, labels, energy_value(device, metric.key));
      }
    add_metric(page, metric, samples);
  }
  return file_.write(page);
}

}  // namespace flopinj
