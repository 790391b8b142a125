// `flopinj top` and `flopinj metrics`: a recording while it goes on.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "install_tree.h"

namespace flopinj {

struct TopOptions {
  pid_t pid = 0;
  double every_s = 2;
  bool once = false, json = false;
};
// Until the process has ended, or a signal comes. Returns an exit code; throws as ask().
int top(const TopOptions&, const InstallTree&);

struct MetricsOptions {
  std::vector<pid_t> processes;
  std::string file;   // written whole and renamed, again and again; empty: to stdout, once
  unsigned port = 0;  // of 127.0.0.1, for HTTP; 0: none
  double every_s = 15;
};
// With a file or a port until all processes have ended, or a signal comes.
int metrics(const MetricsOptions&, const InstallTree&);

}  // namespace flopinj
