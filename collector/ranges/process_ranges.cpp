#include <collector/base/mutex.h>
#include <collector/ranges/process_ranges.h>

#include <algorithm>
#include <array>
#include <utility>

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
    std::string path_name;  // of a step (Steps::path_name()); else the key
    uint32_t step = 0;      // that it is; 0: none
  };
  Mutex mutex;
  // In the order they were opened.
  std::vector<Open> open FLOPINJ_GUARDED_BY(mutex);
  uint64_t last_id FLOPINJ_GUARDED_BY(mutex) = 0;
  uint64_t beyond FLOPINJ_GUARDED_BY(mutex) = 0;
  uint64_t unknown_ends FLOPINJ_GUARDED_BY(mutex) = 0;
  std::atomic<uint32_t> path{0};

  // What is open first, then the version: a reader of the new version sees the rest.
  void publish(ProcessRanges& of) noexcept FLOPINJ_REQUIRES(mutex) {
    PathId now;
    for (const Open& range : open)
      now = of.table_.child(now, range.domain, range.path_name, RangeKind::kProcess);
    path.store(now.value, std::memory_order_relaxed);
    if (of.filter_ != nullptr) {
      std::array<RangeFilter::Open, kMaxProcessRanges> ranges;
      std::ranges::transform(open, ranges.begin(), [](const Open& range) {
        return RangeFilter::Open{range.domain, &range.key};
      });
      of.chosen_.store(of.filter_->chosen_by_process(ranges.data(), open.size()),
                       std::memory_order_relaxed);
    }
    of.version_.fetch_add(1, std::memory_order_release);
  }
};

ProcessRanges::ProcessRanges(RangePathTable& table, const RangeFilter* filter, Steps* steps)
    : table_(table),
      filter_(filter),
      steps_(steps),
      chosen_(filter == nullptr),
      state_(std::make_unique<State>()) {
  if (steps_ != nullptr) steps_->raise(&version_);
}
ProcessRanges::~ProcessRanges() = default;

PathId ProcessRanges::path() const { return PathId{state_->path.load(std::memory_order_relaxed)}; }

uint64_t ProcessRanges::unknown_ends() const {
  const MutexLock lock(state_->mutex);
  return state_->unknown_ends;
}

uint64_t ProcessRanges::start(StringId domain, std::string_view name) noexcept {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  const uint64_t id = ++state.last_id;
  if (state.open.size() < kMaxProcessRanges) {
    try {
      std::string key = parse_range_name(name).key;
      const bool step = steps_ != nullptr && steps_->is_step(key);
      std::string path_name = step ? Steps::path_name(key) : key;
      state.open.push_back({id, domain, std::move(key), std::move(path_name)});
      state.publish(*this);
      State::Open& opened = state.open.back();
      if (step) opened.step = steps_->open(path(), true, Steps::is_own(opened.key));
      return id;
    } catch (const std::exception&) {
    }
  }
  ++state.beyond;
  return id | kBeyond;
}

void ProcessRanges::end(uint64_t id) noexcept {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  if (id & kBeyond) {
    if (state.beyond > 0)
      --state.beyond;
    else
      ++state.unknown_ends;
    return;
  }
  for (auto it = state.open.begin(); it != state.open.end(); ++it) {
    if (it->id != id) continue;
    const uint32_t step = it->step;
    state.open.erase(it);
    state.publish(*this);
    if (step != 0) steps_->close(step);
    return;
  }
  ++state.unknown_ends;
}

}  // namespace flopinj
