// Shuts a context's gate (windows.h) for a scope. Private to windows.
#pragma once
#include <injector/counters/access/contexts.h>

namespace flopinj {

// Shuts the gate. It opens again at the end of the scope, whatever happens, unless a window is left
// open behind it.
class ShutGate {
 public:
  explicit ShutGate(Context& context) : gate_(context.gate) {
    gate_.store(true, std::memory_order_seq_cst);
  }
  ~ShutGate() {
    if (!kept_) gate_.store(false, std::memory_order_seq_cst);
  }
  ShutGate(const ShutGate&) = delete;
  ShutGate& operator=(const ShutGate&) = delete;
  void keep() { kept_ = true; }

 private:
  std::atomic<bool>& gate_;
  bool kept_ = false;
};

}  // namespace flopinj
