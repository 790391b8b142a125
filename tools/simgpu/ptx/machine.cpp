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

constexpr uint64_t kSlice = 1 << 16;  // codes that a warp runs before it is another's turn
// While other groups of the warp could run: branches back, and codes in all.
constexpr uint32_t kMostBackward = 4096;
constexpr uint64_t kPatientCodes = 1 << 16;
constexpr size_t kMostFrames = 512;  // on top of each other
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

// Why a warp stopped. One that sleeps has come to its own nanosleep.
enum class Stop { kEnded, kTurn, kSleeps, kWaits };
// What warps of a round did, beside waiting for others of their block.
struct Round {
  bool progress = false, computed = false;
};

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

  // Runs each warp for a slice. False: all threads have ended.
  bool run(FloatEnvironment& floats, Round& round) {
    bool alive = false, all_wait = true;
    for (Warp& warp : block_.warps) {
      if (warp.live == 0) continue;
      const Stop stop = run_warp(warp, floats);
      alive |= stop != Stop::kEnded;
      all_wait &= stop == Stop::kWaits || stop == Stop::kEnded;
      round.progress |= stop != Stop::kWaits;
      round.computed |= stop == Stop::kTurn || stop == Stop::kEnded;
    }
    if (!alive) {
      *std::ranges::find(cluster_->blocks, &block_) = nullptr;
      return false;
    }
    if (release_barriers())
      round.progress = true;
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
        release_if(warp, [](const Frame&, const Group& one) {
          return one.wait == Group::Wait::kBarrier && one.of == kOfCluster;
        });
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
      case Special::kWorkspaceHigh:
        return launch.grid_workspace >> 32;
      case Special::kWorkspaceLow:
        return launch.grid_workspace & ~uint32_t{0};
      case Special::kZero:
        return 0;
      case Special::kLocalBase:
        return local_base;
    }
    return 0;
  }

  void begin_warp(Warp& warp, uint32_t number) {
    const Routine& routine = program_.routines[block_.kernel->routine];
    const bool fresh = warp.frames.empty();
    warp.block = &block_;
    warp.memory = &memory_;
    warp.number = number;
    warp.arrived = 0;
    const uint32_t count = std::min(threads_ - number * kLanes, kLanes);
    warp.live = count == kLanes ? kAllLanes : (1U << count) - 1;
    if (fresh) warp.frames.push_back(std::make_unique<Frame>());
    Frame& frame = *warp.frames.front();
    frame.routine = &routine;
    frame.bytes.resize(routine.frame_bytes);
    frame.lanes = warp.live;
    frame.groups = {Group{0, warp.live, Group::Wait::kNone, 0, warp.ran}};
    warp.local_bytes = 0;
    grow_local(warp, routine.local_bytes);
    // Constants of the kernel's own frame are still there, since calls have others.
    fill(warp, routine, frame.bytes.data(), 0, fresh);
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

  void call(Warp& warp, Frame& below, const Code& code, uint32_t number, uint32_t lanes,
            uint32_t at) {
    if (number >= program_.routines.size())
      throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a call of what is no function");
    const Routine& callee = program_.routines[number];
    if (below.depth + 1 >= kMostFrames || warp.call_bytes + callee.frame_bytes > kMostStorage)
      throw Fault(CUDA_ERROR_ILLEGAL_ADDRESS, "calls are nested too deeply");
    if (code.list_size != callee.results.size() + callee.parameters.size())
      throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION,
                  "a call with other arguments than the function has");
    if (warp.spare.empty()) warp.spare.push_back(std::make_unique<Frame>());
    Frame& frame = *warp.frames.emplace_back(std::move(warp.spare.back()));
    warp.spare.pop_back();
    ++below.calls;
    warp.call_bytes += callee.frame_bytes;
    frame.routine = &callee;
    frame.below = &below;
    frame.bytes.resize(callee.frame_bytes);
    frame.local_base = below.local_base + below.routine->local_bytes;
    frame.groups = {Group{0, lanes, Group::Wait::kNone, 0, warp.ran}};
    frame.lanes = lanes;
    frame.call_at = at;
    frame.depth = below.depth + 1;
    grow_local(warp, frame.local_base + callee.local_bytes);
    fill(warp, callee, frame.bytes.data(), frame.local_base, true);
    const uint32_t* const places = below.routine->lists.data() + code.list + callee.results.size();
    for (size_t i = 0; i < callee.parameters.size(); ++i)
      pass(frame.bytes.data() + callee.parameters[i].place, below.bytes.data() + places[i],
           callee.parameters[i], lanes);
  }

  // These lanes go on behind the call, with their results; the others need not have returned.
  static void give_back(Warp& warp, Frame& frame, uint32_t lanes) {
    Frame& below = *frame.below;
    const Code& code = below.routine->code[frame.call_at];
    const uint32_t* const places = below.routine->lists.data() + code.list;
    for (size_t i = 0; i < frame.routine->results.size(); ++i)
      pass(below.bytes.data() + places[i], frame.bytes.data() + frame.routine->results[i].place,
           frame.routine->results[i], lanes);
    frame.lanes &= ~lanes;
    add(below.groups, {frame.call_at + 1, lanes, Group::Wait::kNone, 0, warp.ran});
  }

  // A call whose lanes have all returned or ended.
  static void remove(Warp& warp, size_t index) {
    const auto it = warp.frames.begin() + static_cast<ptrdiff_t>(index);
    --(*it)->below->calls;
    warp.call_bytes -= (*it)->routine->frame_bytes;
    warp.spare.push_back(std::move(*it));
    warp.frames.erase(it);
  }

  // --- groups

  static void add(std::vector<Group>& groups, const Group& group) {
    if (group.lanes == 0) return;
    for (Group& other : groups)
      if (other.at == group.at && other.wait == group.wait && other.of == group.of) {
        other.lanes |= group.lanes;
        other.ran = std::min(other.ran, group.ran);  // so that none waits longer for joining
        return;
      }
    groups.push_back(group);
  }

  template <class F>
  static void for_each_group(const Warp& warp, F f) {
    for (const auto& frame : warp.frames)
      for (const Group& one : frame->groups) f(*frame, one);
  }

  // Groups for which `is` holds wait no longer, and go on with the next code.
  template <class F>
  static void release_if(Warp& warp, F is) {
    for (const auto& frame : warp.frames)
      for (Group& one : std::exchange(frame->groups, {})) {
        if (is(*frame, one)) one = {one.at + 1, one.lanes, Group::Wait::kNone, 0, warp.ran};
        add(frame->groups, one);
      }
  }

  // The group that runs next: the lowest of the youngest call, or the one that has waited longest.
  struct Choice {
    Frame* frame = nullptr;
    Group group;
    uint32_t stop = kNoStop;  // where the next group of the frame is
    bool only = true;         // that can run
  };
  // False: all wait. Takes it from its frame's groups.
  static bool choose(Warp& warp, Choice& choice) {
    Frame *youngest = nullptr, *oldest_in = nullptr;
    Group *lowest = nullptr, *oldest = nullptr;
    size_t count = 0;
    for (size_t i = warp.frames.size(); i-- > 0;) {
      Frame& frame = *warp.frames[i];
      for (Group& one : frame.groups) {
        if (one.wait != Group::Wait::kNone) continue;
        ++count;
        if (youngest == nullptr) youngest = &frame;
        if (youngest == &frame && (lowest == nullptr || one.at < lowest->at)) lowest = &one;
        if (oldest == nullptr || one.ran < oldest->ran) oldest = &one, oldest_in = &frame;
      }
    }
    if (count == 0) return false;
    const bool gives_way =
        std::exchange(warp.gives_way, false) || warp.ran - oldest->ran > kPatientCodes;
    choice.frame = gives_way ? oldest_in : youngest;
    Group* const chosen = gives_way ? oldest : lowest;
    choice.group = *chosen;
    choice.only = count == 1;
    choice.stop = kNoStop;
    std::vector<Group>& groups = choice.frame->groups;
    groups.erase(groups.begin() + (chosen - groups.data()));
    for (const Group& other : groups)
      if (other.wait == Group::Wait::kNone && other.at > choice.group.at)
        choice.stop = std::min(choice.stop, other.at);
    return true;
  }

  Stop run_warp(Warp& warp, FloatEnvironment& floats) {
    uint64_t left = kSlice;
    for (;;) {
      for (size_t i = warp.frames.size(); i-- > 1;)
        if (warp.frames[i]->groups.empty() && warp.frames[i]->calls == 0) remove(warp, i);
      if (warp.frames.size() == 1 && warp.frames.front()->groups.empty()) {
        warp.live = 0;
        return Stop::kEnded;
      }
      Choice choice;
      if (!choose(warp, choice)) return Stop::kWaits;
      warp.enter(*choice.frame);
      const Outcome outcome = run_group(warp, choice, left, floats);
      warp.gives_way = outcome != Outcome::kStopped;
      if (outcome == Outcome::kTurn) return Stop::kTurn;
      if (outcome == Outcome::kSleeps) return Stop::kSleeps;
    }
  }

  enum class Outcome { kStopped, kTurn, kSleeps, kGivesWay };
  static constexpr uint32_t kNoStop = ~uint32_t{0};

  // Runs the group until it ends, waits, is divided, or comes to the place of another; then it is
  // among the frame's groups again.
  Outcome run_group(Warp& warp, const Choice& choice, uint64_t& left, FloatEnvironment& floats) {
    Frame& frame = *choice.frame;
    const Code* const codes = frame.routine->code.data();
    const uint32_t lanes = choice.group.lanes, stop = choice.stop;
    const uint64_t ran_at_last = warp.ran + left;
    uint32_t backward = 0;
    uint32_t at = choice.group.at;
    const auto park = [&](uint32_t where, uint32_t which) {
      warp.ran = ran_at_last - left;
      add(frame.groups, {where, which, Group::Wait::kNone, 0, warp.ran});
    };
    try {
      for (;;) {
        if (at == stop) {
          park(at, lanes);
          return Outcome::kStopped;
        }
        if (left == 0) {
          park(at, lanes);
          return Outcome::kTurn;
        }
        --left;
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
              memory_.counts.value[(code.count & ~kTwice) - 1U] +=
                  static_cast<uint64_t>(__builtin_popcount(active)) << (code.count / kTwice);
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
            if (!choice.only && ++backward > kMostBackward) {
              park(at, lanes);
              return Outcome::kGivesWay;
            }
            continue;
          }
          park(at + 1, others);
          park(target, active);
          return Outcome::kStopped;
        }
        park(at + 1, others);
        return control(warp, frame, code, at, active);
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
  Outcome control(Warp& warp, Frame& frame, const Code& code, uint32_t at, uint32_t active) {
    switch (code.kind) {
      case Code::Kind::kIndexed: {
        const uint32_t* const index = warp.words(code.a);
        for (uint32_t l = 0; l < kLanes; ++l) {
          if ((active >> l & 1) == 0) continue;
          if (index[l] >= code.list_size)
            throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a branch to a target that there is not");
          add(frame.groups, {frame.routine->lists[code.list + index[l]], 1U << l,
                             Group::Wait::kNone, 0, warp.ran});
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
          add(frame.groups, {at, active & ~lanes, Group::Wait::kNone, 0, warp.ran});
          number = (first & ~(uint64_t{0xffff'ffff})) == kCodeWindow ? static_cast<uint32_t>(first)
                                                                     : ~uint32_t{0};
        }
        call(warp, frame, code, number, lanes, at);
        return Outcome::kStopped;
      }
      case Code::Kind::kReturn:
        if (frame.below != nullptr)
          give_back(warp, frame, active);
        else
          end(warp, active);
        return Outcome::kStopped;
      case Code::Kind::kExit:
        end(warp, active);
        return Outcome::kStopped;
      case Code::Kind::kYield:
        add(frame.groups, {at + 1, active, Group::Wait::kNone, 0, warp.ran});
        return Outcome::kSleeps;
      case Code::Kind::kTogether:
        return together(warp, frame, code, at, active);
      case Code::Kind::kBarrier:
        return barrier(warp, frame, code, at, active);
      default:
        throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a code that is none");
    }
  }

  // Lanes end: others may have waited for no more than these.
  void end(Warp& warp, uint32_t lanes) {
    warp.live &= ~lanes;
    for (bool looks = true; looks;) {
      looks = false;
      for (size_t i = 0; i < warp.frames.size() && !looks; ++i)
        for (const Group one : std::vector<Group>(warp.frames[i]->groups)) {
          looks = one.wait == Group::Wait::kOthers    ? meet(warp, *warp.frames[i], one)
                  : one.wait == Group::Wait::kArrival ? arrive(warp, one.of)
                                                      : false;
          if (looks) break;
        }
    }
  }

  // --- lanes of one warp that meet

  // Runs what the lanes of a mask do together, once all of them that have not ended are at a code
  // that does this. PTX ISA, 9.7.9.6 and others: "all non-exited threads corresponding to
  // membermask have executed shfl.sync with the same qualifiers and same membermask value".
  Outcome together(Warp& warp, Frame& frame, const Code& code, uint32_t at, uint32_t active) {
    const uint32_t* const masks =
        code.list_size == 1 ? warp.words(frame.routine->lists[code.list]) : nullptr;
    for (uint32_t left = active; left != 0;) {
      uint32_t lanes = left, mask = frame.lanes;
      if (masks != nullptr) {
        mask = masks[__builtin_ctz(left)];
        for_each_lane(left, [&](uint32_t l) {
          if (masks[l] != mask) lanes &= ~(1U << l);
        });
        if ((lanes & ~mask) != 0)
          throw Fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a lane is not in the mask that it gives");
      }
      left &= ~lanes;
      if (lanes == (mask & warp.live)) {
        code.handler(warp, code, lanes);
        add(frame.groups, {at + 1, lanes, Group::Wait::kNone, 0, warp.ran});
        continue;
      }
      const Group waits{at, lanes, Group::Wait::kOthers, mask, warp.ran};
      add(frame.groups, waits);
      meet(warp, frame, waits);
    }
    return Outcome::kStopped;
  }

  // Whether groups at these codes meet.
  static bool is_same(const Frame& a_in, const Group& a, const Frame& b_in, const Group& b) {
    if (a.wait != b.wait || a.of != b.of) return false;
    if (&a_in == &b_in && a.at == b.at) return true;
    const Code &one = a_in.routine->code[a.at], &other = b_in.routine->code[b.at];
    return one.list_size == 1 && other.list_size == 1 && one.handler == other.handler &&
           one.option == other.option;
  }

  // False: one of the lanes that this group waits for is not there yet.
  bool meet(Warp& warp, Frame& frame, const Group& group) {
    const Code& code = frame.routine->code[group.at];
    uint32_t here = 0;
    size_t places = 0;
    const auto comes = [&](const Frame& in, const Group& one) {
      return is_same(in, one, frame, group);
    };
    for_each_group(warp, [&](const Frame& in, const Group& one) {
      if (!comes(in, one)) return;
      here |= one.lanes;
      ++places;
    });
    const uint32_t mask = code.list_size == 1 ? group.of : frame.lanes;
    if (here != (mask & warp.live)) return false;
    if (places == 1) {
      warp.enter(frame);
      code.handler(warp, code, here);
    } else {
      Code shared = code;
      std::array<std::byte, 6 * kLanes * 8> room{};
      uint32_t end = 0;
      for (const Operand& one : operands(code.meeting)) {
        shared.*one.place = end;
        end += kLanes * 8;
      }
      const auto move = [&](bool results) {
        for (const auto& in : warp.frames)
          for (const Group& one : in->groups) {
            if (!comes(*in, one)) continue;
            const Code& at = in->routine->code[one.at];
            for (const Operand& operand : operands(code.meeting)) {
              std::byte* const own = in->bytes.data() + at.*operand.place;
              std::byte* const common = room.data() + shared.*operand.place;
              if (operand.result != results) continue;
              copy(results ? own : common, results ? common : own, operand.bytes, one.lanes);
            }
          }
      };
      move(false);
      warp.enter(frame);
      warp.frame = room.data();
      code.handler(warp, shared, here);
      move(true);
    }
    release_if(warp, comes);
    return true;
  }

  struct Operand {
    uint32_t Code::*place;
    uint32_t bytes;  // of a lane; 0: a bit
    bool result;
  };
  static std::span<const Operand> operands(Code::Meeting meeting) {
    static constexpr Operand kShuffle[] = {{&Code::a, 4, false},
                                           {&Code::b, 4, false},
                                           {&Code::c, 4, false},
                                           {&Code::d, 4, true},
                                           {&Code::e, 0, true}};
    static constexpr Operand kVote[] = {{&Code::a, 0, false}, {&Code::d, 0, true}};
    static constexpr Operand kBallot[] = {{&Code::a, 0, false}, {&Code::d, 4, true}};
    static constexpr Operand kMatch[] = {
        {&Code::a, 4, false}, {&Code::d, 4, true}, {&Code::e, 0, true}};
    static constexpr Operand kWide[] = {
        {&Code::a, 8, false}, {&Code::d, 4, true}, {&Code::e, 0, true}};
    static constexpr Operand kReduce[] = {{&Code::a, 4, false}, {&Code::d, 4, true}};
    static constexpr Operand kElect[] = {{&Code::d, 4, true}, {&Code::e, 0, true}};
    switch (meeting) {
      case Code::Meeting::kShuffle:
        return kShuffle;
      case Code::Meeting::kVote:
        return kVote;
      case Code::Meeting::kBallot:
        return kBallot;
      case Code::Meeting::kMatch:
        return kMatch;
      case Code::Meeting::kWide:
        return kWide;
      case Code::Meeting::kReduce:
        return kReduce;
      case Code::Meeting::kElect:
        return kElect;
      case Code::Meeting::kNone:
        break;
    }
    return {};
  }
  static void copy(std::byte* to, const std::byte* from, uint32_t bytes, uint32_t lanes) {
    if (bytes == 0) {
      uint32_t bits = 0, value = 0;
      std::memcpy(&bits, to, sizeof bits);
      std::memcpy(&value, from, sizeof value);
      set_bits(bits, lanes, value);
      std::memcpy(to, &bits, sizeof bits);
      return;
    }
    for_each_lane(lanes, [&](uint32_t l) { std::memcpy(to + bytes * l, from + bytes * l, bytes); });
  }

  // --- barriers

  Outcome barrier(Warp& warp, Frame& frame, const Code& code, uint32_t at, uint32_t active) {
    if (code.option == kCluster) {
      const bool done = (active & warp.arrived) == 0 && block_.cluster->phase != warp.arrived_in;
      add(frame.groups, done ? Group{at + 1, active, Group::Wait::kNone, 0, warp.ran}
                             : Group{at, active, Group::Wait::kBarrier, kOfCluster, warp.ran});
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
    add(frame.groups, {at, active, use == kArrive ? Group::Wait::kArrival : Group::Wait::kBarrier,
                       number, warp.ran});
    if (use == kArrive) arrive(warp, number);
    return Outcome::kStopped;
  }

  // PTX ISA, 9.7.13.1: barrier.arrive waits for all non-exited threads of the warp, and marks the
  // arrival of the warp, whose size is what a barrier counts. False: not all are there.
  bool arrive(Warp& warp, uint32_t number) {
    const auto comes = [&](const Frame&, const Group& one) {
      return one.wait == Group::Wait::kArrival && one.of == number;
    };
    uint32_t here = 0;
    for_each_group(warp, [&](const Frame& in, const Group& one) {
      if (comes(in, one)) here |= one.lanes;
    });
    if (here != warp.live) return false;
    block_.barriers[number].threads += kLanes;
    release_if(warp, comes);
    return true;
  }

  // The barrier at which all of a warp's threads wait; -1: there is none.
  static int waits_at(const Warp& warp) {
    uint32_t lanes = 0;
    int number = -1;
    bool same = true;
    for_each_group(warp, [&](const Frame&, const Group& one) {
      same &= one.wait == Group::Wait::kBarrier &&
              (number < 0 || one.of == static_cast<uint32_t>(number));
      number = static_cast<int>(one.of);
      lanes |= one.lanes;
    });
    return same && (lanes & warp.live) == warp.live ? number : -1;
  }

  bool waits_for_cluster() const {
    bool waits = false;
    for (const Warp& warp : block_.warps)
      for_each_group(warp, [&](const Frame&, const Group& one) {
        waits |= one.wait == Group::Wait::kBarrier && one.of == kOfCluster;
      });
    return waits;
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
    for (const auto& frame : warp.frames) {
      warp.enter(*frame);
      for (const Group& one : frame->groups) {
        const Code& code = frame->routine->code[one.at];
        const uint8_t use = code.option & ~kCounted;
        if (use == kPopc) {
          for_each_lane(one.lanes, [&](uint32_t l) { warp.words(code.d)[l] = barrier.votes; });
        } else if (use == kAnd || use == kOr) {
          const bool result = use == kAnd ? barrier.zeros == 0 : barrier.votes != 0;
          set_bits(*warp.words(code.d), one.lanes, result ? one.lanes : 0);
        }
      }
    }
    release_if(warp, [](const Frame&, const Group&) { return true; });
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
  bool computed = false;  // since the last pause
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
    Round round;
    bool ended = false;
    for (size_t i = 0; i < alive.size();) {
      if (alive[i]->run(floats, round)) {
        ++i;
        continue;
      }
      spare.push_back(std::move(alive[i]));
      alive.erase(alive.begin() + static_cast<ptrdiff_t>(i));
      ended = true;
    }
    for (const auto& block : alive) round.progress |= BlockRun::release_cluster(block->cluster());
    if (!round.progress && !ended) BlockRun::wait_for_ever();
    idle = ended ? 0 : idle + 1;
    computed |= round.computed;
    if (idle % kPatientRounds != kPatientRounds - 1) continue;
    if (next < blocks && alive.size() < kMostBlocksAlive) begin_cluster();
    if (launch.pause) launch.pause(!std::exchange(computed, false));
  }
  memory.counts[Count::kThreads] += blocks * launch.block.x * launch.block.y * launch.block.z;
  return memory.counts;
}

}  // namespace simgpu::ptx
