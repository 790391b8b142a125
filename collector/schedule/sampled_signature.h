// Which launches of one signature on one device are measured. Pure logic, one object per signature
// and device; locked by its owner.
//
//   first      The signature's first launches: `first_samples` of every group it needs, one group
//              after another and then backwards, so that a short program has every group once
//              before any has it twice.
//   rounds     Then one sample per group and stretch. Stretches follow one another. The first 64
//              are short: 16, 17, 18, ... launches, 3,040 in all, so that work which differs in one
//              launch of twenty is met with 95 % (1 - 0.95^n, n = 60). Then they double: 160, 320,
//              ... launches; instrumented groups take every second one of these, so theirs grow by
//              four. A kernel launched N times is measured about log2(N / 160) times more.
//   varying    Once two samples disagree of a group whose values depend only on work, the signature
//              is sampled for good: its stretches grow to 1,024 launches and no further, for all
//              its groups.
//
// Within a stretch every launch is equally likely. The writer thread, which counts launches, arms
// the round at a random place of the stretch; the launching threads then pass over a random number
// of launches, exactly, and so a program whose launches come in a pattern, or whose gaps depend on
// their work, is not met at the same point of it again and again: arming happens at a moment, the
// launch is chosen by its number. Of a pattern of p launches no point is likelier than another by
// more than p / skip_below. Of short stretches the launching threads count every launch, and arm
// the next when one is over, where the budget allows and none waits for it: a writer that comes
// every 10 ms would miss most of them.
#pragma once
#include <collector/identity/signature_table.h>
#include <collector/schedule/group_set.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace flopinj {

// splitmix64. Not for secrets.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t n);  // uniform in [0, n); 0 for n = 0

 private:
  uint64_t state_;
};

// One stretch of launches, in which one sample of every group is taken: the round is armed once
// `arm_after` of them have been made; then a number of launches below `skip_below` is passed over,
// drawn for each group.
struct Stretch {
  uint64_t launches = 0, arm_after = 0, skip_below = 0;
};
inline constexpr uint64_t kFirstStretch = 16;
inline constexpr uint32_t kShortStretches = 64;
inline constexpr uint64_t kVaryingStretch = 1'024;
// What is passed over is at most all of a stretch of up to 1,024 launches, and of a longer one a
// 16th or 4,096, so that launches pay for being counted only near the sample.
Stretch stretch_of(uint32_t round, bool varying, Random&);

// Signatures of one function and shape that differ only in their parameters. Where these never
// come again (a random seed, a step counter) no single one is launched often enough to be measured:
// samples are then taken across them, and where all agree what is to come is one class.
struct SignatureFamily {
  static constexpr uint32_t kMany = 8;      // members launched once: their parameters do not repeat
  static constexpr uint32_t kAgreeing = 3;  // samples of each group, each of another member
  struct Group {
    uint32_t taken = 0, samples = 0;  // launches that were chosen, and what came of them
    uint64_t fingerprint = 0;         // of the first sample's values
  };
  uint32_t members = 0, repeated = 0;
  GroupSet needed, shown;  // as of a SampledSignature
  bool apart = false;      // samples disagree: the parameters matter
  bool merged = false;
  std::vector<Group> groups;

  bool never_repeats() const { return !apart && !merged && members - repeated >= kMany; }
  // Of the groups in `among`: the one that fewest members were chosen for; none, where enough were.
  std::optional<uint32_t> least_taken(GroupSet among) const;
  bool agrees(GroupSet among) const;
};

struct GroupProgress {
  uint32_t samples = 0, failures = 0;  // failures: windows in a row
  uint32_t pending = 0;                // rows in a window whose outcome is not known yet
  uint64_t skip = 0;                   // of the armed round
  uint64_t call_ns = 0;                // the last call in a window of this group
  uint64_t fingerprint = 0;            // of the first sample's values
  bool given_up = false;
};

struct SampledSignature {
  enum class Phase : uint8_t {
    kFirst,
    kResting,  // until `next_at` launches have been seen
    kQueued,   // due, or refused for want of budget: waits for it
    kArmed,
  };
  const Signature* signature = nullptr;
  Phase phase = Phase::kFirst;
  bool varying = false, complete = false;
  bool hopeless = false;  // will never be complete
  bool waited = false;    // a launch that lacked a group has left another group's window open
  bool listed = false;    // among those that the scheduler has armed
  uint32_t rounds = 0;
  GroupSet needed;
  GroupSet shown;    // of needed: a sample has met a condition of theirs
  GroupSet assumed;  // of needed: what would say whether they are cannot be read
  GroupSet armed;    // of the armed round: still to be sampled
  uint64_t reserved_ns = 0;
  uint64_t launches = 0, last_seen_ns = 0;  // where windows are: not in graphs or green contexts
  uint64_t stretch_began = 0, stretch_launches = 0, next_at = 0, skip_below = kFirstStretch;
  uint64_t stretch_left = 0;  // of the armed round's: launches that are still to come
  // Outside of windows, and all: of launches that are in the trace.
  uint64_t recorded = 0, timed = 0, gpu_ns = 0;
  // Launches in windows, those of them that were instrumented, and what is timed of them so far.
  uint64_t windowed = 0, instrumented = 0, windowed_timed = 0, windowed_gpu_ns = 0;
  bool slow_down_told = false;
  SignatureFamily* family = nullptr;  // null: a class of its own
  bool repeated = false;              // launched more than once, so far as is known
  std::vector<GroupProgress> groups;

  // Of the groups in `among`: the one with the fewest samples, pending ones counted, that has fewer
  // than `enough`. Of equals the first in plan order, and every second time the last: a group that
  // always had its turn after the same number of launches would see one half of a kernel that
  // alternates.
  std::optional<uint32_t> least_sampled(GroupSet among, uint32_t enough) const;
  GroupSet missing() const;  // needed groups without a sample, those given up left out
  bool has_every_group() const;
  bool measurable() const { return launches != 0 && !hopeless; }
  uint64_t mean_gpu_ns() const { return timed == 0 ? 0 : gpu_ns / timed; }
  // How long the kernel takes where it is not instrumented: its mean time, before that is known a
  // launch call in a window, which waits for it. 0: neither is known.
  uint64_t usual_ns(GroupSet instrumented_groups) const;
  // By how much its launches were slower where it was. Empty until all times are known.
  std::optional<double> slow_down() const;
  // The round ended, or the first samples are there: the next stretch follows the last one.
  void rest(Random&);
};

}  // namespace flopinj
