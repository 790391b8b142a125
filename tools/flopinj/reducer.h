// flopreduce, which answers questions about traces.
#pragma once
#include <string>
#include <vector>

namespace flopinj {

// Becomes it. An exit code of ours where that cannot be; why is said.
int become_reducer(const std::vector<std::string>& words);

// Runs it beside this process. Its exit code, which is not 0 where it cannot be run or was ended
// by a signal. Files that it writes are their owner's, as a trace is.
int reduce(const std::vector<std::string>& words);

// The report of traces as a page. True: it was written.
bool write_page(const std::string& page, const std::vector<std::string>& traces, bool force);

}  // namespace flopinj
