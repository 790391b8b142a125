// Reports to the simulated CUPTI, through the one Observer that it installs.
#pragma once
#include <simgpu/hooks.h>

#include <utility>

namespace simgpu {

// Installs `observer`, or removes the present one when null. Returns when no thread is inside a
// call of the one before; a thread that calls this from within such a call does not wait for
// itself.
void set_observer(const Observer* observer);

// While one of these is alive, the observer seen in it stays valid. Nothing is seen when none is
// installed, or inside a call of the observer (a tool's own driver calls are not reported back to
// it).
class ObserverGuard {
 public:
  // `nested`: the observer is seen inside a call of itself too.
  explicit ObserverGuard(bool nested = false);
  ~ObserverGuard();
  ObserverGuard(const ObserverGuard&) = delete;
  ObserverGuard& operator=(const ObserverGuard&) = delete;

  const Observer* get() const { return observer_; }
  uint64_t generation() const {
    return generation_;
  }  // changes whenever an observer is installed or removed

 private:
  const Observer* observer_ = nullptr;
  uint64_t generation_ = 0;
};

// Calls the observer's function for this event, if there is one.
template <class... Parameters, class... Arguments>
void tell(void (*Observer::*event)(void*, Parameters...), const Arguments&... arguments) {
  const ObserverGuard guard;
  if (guard.get() != nullptr && guard.get()->*event != nullptr)
    (guard.get()->*event)(guard.get()->self, arguments...);
}

// One driver-API call: reports enter when made and exit in finish(), both or neither to the same
// observer.
class ApiScope {
 public:
  // `host_ns`: what the call costs the program (clock.h); a tool's calls cost nothing.
  ApiScope(uint32_t cbid, const char* name, const void* params, const char* symbol,
           uint32_t host_ns);
  void finish(CUresult result);
  ~ApiScope();
  ApiScope(const ApiScope&) = delete;
  ApiScope& operator=(const ApiScope&) = delete;

  // Of the call this thread is in, or does the deferred work of; 0 outside any.
  static uint32_t current_correlation_id();
  static void set_correlation_id(uint32_t id);

 private:
  void fill_context();

  ApiCall call_{};
  uint64_t correlation_data_ = 0;
  uint64_t generation_ = 0;
  bool entered_ = false;
  uint32_t outer_correlation_id_;
};

}  // namespace simgpu
