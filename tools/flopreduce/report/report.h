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
#include "report/ledger.h"
#include "report/lost.h"
#include "report/operators_report.h"
#include "report/processes.h"
#include "report/ratio.h"
#include "report/steps.h"
#include "report/time.h"
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
  std::string ran = {};        // the operator that its launches are of; empty: none
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

// What machine code would add to PTX's counts, by operation.
struct MachineCodeReport {
  const MachineOperation* operation = nullptr;
  u128 count = 0;  // over all launches that are measured
  u128 flop() const { return count * (operation->fp32 + operation->fp64); }
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
  std::vector<MachineCodeReport> machine_code;  // most FLOP first
  OperatorsReport operators;
  std::vector<RangeReport> ranges;  // in tree order
  WorkRows work;
  bool with_facts = false;        // facts and each step were asked for
  std::vector<PathReport> paths;  // of facts, in tree order
  PackedRows<FactReport> facts;   // by trace, device, thread, stream
  uint64_t fact_launches_left_out = 0;
  std::vector<std::string> unused_formulas;  // of --formulas: lines that no launch counts by
  bool given_names_unused = false;           // --names has none that a launch could have
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
