// `flopinj metrics`: for Prometheus.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "process.h"
#include "running/control_client.h"
#include "running/live.h"

namespace flopinj {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// A metric: counters end with _total, units are base units. Where the value is, by names of the
// JSON forms, what makes its unit of that, and the column that tells a table's rows apart, which
// becomes a label.
struct Metric {
  std::string table, key;
  double scale;
  std::string name, type, help, by = {};
};
const Metric kMetrics[] = {
    {"status", "up", 1, "flopinj_up", "gauge", "1 where the process was asked."},
    {"status", "recording", 1, "flopinj_recording", "gauge", "1 while the process is recorded."},
    {"status", "recordings", 1, "flopinj_recordings_total", "counter", "Recordings begun."},
    {"status", "launches", 1, "flopinj_launches_total", "counter",
     "Kernel launches of the current recording."},
    {"status", "dropped", 1, "flopinj_launches_dropped_total", "counter",
     "Launches that were counted and not recorded."},
    {"status", "trace_bytes", 1, "flopinj_trace_bytes", "gauge", "Size of the trace."},
    {"status", "seconds", 1, "flopinj_recording_seconds", "gauge", "Age of the recording."},
    {"status", "covered", 1, "flopinj_covered_ratio", "gauge",
     "Share of GPU time whose kernels have complete counts."},
    {"status", "callback_ns", 1e-9, "flopinj_callback_seconds_total", "counter",
     "Time that launches spent in the profiler."},
    {"status", "measuring_ns", 1e-9, "flopinj_measuring_seconds_total", "counter",
     "Time that reading counters cost."},
    {"phases", "flop", 1, "flopinj_flop_total", "counter", "Executed floating-point operations.",
     "phase"},
    {"phases", "gpu_time_ns", 1e-9, "flopinj_gpu_seconds_total", "counter",
     "Time of kernels on the GPU.", "phase"},
    {"devices", "energy_j", 1, "flopinj_energy_joules_total", "counter",
     "Energy that the GPU took.", "ordinal"},
    {"devices", "power_w", 1, "flopinj_power_watts", "gauge",
     "Power of the GPU, the mean of the recording.", "ordinal"},
    {"figures", "hfu", 1, "flopinj_hfu_ratio", "gauge", "Hardware FLOP utilization, by wall time."},
    {"figures", "hfu_at_least", 1, "flopinj_hfu_at_least_ratio", "gauge",
     "The same where launches are unmeasured."},
    {"figures", "mfu", 1, "flopinj_mfu_ratio", "gauge", "Model FLOP utilization, by wall time."}};

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

// The tables of a process that kMetrics names. One that cannot be asked has only flopinj_up 0.
Json tables_of(pid_t pid) {
  try {
    const LiveReport live = live_report(pid, {"--format", "json"});
    Json tables = live.text.empty() ? Json::object() : Json::parse(live.text);
    tables["status"] = live.status;
    tables["status"]["up"] = 1;
    tables["status"]["recording"] = live.status.value("state", "") == "recording" ? 1 : 0;
    return tables;
  } catch (const std::exception&) {
    return {{"status", {{"up", 0}}}};
  }
}

std::string label_text(const std::string& name, const Json& value) {
  if (value.is_null() || value == "") return {};
  return "," + name + "=\"" + escaped(value.is_string() ? value.get<std::string>() : value.dump()) +
         "\"";
}

// Of every sample of a process. Prometheus has a label `job` of its own, and the user's labels may
// have any name.
std::string labels_of(pid_t pid, const Json& tables) {
  std::string text = "pid=\"" + std::to_string(pid) + "\"";
  for (const Json& process : tables.value("processes", Json::array())) {
    text += label_text("rank", process.value("rank", Json()));
    text += label_text("job_id", process.value("job_id", Json()));
  }
  for (const Json& label : tables.value("labels", Json::array()))
    text += label_text("label_" + label.value("name", ""), label.value("value", Json()));
  return text;
}

// Of a sum that grows, what is certain of it, too.
double value_in(const Metric& metric, const Json& row) {
  const double value = number(row.value(metric.key, Json()));
  if (!std::isnan(value) || metric.type != "counter") return value * metric.scale;
  return number(row.value(metric.key + "_at_least", Json())) * metric.scale;
}

std::string samples_of(const Metric& metric, const std::string& labels, const Json& tables) {
  const Json table = tables.value(metric.table, Json::array());
  std::string lines;
  for (const Json& row : table.is_array() ? table : Json::array({table})) {
    const double value = value_in(metric, row);
    if (std::isnan(value)) continue;
    const std::string by =
        label_text(metric.by == "ordinal" ? "device" : metric.by, row.value(metric.by, Json()));
    lines += metric.name + "{" + labels + by + "} " + formatted("%.17g", value) + "\n";
  }
  return lines;
}

std::string prometheus_text(const std::vector<pid_t>& processes) {
  std::vector<Json> tables;
  std::vector<std::string> labels;
  for (const pid_t pid : processes) {
    tables.push_back(tables_of(pid));
    labels.push_back(labels_of(pid, tables.back()));
  }
  std::string text;
  for (const Metric& metric : kMetrics) {
    std::string lines;
    for (size_t i = 0; i < processes.size(); ++i) lines += samples_of(metric, labels[i], tables[i]);
    if (lines.empty()) continue;
    text += "# HELP " + metric.name + " " + metric.help + "\n# TYPE " + metric.name + " " +
            metric.type + "\n" + lines;
  }
  return text;
}

// In a folder that others write to, a file or link of theirs may have the name beside: it is not
// written to.
void write_whole(const std::string& file, const std::string& text) {
  const std::string beside = file + "." + std::to_string(getpid());
  unlink(beside.c_str());  // of an earlier process
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  const bool written =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if ((fd >= 0 && close(fd) != 0) || !written || std::rename(beside.c_str(), file.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    unlink(beside.c_str());
    throw std::runtime_error("cannot write " + file + ": " + why);
  }
}

int listening_on(unsigned port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 8) != 0)
    throw std::runtime_error("cannot listen on 127.0.0.1:" + std::to_string(port) + ": " +
                             std::strerror(errno));
  return fd;
}

// One answer to whatever is asked: there is one page.
void answer_http(int connection, const std::string& text) {
  const timeval patience{1, 0};
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  char request[4'096];
  if (recv(connection, request, sizeof request, MSG_DONTWAIT) > 0) {
    const std::string answer =
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
        std::to_string(text.size()) + "\r\n\r\n" + text;
    [[maybe_unused]] const ssize_t sent =
        send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
  }
  close(connection);
}

// A socket that listens, or -1, and the connections that have asked nothing yet, the oldest first:
// they keep no other waiting.
class Page {
 public:
  explicit Page(int listening) : polled_{{listening, POLLIN, 0}} {}
  ~Page() {
    for (const pollfd& one : polled_)
      if (one.fd >= 0) close(one.fd);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  void serve(const std::string& text, int at_most_ms) {
    constexpr size_t kMostConnections = 16;
    if (poll(polled_.data(), polled_.size(), at_most_ms) <= 0) return;
    const bool asked = polled_.front().revents != 0;
    for (size_t i = polled_.size(); i-- > 1;) {
      if (polled_[i].revents == 0) continue;
      answer_http(polled_[i].fd, text);
      polled_.erase(polled_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const int fd = asked ? accept4(polled_.front().fd, nullptr, nullptr, SOCK_CLOEXEC) : -1;
    if (fd < 0) return;
    if (polled_.size() > kMostConnections) {
      close(polled_[1].fd);
      polled_.erase(polled_.begin() + 1);
    }
    polled_.push_back({fd, POLLIN, 0});
  }

 private:
  std::vector<pollfd> polled_;
};

volatile sig_atomic_t asked_to_end = 0;

}  // namespace

int metrics(const Options& options) {
  const bool all = options.processes.empty();
  const auto text = [&] {
    return prometheus_text(all ? listening_processes() : options.processes);
  };
  if (options.file.empty() && options.port == 0) {
    std::cout << text() << std::flush;
    return kExitOk;
  }
  Page page(options.port != 0 ? listening_on(options.port) : -1);
  std::string newest;
  auto due = Clock::now();
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction end {};  // without SA_RESTART: poll() returns
    end.sa_handler = [](int) { asked_to_end = 1; };
    sigaction(signal, &end, nullptr);
  }
  while (asked_to_end == 0 && (all || std::ranges::any_of(options.processes, process_runs))) {
    const auto began = Clock::now();
    if (began >= due) {
      newest = text();
      if (!options.file.empty()) write_whole(options.file, newest);
      due = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(options.every_s));
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now());
    constexpr int64_t kLookEveryMs = 1'000;
    page.serve(newest, static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLookEveryMs)));
  }
  if (!options.file.empty()) unlink(options.file.c_str());  // or its last values would stay
  return kExitOk;
}

}  // namespace flopinj
