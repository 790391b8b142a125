// All that a report says, in the reducer's own types. The writers (text, JSON) only print it.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "flop_trace.pb.h"
#include "peaks/precisions.h"
#include "reader/damage.h"
#include "report/communication.h"
#include "report/figure.h"
#include "report/lost.h"
#include "report/model_flop.h"
#include "report/steps.h"
#include "report/utilization.h"
#include "report/work_rows.h"
#include "support/members.h"
#include "support/packed_rows.h"
#include "support/wide.h"
#include "tables/estimate.h"
#include "tables/formulas.h"
#include "tables/kernels.h"
#include "tables/recorded.h"
#include "tables/totals.h"

namespace flopinj::reduce {

// What has names: report/named_part.h.
struct NamedPart {
  uint64_t launches_without = 0;  // of kUnnamedPhase
  // Of phase "other", where operators have names: launches by none and in no range that says a
  // phase. They may be the model's.
  Work nameless;
  // Where operators have names: GPU time, by phase, of launches by none whose multiply-adds are no
  // tensor work. They may be of products.
  std::map<std::string, u128> perhaps_products_ns;
  // All of these are of training steps without names: the steps with names stand for all of them,
  // and the model's share of these is the run's.
  bool drawn = false;
  uint64_t steps = 0, steps_with = 0;  // 0: not known
  // Of training, which passes without gradients are no part of: the run's work at peak / that of
  // the part with names, and the latter in ns; only where it is drawn.
  double scale = 1, training_ns = 0;

  bool much_nameless = false;  // more matrix work than kRatioTolerance

  bool whole() const { return launches_without == 0 && !much_nameless; }
  // Of the model's FLOP, scaled so.
  Mark mark() const {
    return drawn && !much_nameless ? Mark::kEstimate : mark_if(!whole(), Mark::kAtLeast);
  }
};

struct Reason {
  std::string reason;
  uint64_t launches = 0;
};

// Reasons of unmeasured launches that nothing has gone wrong for.
inline constexpr const char* kGraphOnly = "graph_only";
inline constexpr const char* kGreenContext = "green_context";
inline constexpr const char* kNeverMeasured = "never_measured";
// Of such a reason, "no_counters": the cause as the end of a sentence.
std::string reason_words(const std::string& reason);

struct LedgerLine {
  uint64_t launches = 0, measured = 0, extrapolated = 0, unmeasured = 0, dropped = 0;

  template <typename Self>
  static auto sums(Self& of) {
    auto& [launches, measured, extrapolated, unmeasured, dropped] = of;
    return std::tie(launches, measured, extrapolated, unmeasured, dropped);
  }
  void add(const LedgerLine& o) { add_each(sums(*this), sums(o)); }
  bool operator==(const LedgerLine&) const = default;
};

struct DeviceReport {
  uint32_t trace = 0;
  trace::Device facts;
  LedgerLine ledger;
  Figure energy_j;         // between the two readings that are farthest apart
  uint64_t energy_ns = 0;  // between them
};

struct LedgerReport {
  LedgerLine total;
  uint64_t duplicates_removed = 0;
  std::vector<Reason> unmeasured, dropped, duplicates;
  uint64_t extrapolated_in_graphs = 0;  // of total.extrapolated: kernels of graph launches
  uint64_t measured_in_graphs = 0;      // of total.measured, likewise
  // Of total.measured and total.extrapolated: launches whose counts come only from graph launches.
  uint64_t counted_by_graphs = 0;
  std::vector<Reason> unseen;  // launches beside which work may have run that is in no count
  std::vector<std::string> disagreements;  // empty when it balances
};

struct PhaseReport {
  std::string name;
  Work work;
  bool at_most = false;  // it may have launches of layers in its ranges, which are unclear
};

struct RuleReport {
  std::string rule, phase;
  Work work;
};

// One metric's samples of one signature.
struct MetricReport : SignatureFlop::Part {
  std::string metric;
  u128 counted = 0;  // over all launches of the signature, extrapolated
  u128 flop = 0;     // counted * weight; OP where the precision is an integer one
  std::string precision;
};

// One signature on one kind of device: where a FLOP figure comes from.
struct SignatureReport : Signature {
  std::string kernel;      // demangled, raw bytes
  uint32_t kernel_id = 0;  // as in KernelReport
  std::string chip;
  uint64_t samples = 0;                          // of the required group that has fewest
  uint64_t graph_samples = 0;                    // of them: read in graph launches
  bool varying = false;                          // samples disagree, or are not exact integers
  bool rounded = false;                          // only the latter: rounded by the counter
  std::optional<u128> flop_per_launch;           // where all samples agree, and nothing is missing
  uint64_t windows = 0;                          // with samples, of the group that has fewest
  std::optional<double> flop_mean, flop_spread;  // of one launch, where it is an estimate
  Work work;
  std::string unmeasured_reason;      // empty where measured
  std::vector<MetricReport> metrics;  // those that count FLOP
};

// A mangled name's. What is shown of it may be another kernel's name too. What its launches did is
// a group of the work table: group(report, {by::kKernel}) has one of each, in this order.
struct KernelReport {
  std::string name;     // demangled, raw bytes
  std::string mangled;  // in full
  uint32_t id = 0;      // of no other kernel of the report
  uint64_t launches = 0, signatures = 0;
  uint64_t merged_launches = 0;  // in signatures whose parameters were too many to tell apart
  uint64_t opaque_launches = 0;  // in signatures without a parameter layout
  LaunchTimes times;             // of single launches; nothing where they were not asked for
  uint64_t untimed = 0;          // not in `times`, though no counters were read
};

struct RangeReport {
  // Raw bytes, "/" between levels. Where that is another range's path too, because a name holds "/"
  // itself, those in names are "\/", there and below.
  std::string path;
  std::string name;            // of the innermost range
  uint32_t depth = 0;          // 1 for outermost ranges
  uint32_t around = kNoRange;  // the range around it: Report::ranges
};

struct Limits {
  double low = 0, high = 0;
};

struct LayerReport {
  std::string path;
  u128 forward_matrix_flop = 0;
  bool first = false;
};

// What backward / forward of matrix work should be, by theory and by what is known of the gradients
// that were computed (report/operators/gradients.h). From `least` to `most` where something is not
// known.
struct ExpectedRatio {
  double least = 0, most = 0;
  std::string basis;  // what is not plain about it, and what is assumed; may be empty
  // Why it is no evidence, in one line: of some products nothing shows which gradients were
  // computed, and both are taken for granted; or it is of a part of the matrix work. Empty where
  // it rests on calls that were seen, and on all of them.
  std::string lacks{};
  bool assumed() const { return !lacks.empty(); }
  // The share of forward's matrix work that operators do that are known to be no products
  // (a softmax's multiply-adds), where it is more than kRatioTolerance: theory leaves it out.
  double beside = 0;
  bool estimated() const { return assumed() || beside > 0; }
  bool certain() const { return most - least <= 1e-9 * most; }
  // Nothing where it is a range.
  std::optional<double> value() const { return certain() ? std::optional(most) : std::nullopt; }
};

// Whether backward / forward of matrix work is as expected, kRatioTolerance left aside.
enum class RatioVerdict : uint8_t {
  kNone,       // the ratio is not known, or nothing names layers or operators
  kInside,     // of the expected range, or at the expected value
  kOutside,    // the whole 95 % interval of the ratio is
  kUndecided,  // RatioReport::undecided says why
};
// Their names, for programs and gates. The first is of none.
inline constexpr std::array<std::string_view, 4> kRatioVerdicts = {"", "inside", "outside",
                                                                   "undecided"};
// What padded tiles and multiply-adds outside of products may add without a mention: a convention.
inline constexpr double kRatioTolerance = 0.01;
// The most that ExpectedRatio::beside may be for a verdict, which then leaves as much aside.
inline constexpr double kMostBesideProducts = 0.05;

// backward / forward. A product with weights costs twice its forward work in backward, a gradient
// for its weights and one for its input; what needs none for its input (as a rule the first layer,
// f1 of the forward pass's matrix FLOP) costs once: 2 - f1, where evidence says that it is so.
struct RatioReport {
  // All FLOP; not known where a part is unmeasured or forward is 0. At most, where launches
  // of PhasePart::kUnclear may have run forward.
  Figure ratio;
  std::optional<double> ratio_partial;  // of the measured launches, where both sides have some
  // Of fused multiply-adds and tensor work only: compare this with `expected`.
  Figure matrix_ratio;
  std::optional<Limits> matrix_interval;  // of 95 %, where launches vary
  RatioVerdict verdict = RatioVerdict::kNone;
  std::string undecided;  // why, where the verdict is kUndecided
  // Takes a verdict back, where there is one.
  void leave_undecided(std::string why) {
    if (verdict == RatioVerdict::kNone) return;
    verdict = RatioVerdict::kUndecided;
    undecided = std::move(why);
  }
  // f1 and its parts: matrix FLOP of first layers, and of the forward ranges that have layers.
  std::optional<double> first_layer_share;
  u128 first_layers_flop = 0, layered_flop = 0;
  std::optional<ExpectedRatio> expected;
  std::string expected_missing;  // why nothing is expected, where more than evidence is missing
  std::vector<LayerReport> layers;
};

// How the cause begins where the formula is of real numbers, and the operator's are complex.
inline constexpr std::string_view kComplexNumbers = "complex numbers";

// What attention outside of all operators' ranges is called among operators.
inline constexpr std::string_view kAttentionOutside = "fused attention";

// An operator in one place (its range path) and phase, or all of one function in a phase.
struct OperatorReport {
  std::string name;  // "aten::conv2d"
  // The range that names it, with sizes, or that kAttentionOutside is in; empty for all of a
  // function.
  std::string range;
  std::string layer;  // empty where it is in none, and for all of a function
  uint32_t path = 0;  // TraceTables::paths: of that range; 0 for all of a function
  std::string phase;
  uint64_t calls = 0;
  bool calls_counted = false;  // by the recorder or sequence numbers; else an estimate
  Work work;
  // By formula, of all calls; nothing where there is none.
  std::optional<u128> formula_flop;
  // Of all places of a function: some have none. Of one: complex numbers, counted as real ones.
  bool formula_partial = false;
  bool formula_at_most = false;  // of both gradients, and nothing shows which were computed
  u128 formula_uncounted = 0;    // operations that no FLOP counter counts
  // Of formula_flop what the model needed: without gradients that nobody computed, without what a
  // mask leaves out. Of fused attention without a formula by what was executed.
  ModelFlop model;
  bool of_model = false;  // its phase counts for the model, and what the model needs is known
  // Of one with launches without a count: in which it may have run, by its kernels' names and its
  // operands' types. Empty where these leave it open.
  PrecisionSet precisions;
  // Executed / formula where both are known and the formula is not 0.
  std::optional<double> ratio;
  std::string cause, evidence;
};

// All that is done for one layer, or by one operator of forward. Backward work belongs to them by
// the sequence number of its forward operator; a layer's else by the ranges around it.
struct ForwardBackward {
  std::string
      name;  // of the layer; "aten::linear"; "MmBackward" where no forward operator was found
  Work forward, backward, recompute;
  ModelFlop forward_model, backward_model;
  bool forward_at_least = false;   // launches of PhasePart::kUnclear are of this operator or layer
  bool backward_at_least = false;  // of PhasePart::kGradients may be its
  std::optional<double> ratio;     // backward / forward, matrix FLOP
  std::optional<ExpectedRatio> expected;  // the same by theory; nothing where there is none
  // Executed FLOP of forward / those of the whole forward pass; nothing where some are not known.
  std::optional<double> forward_share;
};

struct OperatorsReport {
  std::vector<OperatorReport> types;        // by function and phase, most FLOP first
  std::vector<OperatorReport> places;       // by range path and phase, most FLOP first
  std::vector<ForwardBackward> layers;      // most FLOP first, then in the order of forward
  std::vector<ForwardBackward> by_forward;  // by forward operator, most FLOP first
  // Of all launches that count for the model, those of no operator too; of phase "forward".
  ModelFlop model, forward_model;
  std::map<std::string, ModelFlop> model_by_phase;  // of phases that count, or may hold some of it
  bool has_forward = false;                         // the phase
  // Where nothing says what ran forward, all counts but what is known to be something else.
  bool counts_for_model(std::string_view phase) const {
    if (phase == "forward" || phase == "loss" || phase == "backward") return true;
    return !has_forward && phase != "recompute" && phase != "optimizer" && phase != "communication";
  }
  // Of all products with theory together: forward matrix FLOP, and what backward should be.
  u128 products_matrix_flop = 0;
  u128 beside_products = 0;  // forward matrix FLOP of operators that are known to be no products
  std::optional<ExpectedRatio> products_expected;
  std::string products_missing;  // why nothing is expected of some
  bool unclear_gradients =
      false;  // backward has work of calls of which it is unclear where they ran
  // Backward launches of gradients that are differentiated again (create_graph=True): they have
  // numbers of their own, and no number leads to their forward operator.
  uint64_t differentiated_again = 0;
  Work recompute;  // of operators
  // Operators that run again have numbers as these gradients have: backward may hold some.
  bool recompute_unclear() const { return differentiated_again > 0; }
  // Backward launches with a sequence number, by what became of it.
  uint64_t joined = 0, without_forward = 0, other_operator = 0, ambiguous = 0, out_of_window = 0;
};

// What became of a process's request to read counters.
enum class CounterReading : uint8_t {
  kUnknown,     // the recorder does not say what was asked for (before minor version 2)
  kNotAsked,    // its mode reads no counters
  kOtherRanks,  // other ranks of the job were to read them
  kRead,        // the trace has samples
  kRefused,     // no permission
  kBusy,        // another profiler holds them
  kFailed,      // asked for and not read, for the reason in `problem`
  kNoneRead,    // asked for and not read, and the trace has no reason
};

struct CounterReport {
  CounterReading reading = CounterReading::kUnknown;
  std::string problem;  // the recorder's own words, with the remedy; raw bytes; may be empty
};

// Recordings that belong together (report/runs.h). A recording whose header is lost is of the first
// run: nothing is known of it.
struct RunReport {
  std::vector<size_t> traces;  // Report::traces
  // Of the first of them: what all say of their job, and how often it was started again.
  trace::Header header;
  std::optional<uint64_t> begin_ns;  // CLOCK_REALTIME; nothing where it is not known
  // Programs without rank and job that ran together, where they are several.
  std::vector<std::string> programs;
};

// One recorded process.
struct TraceReport : Recorded {
  struct Phase {
    std::string name;
    GpuTime time;
    u128 own_ns = 0;  // of `time`: of launches that were timed here, outside of windows
    // It is this process's own and can be compared with that of others: at least half of it was
    // timed here, and the rest has the mean of the kernels' other launches.
    bool comparable() const {
      return time.windowed == 0 && time.unknown == 0 && own_ns >= time.ns - own_ns;
    }
  };
  std::string name;  // "rank 0, host pid 100": of no other trace of the report; raw bytes
  size_t run = 0;    // Report::runs
  CounterReport counters;
  std::vector<std::string> files;  // also those that a summary was made of
  Work work;
  uint64_t devices = 0;                   // that it launched on
  Figure hfu;                             // over wall time x devices
  std::string damage;                     // "no_end 1, lost_packets 3"; empty where nothing is
  std::vector<Phase> phases;              // each of Report::phases
  std::optional<uint64_t> start_skew_ns;  // after the process that started first
  uint32_t clock_khz = 0;                 // highest of its devices' clocks; 0: unknown
};

// Of a phase, the process with most GPU time, where several have some that can be compared.
struct StragglerReport {
  std::string phase;
  size_t trace = 0;  // Report::traces
  u128 slowest_ns = 0, median_ns = 0;
};

// A device of one process beside the job's others: how long its kernels take. A launch is expected
// to take the median, over these devices, of the mean time of its signature in its range. Only
// launches count that were timed while no counters were read, of signatures that several devices
// have there; and none of communication, which waits for others.
struct RankSlowdown {
  size_t trace = 0;                // Report::traces
  std::optional<uint32_t> device;  // CUDA ordinal
  uint64_t timed_ns = 0;           // of these launches
  double usual_ns = 0;             // what they are expected to take; 0: there are none
};

struct RanksReport {
  std::optional<uint32_t> world_size;  // ranks of the job; nothing where no launcher said it
  std::vector<uint32_t> missing;       // of the job's, or else below the highest rank seen
  std::vector<uint32_t> repeated;      // that several recordings have
  std::vector<StragglerReport> stragglers;
  std::vector<RankSlowdown> slowdowns;  // only with Report::facts, whose order it has
};

struct DamageReport {
  std::string file;
  Damage kind{};
  uint64_t count = 0;
};

// A range path by one rule, of facts.
struct PathReport {
  uint32_t range = kNoRange;  // Report::ranges; kNoRange outside all ranges
  uint32_t rule = 0;          // Report::rules
  std::string layer;          // empty where it is in none, or in several
};

// Launches of one process that have all of these in common.
struct FactReport : Counts {
  uint32_t trace = 0;               // Report::traces
  std::optional<uint32_t> device;   // CUDA ordinal
  uint32_t chip = 0;                // Report::chips
  uint32_t thread = 0, stream = 0;  // numbers in the trace; 0: not known
  uint32_t thread_name = 0;         // Report::thread_names
  uint32_t path = 0;                // Report::paths
  uint32_t signature = 0;           // Report::signatures
  uint64_t unmeasured = 0, unscreened = 0;
  GpuTime time;
  u128 flop = 0;
  bool varying = false, at_most = false;  // as in Work

  template <typename Self>
  static auto packed(Self& of) {
    return std::tuple_cat(
        std::tie(of.trace, of.device, of.chip, of.thread, of.stream, of.thread_name, of.path,
                 of.signature, of.unmeasured, of.unscreened, of.time, of.flop, of.varying,
                 of.at_most),
        std::tie(of.launches, of.timed, of.time_ns, of.windowed, of.windowed_timed,
                 of.windowed_time_ns, of.graph, of.green, of.calls));
  }
};

// Copies and fills of memory on one device in one direction.
struct CopyReport {
  size_t trace = 0;     // Report::traces
  uint32_t device = 0;  // in that trace, as in TimeReport::Device
  const char* direction = "";
  uint64_t copies = 0, bytes = 0, pageable_bytes = 0, ns = 0;
};

// A number that the program gave to its ranges, such as tokens=4096, and the FLOP for each.
struct NumberReport {
  struct InRange {
    std::string range;  // its path; empty: given in no range
    uint64_t times = 0;
    u128 total = 0;
    bool outermost = true;  // no range around it was given the same number
    bool step = false;      // it is a training step
    // FLOP of what was launched in the range, of a training step on any thread / total.
    std::optional<double> flop_each;
    bool estimate = false, at_least = false;  // of flop_each
  };
  std::string name;  // raw bytes
  size_t processes = 0;
  u128 total = 0;                   // of the outermost ranges
  std::optional<double> flop_each;  // all executed FLOP / total; marked as Report::total is
  std::vector<InRange> ranges;
};

// When devices were busy and when they idled, and FLOP over time.
struct TimeReport {
  struct Gap {
    uint64_t begin_ns = 0;  // after the device's first kernel began
    uint64_t length_ns = 0;
    std::string before, after;  // kernels, demangled, raw bytes
  };
  // FLOP of the launches of one phase, bin by bin.
  struct Series {
    std::string phase;
    uint64_t begin_ns = 0;  // on the trace's clock; a multiple of bin_ns
    uint64_t bin_ns = 0;    // a power of two
    std::vector<u128> flop;
    bool at_least = false;  // launches of the phase are missing from it
  };
  // One device of one process. Times that nobody recorded are absent: a trace of level tally says
  // how long kernels ran, not when.
  struct Device {
    uint32_t trace = 0;  // index of Report::traces
    uint32_t id = 0;     // in that trace; 0 where it is not known
    std::string name;
    uint64_t placed = 0;              // launches with a start and an end
    uint64_t unplaced = 0;            // launches without: in none of these times
    std::optional<u128> kernel_ns;    // sum of the placed kernels' times
    std::optional<uint64_t> busy_ns;  // their union: at least one of them ran
    std::optional<uint64_t> idle_ns;  // between the first and the last of them, with none running
    std::optional<uint64_t> wall_ns;  // from the start of the process's recording to its end
    // Of the wall time: before the first of them begins and after the last of them ends.
    std::optional<uint64_t> before_ns, after_ns;
    uint64_t begin_ns = 0;           // of the first of them, on the trace's clock
    uint64_t late = 0, late_ns = 0;  // parts of kernels that may be missing from busy_ns
    std::array<BusyTime::Decade, BusyTime::kDecades> idle{};
    std::vector<Gap> largest;  // longest first
    std::vector<Series> flop;  // of phases that have any
  };
  std::vector<Device> devices;  // those with launches

  // Sums over the devices; absent where one of them has none. The wall time of a process counts
  // once for each of its devices.
  //
  // `kernel_ns` and `busy_ns` are as recorded: launches that were slowed while counters were read
  // are in them as long as they took. Report::total.time, "GPU time", has the mean of their
  // kernel's other launches for them.
  std::optional<u128> kernel_ns, busy_ns, idle_ns, before_ns, after_ns, wall_ns;
  std::optional<u128> own_ns;  // what the profiler took of the programs' threads
  std::optional<u128>
      own_wall_ns;       // wall time of those programs, once for each: its share is of this
  bool complete = true;  // no launch is unplaced, and none was late
};

// What a condition on the figures (gates/gate.h) came to.
enum class Verdict : uint8_t {
  kPassed,
  kFailed,
  kNotKnown,  // counts as failed
  kInvalid,   // a name that the report does not have: an error of usage
};

struct GateResult {
  // A figure that the condition names, as the report has it.
  struct Named {
    std::string name;
    std::optional<double> value;
    std::optional<u128> whole;  // an integer to its last digit
    std::string word;           // of a figure that is one of several names
    std::string reason;         // why it has no value
  };
  std::string condition;
  Verdict verdict = Verdict::kInvalid;
  std::vector<Named> figures;
  std::string message;  // one line: the figures with their values, or what is wrong with a name
};

struct Report {
  std::optional<bool> simulated;  // nothing where the only headers are lost
  bool simulated_clock = false;   // all time stamps are of the simulated GPU's clock
  bool ptx_counts = false;        // FLOP are of PTX's instructions, at least some
  int fma = 2;
  bool partial = false;  // something is missing: damage, no end mark, unmeasured input
  Work total;
  Flop flop;
  std::vector<std::string> precisions;  // names for Flop::by_precision
  LedgerReport ledger;
  std::vector<PhaseReport> phases;
  std::vector<RuleReport> rules;
  // GPU times are modelled and wall times real, as in simulated recordings before format 1.7: they
  // cannot be compared.
  bool clocks_differ() const { return simulated.value_or(false) && !simulated_clock; }
  std::array<Work, kPhaseParts.size()> phase_parts;  // by PhasePart
  const Work& part(PhasePart part) const { return phase_parts[static_cast<size_t>(part)]; }
  NamedPart named;
  RatioReport ratio;
  UtilizationReport utilization;
  std::vector<KernelReport> kernels;  // most FLOP first
  bool medians_left_out = false;      // of LaunchTimes: kernels were too many
  std::vector<SignatureReport> signatures;
  OperatorsReport operators;
  std::vector<RangeReport> ranges;  // in tree order
  WorkRows work;
  bool with_facts = false;        // facts and StepsReport::listed were asked for
  std::vector<PathReport> paths;  // of facts, in tree order
  PackedRows<FactReport> facts;   // by trace, device, thread, stream
  uint64_t fact_launches_left_out = 0;
  bool given_names_unused = false;  // --names has none that a launch could have
  std::vector<std::string> chips;
  std::vector<std::string> thread_names;  // of facts
  std::vector<DeviceReport> devices;
  TimeReport time;
  LostReport lost;
  CommunicationReport communication;
  StepsReport steps;
  std::vector<CopyReport> copies;
  std::vector<NumberReport> numbers;  // by name
  std::vector<TraceReport> traces;
  std::vector<RunReport> runs;  // in the order in which they began
  RanksReport ranks;
  std::vector<DamageReport> damage;
  std::vector<GateResult> gates;    // of --fail-if
  std::vector<std::string> errors;  // inputs that could not be used, one line each
};

// Of sums over all launches: a recording could not be written to its end. Rates are of what it has.
Mark end_mark(const Report& report);
// Of a phase without launches: no work. Valid as long as the report.
const Work& phase_work(const Report& report, std::string_view phase);

}  // namespace flopinj::reduce
