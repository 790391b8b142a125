// What the operating system and the job launcher say about this process.
#pragma once
#include <collector/identity/recording.h>

#include <cstdint>
#include <string>

namespace flopinj {

// pid, host, command line, rank and the clocks; not the CUDA fields.
ProcessInfo describe_process();

std::string thread_name(uint32_t os_tid);  // empty when the thread is gone
uint64_t thread_cpu_ns() noexcept;         // of the calling thread
uint64_t realtime_ns() noexcept;
uint64_t monotonic_ns() noexcept;

}  // namespace flopinj
