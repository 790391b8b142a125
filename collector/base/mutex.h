// Locks that clang checks (-Wthread-safety): a member that a lock guards says so by
// FLOPINJ_GUARDED_BY, a function that wants it held by FLOPINJ_REQUIRES. For other compilers these
// are the standard library's locks, and nothing else.
#pragma once
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

#ifdef __clang__
#define FLOPINJ_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define FLOPINJ_THREAD_SAFETY(attribute)
#endif
#define FLOPINJ_GUARDED_BY(mutex) FLOPINJ_THREAD_SAFETY(guarded_by(mutex))
#define FLOPINJ_REQUIRES(...) FLOPINJ_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define FLOPINJ_REQUIRES_SHARED(...) FLOPINJ_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
#define FLOPINJ_ACQUIRE(...) FLOPINJ_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define FLOPINJ_ACQUIRE_SHARED(...) FLOPINJ_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define FLOPINJ_RELEASE(...) FLOPINJ_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define FLOPINJ_RELEASE_ANY(...) FLOPINJ_THREAD_SAFETY(release_generic_capability(__VA_ARGS__))
#define FLOPINJ_TRY_ACQUIRE(...) FLOPINJ_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
// For a function that may touch what a lock guards without it; a comment there says why.
#define FLOPINJ_UNCHECKED_LOCKS FLOPINJ_THREAD_SAFETY(no_thread_safety_analysis)

namespace flopinj {

class FLOPINJ_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  // True is followed by a MutexLock with std::adopt_lock at once. Looks again and again: thread
  // sanitizers do not understand a lock that is waited for by a clock that cannot be set.
  bool try_lock_for(std::chrono::milliseconds most) FLOPINJ_TRY_ACQUIRE(true) {
    constexpr auto kLookEvery = std::chrono::microseconds(200);
    const auto give_up = std::chrono::steady_clock::now() + most;
    while (!mutex_.try_lock()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(kLookEvery);
    }
    return true;
  }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Held until the end of the scope; may be let go and taken again in between.
class FLOPINJ_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) FLOPINJ_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  MutexLock(Mutex& mutex, std::adopt_lock_t held) FLOPINJ_REQUIRES(mutex)
      : lock_(mutex.mutex_, held) {}
  ~MutexLock() FLOPINJ_RELEASE() {}
  void lock() FLOPINJ_ACQUIRE() { lock_.lock(); }
  void unlock() FLOPINJ_RELEASE() { lock_.unlock(); }
  // For condition variables, which hold it again when they return.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Let go until the end of the scope, in a function that is called with the lock held.
class FLOPINJ_THREAD_SAFETY(scoped_lockable) MutexUnlock {
 public:
  // `lock` holds `mutex`.
  MutexUnlock(Mutex& mutex, MutexLock& lock) FLOPINJ_RELEASE(mutex) : lock_(lock.native()) {
    static_cast<void>(mutex);  // for the analysis alone
    lock_.unlock();
  }
  ~MutexUnlock() FLOPINJ_RELEASE() { lock_.lock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  std::unique_lock<std::mutex>& lock_;
};

// Many readers, or one writer.
class FLOPINJ_THREAD_SAFETY(capability("shared_mutex")) SharedMutex {
 private:
  friend class ReaderLock;
  friend class WriterLock;
  std::shared_mutex mutex_;
};

class FLOPINJ_THREAD_SAFETY(scoped_lockable) ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) FLOPINJ_ACQUIRE_SHARED(mutex) : lock_(mutex.mutex_) {}
  ~ReaderLock() FLOPINJ_RELEASE_ANY() {}

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

class FLOPINJ_THREAD_SAFETY(scoped_lockable) WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) FLOPINJ_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~WriterLock() FLOPINJ_RELEASE() {}

 private:
  std::unique_lock<std::shared_mutex> lock_;
};

}  // namespace flopinj
