#include "ptx/machine.h"

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace simgpu::ptx {
namespace {

constexpr uint64_t kSlice = 1 << 16;      // codes that a warp runs before it is another's turn
constexpr uint32_t kMostBackward = 4096;  // branches back while other groups of the warp wait
constexpr size_t kMostFrames = 512;
constexpr size_t kMostStorage = size_t{1} << 28;
constexpr uint64_t kPatientRounds = 64;  // slices without a block's end, before others begin, too
constexpr size_t kMostBlocksAlive = 4096;
constexpr uint32_t kBarriers = 16;          // of a block
constexpr uint32_t kOfCluster = kBarriers;  // the number of its cluster's

// The processor's rounding and treatment of denormal numbers, for as long as this lives.
class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetround(FE_TONEAREST);
    flush(false);
  }
  ~FloatEnvironment() { std::fesetenv(&before_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

  void set(FloatMode mode) {
    if (mode == mode_) return;
    constexpr int kRoundings[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    if (mode.rounding != mode_.rounding) std::fesetround(kRoundings[mode.rounding]);
    if (mode.flush != mode_.flush) flush(mode.flush);
    mode_ = mode;
  }

 private:
  static void flush(bool on) {
#if defined(__x86_64__)
    constexpr unsigned kFlushAndDenormalsAreZero = 0x8040;
    const unsigned now = _mm_getcsr();
    _mm_setcsr(on ? now | kFlushAndDenormalsAreZero : now & ~kFlushAndDenormalsAreZero);
#elif defined(__aarch64__)
    constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
    uint64_t now = 0;
    asm volatile("mrs %0, fpcr" : "=r"(now));
    now = on ? now | kFlushToZero : now & ~kFlushToZero;
    asm volatile("msr fpcr, %0" : : "r"(now));
#else
    static_cast<void>(on);
#endif
  }

  std::fenv_t before_;
  FloatMode mode_;
};

// Why a warp stopped.
enum class Stop { kEnded, kTurn, kWaits };

class BlockRun {
 public:
  BlockRun(const Program& program, const Kernel& kernel, const Launch& launch, GlobalMemory& memory)
      : program_(program), memory_(memory) {
    block_.launch = &launch;
    block_.kernel = &kernel;
    block_.program = &program;
    threads_ = launch.block.x * launch.block.y * launch.block.z;
    block_.shared.resize(std::max(
        kernel.shared_bytes,
        launch.dynamic_shared_bytes == 0 ? 0 : kernel.dynamic_begin + launch.dynamic_shared_bytes));
    block_.warps.resize((threads_ + kLanes - 1) / kLanes);
  }

  void begin(const Dim3& index, const std::shared_ptr<Cluster>& cluster) {
    block_.index = index;
    cluster_ = cluster;
    block_.cluster = cluster_.get();
    cluster_->blocks.push_back(&block_);
    // Nothing may rely on what another block left there, or on zeros.
    std::ranges::fill(block_.shared, std::byte{0xff});
    block_.barriers = {};
    for (uint32_t i = 0; i < block_.warps.size(); ++i) begin_warp(block_.warps[i], i);
  }

  // Runs each warp for a slice. False: all threads have ended. `progress` where one did more than
  // wait.
  bool run(FloatEnvironment& floats, bool& progress) {
    bool alive = false, all_wait = true;
    for (Warp& warp : block_.warps) {
      if (warp.live == 0) continue;
      const Stop stop = run_warp(warp, floats);
      alive |= stop != Stop::kEnded;
      all_wait &= stop == Stop::kWaits || stop == Stop::kEnded;
      progress |= stop != Stop::kWaits;
    }
    if (!alive) {
      *std::ranges::find(cluster_->blocks, &block_) = nullptr;
      return false;
    }
    if (release_barriers())
      progress = true;
    else if (all_wait && !waits_for_cluster())
      wait_for_ever();
    return true;
  }

  // Lets those go on that wait for the cluster, once all its threads that live have arrived.
  static bool release_cluster(Cluster& cluster) {
    if (!cluster.uses_barrier) return false;
    bool any = false;
    for (const Block* block : cluster.blocks)
      for (size_t i = 0; block != nullptr && i < block->warps.size(); ++i) {
        const Warp& warp = block->warps[i];
        if ((warp.live & ~warp.arrived) != 0) return false;
        any |= warp.arrived != 0;
      }
    if (!any) return false;
    ++cluster.phase;
    for (Block* block : cluster.blocks)
      for (size_t i = 0; block != nullptr && i < block->warps.size(); ++i) {
        Warp& warp = block->warps[i];
        warp.arrived = 0;
        if (warp.live == 0) continue;
        std::vector<Group>& groups = warp.frames.back().groups;
        for (Group& one : std::exchange(groups, {}))
          add(groups, one.wait == Group::Wait::kBarrier && one.barrier == kOfCluster
                          ? Group{one.at + 1, one.lanes, Group::Wait::kNone, 0}
                          : one);
      }
    return true;
  }

  Cluster& cluster() { return *cluster_; }

  [[noreturn]] static void wait_for_ever() {
    throw Fault(CUDA_ERROR_LAUNCH_TIMEOUT,
                "threads wait for each other at barriers, or within a warp, for ever");
  }

 private:
  // --- frames

  // `fresh`: nothing is there yet. Otherwise it is a later block's frame of the same warp, in which
  // only what is said of the block is new.
  static void fill(Warp& warp, const Routine& routine, std::byte* frame, uint32_t local_base,
                   bool fresh) {
    if (fresh)
      for (const Routine::Constant& one : routine.constants)
        for (uint32_t l = 0; l < one.lanes; ++l)
          Warp::put(frame, one.place, one.wide, l, one.value);
    for (const Routine::SpecialPlace& one : routine.specials) {
      if (differs_by_lane(one.which)) {
        for (uint32_t l = 0; fresh && l < kLanes; ++l)
          Warp::put(frame, one.place, one.wide, l, special(warp, one.which, l, local_base));
      } else {
        const uint64_t value = special(warp, one.which, 0, local_base);
        for (uint32_t l = 0; l < kLanes; ++l) Warp::put(frame, one.place, one.wide, l, value);
      }
    }
  }
  static bool differs_by_lane(Special which) {
    switch (which) {
      case Special::kTidX:
      case Special::kTidY:
      case Special::kTidZ:
      case Special::kLaneid:
      case Special::kLanemaskEq:
      case Special::kLanemaskLe:
      case Special::kLanemaskLt:
      case Special::kLanemaskGe:
      case Special::kLanemaskGt:
        return true;
      default:
        return false;
    }
  }
  static uint64_t special(const Warp& warp, Special which, uint32_t lane, uint32_t local_base) {
    const Block& block = *warp.block;
    const Launch& launch = *block.launch;
    const Dim3 &size = launch.block, &grid = launch.grid, &at = block.index;
    const Dim3 cluster = launch.cluster.x == 0 ? Dim3{1, 1, 1} : launch.cluster;
    const uint32_t thread = warp.number * kLanes + lane;
    const Dim3 in_cluster{at.x % cluster.x, at.y % cluster.y, at.z % cluster.z};
    switch (which) {
      case Special::kTidX:
        return thread % size.x;
      case Special::kTidY:
        return thread / size.x % size.y;
      case Special::kTidZ:
        return thread / size.x / size.y;
      case Special::kNtidX:
        return size.x;
      case Special::kNtidY:
        return size.y;
      case Special::kNtidZ:
        return size.z;
      case Special::kCtaidX:
        return at.x;
      case Special::kCtaidY:
        return at.y;
      case Special::kCtaidZ:
        return at.z;
      case Special::kNctaidX:
        return grid.x;
      case Special::kNctaidY:
        return grid.y;
      case Special::kNctaidZ:
        return grid.z;
      case Special::kLaneid:
        return lane;
      case Special::kWarpid:
        return warp.number;
      case Special::kNwarpid:
        return block.warps.size();
      case Special::kSmid:
        return 0;
      case Special::kNsmid:
        return 1;
      case Special::kGridid:
        return launch.grid_id;
      case Special::kLanemaskEq:
        return uint64_t{1} << lane;
      case Special::kLanemaskLe:
        return (uint64_t{2} << lane) - 1;
      case Special::kLanemaskLt:
        return (uint64_t{1} << lane) - 1;
      case Special::kLanemaskGe:
        return kAllLanes & ~((uint64_t{1} << lane) - 1);
      case Special::kLanemaskGt:
        return kAllLanes & ~((uint64_t{2} << lane) - 1);
      case Special::kDynamicShared:
        return launch.dynamic_shared_bytes;
      case Special::kTotalShared:
        return block.shared.size();
      case Special::kClusteridX:
        return at.x / cluster.x;
      case Special::kClusteridY:
        return at.y / cluster.y;
      case Special::kClusteridZ:
        return at.z / cluster.z;
      case Special::kNclusteridX:
        return grid.x / cluster.x;
      case Special::kNclusteridY:
        return grid.y / cluster.y;
      case Special::kNclusteridZ:
        return grid.z / cluster.z;
      case Special::kClusterCtaidX:
        return in_cluster.x;
      case Special::kClusterCtaidY:
        return in_cluster.y;
      case Special::kClusterCtaidZ:
        return in_cluster.z;
      case Special::kClusterNctaidX:
        return cluster.x;
      case Special::kClusterNctaidY:
        return cluster.y;
      case Special::kClusterNctaidZ:
        return cluster.z;
      case Special::kClusterCtarank:
        return in_cluster.x + cluster.x * (in_cluster.y + uint64_t{cluster.y} * in_cluster.z);
      case Special::kClusterNctarank:
        return uint64_t{cluster.x} * cluster.y * cluster.z;
      case Special::kIsExplicitCluster:
        return launch.cluster.x == 0 ? 0 : kAllLanes;
      case Special::kZero:
        return 0;
      case Special::kLocalBase:
        return local_base;
    }
    return 0;
  }

  void begin_warp(Warp& warp, uint32_t number) {
    const Routine& routine = program_.routines[block_.kernel->routine];
    const bool fresh = warp.storage.empty();
    warp.block = &block_;
    warp.memory = &memory_;
    warp.number = number;
    warp.arrived = 0;
    const uint32_t count = std::min(threads_ - number * kLanes, kLanes);
    warp.live = count == kLanes ? kAllLanes : (1U << count) - 1;
    if (fresh) warp.storage.resize(routine.frame_bytes);
    warp.local_bytes = 0;
    warp.frames.assign(
        1, Frame{&routine, 0, 0, {{0, warp.live, Group::Wait::kNone, 0}}, warp.live, 0});
    warp.frame = warp.storage.data();
    grow_local(warp, routine.local_bytes);
    // Constants of the kernel's own frame are still there, since calls have others.
    fill(warp, routine, warp.frame, 0, fresh);
  }

  static void grow_local(Warp& warp, uint32_t lane_bytes) {
    if (lane_bytes <= warp.local_bytes) return;
    // Each lane has its own part, so that growing moves them.
    std::vector<std::byte> grown(size_t{lane_bytes} * kLanes, std::byte{0xff});
    for (uint32_t l = 0; l < kLanes && warp.local_bytes != 0; ++l)
      std::memcpy(grown.data() + size_t{lane_bytes} * l,
                  warp.local.data() + size_t{warp.local_bytes} * l, warp.local_bytes);
    warp.local = std::move(grown);
    warp.local_bytes = lane_bytes;
  }

  // Bytes of a parameter, for the lanes that pass it.
  static void pass(std::byte* to, const std::byte* from, const Routine::Passed& passed,
                   uint32_t lanes) {
    const uint32_t each = passed.bytes / kLanes;
    if (lanes == kAllLanes) {
      std::memcpy(to, from, passed.bytes);
      return;
    }
    for (uint32_t l = 0; l < kLanes; ++l)
      if ((lanes >> l & 1) != 0) std::memcpy(to + each * l, from + each * l, each);
  }

  void call(Warp& warp, const Code& code, uint32_t number, uint32_t lanes, uint32_t at) {
    if (number >= program_.routines.size())
      throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a call of what is no function");
    const Routine& callee = program_.routines[number];
    const Frame& below = warp.frames.back();
    if (warp.frames.size() >= kMostFrames)
      throw Fault(CUDA_ERROR_ILLEGAL_ADDRESS, "calls are nested too deeply");
    if (code.list_size != callee.results.size() + callee.parameters.size())
      throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION,
                  "a call with other arguments than the function has");
    const size_t begin = below.begin + below.routine->frame_bytes;
    const size_t end = begin + callee.frame_bytes;
    if (end > kMostStorage) throw Fault(CUDA_ERROR_ILLEGAL_ADDRESS, "calls are nested too deeply");
    if (end > warp.storage.size()) warp.storage.resize(std::max(end, 2 * warp.storage.size()));
    const std::byte* const caller = warp.storage.data() + below.begin;
    const uint32_t local_base = below.local_base + below.routine->local_bytes;
    grow_local(warp, local_base + callee.local_bytes);
    std::byte* const frame = warp.storage.data() + begin;
    fill(warp, callee, frame, local_base, true);
    const uint32_t* const places = below.routine->lists.data() + code.list + callee.results.size();
    for (size_t i = 0; i < callee.parameters.size(); ++i)
      pass(frame + callee.parameters[i].place, caller + places[i], callee.parameters[i], lanes);
    warp.frames.push_back(
        {&callee, begin, local_base, {{0, lanes, Group::Wait::kNone, 0}}, lanes, at});
    warp.frame = frame;
  }

  void give_back(Warp& warp) {
    const Frame ended = std::move(warp.frames.back());
    warp.frames.pop_back();
    Frame& below = warp.frames.back();
    const std::byte* const from = warp.storage.data() + ended.begin;
    warp.frame = warp.storage.data() + below.begin;
    const Code& code = below.routine->code[ended.call_at];
    const uint32_t* const places = below.routine->lists.data() + code.list;
    const uint32_t lanes = ended.lanes & warp.live;
    for (size_t i = 0; i < ended.routine->results.size(); ++i)
      pass(warp.frame + places[i], from + ended.routine->results[i].place,
           ended.routine->results[i], lanes);
    if (lanes != 0) add(below.groups, {ended.call_at + 1, lanes, Group::Wait::kNone, 0});
  }

  // --- groups

  static void add(std::vector<Group>& groups, const Group& group) {
    if (group.lanes == 0) return;
    for (Group& other : groups)
      if (other.at == group.at && other.wait == group.wait && other.barrier == group.barrier) {
        other.lanes |= group.lanes;
        return;
      }
    groups.push_back(group);
  }

  // The group that runs next: the lowest, or the next after the one that has run long enough.
  static Group* choose(std::vector<Group>& groups, uint32_t after) {
    Group *lowest = nullptr, *next = nullptr;
    for (Group& one : groups) {
      if (one.wait != Group::Wait::kNone) continue;
      if (lowest == nullptr || one.at < lowest->at) lowest = &one;
      if (one.at > after && (next == nullptr || one.at < next->at)) next = &one;
    }
    return next != nullptr ? next : lowest;
  }

  Stop run_warp(Warp& warp, FloatEnvironment& floats) {
    uint64_t left = kSlice;
    uint32_t rotate_after = kNoRotation;
    for (;;) {
      Frame& frame = warp.frames.back();
      if (frame.groups.empty()) {
        if (warp.frames.size() == 1) {
          warp.live = 0;
          return Stop::kEnded;
        }
        give_back(warp);
        continue;
      }
      Group* const chosen = choose(frame.groups, rotate_after);
      if (chosen == nullptr) return Stop::kWaits;
      Group group = *chosen;
      frame.groups.erase(frame.groups.begin() + (chosen - frame.groups.data()));
      uint32_t stop = kNoRotation;
      for (const Group& other : frame.groups)
        if (other.wait == Group::Wait::kNone && other.at > group.at)
          stop = std::min(stop, other.at);
      rotate_after = kNoRotation;
      const Outcome outcome = run_group(warp, frame, group, stop, left, floats);
      if (outcome == Outcome::kTurn) return Stop::kTurn;
      if (outcome == Outcome::kRotate) rotate_after = group.at;
    }
  }

  enum class Outcome { kStopped, kTurn, kRotate };
  static constexpr uint32_t kNoRotation = ~uint32_t{0};

  // Runs the group until it ends, waits, is divided, or comes to `stop`; then it is among the
  // frame's groups again.
  Outcome run_group(Warp& warp, Frame& frame, Group& group, uint32_t stop, uint64_t& left,
                    FloatEnvironment& floats) {
    const Code* const codes = frame.routine->code.data();
    uint32_t backward = 0;
    uint32_t at = group.at;
    const uint32_t lanes = group.lanes;
    const auto park = [&](uint32_t where, uint32_t which, Group::Wait wait = Group::Wait::kNone,
                          uint32_t barrier = 0) {
      add(frame.groups, {where, which, wait, barrier});
    };
    try {
      for (;;) {
        if (at == stop) {
          park(at, lanes);
          return Outcome::kStopped;
        }
        if (left-- == 0) {
          park(at, lanes);
          left = 0;
          return Outcome::kTurn;
        }
        const Code& code = codes[at];
        uint32_t active = lanes;
        if (code.guarded != Code::Guard::kNone) {
          const uint32_t guard = *warp.words(code.guard);
          active &= code.guarded == Code::Guard::kTrue ? guard : ~guard;
        }
        if (code.kind == Code::Kind::kPlain) {
          if (active != 0) {
            floats.set(code.mode);
            code.handler(warp, code, active);
            if (code.count != 0)
              memory_.counts.value[code.count - 1U] +=
                  static_cast<uint64_t>(__builtin_popcount(active));
          }
          ++at;
          continue;
        }
        if (active == 0) {
          ++at;
          continue;
        }
        const uint32_t others = lanes & ~active;
        if (code.kind == Code::Kind::kBranch) {
          const auto target = static_cast<uint32_t>(code.value);
          const bool back = target <= at;
          if (others == 0) {
            at = target;
            if (!back) {
              if (at > stop) {
                park(at, lanes);
                return Outcome::kStopped;
              }
              continue;
            }
            if (!frame.groups.empty() && ++backward > kMostBackward) {
              park(at, lanes);
              group.at = at;
              return Outcome::kRotate;
            }
            continue;
          }
          park(at + 1, others);
          park(target, active);
          return Outcome::kStopped;
        }
        park(at + 1, others);
        return control(warp, frame, code, at, active, left);
      }
    } catch (const Fault& fault) {
      const Dim3& b = warp.block->index;
      throw Fault(fault.result, "kernel " + warp.block->kernel->name + ", block " +
                                    std::to_string(b.x) + "," + std::to_string(b.y) + "," +
                                    std::to_string(b.z) + ", warp " + std::to_string(warp.number) +
                                    ", line " + std::to_string(codes[at].line) +
                                    " of the PTX: " + fault.what());
    }
  }

  // What ends a group's run at code `at`.
  Outcome control(Warp& warp, Frame& frame, const Code& code, uint32_t at, uint32_t active,
                  uint64_t& left) {
    switch (code.kind) {
      case Code::Kind::kIndexed: {
        const uint32_t* const index = warp.words(code.a);
        for (uint32_t l = 0; l < kLanes; ++l) {
          if ((active >> l & 1) == 0) continue;
          if (index[l] >= code.list_size)
            throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a branch to a target that there is not");
          add(frame.groups,
              {frame.routine->lists[code.list + index[l]], 1U << l, Group::Wait::kNone, 0});
        }
        return Outcome::kStopped;
      }
      case Code::Kind::kCall: {
        uint32_t lanes = active;
        auto number = static_cast<uint32_t>(code.value);
        if (code.option == 1) {  // those who call the same function go together
          const uint64_t* const targets = warp.longs(code.a);
          const uint64_t first = targets[__builtin_ctz(active)];
          lanes = 0;
          for (uint32_t l = 0; l < kLanes; ++l)
            if ((active >> l & 1) != 0 && targets[l] == first) lanes |= 1U << l;
          add(frame.groups, {at, active & ~lanes, Group::Wait::kNone, 0});
          number = (first & ~(uint64_t{0xffff'ffff})) == kCodeWindow ? static_cast<uint32_t>(first)
                                                                     : ~uint32_t{0};
        }
        call(warp, code, number, lanes, at);
        return Outcome::kStopped;
      }
      case Code::Kind::kReturn:
        if (warp.frames.size() == 1) warp.live &= ~active;
        return Outcome::kStopped;
      case Code::Kind::kExit:
        warp.live &= ~active;
        return Outcome::kStopped;
      case Code::Kind::kYield:
        add(frame.groups, {at + 1, active, Group::Wait::kNone, 0});
        left = 0;
        return Outcome::kTurn;
      case Code::Kind::kTogether:
        return together(warp, frame, code, at, active);
      case Code::Kind::kBarrier:
        return barrier(warp, frame, code, at, active);
      default:
        throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a code that is none");
    }
  }

  // Runs what the lanes of a mask do together, once all that live are here.
  Outcome together(Warp& warp, Frame& frame, const Code& code, uint32_t at, uint32_t active) {
    uint32_t here = active;
    std::erase_if(frame.groups, [&](const Group& other) {
      const bool same = other.at == at && other.wait == Group::Wait::kOthers;
      if (same) here |= other.lanes;
      return same;
    });
    const uint32_t mask = code.list_size == 1
                              ? warp.words(frame.routine->lists[code.list])[__builtin_ctz(here)]
                              : frame.lanes;
    const uint32_t wanted = mask & warp.live;
    if ((here & wanted) != wanted) {
      add(frame.groups, {at, here, Group::Wait::kOthers, 0});
      return Outcome::kStopped;
    }
    if ((here & ~mask) != 0)
      throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a lane is not in the mask that it gives");
    code.handler(warp, code, here);
    add(frame.groups, {at + 1, here, Group::Wait::kNone, 0});
    return Outcome::kStopped;
  }

  // --- barriers

  Outcome barrier(Warp& warp, Frame& frame, const Code& code, uint32_t at, uint32_t active) {
    if (code.option == kCluster) {
      const bool done = (active & warp.arrived) == 0 && block_.cluster->phase != warp.arrived_in;
      frame.groups.push_back(done ? Group{at + 1, active, Group::Wait::kNone, 0}
                                  : Group{at, active, Group::Wait::kBarrier, kOfCluster});
      return Outcome::kStopped;
    }
    const uint32_t number = warp.words(code.a)[__builtin_ctz(active)];
    if (number >= block_.barriers.size())
      throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, "there are 16 barriers");
    Barrier& at_it = block_.barriers[number];
    const uint8_t use = code.option & ~kCounted;
    if ((code.option & kCounted) != 0) at_it.expected = warp.words(code.b)[__builtin_ctz(active)];
    if (use == kPopc || use == kAnd || use == kOr) {
      const uint32_t vote = *warp.words(code.c);
      at_it.votes += static_cast<uint32_t>(__builtin_popcount(vote & active));
      at_it.zeros += static_cast<uint32_t>(__builtin_popcount(~vote & active));
    }
    if (use == kArrive) {
      at_it.threads +=
          active == warp.live ? kLanes : static_cast<uint32_t>(__builtin_popcount(active));
      add(frame.groups, {at + 1, active, Group::Wait::kNone, 0});
      return Outcome::kStopped;
    }
    frame.groups.push_back({at, active, Group::Wait::kBarrier, number});
    return Outcome::kStopped;
  }

  // The barrier at which all of a warp's threads wait; -1: there is none.
  static int waits_at(const Warp& warp) {
    uint32_t lanes = 0;
    int number = -1;
    for (const Group& one : warp.frames.back().groups) {
      if (one.wait != Group::Wait::kBarrier) return -1;
      if (number >= 0 && one.barrier != static_cast<uint32_t>(number)) return -1;
      number = static_cast<int>(one.barrier);
      lanes |= one.lanes;
    }
    return (lanes & warp.live) == warp.live ? number : -1;
  }

  bool waits_for_cluster() const {
    for (const Warp& warp : block_.warps) {
      if (warp.live == 0) continue;
      for (const Group& one : warp.frames.back().groups)
        if (one.wait == Group::Wait::kBarrier && one.barrier == kOfCluster) return true;
    }
    return false;
  }

  bool release_barriers() {
    std::array<uint32_t, kBarriers> here{};
    uint32_t alive = 0;
    for (const Warp& warp : block_.warps) {
      if (warp.live == 0) continue;
      alive += kLanes;
      if (const int number = waits_at(warp); number >= 0 && number != kOfCluster)
        here[static_cast<size_t>(number)] += kLanes;
    }
    bool released = false;
    for (uint32_t number = 0; number < here.size(); ++number) {
      Barrier& one = block_.barriers[number];
      const uint32_t expected = one.expected != 0 ? one.expected : alive;
      if (here[number] == 0 || here[number] + one.threads < expected) continue;
      for (Warp& warp : block_.warps)
        if (warp.live != 0 && waits_at(warp) == static_cast<int>(number)) release(warp, one);
      one = {};
      released = true;
    }
    return released;
  }

  static void release(Warp& warp, const Barrier& barrier) {
    Frame& frame = warp.frames.back();
    const std::vector<Group> waiting = std::exchange(frame.groups, {});
    for (const Group& one : waiting) {
      const Code& code = frame.routine->code[one.at];
      const uint8_t use = code.option & ~kCounted;
      if (use == kPopc) {
        for (uint32_t l = 0; l < kLanes; ++l)
          if ((one.lanes >> l & 1) != 0) warp.words(code.d)[l] = barrier.votes;
      } else if (use == kAnd || use == kOr) {
        const bool result = use == kAnd ? barrier.zeros == 0 : barrier.votes != 0;
        uint32_t& d = *warp.words(code.d);
        set_bits(d, one.lanes, result ? one.lanes : 0);
      }
      add(frame.groups, {one.at + 1, one.lanes, Group::Wait::kNone, 0});
    }
  }

  const Program& program_;
  GlobalMemory& memory_;
  Block block_;
  std::shared_ptr<Cluster> cluster_;
  uint32_t threads_ = 0;
};

Dim3 place(uint64_t i, const Dim3& size) {
  return {static_cast<uint32_t>(i % size.x), static_cast<uint32_t>(i / size.x % size.y),
          static_cast<uint32_t>(i / size.x / size.y)};
}

}  // namespace

uint32_t rank_of(const Block& block) {
  const std::vector<Block*>& blocks = block.cluster->blocks;
  return static_cast<uint32_t>(std::ranges::find(blocks, &block) - blocks.begin());
}

void GlobalMemory::look_up(uint64_t address, uint64_t bytes) {
  Allocation found;
  if (!launch_.find(address, found) || address + bytes > found.end || address + bytes < address) {
    char text[64];
    std::snprintf(text, sizeof text, "0x%llx is in no allocation",
                  static_cast<unsigned long long>(address));
    throw Fault(CUDA_ERROR_ILLEGAL_ADDRESS, text);
  }
  known_[next_++ % known_.size()] = found;
}

// Blocks run to their end one after the other. Where one waits for something that does not come,
// those behind it begin, too: they may be what it waits for. A cluster begins as a whole, and a
// cooperative launch with all its blocks.
Counts run(const Program& program, const Kernel& kernel, const Launch& launch) {
  FloatEnvironment floats;
  GlobalMemory memory(launch);
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const Dim3 size = launch.cluster.x == 0 ? Dim3{1, 1, 1} : launch.cluster;
  const Dim3 clusters{launch.grid.x / size.x, launch.grid.y / size.y, launch.grid.z / size.z};
  const uint64_t cluster_blocks = uint64_t{size.x} * size.y * size.z;
  std::vector<std::unique_ptr<BlockRun>> alive, spare;
  uint64_t next = 0, idle = 0;
  const auto begin_cluster = [&] {
    const auto cluster = std::make_shared<Cluster>();
    const Dim3 first = place(next / cluster_blocks, clusters);
    for (uint64_t rank = 0; rank < cluster_blocks; ++rank, ++next) {
      if (spare.empty())
        spare.push_back(std::make_unique<BlockRun>(program, kernel, launch, memory));
      alive.push_back(std::move(spare.back()));
      spare.pop_back();
      const Dim3 within = place(rank, size);
      alive.back()->begin(
          {first.x * size.x + within.x, first.y * size.y + within.y, first.z * size.z + within.z},
          cluster);
    }
  };
  const uint64_t at_once = launch.cooperative ? blocks : cluster_blocks;
  if (launch.cooperative && blocks > kMostBlocksAlive)
    throw Fault(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                "too many blocks for a cooperative launch");
  while (next < blocks || !alive.empty()) {
    while (next < blocks && alive.size() < at_once) begin_cluster();
    bool progress = false, ended = false;
    for (size_t i = 0; i < alive.size();) {
      if (alive[i]->run(floats, progress)) {
        ++i;
        continue;
      }
      spare.push_back(std::move(alive[i]));
      alive.erase(alive.begin() + static_cast<ptrdiff_t>(i));
      ended = true;
    }
    for (const auto& block : alive) progress |= BlockRun::release_cluster(block->cluster());
    if (!progress && !ended) BlockRun::wait_for_ever();
    idle = ended ? 0 : idle + 1;
    if (idle % kPatientRounds != kPatientRounds - 1) continue;
    if (next < blocks && alive.size() < kMostBlocksAlive) begin_cluster();
    if (launch.pause) launch.pause();
  }
  memory.counts[Count::kThreads] += blocks * launch.block.x * launch.block.y * launch.block.z;
  return memory.counts;
}

}  // namespace simgpu::ptx
