#include <injector/operators.h>
#include <injector/process/contained.h>

namespace flopinj {
namespace {

uint64_t plus_1(int64_t sequence) { return sequence < 0 ? 0 : static_cast<uint64_t>(sequence) + 1; }

// The calling thread's ranges. Null while nothing is recorded.
RangeStack* ranges(const RecursionGuard& guard) {
  ThreadState* const thread = session_edge() != nullptr ? thread_state(guard) : nullptr;
  return thread != nullptr ? &thread->ranges : nullptr;
}

int push(uint64_t hash, int64_t sequence) {
  return while_recorded(0, [=](const RecursionGuard& guard) {
    RangeStack* const stack = ranges(guard);
    return stack == nullptr || stack->push_known(hash, plus_1(sequence)) ? 0 : 1;
  });
}

void push_named(uint64_t hash, int64_t sequence, const char* name, uint64_t bytes) {
  while_recorded(0, [=](const RecursionGuard& guard) {
    if (RangeStack* const stack = ranges(guard); stack != nullptr && name != nullptr)
      stack->push_named(hash, plus_1(sequence), {name, bytes});
    return 0;
  });
}

void pop() {
  while_recorded(0, [=](const RecursionGuard& guard) {
    if (RangeStack* const stack = ranges(guard); stack != nullptr) stack->pop_known();
    return 0;
  });
}

constexpr FlopinjOperators kOperators = {sizeof(FlopinjOperators), push, push_named, pop};

}  // namespace

const FlopinjOperators* operators() noexcept {
  return contain(static_cast<const FlopinjOperators*>(nullptr), [] {
    return session_edge() != nullptr || session_phase() != Phase::kOff ? &kOperators : nullptr;
  });
}

}  // namespace flopinj
