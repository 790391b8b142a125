// What is not measured, or not any more: launches that could fail for it, and what CUPTI refuses.
#include <injector/counters/windows/instrumenting.h>
#include <injector/counters/windows/windows.h>
#include <injector/process/log.h>
#include <injector/process/process.h>
#include <injector/process/thread_context.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace flopinj {
namespace {

// Free device memory below which no kernel is instrumented: its code and counters need some, and
// the program's launch fails where they find none.
constexpr size_t kReservedBytes = size_t{512} << 20;

uint32_t ordinal_of(DeviceId device) { return device.value - 1; }

// What a program's own mistake in a launch ends with, whether a window is open or not.
bool is_programs_mistake(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_NOT_SUPPORTED:
      return true;
    default:
      return false;
  }
}

// A kernel that ran failed, and with it its context: calls from then on have its error. CUDA's
// documents say so of each of these.
bool is_of_earlier_work(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

}  // namespace

// The program's launch needs what instrumented code needs too, and fails where it is not there.
bool Windows::may_instrument(Context& context, const ThreadContext& thread, const DevicePlan& plan,
                             GroupSet groups) {
  if (edge_.cuda.instruments_all) return true;
  const uint32_t group = *groups.begin();
  const Signature& signature = *thread.launch.signature;
  if (thread.launch.asked.cooperative) {  // all its blocks must be resident at once
    for (const uint32_t g : groups) scheduler_.cannot_measure_launch(context.device, signature, g);
    if (!cooperative_said_.exchange(true, std::memory_order_relaxed))
      edge_.collector->diagnostic(Severity::kWarning, "counters.cooperative",
                                  "cooperative launches are never instrumented: of kernels that "
                                  "are only launched so tensor FLOP are counted, and all others "
                                  "have an upper bound");
    return false;
  }
  if (!fits_instrumented(signature, plan.shown)) {
    for (const uint32_t g : groups) scheduler_.cannot_measure(context.device, signature, g);
    // Of a kernel that this launch loads they are known behind it, and say then what it is.
    if (signature.function->info.registers_per_thread == 0 && !edge_.late) return false;
    edge_.collector->diagnostic(
        Severity::kWarning, "counters.registers",
        "launches whose blocks have no room for " + std::to_string(kInstrumentedRegisters) +
            " more registers for each thread are never instrumented, nor are kernels whose warps "
            "hand registers to others: their tensor FLOP are counted, and all others have an upper "
            "bound. Where the registers are not known, as of kernels from before the recording, a "
            "block of at most 256 threads has room");
    return false;
  }
  const uint64_t began = edge_.cuda.clock_ns();
  const std::optional<size_t> free = questions_.free_memory(context, patience_.for_launches);
  scheduler_.add_cost(edge_.cuda.clock_ns() - began);
  return free && has_memory(context, plan, group, *free);  // else the next launch asks again
}

bool Windows::has_memory(const Context& context, const DevicePlan& plan, uint32_t group,
                         size_t free_bytes) {
  if (free_bytes >= kReservedBytes) return true;
  refused(context.device, plan, group,
          {"counters.device_memory",
           "less than " + std::to_string(kReservedBytes >> 20) +
               " MiB of device memory is free, or the driver does not say how much: kernels are "
               "not instrumented meanwhile",
           false, true});
  return false;
}

// A launch inside a window failed, and perhaps would not have failed outside: no window of its kind
// is opened any more, and an open one ends before the next launch.
void Windows::launch_failed(const Context& context, const OpenWindow& window,
                            const Signature* signature, CUresult result) {
  if (is_programs_mistake(result)) return;
  if (failed(window.instrumented).exchange(true, std::memory_order_relaxed)) return;
  scheduler_.disable(context.device, window.measured.group);
  std::string launch = "a launch of " + name_of(signature);
  if (is_of_earlier_work(result)) {
    const std::vector<WindowRow>& rows = window.measured.rows;
    launch = rows.empty() ? "a launch before one of " + name_of(signature)
                          : "a launch of " + name_of(rows.back().signature) + ", or one before it,";
  }
  const std::string line =
      launch + " failed with CUDA error " + std::to_string(static_cast<int>(result)) +
      " inside a window " +
      (window.instrumented ? "that instruments kernels" : "that reads hardware counters") +
      ": no such window is opened any more in this process. Where the program ends by that "
      "failure, run it with --mode timing, or name the kernel with --never-measure";
  edge_.collector->diagnostic(Severity::kError, "counters.launch_failed", line);
  log::warn(line);
}

// False: nothing can be measured.
bool Windows::disagreed(const Context& context, OpenWindow& window, Problem& problem) {
  std::string news;
  switch (size_.disagreed(window.measured.rows.size(), news)) {
    case WindowSize::Verdict::kEnd:
      problem.line += ", as were the two before it";
      give_up(context.device, problem);
      return false;
    case WindowSize::Verdict::kBlame:
      window.settled = true;
      scheduler_.window_failed(window.measured);
      edge_.collector->diagnostic(Severity::kWarning, problem.code, problem.line);
      return true;
    case WindowSize::Verdict::kAgain:
      edge_.collector->diagnostic(Severity::kWarning, "counters.windows",
                                  problem.line + ": " + news);
      return true;
  }
  return true;
}

// CUPTI refused to open a window of the group, to close one, or to evaluate its counters.
void Windows::refused(DeviceId device, const DevicePlan& plan, uint32_t group,
                      const Problem& problem) {
  if (problem.lasting) return give_up(device, problem);
  const std::string name = plan.joint != nullptr ? "all groups" : plan.groups[group]->plan.name;
  const auto kind = problem.passing ? Backoff::Kind::kPassing : Backoff::Kind::kUnexplained;
  const auto answer = backoff_.pause(device, group, kind, monotonic_ns());
  // What passes is the device's matter, and each group meets it.
  const std::string where = (problem.passing ? "" : "metric group " + name + " on ") + "device " +
                            std::to_string(ordinal_of(device));
  if (answer.pause_ns == 0) {
    scheduler_.disable(device, group);
    const std::string line = problem.line + "; " + where + " is not measured any more after " +
                             std::to_string(answer.attempt) + " refusals";
    edge_.collector->diagnostic(Severity::kError, problem.code, line);
    return log::warn(line);
  }
  scheduler_.pause(device, group);
  const std::string line = problem.line + "; " + where + " is tried again in " +
                           std::to_string(answer.pause_ns / 1'000'000'000) + " s (refusal " +
                           std::to_string(answer.attempt) + ")";
  edge_.collector->diagnostic(Severity::kWarning, problem.code, line);
  if (!refusal_said_.exchange(true))
    log::warn(line);
  else
    log::info(line);
  planner_.visit_soon();
}

// Nothing on this device can be measured, now or later.
void Windows::give_up(DeviceId device, const Problem& problem) {
  scheduler_.disable(device);
  edge_.collector->diagnostic(Severity::kError, problem.code, problem.line);
  log::warn(problem.line + "; device " + std::to_string(ordinal_of(device)) +
            " goes on without counters, launches and times are recorded");
}

}  // namespace flopinj
