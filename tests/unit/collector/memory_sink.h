// A sink that keeps what it is given, and can be told to fail or to hang.
#pragma once
#include <collector/trace/sink/sink.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace flopinj::test {

class MemorySink : public Sink {
 public:
  bool write(std::string_view packets) override {
    ++writes;
    if (hang)
      while (*hang) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (fail_after_writes != 0 && writes > fail_after_writes) {
      error_ = "the memory is full";
      return false;
    }
    bytes += packets;
    bytes_ += packets.size();
    return true;
  }
  bool close() override { return error_.empty(); }
  const std::string& target() const override { return target_; }
  const std::string& error() const override { return error_; }

  std::string bytes;
  size_t writes = 0, fail_after_writes = 0;
  std::shared_ptr<std::atomic<bool>> hang;

 private:
  std::string target_ = "memory", error_;
};

}  // namespace flopinj::test
