#include <import/json_events.h>
#include <import/json_text.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace flopinj::import {
namespace {

constexpr size_t kWindow = 64U << 10;   // at first; twice as large for an event that needs it
constexpr size_t kLargest = 64U << 20;  // an event, or a member beside them

class Window {
 public:
  explicit Window(const JsonEventReader& reader) : reader_(reader), bytes_(kWindow) {}

  // The next byte that is no white space; 0 at the end.
  char next() {
    while (true) {
      at_ = static_cast<size_t>(skip_json_space(begin(), end()) - bytes_.data());
      if (at_ < filled_) return bytes_[at_];
      if (!fill()) return 0;
    }
  }
  void pass() { ++at_; }
  // The whole value at the next byte; nothing where the file ends before it does, or where it is
  // too large, which is an error.
  std::string_view value() {
    while (true) {
      const char* const stop = end_of_json(begin(), end());
      // At the end of what was read a number may go on.
      if (stop != nullptr && (stop != end() || ended_)) {
        const std::string_view whole(begin(), static_cast<size_t>(stop - begin()));
        at_ += whole.size();
        return whole;
      }
      if (!fill()) return {};
    }
  }
  const std::string& error() const { return error_; }
  bool ended() const { return ended_; }

 private:
  const char* begin() const { return bytes_.data() + at_; }
  const char* end() const { return bytes_.data() + filled_; }
  // Keeps what begins at at_. False at the end of the file.
  bool fill() {
    if (ended_) return false;
    std::memmove(bytes_.data(), begin(), filled_ - at_);
    filled_ -= at_;
    at_ = 0;
    if (filled_ == bytes_.size()) {
      if (bytes_.size() >= kLargest) return stop("an event of more than 64 MiB");
      bytes_.resize(bytes_.size() * 2);
    }
    // Half of the room at least: an event is looked at again once more of it is there.
    const size_t enough = filled_ + (bytes_.size() - filled_ + 1) / 2;
    while (filled_ < enough && !ended_) {
      const ssize_t count = reader_.read(bytes_.data() + filled_, bytes_.size() - filled_);
      if (count < 0) return stop(std::strerror(errno));
      if (count == 0) ended_ = true;
      filled_ += static_cast<size_t>(count);
    }
    return true;
  }
  bool stop(const char* why) {
    error_ = why;
    ended_ = true;
    return false;
  }

  const JsonEventReader& reader_;
  std::vector<char> bytes_;
  size_t at_ = 0, filled_ = 0;
  bool ended_ = false;
  std::string error_;
};

constexpr const char* kNoList =
    "it is JSON, and no list of trace events: torch.profiler's export_chrome_trace() writes one";

class EventList {
 public:
  EventList(const JsonEventReader& reader, JsonEventsResult& result)
      : reader_(reader), window_(reader), result_(result) {}

  void read() {
    const char first = window_.next();
    if (first == '[')
      events();
    else if (first == '{')
      members();
    else
      result_.error = kNoList;
    if (!window_.error().empty()) result_.error = window_.error();
  }

 private:
  // What is behind a value: true where another one follows.
  bool another(char close) {
    const char c = window_.next();
    if (c == ',') {
      window_.pass();
      return true;
    }
    if (c == close)
      window_.pass();
    else
      result_.cut = true;
    return false;
  }

  // Some writers leave a comma behind the last event.
  void events() {
    window_.pass();
    if (window_.next() == ']') return window_.pass();
    do {
      if (window_.next() == ']') return window_.pass();
      const std::string_view event = window_.value();
      if (event.empty()) {
        result_.cut = true;
        return;
      }
      if (event.front() == '{') reader_.event(event);
    } while (another(']'));
  }

  void members() {
    window_.pass();
    if (window_.next() == '}') return;
    bool found = false;
    do {
      if (window_.next() != '"') {
        result_.cut = true;
        break;
      }
      name_ = window_.value();
      if (name_.empty() || window_.next() != ':') {
        result_.cut = true;
        break;
      }
      window_.pass();
      name_ = name_.substr(1, name_.size() - 2);
      const char first = window_.next();
      if (name_ == "traceEvents" && first == '[') {
        found = true;
        events();
        continue;
      }
      const std::string_view value = window_.value();
      if (value.empty()) {
        result_.cut = true;
        break;
      }
      reader_.member(name_, value);
    } while (!result_.cut && another('}'));
    if (!found && result_.error.empty()) result_.error = kNoList;
  }

  const JsonEventReader& reader_;
  Window window_;
  JsonEventsResult& result_;
  std::string name_;
};

}  // namespace

JsonEventsResult read_json_events(const JsonEventReader& reader) {
  JsonEventsResult result;
  EventList(reader, result).read();
  return result;
}

}  // namespace flopinj::import
