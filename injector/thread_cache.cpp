#include <injector/thread_cache.h>
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <mutex>

namespace flopinj {
namespace {

thread_local ThreadCache* t_cache __attribute__((tls_model("initial-exec"))) = nullptr;

// Leaked: threads may outlive static objects.
struct Registry {
  std::mutex mutex;
  std::vector<ThreadCache*> caches;
};
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

void end_of_thread(void*) {
  const std::unique_ptr<ThreadCache> cache(t_cache);
  t_cache = nullptr;
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().caches, cache.get());
}

pthread_key_t end_of_thread_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, end_of_thread);
    return made;
  }();
  return key;
}

ThreadCache* make_cache() noexcept {
  try {
    auto cache = std::make_unique<ThreadCache>();
    {
      const std::lock_guard lock(registry().mutex);
      registry().caches.push_back(cache.get());
    }
    t_cache = cache.release();
    pthread_setspecific(end_of_thread_key(), t_cache);
    return t_cache;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

ThreadCache* thread_cache() noexcept { return t_cache != nullptr ? t_cache : make_cache(); }

bool others_launching(const ThreadCache& self, const Context& context) noexcept {
  const std::lock_guard lock(registry().mutex);
  return std::ranges::any_of(registry().caches, [&](const ThreadCache* cache) {
    return cache != &self && cache->launching.load(std::memory_order_seq_cst) == &context;
  });
}

}  // namespace flopinj
