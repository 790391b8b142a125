#include <collector/ranges/range_name.h>
#include <collector/ranges/steps.h>
#include <own_steps.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace flopinj {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_separator(char c) {
  return std::string_view(" _-#:=/.[]()").find(c) != std::string_view::npos;
}

// "step 3/100" is "step".
std::string_view without_number(std::string_view name) {
  size_t size = name.size();
  while (size > 0 &&
         ((name[size - 1] >= '0' && name[size - 1] <= '9') || is_separator(name[size - 1])))
    --size;
  return name.substr(0, size);
}

// Of PyTorch's profiler, Lightning's training loop, and what programs call theirs.
constexpr std::array<std::string_view, 5> kUsual = {"step", "iteration", "iter", "profilerstep",
                                                    "runtrainingbatch"};
constexpr size_t kLongestUsual = 40;  // with what comes before it
constexpr std::string_view kLightning = "[pl][profile]";

}  // namespace

bool is_usual_step(std::string_view name) noexcept {
  name = without_number(name);
  if (name.starts_with(kLightning)) name.remove_prefix(kLightning.size());
  if (name.size() < 4 || name.size() > kLongestUsual) return false;
  std::array<char, kLongestUsual> letters{};
  size_t count = 0;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') letters[count++] = lower(c);
  std::string_view word(letters.data(), count);
  if (std::ranges::find(kUsual, word) != kUsual.end()) return true;
  for (const std::string_view prefix : {"training", "train"})
    if (word.starts_with(prefix))
      return std::ranges::find(kUsual, word.substr(prefix.size())) != kUsual.end();
  return false;
}

Steps::Steps(std::string_view names, Now now) : now_(std::move(now)), usual_(names.empty()) {
  if (names == "none") return;
  while (!names.empty()) {
    const size_t end = std::min(names.find('|'), names.size());
    if (end > 0) names_.emplace_back(without_number(names.substr(0, end)));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

bool Steps::is_own(std::string_view name) noexcept {
  return name == kOwnStep || name == kOwnStepWithoutNames;
}

bool Steps::is_step(std::string_view name) const noexcept {
  if (usual_) return is_usual_step(name) || is_own(name);
  return !names_.empty() && std::ranges::find(names_, without_number(name)) != names_.end();
}

bool Steps::has_number(std::string_view name) noexcept {
  return name.find_first_of("0123456789") != name.npos;
}
std::string Steps::path_name(std::string_view name) { return generalise(name); }

// The step first, then the version: a reader of the new version sees the new step.
void Steps::change(uint32_t number) noexcept {
  of_process_.store(number, std::memory_order_relaxed);
  if (version_ != nullptr) version_->fetch_add(1, std::memory_order_release);
}

uint32_t Steps::open(PathId path, bool of_process, bool own) noexcept {
  if (!on_.load(std::memory_order_acquire)) return 0;
  const MutexLock lock(mutex_);
  if (own && programs_) return 0;
  if (!own && !programs_) {
    programs_ = true;
    const auto ours = std::ranges::find_if(open_, &Open::own);
    if (ours != open_.end()) erase(ours);
  }
  const bool taken = of_process
                         ? !open_.empty()
                         : std::ranges::any_of(open_, [](const Open& o) { return o.of_process; });
  if (taken) return 0;
  try {
    open_.push_back({{last_ + 1, path, now_(), 0}, of_process, own});
  } catch (const std::exception&) {
    return 0;
  }
  if (of_process_.load(std::memory_order_relaxed) == 0) change(last_ + 1);
  return ++last_;
}

void Steps::erase(std::vector<Open>::iterator at) noexcept {
  const uint32_t number = at->step.number;
  open_.erase(at);
  if (of_process_.load(std::memory_order_relaxed) == number) change(0);
}

void Steps::close(uint32_t number) noexcept {
  const MutexLock lock(mutex_);
  const auto at = std::ranges::find(open_, number, [](const Open& o) { return o.step.number; });
  if (at == open_.end()) return;
  Step step = at->step;
  erase(at);
  try {
    step.end_ns = std::max(now_(), step.start_ns);
    if (ended_.size() < kMostEnded)
      ended_.push_back(step);
    else
      ++lost_;
  } catch (const std::exception&) {
    ++lost_;
  }
}

void Steps::abandon(uint32_t number) noexcept {
  const MutexLock lock(mutex_);
  const auto at = std::ranges::find(open_, number, [](const Open& o) { return o.step.number; });
  if (at != open_.end()) erase(at);
}

std::vector<Step> Steps::take() {
  const MutexLock lock(mutex_);
  return std::exchange(ended_, {});
}

uint64_t Steps::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

}  // namespace flopinj
