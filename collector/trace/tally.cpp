#include <collector/base/assert.h>
#include <collector/base/hash.h>
#include <collector/trace/tally.h>

#include <algorithm>

namespace flopinj {

size_t Tally::Hash::operator()(const Key& k) const noexcept {
  uint64_t h = hash_mix((k.windowed ? 1U : 0U) | (k.in_step ? 2U : 0U),
                        hash_pair(k.signature.value, k.path.value));
  h = hash_mix(h, hash_pair(k.thread.value, k.stream.value));
  return static_cast<size_t>(h);
}

void Tally::add(ThreadId thread, StreamId stream, const TimedLaunch& launch) {
  TallyRow row;
  row.thread = thread;
  row.stream = stream;
  row.signature = launch.signature;
  row.path = launch.path;
  row.windowed = launch.windowed;
  row.in_step = launch.step != 0;
  row.launches = 1;
  if (launch.timed()) row.add_time(launch.end_ns - launch.start_ns);
  row.graph_launches = launch.graph ? 1 : 0;
  row.calls = launch.call ? 1 : 0;
  add(row);
}

void Tally::add(const TallyRow& row) {
  const Key key{row.thread, row.stream, row.signature, row.path, row.windowed, row.in_step};
  FLOPINJ_ASSERT(!full() || index_.contains(key));
  const auto [at, inserted] = index_.try_emplace(key, rows_.size());
  const size_t block = at->second / kBlockRows;
  if (block == changed_.size()) changed_.push_back(0);
  changed_[block] = 1;
  if (inserted) {
    rows_.push_back(row);
    return;
  }
  TallyRow& sum = rows_[at->second];
  sum.launches += row.launches;
  sum.timed += row.timed;
  sum.gpu_time_ns += row.gpu_time_ns;
  sum.shortest_ns = std::min(sum.shortest_ns, row.shortest_ns);
  sum.longest_ns = std::max(sum.longest_ns, row.longest_ns);
  sum.graph_launches += row.graph_launches;
  sum.calls += row.calls;
}

void Tally::clear() {
  index_.clear();
  rows_.clear();
  changed_.clear();
}

}  // namespace flopinj
