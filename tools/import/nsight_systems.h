// What `nsys export --type sqlite` makes of a report of Nsight Systems (2021.1 to 2026.2).
#pragma once
#include <import/timeline.h>

#include <deque>
#include <string>

namespace flopinj::import {

// One time line for each process that used a GPU, in the order of their ids. The error otherwise,
// which says what to do. The file is not written to; what an older version does not have is left
// out.
std::string read_nsight_systems(const std::string& file, std::deque<Timeline>& processes);

}  // namespace flopinj::import
