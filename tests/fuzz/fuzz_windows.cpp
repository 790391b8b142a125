// Any bytes as an order of calls and answers: two bytes choose whose turn it is, and what it does.
// By the same step() and under the same rules as the test that visits every state of two contexts
// and two launching threads, in a world of three contexts and three launching threads, which is too
// large for that.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "unit/collector/schedule/window_world.h"

namespace {
// Measuring ends seldom, or few orders would get far.
constexpr uint8_t kEndsFrom = 253;
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj;
  using World = test::WindowWorld<3, 3>;
  std::vector<World> next;
  const auto keep = [&](World&& world) { next.push_back(std::move(world)); };
  test::WindowMoves<3, 3, decltype(keep)> moves({3, true, true, true, true}, keep);
  World world(WindowMachine::rows());
  for (size_t i = 0; i + 1 < size && !world.finished; i += 2) {
    next.clear();
    moves.by(world, data[i] % World::kThreads);
    if (next.empty()) moves.all(world);  // it waits for another
    if (!moves.wrong.empty()) {
      std::fprintf(stderr, "%s\n", moves.wrong.c_str());
      std::abort();
    }
    if (next.empty()) continue;
    World& chosen = next[data[i + 1] % next.size()];
    if (chosen.ended && !world.ended && data[i + 1] < kEndsFrom) continue;
    world = std::move(chosen);
  }
  return 0;
}
