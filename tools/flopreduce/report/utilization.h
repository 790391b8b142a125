// How near to its devices' peaks a program came.
//
// Utilization of a set of launches = the least time that the peaks allow for their FLOP
// (Roof::compute_ns) / the time they took. With one precision that is FLOP / (time x peak). Where
// FLOP are missing it is a lower bound; above 1 it is an error: one of time, count and peak is
// wrong, and no figure is given. HFU and MFU of a run, of its steps and of a process are worked out
// by share_of_peak() alone, marks and all.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "peaks/peaks.h"
#include "report/figure.h"

namespace flopinj::reduce {

struct Flop;
struct OperatorReport;
struct Work;
struct Report;

// The least time at peak / the time taken, or why it is not known. A time that is an upper bound
// was taken while counters were read: the share is more.
Figure share_of_peak(const Figure& least_ns, const Figure& time_ns);
// It is not known because the figures contradict each other: FLOP, time or peak is wrong.
inline constexpr const char* kAbovePeak = "above peak";
bool above_peak(const Figure& share);
Figure utilization_of(const Work& work);  // over GPU time, sum of kernels
// Of flop_or_formula(): the same where all launches have a count; else about so much. FLOP by
// formula are at the peaks that kernels' names and operands' types leave: it may be a range.
Figure least_ns_or_formula(const Work& work, const Report& report);
Figure utilization_or_formula(const Work& work, const Report& report);
// How much of what counts for the model has a formula: of its matrix FLOP where all of its launches
// have a count, else of its GPU time. "87 % of matrix FLOP covered".
std::string model_coverage(const Report& report);
// What some FLOP take at peak: no less than one time, and no more than the other, where that is
// known.
struct AtPeak {
  double least_ns = 0;
  std::optional<double> most_ns = {};
};
// Of the model's FLOP of an operator in one place, in the precisions it ran in. Of one with
// unmeasured launches these are those that names leave open, and where these say nothing the
// fastest peak is a bound. Nothing where that is not known. The place has a formula.
std::optional<AtPeak> model_at_peak(const OperatorReport& place, const Report& report);
Figure roofline_of(const Work& work);  // the same against both roofs

struct PeakUsed {
  std::string precision;
  Peak peak;
  double per_second = 0;  // of `peak`, in the report's convention (--fma)
};
// One kind of device.
struct DevicePeaksReport {
  uint32_t chip = 0;  // TraceTables::chips
  std::string name;   // as CUDA has it, or kNoDeviceName
  uint64_t launches = 0;
  std::string row;  // of the table; empty where all peaks are the user's
  // Behind the row's peaks; 0 where its source has none, or without a row.
  double clock_mhz = 0, tensor_clock_mhz = 0;
  std::vector<PeakUsed> peaks;
  std::vector<PeakUsed> integer_peaks;  // OP/s, of integer tensor work
  std::optional<double> bf16;           // FLOP/s of products, whether some ran or not
  // FLOP/s that nothing exceeds: the highest of the dense peaks of all its formats, and of those
  // that ran. Nothing where the table does not have the device.
  std::optional<double> fastest;
  std::array<double, kPrecisionNames.size()> dense =
      {};                               // FLOP/s by kPrecisionNames; 0: none known
  std::vector<std::string> no_peak_of;  // precisions and integer formats that ran and have none
  std::optional<Peak> memory;
  std::vector<std::string> notes;
  std::string error;  // why there are no peaks, and what to do
};

// The precision or integer format that takes most of the time at the devices' peaks; empty where no
// peak is known. `precisions`: names of Flop::by_precision.
std::string slowest_precision(const Flop& flop, const std::vector<std::string>& precisions,
                              const std::vector<DevicePeaksReport>& devices);

// What the user says of a run, for figures that a trace does not hold.
struct UtilizationOptions {
  std::vector<PeakOverride> peaks;
  std::optional<double> formula_flop;  // by formula, of everything the traces hold
  std::optional<double> forward_flop;  // by formula, of the forward passes the traces hold
  std::optional<double> batch_size;
  // Of training steps.
  uint64_t skip_steps = 0;  // of each process, at its beginning
  std::optional<double> tokens_per_step, parameters;
};

// How PyTorch's operators come to have names with sizes, by who made the recordings: "flopinj run
// --torch".
std::string how_to_name_operators(const Report& report);

// One way to work out a run's utilization.
struct UtilizationMethod {
  std::string name;
  std::string flop_basis;  // what was counted
  Figure flop;             // operations, in the report's convention
  Figure least_ns;         // that the peaks allow for them
  Figure gpu_time_ns;      // sum of kernels
  // Shares of peak.
  Figure gpu_time;  // over that
  Figure busy;      // over the union of the kernels' times: kernels that overlap take it once
  Figure span;      // over the time from each device's first kernel to its last: no start-up in it
  Figure wall;      // over wall time x devices

  bool above_peak() const;  // one of them is not known because it would be
};

struct UtilizationReport {
  std::vector<DevicePeaksReport> devices;
  std::vector<std::string> unused_overrides;  // devices of --peak that none in the traces is
  bool any_peak = false;
  Figure wall_ns;                          // wall time of each trace x its devices, summed
  Figure busy_ns;                          // of each device, summed
  Figure span_ns;                          // from the first kernel to the last of each, summed
  std::vector<UtilizationMethod> methods;  // executed, formula; theory, one, batch, epoch
  // What the formula's FLOP take at peak, where it is one number for the whole run.
  std::optional<double> given_formula_ns;

  // Hardware and model FLOP utilization are over wall time, executed and by formula: observed
  // throughput / peak (Chowdhery et al., PaLM, 2022, section 4.1 and appendix B).
  const UtilizationMethod* hfu() const { return methods.empty() ? nullptr : &methods[0]; }
  const UtilizationMethod* mfu() const { return methods.empty() ? nullptr : &methods[1]; }
  // The model's FLOP are known, and, where launches are unmeasured, a bound of their time at peak.
  bool model_known = false;
};

// The run's figures; rows have their roofs already, and the report its times.
void build_utilization(const UtilizationOptions& options, Report& report);

}  // namespace flopinj::reduce
