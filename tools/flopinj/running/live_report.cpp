#include "running/live_report.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string_view>

#include "running/child_process.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The trace as it is found from here: the process may have another root folder. Empty: it is not.
fs::path trace_of(pid_t pid, const std::string& output) {
  struct stat status {};
  if (output.empty() || output.front() != '/') return {};
  const fs::path there = "/proc/" + std::to_string(pid) + "/root" + output;
  for (const fs::path& path : {there, fs::path(output)})
    if (stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        access(path.c_str(), R_OK) == 0)
      return path;
  return {};
}

// A metric of Prometheus: counters end with _total, units are base units.
struct Metric {
  std::string_view name, type, help;
  std::string lines;
};

std::string escaped(const std::string& label) {
  std::string out;
  for (const char c : label) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// null is not known; an integer from 2^53 on is a text.
double number(const Json& value) {
  if (value.is_string()) return std::strtod(value.get<std::string>().c_str(), nullptr);
  return value.is_number() ? value.get<double>() : std::nan("");
}

class Exposition {
 public:
  void add(std::string_view name, std::string_view type, std::string_view help,
           const std::string& labels, double value) {
    if (std::isnan(value)) return;
    Metric* metric = nullptr;
    for (Metric& known : metrics_)
      if (known.name == name) metric = &known;
    if (metric == nullptr) metric = &metrics_.emplace_back(Metric{name, type, help, {}});
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    metric->lines += std::string(name) + "{" + labels + "} " + text + "\n";
  }
  std::string text() const {
    std::string out;
    for (const Metric& metric : metrics_)
      out += "# HELP " + std::string(metric.name) + " " + std::string(metric.help) + "\n# TYPE " +
             std::string(metric.name) + " " + std::string(metric.type) + "\n" + metric.lines;
    return out;
  }

 private:
  std::vector<Metric> metrics_;
};

struct StatusMetric {
  const char* key;
  double scale;
  std::string_view name, type, help;
};
constexpr std::array kStatusMetrics{
    StatusMetric{"recordings", 1, "flopinj_recordings_total", "counter", "Recordings begun."},
    StatusMetric{"launches", 1, "flopinj_launches_total", "counter",
                 "Kernel launches of the current recording."},
    StatusMetric{"dropped", 1, "flopinj_launches_dropped_total", "counter",
                 "Launches that were counted and not recorded."},
    StatusMetric{"trace_bytes", 1, "flopinj_trace_bytes", "gauge", "Size of the trace."},
    StatusMetric{"seconds", 1, "flopinj_recording_seconds", "gauge", "Age of the recording."},
    StatusMetric{"covered", 1, "flopinj_covered_ratio", "gauge",
                 "Share of GPU time whose kernels have complete counts."},
    StatusMetric{"callback_ns", 1e-9, "flopinj_callback_seconds_total", "counter",
                 "Time that launches spent in the profiler."},
    StatusMetric{"measuring_ns", 1e-9, "flopinj_measuring_seconds_total", "counter",
                 "Time that reading counters cost."}};

void add_report(Exposition& all, const std::string& process, const Json& report) {
  for (const Json& row : report.at("phases")) {
    const std::string labels =
        process + ",phase=\"" + escaped(row.at("phase").get<std::string>()) + "\"";
    all.add("flopinj_flop_total", "counter", "Executed floating-point operations.", labels,
            number(row.at("flop")));
    all.add("flopinj_gpu_seconds_total", "counter", "Time of kernels on the GPU.", labels,
            number(row.at("gpu_time_ns")) * 1e-9);
  }
  const Json& figures = report.at("figures");
  all.add("flopinj_hfu_ratio", "gauge", "Hardware FLOP utilization, by wall time.", process,
          number(figures.at("hfu")));
  all.add("flopinj_hfu_at_least_ratio", "gauge", "The same where launches are unmeasured.", process,
          number(figures.value("hfu_at_least", Json())));
  all.add("flopinj_mfu_ratio", "gauge", "Model FLOP utilization, by wall time.", process,
          number(figures.at("mfu")));
}

}  // namespace

LiveReport live_report(pid_t pid, const InstallTree& tree, const std::vector<std::string>& form) {
  LiveReport report;
  report.status = ask(pid, {"status"});
  if (!report.status.has("output")) {
    report.why_none = "nothing was recorded yet; begin:  flopinj attach " + std::to_string(pid);
    return report;
  }
  const fs::path trace = trace_of(pid, report.status.raw("output"));
  if (trace.empty()) {
    report.why_none = "the trace cannot be read from here: " + report.status.text("output");
    return report;
  }
  std::vector<std::string> command{tree.reducer};
  command.insert(command.end(), form.begin(), form.end());
  command.push_back(trace);
  // What a running trace lacks is no news: the reducer's stderr is left out.
  report.text = output_of(command).text;
  if (report.text.empty()) report.why_none = "no launch is in the trace yet";
  return report;
}

std::string prometheus_text(const std::vector<pid_t>& processes, const InstallTree& tree) {
  Exposition all;
  for (const pid_t pid : processes) {
    const std::string process = "pid=\"" + std::to_string(pid) + "\"";
    const auto up = [&](double value) {
      all.add("flopinj_up", "gauge", "1 where the process was asked.", process, value);
    };
    try {
      const LiveReport live = live_report(pid, tree, {"--format", "json"});
      up(1);
      all.add("flopinj_recording", "gauge", "1 while the process is recorded.", process,
              live.status.raw("state") == "recording" ? 1 : 0);
      for (const StatusMetric& metric : kStatusMetrics)
        if (live.status.has(metric.key))
          all.add(metric.name, metric.type, metric.help, process,
                  live.status.number(metric.key) * metric.scale);
      if (!live.text.empty()) add_report(all, process, Json::parse(live.text));
    } catch (const std::exception&) {
      up(0);
    }
  }
  return all.text();
}

}  // namespace flopinj
