#include <collector/range_paths.h>

#include <mutex>

namespace flopinj {
namespace {

// Ids of ranges that take no part in paths have this bit; only their number is kept.
constexpr uint64_t kBeyond = uint64_t{1} << 63;

}  // namespace

struct ProcessRanges::State {
  struct Open {
    uint64_t id;
    StringId domain;
    std::string key;
  };
  std::mutex mutex;
  std::vector<Open> open;  // in the order they were opened
  uint64_t last_id = 0, beyond = 0, unknown_ends = 0;
  std::atomic<uint32_t> path{0};
};

ProcessRanges::ProcessRanges(RangePathTable& table)
    : table_(table), state_(std::make_unique<State>()) {}
ProcessRanges::~ProcessRanges() = default;

PathId ProcessRanges::path() const { return PathId{state_->path.load(std::memory_order_relaxed)}; }

uint64_t ProcessRanges::unknown_ends() const {
  const std::lock_guard lock(state_->mutex);
  return state_->unknown_ends;
}

// Holds the lock. The path first, then the version: who sees the new version sees the new path.
void ProcessRanges::publish() noexcept {
  PathId path;
  for (const State::Open& range : state_->open)
    path = table_.child(path, range.domain, range.key, RangeKind::kProcess);
  state_->path.store(path.value, std::memory_order_relaxed);
  version_.fetch_add(1, std::memory_order_release);
}

uint64_t ProcessRanges::start(StringId domain, std::string_view name) noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const uint64_t id = ++state.last_id;
  if (state.open.size() < kMaxProcessRanges) {
    try {
      state.open.push_back({id, domain, parse_range_name(name).key});
      publish();
      return id;
    } catch (const std::exception&) {
    }
  }
  ++state.beyond;
  return id | kBeyond;
}

void ProcessRanges::end(uint64_t id) noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (id & kBeyond) {
    if (state.beyond > 0)
      --state.beyond;
    else
      ++state.unknown_ends;
    return;
  }
  for (auto it = state.open.begin(); it != state.open.end(); ++it) {
    if (it->id != id) continue;
    state.open.erase(it);
    publish();
    return;
  }
  ++state.unknown_ends;
}

}  // namespace flopinj
