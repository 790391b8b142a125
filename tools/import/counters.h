// Counters that another profiler has read of kernels, by the names that a report knows.
#pragma once
#include <collector/identity/recording.h>

#include <string>
#include <string_view>
#include <vector>

namespace flopinj::import {

// CUPTI's name of a counter that a report reads; empty for all others.
std::string counter_name(std::string_view written);

// Whether it counts operations, or instructions that may be some. Others count bytes.
bool counts_work(std::string_view name);

// Those without which nothing is known of a kernel's FLOP: each counts instructions of one kind,
// and what was not read is not 0.
std::vector<std::string> instruction_counters(const DeviceInfo&);

}  // namespace flopinj::import
