// The metrics of a recording for Prometheus, and its text format (version 0.0.4): `flopinj metrics`
// has all of them; the file of --metrics-file has the metrics of the tables "status" and "devices".
#pragma once
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "printable_text.h"

namespace flopinj {

// Counters end with _total, units are base units. Where the value is, by names of the JSON forms,
// what makes its unit of that, and the column that tells a table's rows apart, which becomes a
// label.
struct Metric {
  std::string_view table, key;
  double scale;
  std::string_view name, type, help, by = {};
};
inline constexpr std::array kMetrics = {
    Metric{"status", "up", 1, "flopinj_up", "gauge", "1 where the process was asked."},
    Metric{"status", "recording", 1, "flopinj_recording", "gauge",
           "1 while the process is recorded."},
    Metric{"status", "recordings", 1, "flopinj_recordings_total", "counter", "Recordings begun."},
    Metric{"status", "launches", 1, "flopinj_launches_total", "counter",
           "Kernel launches of the current recording."},
    Metric{"status", "dropped", 1, "flopinj_launches_dropped_total", "counter",
           "Launches that were counted and not recorded."},
    Metric{"status", "trace_bytes", 1, "flopinj_trace_bytes", "gauge", "Size of the trace."},
    Metric{"status", "seconds", 1, "flopinj_recording_seconds", "gauge", "Age of the recording."},
    Metric{"status", "covered", 1, "flopinj_covered_ratio", "gauge",
           "Share of GPU time whose kernels have complete counts."},
    Metric{"status", "callback_ns", 1e-9, "flopinj_callback_seconds_total", "counter",
           "Time that launches spent in the profiler."},
    Metric{"status", "measuring_ns", 1e-9, "flopinj_measuring_seconds_total", "counter",
           "Time that reading counters cost."},
    Metric{"status", "startup_ns", 1e-9, "flopinj_startup_seconds_total", "counter",
           "Time until it recorded, and that launches have waited for plans."},
    Metric{"phases", "flop", 1, "flopinj_flop_total", "counter",
           "Executed floating-point operations.", "phase"},
    Metric{"phases", "gpu_time_ns", 1e-9, "flopinj_gpu_seconds_total", "counter",
           "Time of kernels on the GPU.", "phase"},
    Metric{"devices", "energy_j", 1, "flopinj_energy_joules_total", "counter",
           "Energy that the GPU took.", "ordinal"},
    Metric{"devices", "power_w", 1, "flopinj_power_watts", "gauge",
           "Power of the GPU, the mean of the recording.", "ordinal"},
    Metric{"figures", "hfu", 1, "flopinj_hfu_ratio", "gauge",
           "Hardware FLOP utilization, by wall time."},
    Metric{"figures", "hfu_at_least", 1, "flopinj_hfu_at_least_ratio", "gauge",
           "The same where launches are unmeasured."},
    Metric{"figures", "mfu", 1, "flopinj_mfu_ratio", "gauge",
           "Model FLOP utilization, by wall time."}};

// The labels of a sample, one after another. A label without a value is none.
inline void add_label(std::string& labels, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (!labels.empty()) labels += ',';
  labels.append(name == "ordinal" ? "device" : name).append("=\"");
  for (const char c : printable(value)) {
    if (c == '\\' || c == '"') labels += '\\';
    labels += c;
  }
  labels += '"';
}

// A sample in the units of its table. NaN: it is not known, and left out.
inline void add_sample(std::string& samples, const Metric& metric, std::string_view labels,
                       double value) {
  if (std::isnan(value)) return;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value * metric.scale);
  samples.append(metric.name).append("{").append(labels).append("} ").append(text.data()) += '\n';
}

// A metric with all of its samples; nothing where it has none.
inline void add_metric(std::string& page, const Metric& metric, std::string_view samples) {
  if (samples.empty()) return;
  page.append("# HELP ").append(metric.name).append(" ").append(metric.help) += '\n';
  page.append("# TYPE ").append(metric.name).append(" ").append(metric.type) += '\n';
  page += samples;
}

}  // namespace flopinj
