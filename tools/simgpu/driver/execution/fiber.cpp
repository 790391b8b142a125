// One stack switch is: tell the sanitizers, save the registers a call preserves, change the stack
// pointer, restore. Every fiber loops for ever: wait for work, run it, mark it done; so a stack is
// set up once and reused.
#include "driver/execution/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SIMGPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMGPU_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SIMGPU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIMGPU_TSAN 1
#endif
#endif
#ifdef SIMGPU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SIMGPU_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace simgpu {
namespace {

constexpr size_t kPageBytes = 4096;
#if defined(SIMGPU_ASAN) || defined(SIMGPU_TSAN)
constexpr size_t kStackBytes = 256 * 1024;
#else
constexpr size_t kStackBytes = 64 * 1024;
#endif

// Where a suspended stack continues, and what the sanitizers know it by.
struct Stack {
#if defined(__x86_64__)
  void* sp = nullptr;
#else
  ucontext_t context{};
#endif
  const void* bottom = nullptr;
  size_t bytes = 0;
  void* fake_stack = nullptr;
  void* tsan_fiber = nullptr;
};

#if defined(__x86_64__)
// void simgpu_switch_stack(void** save_sp, void* next_sp)
extern "C" void simgpu_switch_stack(void**, void*);
extern "C" void simgpu_start_fiber();
asm(R"(
  .text
  .local simgpu_switch_stack
  .type simgpu_switch_stack, @function
simgpu_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size simgpu_switch_stack, .-simgpu_switch_stack

  .local simgpu_start_fiber
  .type simgpu_start_fiber, @function
simgpu_start_fiber:
  movq %r12, %rdi
  call *%rbx
  ud2
  .size simgpu_start_fiber, .-simgpu_start_fiber
)");
#endif

void switch_stack(Stack& from, Stack& to) {
#ifdef SIMGPU_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.bytes);
#endif
#ifdef SIMGPU_TSAN
  __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
#if defined(__x86_64__)
  simgpu_switch_stack(&from.sp, to.sp);
#else
  swapcontext(&from.context, &to.context);
#endif
#ifdef SIMGPU_ASAN
  const void* came_from = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(from.fake_stack, &came_from, &bytes);
  to.bottom = came_from;  // the first time, this is how the scheduler's own stack becomes known
  to.bytes = bytes;
#endif
}

}  // namespace

class Fiber {
 public:
  Fiber() {
    void* p = mmap(nullptr, kStackBytes + kPageBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    mapping_ = p;
    mprotect(mapping_, kPageBytes, PROT_NONE);  // overflow faults instead of spreading
    stack_.bottom = static_cast<char*>(mapping_) + kPageBytes;
    stack_.bytes = kStackBytes;
#ifdef SIMGPU_TSAN
    stack_.tsan_fiber = __tsan_create_fiber(0);
#endif
    prepare();
  }
  ~Fiber() {
#ifdef SIMGPU_TSAN
    __tsan_destroy_fiber(stack_.tsan_fiber);
#endif
    munmap(mapping_, kStackBytes + kPageBytes);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void give(void (*body)(void*, size_t), void* arg, size_t index) {
    body_ = body;
    arg_ = arg;
    index_ = index;
    done_ = false;
  }
  bool done() const { return done_; }

  void resume() {
#ifdef SIMGPU_TSAN
    scheduler_.tsan_fiber = __tsan_get_current_fiber();
#endif
    switch_stack(scheduler_, stack_);
  }
  void suspend() { switch_stack(stack_, scheduler_); }

 private:
  static void entry(Fiber* self) {
#ifdef SIMGPU_ASAN
    const void* bottom = nullptr;
    size_t bytes = 0;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
    self->scheduler_.bottom = bottom;
    self->scheduler_.bytes = bytes;
#endif
    for (;;) {
      self->body_(self->arg_, self->index_);
      self->done_ = true;
      self->suspend();
    }
  }

#if defined(__x86_64__)
  // The first switch pops six registers and returns into the trampoline, which calls %rbx with the
  // argument in %r12.
  void prepare() {
    auto* top =
        reinterpret_cast<uint64_t*>(static_cast<char*>(mapping_) + kPageBytes + kStackBytes);
    *--top = 0;  // keeps the stack 16-byte aligned at the trampoline's call
    *--top = 0;
    *--top = reinterpret_cast<uint64_t>(&simgpu_start_fiber);
    *--top = 0;                                   // rbp
    *--top = reinterpret_cast<uint64_t>(&entry);  // rbx
    *--top = reinterpret_cast<uint64_t>(this);    // r12
    for (int i = 0; i < 3; ++i) *--top = 0;       // r13, r14, r15
    stack_.sp = top;
  }
#else
  static void start(unsigned low, unsigned high) {
    entry(reinterpret_cast<Fiber*>(uintptr_t{low} | uintptr_t{high} << 32));
  }
  void prepare() {
    getcontext(&stack_.context);
    stack_.context.uc_stack.ss_sp = const_cast<void*>(stack_.bottom);
    stack_.context.uc_stack.ss_size = stack_.bytes;
    stack_.context.uc_link = nullptr;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&stack_.context, reinterpret_cast<void (*)()>(&start), 2,
                static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
  }
#endif

  void* mapping_ = nullptr;
  Stack stack_, scheduler_;
  void (*body_)(void*, size_t) = nullptr;
  void* arg_ = nullptr;
  size_t index_ = 0;
  bool done_ = true;
};

FiberPool::FiberPool() = default;
FiberPool::~FiberPool() = default;

void FiberPool::run(size_t count, void (*body)(void*, size_t), void (*before)(void*, size_t),
                    void* arg) {
  while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>());
  for (size_t i = 0; i < count; ++i) fibers_[i]->give(body, arg, i);
  for (size_t running = count; running > 0;) {
    for (size_t i = 0; i < count; ++i) {
      Fiber& fiber = *fibers_[i];
      if (fiber.done()) continue;
      before(arg, i);
      current_ = &fiber;
      fiber.resume();
      if (fiber.done()) --running;
    }
  }
  current_ = nullptr;
}

void FiberPool::yield() { current_->suspend(); }

}  // namespace simgpu
