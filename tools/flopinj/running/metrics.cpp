// `flopinj metrics`: for Prometheus.
#include <collector/trace/sink/descriptor.h>
#include <collector/trace/sink/whole_file.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "metrics_text.h"
#include "printable_text.h"
#include "process.h"
#include "running/control_client.h"
#include "running/live.h"

namespace flopinj {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

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

void add_json_label(std::string& labels, std::string_view name, const Json& value) {
  if (value.is_null()) return;
  add_label(labels, name, value.is_string() ? value.get<std::string>() : value.dump());
}

// As NVML, and with it DCGM's exporter, writes it: "GPU-" and groups of 8, 4, 4, 4 and 12 digits.
std::string uuid_text(const Json& device) {
  std::string text = device.value("uuid", "");
  if (text.size() != 32) return "";
  for (const size_t at : {20U, 16U, 12U, 8U}) text.insert(at, "-");
  return "GPU-" + text;
}

// Of every sample of a process. Hostname and UUID are labels of DCGM's exporter, too; UUID is of
// the only GPU. Prometheus has a label `job` of its own, and the user's labels may have any name.
std::string labels_of(const Json& tables) {
  std::string labels, host(HOST_NAME_MAX, '\0');
  if (gethostname(host.data(), host.size()) == 0) add_label(labels, "Hostname", host.c_str());
  const Json devices = tables.value("devices", Json::array());
  if (devices.size() == 1) add_label(labels, "UUID", uuid_text(devices[0]));
  for (const Json& process : tables.value("processes", Json::array()))
    for (const char* key : {"rank", "job_id"})
      add_json_label(labels, key, process.value(key, Json()));
  for (const Json& label : tables.value("labels", Json::array()))
    add_json_label(labels, "label_" + label.value("name", ""), label.value("value", Json()));
  return labels;
}

// Of a sum that grows, what is certain of it, too.
double value_in(const Metric& metric, const Json& row) {
  const std::string key(metric.key);
  const double value = number(row.value(key, Json()));
  if (!std::isnan(value) || metric.type != "counter") return value;
  return number(row.value(key + "_at_least", Json()));
}

std::string samples_of(const Metric& metric, const std::string& of_process, const Json& tables) {
  const Json table = tables.value(std::string(metric.table), Json::array());
  std::string samples;
  for (const Json& row : table.is_array() ? table : Json::array({table})) {
    std::string labels = of_process;
    if (metric.table == "devices" && table.size() > 1) add_label(labels, "UUID", uuid_text(row));
    add_json_label(labels, metric.by, row.value(std::string(metric.by), Json()));
    add_sample(samples, metric, labels, value_in(metric, row));
  }
  return samples;
}

std::string prometheus_text(const std::vector<pid_t>& processes) {
  std::vector<Json> tables;
  std::vector<std::string> labels;
  std::map<std::string, int> processes_with;
  for (const pid_t pid : processes) {
    tables.push_back(tables_of(pid));
    ++processes_with[labels.emplace_back(labels_of(tables.back()))];
  }
  // A process that starts again goes on with its series: it has a label of its own only where
  // others have the same labels.
  for (size_t i = 0; i < processes.size(); ++i)
    if (processes_with.at(labels[i]) > 1) add_label(labels[i], "pid", std::to_string(processes[i]));
  std::string page;
  for (const Metric& metric : kMetrics) {
    std::string samples;
    for (size_t i = 0; i < processes.size(); ++i)
      samples += samples_of(metric, labels[i], tables[i]);
    add_metric(page, metric, samples);
  }
  return page;
}

// Throws std::runtime_error where `address` is no numeric address of this machine.
int listening_on(const std::string& address, unsigned port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  const auto fail = [&](const char* why) {
    throw std::runtime_error("cannot listen on " + printable(address) + ", port " +
                             std::to_string(port) + ": " + why);
  };
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0)
    fail("--address takes an address of this machine, such as 0.0.0.0 for all of them");
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool fine =
      fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 8) == 0;
  freeaddrinfo(found);
  if (!fine && errno == EADDRINUSE) fail("another program has it; choose another --port");
  if (!fine) fail(std::strerror(errno));
  return fd;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// Of a page in a browser whose name was given this machine's address (DNS rebinding) the request
// has that name. A client of HTTP/1.0 may say none.
bool is_for_this_machine(std::string_view request) {
  constexpr std::string_view kNames[] = {"localhost", "127.0.0.1", "[::1]"}, kHost = "host:";
  size_t named = 0;
  for (size_t at = request.find('\n'); at != request.npos; at = request.find('\n', at)) {
    std::string_view line = request.substr(++at);
    line = line.substr(0, line.find_first_of("\r\n"));
    if (line.empty()) break;
    if (!same_word(line.substr(0, kHost.size()), kHost)) continue;
    line.remove_prefix(kHost.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string_view name =
        line.substr(0, line.find_first_of(": \t", line.starts_with('[') ? line.find(']') : 0));
    if (++named > 1 || std::ranges::none_of(
                           kNames, [&](std::string_view known) { return same_word(name, known); }))
      return false;
  }
  return named == 1 ||
         request.substr(0, request.find_first_of("\r\n")).find("HTTP/1.1") == request.npos;
}

// One answer to whatever is asked: there is one page. Where it is for this machine only, others are
// refused.
void answer_http(int connection, std::string_view request, const std::string& page, bool local) {
  const timeval patience{1, 0};
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const bool here = !local || is_for_this_machine(request);
  const std::string text =
      here ? page : "flopinj metrics answers requests for localhost and 127.0.0.1 only\n";
  const std::string answer = std::string(here ? "HTTP/1.0 200 OK" : "HTTP/1.0 403 Forbidden") +
                             "\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
                             std::to_string(text.size()) + "\r\n\r\n" + text;
  [[maybe_unused]] const ssize_t sent =
      send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
}

// A socket that listens, or -1, and the connections that have not asked all yet, the oldest first:
// they keep no other waiting.
class Page {
 public:
  Page(int listening, bool local) : local_(local), polled_{{listening, POLLIN, 0}}, requests_(1) {}
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
      if (polled_[i].revents == 0 || !has_asked(i)) continue;
      if (!requests_[i].empty()) answer_http(polled_[i].fd, requests_[i], text, local_);
      drop(i);
    }
    const int fd = asked ? accept4(polled_.front().fd, nullptr, nullptr, SOCK_CLOEXEC) : -1;
    if (fd < 0) return;
    if (polled_.size() > kMostConnections) drop(1);
    polled_.push_back({fd, POLLIN, 0});
    requests_.emplace_back();
  }

 private:
  // All that is to be answered has come: the request's head, its end, or too much of it.
  bool has_asked(size_t i) {
    constexpr size_t kMostBytes = 16'384;
    std::string& request = requests_[i];
    std::array<char, 4'096> bytes;
    const ssize_t count = recv(polled_[i].fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0) return errno != EAGAIN && errno != EINTR;
    request.append(bytes.data(), static_cast<size_t>(count));
    return count == 0 || request.size() > kMostBytes || request.find("\r\n\r\n") != request.npos ||
           request.find("\n\n") != request.npos;
  }
  void drop(size_t i) {
    close(polled_[i].fd);
    polled_.erase(polled_.begin() + static_cast<std::ptrdiff_t>(i));
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  const bool local_;  // only who asks for this machine by its local names is answered
  std::vector<pollfd> polled_;
  std::vector<std::string> requests_;  // what has come of each; of the first nothing
};

// The file is written over again and again, and removed at the end: not one of another kind.
void refuse_other_file(const std::string& name) {
  std::ifstream file(name);
  std::string first;
  if (!std::getline(file, first) || first.starts_with("# HELP flopinj_")) return;
  throw std::runtime_error(name + " exists and has no metrics of flopinj: name another file");
}

volatile sig_atomic_t asked_to_end = 0;

}  // namespace

int metrics(const Options& options) {
  const bool all = options.processes.empty();
  const auto processes = [&] { return all ? listening_processes() : options.processes; };
  const auto text = [&] { return prometheus_text(processes()); };
  if (options.file.empty() && options.port == 0) {
    const std::vector<pid_t> now = processes();
    if (now.empty()) refuse_none();
    std::cout << prometheus_text(now) << std::flush;
    return kExitOk;
  }
  refuse_other_file(options.file);
  const bool local = options.address.empty();
  Page page(
      options.port != 0 ? listening_on(local ? "127.0.0.1" : options.address, options.port) : -1,
      local);
  WholeFile file{.name = options.file};
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
      if (!options.file.empty())
        if (const int error = file.write(newest); error != 0)
          throw std::runtime_error("cannot write " + options.file + ": " + errno_text(error) +
                                   (error == ENOENT ? "; make the folder first" : ""));
      due = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(options.every_s));
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now());
    constexpr int64_t kLookEveryMs = 1'000;
    page.serve(newest, static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLookEveryMs)));
  }
  if (!options.file.empty()) file.remove();  // or its last values would stay
  return kExitOk;
}

}  // namespace flopinj
