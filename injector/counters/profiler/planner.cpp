#include <collector/base/start_thread.h>
#include <collector/schedule/computed_plan.h>
#include <injector/counters/profiler/device_support.h>
#include <injector/counters/profiler/planner.h>
#include <injector/process/energy_meter.h>
#include <injector/process/helper_threads.h>
#include <injector/process/log.h>
#include <injector/process/this_thread.h>
#include <injector/vendor/cupti_structs.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "doctor_findings.h"

namespace flopinj {
namespace {

constexpr auto kVisitEvery = std::chrono::milliseconds(50);
constexpr auto kMostForEnergy = std::chrono::seconds(2);

// Of the chip with this driver and CUPTI.
Findings findings_of(const Edge& edge, const std::string& chip) {
  const std::string file =
      edge.settings.findings + "/" +
      findings_name(edge.cuda.simulated, chip, driver_version(edge.cuda), edge.cupti.version);
  bool understood = false;
  std::optional<Findings> findings = read_findings(file, understood);
  if (understood)
    edge.collector->diagnostic(Severity::kInfo, "counters.checked",
                               "counts were compared with theory by flopinj doctor --count");
  else if (findings)
    log::warn({file, " is not understood, and ignored: flopinj doctor --count makes it anew"});
  return findings ? *std::move(findings) : Findings{};
}

}  // namespace

void Planner::device_seen(uint32_t ordinal) {
  const MutexLock lock(mutex_);
  if (ordinal >= kMostDevices || stopping_) return;
  if (!seen_[ordinal]) {
    queue_.push_back(ordinal);  // first: where there is no memory, the next call tries again
    seen_[ordinal] = true;
    changed_.notify_all();
  }
  if (running_) return;
  pthread_t thread{};
  running_ = start_thread(thread, [this] { run(); });
  if (!running_)
    return edge_.collector->diagnostic(Severity::kWarning, "counters.thread",
                                       "no thread for planning measurements: no counters are read");
  pthread_detach(thread);  // at exit it is waited for by its flag, no longer than is reasonable
}

void Planner::run() {
  const RecursionGuard guard;
  count_helper_thread("flopinj-planner");
  // What this thread asks of the driver must not spoil a capture that the program makes elsewhere.
  auto relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (edge_.cuda.ThreadExchangeStreamCaptureMode != nullptr)
    edge_.cuda.ThreadExchangeStreamCaptureMode(&relaxed);
  auto next_visit = std::chrono::steady_clock::now() + kVisitEvery;
  MutexLock lock(mutex_);
  while (!stopping_ || !queue_.empty()) {  // what a device is, a report needs in any case
    if (answer_asked(lock)) continue;
    if (queue_.empty()) {
      if (!visiting_) {
        changed_.wait(lock.native());
        next_visit = std::chrono::steady_clock::now() + kVisitEvery;
        continue;
      }
      const auto has_more = [&]() FLOPINJ_REQUIRES(mutex_) {
        return stopping_ || !queue_.empty() || asked_ != answered_;
      };
      changed_.wait_until(lock.native(), next_visit,
                          [&]() FLOPINJ_REQUIRES(mutex_) { return hurried_ || has_more(); });
      if (has_more()) continue;
      next_visit = std::chrono::steady_clock::now() + kVisitEvery;
      visiting_ = hurried_ = false;
      lock.unlock();
      const bool again = visit_();
      lock.lock();
      visiting_ |= again;
      continue;
    }
    const uint32_t ordinal = queue_.front();
    queue_.pop_front();
    const bool ending = stopping_;
    lock.unlock();
    try {
      std::string chip;
      describe_device(ordinal, chip);
      if (auto plan = ending ? nullptr : make_plan(ordinal, chip))
        plans_[ordinal].store(plan.release());
    } catch (const std::exception& e) {
      degrade("counters.failed", e.what());
    }
    lock.lock();
    done_[ordinal] = true;
    changed_.notify_all();
  }
  helper_thread_ended();
  running_ = false;
  changed_.notify_all();
}

bool Planner::answer_asked(MutexLock& lock) {
  if (asked_ == answered_) return false;
  const uint64_t asked = asked_;
  {
    const MutexUnlock meanwhile(mutex_, lock);
    answer_();
  }
  answered_ = asked;
  changed_.notify_all();
  return true;
}

bool Planner::pause(std::chrono::nanoseconds duration) {
  const auto until = std::chrono::steady_clock::now() + duration;
  MutexLock lock(mutex_);
  const auto disturbed = [&]()
                             FLOPINJ_REQUIRES(mutex_) { return stopping_ || asked_ != answered_; };
  do {
    changed_.wait_until(lock.native(), until, disturbed);
  } while (!stopping_ && answer_asked(lock) && std::chrono::steady_clock::now() < until);
  return !stopping_;
}

void Planner::visit_soon() {
  const MutexLock lock(mutex_);
  visiting_ = true;
  changed_.notify_all();
}

void Planner::visit_now() {
  const MutexLock lock(mutex_);
  visiting_ = hurried_ = true;
  changed_.notify_all();
}

bool Planner::ask(std::chrono::nanoseconds most) {
  const NoCancellation whole;
  MutexLock lock(mutex_);
  if (!running_ || stopping_) return false;
  const uint64_t mine = ++asked_;
  changed_.notify_all();
  const auto answered = [&]() FLOPINJ_REQUIRES(mutex_) { return answered_ >= mine; };
  changed_.wait_for(lock.native(), most, [&]() FLOPINJ_REQUIRES(mutex_) {
    return answered() || stopping_ || !running_;
  });
  return answered();
}

void Planner::wait(uint32_t ordinal, uint32_t most_ms) {
  if (ordinal >= kMostDevices) return;
  const NoCancellation whole;
  MutexLock lock(mutex_);
  changed_.wait_for(
      lock.native(), std::chrono::milliseconds(most_ms),
      [&]() FLOPINJ_REQUIRES(mutex_) { return done_[ordinal] || stopping_ || !running_; });
  awaited_[ordinal].store(true, std::memory_order_relaxed);
}

Planner::~Planner() {
  for (const auto& plan : plans_) delete plan.load();
}

bool Planner::stop() {
  constexpr auto kMost = std::chrono::seconds(2);
  MutexLock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock.native(), kMost,
                           [&]() FLOPINJ_REQUIRES(mutex_) { return !running_; });
}

void Planner::describe_device(uint32_t ordinal, std::string& chip) {
  const CudaApi& cuda = edge_.cuda;
  DeviceInfo info;
  CUdevice device = 0;
  if (cuda.DeviceGet != nullptr &&
      cuda.DeviceGet(&device, static_cast<int>(ordinal)) == CUDA_SUCCESS) {
    const auto attribute = [&](CUdevice_attribute which) {
      int value = 0;
      if (cuda.DeviceGetAttribute == nullptr ||
          cuda.DeviceGetAttribute(&value, which, device) != CUDA_SUCCESS || value < 0)
        return 0U;
      return static_cast<uint32_t>(value);
    };
    info.compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    info.compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    info.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info.clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    info.memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    info.memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    std::array<char, 256> name{};
    if (cuda.DeviceGetName != nullptr &&
        cuda.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device) == CUDA_SUCCESS)
      info.name = name.data();
    size_t bytes = 0;
    if (cuda.DeviceTotalMem != nullptr && cuda.DeviceTotalMem(&bytes, device) == CUDA_SUCCESS)
      info.memory_bytes = bytes;
    CUuuid uuid{};
    if (cuda.DeviceGetUuid != nullptr && cuda.DeviceGetUuid(&uuid, device) == CUDA_SUCCESS)
      std::memcpy(info.uuid.data(), uuid.bytes, info.uuid.size());
  }
  if (edge_.cupti.range_profiler) {
    auto p = sized<CUpti_Device_GetChipName_Params>();
    p.deviceIndex = ordinal;
    if (edge_.cupti.DeviceGetChipName(&p) == CUPTI_SUCCESS && p.pChipName != nullptr)
      chip = p.pChipName;
  }
  info.chip = chip;
  edge_.collector->add_device(DeviceId{ordinal + 1}, info);
  // Waited for, so that the energy of the first kernel that waits for the plan is read.
  if (edge_.energy != nullptr) edge_.energy->open(DeviceId{ordinal + 1}, info.uuid, kMostForEnergy);
}

bool Planner::supported(uint32_t ordinal, Problem& problem) {
  const CuptiApi& cupti = edge_.cupti;
  // Does not succeed everywhere it could (it returns CUPTI_ERROR_UNKNOWN where there is no driver),
  // and what follows says better what is wrong.
  auto initialize = sized<CUpti_Profiler_Initialize_Params>();
  cupti.ProfilerInitialize(&initialize);

  CUdevice device = 0;
  if (edge_.cuda.DeviceGet != nullptr) edge_.cuda.DeviceGet(&device, static_cast<int>(ordinal));
  // CUPTI's guide 13 (2.12): "not supported under MPS". CUPTI itself is not asked, for a refusal
  // would come within the program's calls.
  if (int shared = 0; edge_.cuda.DeviceGetAttribute != nullptr &&
                      edge_.cuda.DeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MPS_ENABLED,
                                                    device) == CUDA_SUCCESS &&
                      shared != 0) {
    problem = {"counters.mps",
               "the GPU is shared by MPS, under which NVIDIA supports no counters: kernels are "
               "timed; to count FLOP, run without MPS"};
    return false;
  }
  auto p = sized<CUpti_Profiler_DeviceSupported_Params>();
  p.cuDevice = device;
  p.api = CUPTI_PROFILER_RANGE_PROFILING;
  if (cupti.ProfilerDeviceSupported(&p) != CUPTI_SUCCESS) return true;  // not known: try
  const DeviceSupport support = device_support(p, problem);
  if (support == DeviceSupport::kLimited)
    edge_.collector->diagnostic(Severity::kWarning, problem.code, problem.line);
  return support != DeviceSupport::kRefused;
}

std::unique_ptr<DevicePlan> Planner::make_plan(uint32_t ordinal, const std::string& chip) {
  if (!edge_.measures || !edge_.cupti.range_profiler) return nullptr;
  Problem problem;
  if (chip.empty()) {
    degrade("counters.chip", "CUPTI does not tell the chip of device " + std::to_string(ordinal));
    return nullptr;
  }
  if (!supported(ordinal, problem)) {
    degrade(problem.code, problem.line);
    return nullptr;
  }
  const ChipPlan* const ready =
      chip_plan({chip, availability_ ? availability_(ordinal) : std::vector<uint8_t>()});
  if (ready == nullptr) return nullptr;
  auto plan = std::make_unique<DevicePlan>();
  plan->groups = ready->groups;
  if (ready->joint.group != nullptr) plan->joint = &ready->joint;
  if (ready->unpatched.group != nullptr) plan->unpatched = &ready->unpatched;
  plan->shown = ready->shown;
  for (const GroupId id : edge_.collector->add_plan(DeviceId{ordinal + 1}, chip, ready->wanted))
    if (id) plan->ids.push_back(id);
  if (plan->groups.empty() || plan->ids.size() != plan->groups.size()) return nullptr;
  if (edge_.settings.mode == Mode::kFull && plan->joint == nullptr) return nullptr;
  log::debug("device " + std::to_string(ordinal) + ", chip " + chip + ": " +
             std::to_string(plan->groups.size()) + " groups of counters are ready");
  return plan;
}

std::vector<MetricGroupPlan> Planner::wanted_for(const ChipCounters& counters) {
  const std::string& chip = counters.chip;
  std::vector<MetricGroupPlan> wanted = metric_plan_for(chip);
  if (!wanted.empty()) return wanted;
  wanted = compute_metric_plan(chip, metrics_of_chip(edge_.cupti, counters),
                               [&](const std::vector<std::string>& metrics) {
                                 return passes_of(edge_.cupti, counters, metrics);
                               });
  edge_.collector->diagnostic(
      Severity::kWarning, "counters.chip_unknown",
      "chip " + chip +
          " is not in flopinj's table: its metrics were chosen by the names that CUPTI gives them, "
          "and every kernel is measured with all of them");
  return wanted;
}

// With a word where it lacks metrics that it can be read without.
std::unique_ptr<MetricGroup> Planner::ready_group(const ChipCounters& counters,
                                                  const MetricGroupPlan& wanted, Problem& problem) {
  const Passes passes = edge_.settings.mode == Mode::kFull ? Passes::kAny : Passes::kOne;
  auto group = prepare_group(edge_.cupti, counters, wanted, passes, problem);
  if (group == nullptr || group->plan.metrics.size() == wanted.metrics.size()) return group;
  std::string lacking;
  for (const std::string& metric : wanted.metrics)
    if (std::ranges::find(group->plan.metrics, metric) == group->plan.metrics.end())
      lacking += (lacking.empty() ? "" : ", ") + metric;
  edge_.collector->diagnostic(Severity::kInfo, "counters.lacking",
                              "metric group " + wanted.name + " is read on " + counters.chip +
                                  " without " + lacking + ", which cannot be read here");
  return group;
}

const ChipPlan* Planner::chip_plan(ChipCounters counters) {
  if (const auto it = chips_.find(counters); it != chips_.end()) return &it->second;
  const std::string chip = counters.chip;
  ChipPlan plan;
  plan.wanted = wanted_for(counters);
  if (edge_.cuda.simulated) add_simulated_metrics(plan.wanted);
  Problem problem;
  std::string lacks_required, required;
  const Findings findings = findings_of(edge_, chip);
  const auto counts_wrong = [&findings](const std::string& metric) {
    return std::ranges::find(findings.leave_out, metric) != findings.leave_out.end();
  };
  plan.shown = {findings.shows(kRegisters), findings.shows(kHandedOn)};
  for (MetricGroupPlan& wanted : plan.wanted) {
    {
      const MutexLock lock(mutex_);
      if (stopping_) return nullptr;
    }
    std::unique_ptr<MetricGroup> group;
    if (wanted.name == "screening") std::erase_if(wanted.metrics, counts_wrong);  // others go on
    if (std::ranges::any_of(wanted.metrics, counts_wrong))
      problem = {"counters.wrong", "it counts wrong here, as flopinj doctor --count has found"};
    else if (wanted.unavailable.empty())
      group = ready_group(counters, wanted, problem);
    else
      problem = {"counters.chip", wanted.unavailable};
    if (group != nullptr) {
      wanted = group->plan;
      plan.groups.push_back(std::move(group));
      continue;
    }
    wanted.unavailable = problem.line;
    problem.line =
        "metric group " + wanted.name + " cannot be measured on " + chip + ": " + problem.line;
    if (wanted.required) lacks_required = problem.line, required = wanted.name;
    edge_.collector->diagnostic(Severity::kWarning, problem.code + "." + wanted.name, problem.line);
  }
  const bool bounded = std::ranges::any_of(
      plan.groups, [&](const auto& group) { return group->plan.instead_of == required; });
  // Without a count nor a bound of any launch nothing is worth its cost.
  if (!lacks_required.empty() && !bounded) {
    for (MetricGroupPlan& group : plan.wanted)
      if (group.unavailable.empty()) group.unavailable = "not measured: " + lacks_required;
    plan.groups.clear();
    degrade("counters.required", lacks_required);
  }
  if (edge_.settings.mode == Mode::kFull && !plan.groups.empty()) put_together(plan, counters);
  // The availability image, which host objects were made of, stays where it is.
  return &chips_.emplace(std::move(counters), std::move(plan)).first->second;
}

// A group that bounds what another counts is read where that one is not.
void Planner::put_together(ChipPlan& plan, const ChipCounters& counters) {
  GroupSet all, unpatched;
  for (uint32_t g = 0; g < plan.groups.size(); ++g) {
    const MetricGroupPlan& group = plan.groups[g]->plan;
    const bool counted = std::ranges::any_of(
        plan.groups, [&](const auto& other) { return other->plan.name == group.instead_of; });
    if (!counted) all |= GroupSet(g);
    if (!group.instrumented) unpatched |= GroupSet(g);
  }
  plan.joint = joint_of(plan, counters, all);
  if (unpatched != all && plan.joint.group != nullptr && !unpatched.empty())
    plan.unpatched = joint_of(plan, counters, unpatched);
}

JointGroup Planner::joint_of(const ChipPlan& plan, const ChipCounters& counters, GroupSet parts) {
  MetricGroupPlan all;
  all.name = "all groups";
  for (const uint32_t g : parts) {
    const std::vector<std::string>& metrics = plan.groups[g]->plan.metrics;
    all.metrics.insert(all.metrics.end(), metrics.begin(), metrics.end());
  }
  Problem problem;
  JointGroup joint{prepare_group(edge_.cupti, counters, all, Passes::kAny, problem), parts};
  if (joint.group == nullptr) degrade(problem.code, problem.line);
  return joint;
}

void Planner::degrade(std::string_view code, std::string_view line) noexcept {
  edge_.collector->diagnostic(Severity::kError, code, line);
  if (!std::exchange(counters_said_, true))
    log::warn({line, "; no counters are read, only launches and times"});
}

}  // namespace flopinj
