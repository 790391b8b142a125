// The report of a recording that goes on: flopreduce reads its growing trace.
#pragma once
#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "install_tree.h"
#include "running/control_client.h"

namespace flopinj {

// Its status, and the report where there is a trace that can be read from here.
struct LiveReport {
  Answer status{0};
  std::string text;  // flopreduce's, in the form that was asked for; empty: see `why_none`
  std::string why_none;
};
// `form`: flopreduce's options. A process in a container is read through /proc. Throws as ask().
LiveReport live_report(pid_t, const InstallTree&, const std::vector<std::string>& form);

// The text in the forms of metrics that Prometheus reads, for all these processes; those that
// cannot be asked are left out and have flopinj_up 0.
std::string prometheus_text(const std::vector<pid_t>&, const InstallTree&);

}  // namespace flopinj
