// Definitions on their way into the trace: each before the first packet that uses it, and once.
// Used by the writer thread.
#pragma once
#include <collector/trace/new_definitions.h>
#include <collector/trace/trace_writer.h>
#include <collector/writer/collector_state.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace flopinj {

class DefinitionFeed {
 public:
  explicit DefinitionFeed(CollectorState& state)
      : state_(state), tables_(state.signatures, state.paths) {}

  // Everything that is new. `threads`: those that may have launched.
  void write(TraceWriter&, std::span<ThreadState* const> threads);
  // `launched`: so that the trace may name it. Its id is not given to another thread.
  void thread_ended(ThreadId, uint32_t os_tid, const std::string& name, bool launched);

 private:
  using Clock = std::chrono::steady_clock;
  struct ThreadName {
    std::string text;
    bool defined = false;
  };
  void name_threads(std::span<ThreadState* const>);
  void define_thread(ThreadId, uint32_t os_tid, const std::string& name);

  CollectorState& state_;
  NewDefinitions tables_;
  std::unordered_map<uint32_t, ThreadName> names_;  // by thread id, of threads that launched
  std::vector<ThreadDefinition> new_threads_;
  Clock::time_point next_naming_ = Clock::now();
};

}  // namespace flopinj
