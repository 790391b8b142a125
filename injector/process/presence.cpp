#include <collector/base/mutex.h>
#include <injector/process/presence.h>
#include <injector/process/process_state.h>
#include <injector/process/this_thread.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace flopinj {
namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

// False until the kernel has agreed: a process has to say that it will use it.
std::atomic<bool> g_kernel_orders{false};

void full_fence() noexcept {
#ifdef __SANITIZE_THREAD__  // which knows no fences
  static constinit std::atomic<uint32_t> fence{0};
  fence.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

Presence* make_presence() noexcept {
  if (!g_kernel_orders.load(std::memory_order_relaxed) &&
      membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
    g_kernel_orders.store(true, std::memory_order_relaxed);
  try {
    auto presence = std::make_unique<Presence>();
    {
      Presences& presences = process_state().presences;
      const MutexLock lock(presences.mutex);
      presences.all.push_back(presence.get());
    }
    this_thread_slot.presence = presence.release();
    hand_back_at_end_of_thread();
  } catch (const std::exception&) {
  }
  return this_thread_slot.presence;
}

}  // namespace

Visit::Visit(const RecursionGuard&) noexcept : presence_(this_thread_slot.presence) {
  if (presence_ == nullptr && (presence_ = make_presence()) == nullptr) return;
  presence_->visits.store(presence_->visits.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  if (g_kernel_orders.load(std::memory_order_relaxed))
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    full_fence();
}

// A thread seen outside once has ended the visits that matter; so has one that is gone.
bool visits_ended(std::chrono::milliseconds at_most) noexcept {
  constexpr auto kLookEvery = std::chrono::milliseconds(1);
  full_fence();
  if (g_kernel_orders.load(std::memory_order_relaxed) &&
      !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
    return false;
  const auto give_up = std::chrono::steady_clock::now() + at_most;
  try {
    Presences& presences = process_state().presences;
    std::vector<Presence*> awaited;
    {
      const MutexLock lock(presences.mutex);
      awaited = presences.all;
    }
    std::erase(awaited, this_thread_slot.presence);
    for (;;) {
      {
        const MutexLock lock(presences.mutex);
        std::erase_if(awaited, [&](const Presence* presence) FLOPINJ_REQUIRES(presences.mutex) {
          return std::ranges::find(presences.all, presence) == presences.all.end() ||
                 presence->visits.load(std::memory_order_acquire) == 0;
        });
      }
      if (awaited.empty()) return true;
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(kLookEvery);
    }
  } catch (const std::exception&) {
    return false;
  }
}

void forget_presence() noexcept {
  const std::unique_ptr<Presence> ended(std::exchange(this_thread_slot.presence, nullptr));
  Presences& presences = process_state().presences;
  const MutexLock lock(presences.mutex);
  std::erase(presences.all, ended.get());
}

}  // namespace flopinj
