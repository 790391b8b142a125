// The calls of the driver that a thread is in, and the one place that matches their ENTER and EXIT.
//
//   ENTER                    enter(): the call has a frame, inside of those that the thread is in
//   EXIT                     find(): the frame of this very call; then end()
//   EXIT without ENTER       find() has none, and nothing is done: the call began before the
//                            callbacks were enabled, or in another recording
//   ENTER without EXIT       the frame ends with the next one around it: an exception has left the
//                            call; or with the thread, which ended inside of it; or it is dropped
//                            with the recording, whose callbacks were disabled meanwhile
//
// What a call has raised or owns belongs to its frame, which takes it back however it ends.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace flopinj {

class CallFrames;
struct Context;

// How a launch has left its window: kUntold: it has no row, though it may have run; kLast: the
// window has all its launches.
enum class LeftWindow : uint8_t { kUntold, kMade, kLast };

// Who is told that a launch has left the window that it owned from its ENTER on.
struct WindowKeeper {
  virtual void left(Context&, const CallFrames& by, LeftWindow how) noexcept = 0;

 protected:
  ~WindowKeeper() = default;
};

// In the order of DriverCall::function.
enum class CallKind : uint8_t { kLaunch, kGraph, kModule, kWait, kStreamEnd, kSync, kGreen };

struct CallFrame {
  uint32_t function = 0, correlation = 0;  // CUPTI's ids: of the driver's function, of this call
  CallKind kind = CallKind::kLaunch;
  bool outermost = true;   // of its kind: the program's own call, and not one that the driver makes
  bool made_node = false;  // of a graph under capture, where it else does or starts something
  std::atomic<uint32_t>* raised = nullptr;  // a count, lowered when the frame ends

  void raise(std::atomic<uint32_t>& count) noexcept {
    lower();
    count.fetch_add(1, std::memory_order_seq_cst);
    raised = &count;
  }
  void lower() noexcept {
    if (raised != nullptr) std::exchange(raised, nullptr)->fetch_sub(1, std::memory_order_seq_cst);
  }
  void stay_raised() noexcept { raised = nullptr; }  // beyond the call
};

// Used by its own thread, but for `launching`.
class CallFrames {
 public:
  static constexpr size_t kMost = 16;  // one inside another

  // Null: deeper than kMost. Such a call has no frame at its EXIT either.
  CallFrame* enter(CallKind kind, uint32_t function, uint32_t correlation) noexcept {
    if (depth_ == kMost) return nullptr;
    const bool outermost = !inside(kind);
    frames_[depth_] = {function, correlation, kind, outermost, false, nullptr};
    return &frames_[depth_++];
  }
  CallFrame* find(uint32_t function, uint32_t correlation) noexcept {
    for (size_t i = depth_; i-- > 0;)
      if (frames_[i].correlation == correlation && frames_[i].function == function)
        return &frames_[i];
    return nullptr;
  }
  // With all frames inside of it.
  void end(const CallFrame& frame) noexcept { end_from(static_cast<size_t>(&frame - &frames_[0])); }
  void end_all() noexcept { end_from(0); }  // the thread ends

  // CUPTI reports a node of a graph, made by the call that the thread is in.
  void made_node() noexcept {
    for (size_t i = depth_; i-- > 0;) {
      CallFrame& frame = frames_[i];
      if (frame.kind == CallKind::kLaunch || frame.kind == CallKind::kWait) frame.made_node = true;
    }
  }
  bool inside(CallKind kind) const noexcept {
    return std::any_of(frames_.begin(), frames_.begin() + depth_,
                       [kind](const CallFrame& frame) { return frame.kind == kind; });
  }

  // Of the outermost launch: the context on which it is made outside of any window; read by the
  // thread that wants to open one.
  std::atomic<const Context*> launching{nullptr};
  // It is in the window of the context, which it owns until it leaves.
  void enter_window(Context& context, WindowKeeper& keeper) noexcept {
    window_ = &context;
    keeper_ = &keeper;
  }
  bool in_window() const noexcept { return window_ != nullptr; }
  // Then the thread must not wait for it.
  bool in_window_of(const Context& context) const noexcept { return window_ == &context; }
  void leave_window(LeftWindow how = LeftWindow::kUntold) noexcept {
    launching.store(nullptr, std::memory_order_release);
    if (window_ != nullptr) keeper_->left(*std::exchange(window_, nullptr), *this, how);
  }

 private:
  void end_from(size_t first) noexcept {
    while (depth_ > first) {
      CallFrame& frame = frames_[--depth_];
      frame.lower();
      if (frame.kind == CallKind::kLaunch && frame.outermost) leave_window();
    }
  }

  std::array<CallFrame, kMost> frames_;
  size_t depth_ = 0;
  Context* window_ = nullptr;
  WindowKeeper* keeper_ = nullptr;
};

}  // namespace flopinj
