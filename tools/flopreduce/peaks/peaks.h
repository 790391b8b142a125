// The peaks a device is measured against: from a table of published ones, by the name that CUDA
// gives the device, or from the user. The table is data, peaks.tsv: a GPU that is missing gets a
// row there.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj::reduce {

// What a peak is of, named as in the report: "fp16" is packed arithmetic outside the tensor cores,
// "tensor_..." dense work of the tensor cores by source format; fp16 and fp8 with an fp32
// accumulator.
inline constexpr std::array<std::string_view, 11> kPrecisionNames = {
    "fp64",        "fp32",       "fp16",       "tensor_fp64", "tensor_tf32", "tensor_fp16",
    "tensor_bf16", "tensor_fp8", "tensor_fp6", "tensor_fp4",  "tensor_int8"};

// One CUDA device, in the order of the table's columns. Numbers are 0 where the source has none.
struct Gpu {
  std::string_view name;
  std::string_view chip;        // as CUPTI names it; empty where that is not known
  std::string_view cuda_names;  // as the driver names it, without "NVIDIA "; '|' between several
  uint32_t multiprocessors = 0;
  double clock_mhz = 0;         // boost clock behind fp64, fp32, fp16 and tensor_fp64
  double tensor_clock_mhz = 0;  // behind the others; some sources compute the two at two clocks
  double memory_gb_s = 0;       // 1e9 bytes per second
  // 1e12 operations per second, a fused multiply-add counted as two, as the source prints them.
  std::array<double, kPrecisionNames.size()> dense = {};
  double sparse_fp4 = 0;     // with 2:4 sparsity; of other formats that is twice the dense figure
  std::string_view printed;  // what the source prints for the tensor cores: "dense and sparse"
  std::string_view units;    // architecture whose rates per multiprocessor these are
  std::string_view source;   // title of NVIDIA's document
  std::string_view note;
};

// 1e12 operations per second by a precision's name as in the report, or with "_sparse" behind it; 0
// where there is none. A name for several formats that a chip counts together
// ("tensor_fp4_fp6_fp8") has the highest of theirs.
double published_peak(const Gpu& gpu, std::string_view precision);

// Rows of simgpu's devices have the peaks of its time model ("Times" in
// tools/simgpu/driver/README.md), no hardware's.
bool is_simulated_device(std::string_view name);

// A table like peaks.tsv, whose text must outlive the rows; of a bad one `error`, with its line.
struct PeakTable {
  std::vector<Gpu> gpus;
  std::string error;
};
PeakTable read_peaks(std::string_view text);

// The built-in table.
const std::vector<Gpu>& gpus();

// Peaks, and what papers say of multiply-adds, count each as two operations. In the convention of
// `--fma`, where one counts `fma`:
constexpr double in_convention(double operations, int fma) { return operations * fma / 2; }

// Of a device whose name a trace does not say.
inline constexpr const char* kNoDeviceName = "a device without a name";

// What a trace says about a device.
struct DeviceFacts {
  std::string name = "";  // "NVIDIA H200"
  std::string chip = "";  // "GH100"; empty where CUPTI could not say
  uint32_t multiprocessors = 0;
  uint32_t clock_khz = 0;  // highest clock
  bool simulated = false;  // the trace's header says so
};

// `--peak [DEVICE:]PRECISION=VALUE`.
struct PeakOverride {
  // The name of a product of the table or of a device of the traces: only that one. Else a part of
  // the device's name. In any case; empty for all devices.
  std::string device;
  std::string precision;    // as in the report, or "memory"
  double per_second = 0;    // operations, a fused multiply-add as two; bytes for "memory"
  bool whole_name = false;  // `device` is that of a device of the traces: note_whole_names()
};
bool applies(const PeakOverride& option, const DeviceFacts& device);
// What the traces' devices say of the options: some are the whole name of one.
void note_whole_names(std::vector<PeakOverride>& options, const std::vector<DeviceFacts>& devices);

// Reads the option's value. PRECISION is one of kPrecisionNames, one of them with "_sparse", any
// other "tensor_..." of a report, or "memory"; "tf32", "bf16", "fp8", "fp6", "fp4" and "int8" stand
// for "tensor_tf32" and so on. VALUE as parse_si(): 989T. On failure one line that says what is
// wrong.
struct ParsedOverride {
  PeakOverride value;
  std::string error;  // empty when `value` holds
};
ParsedOverride parse_peak(std::string_view text);

struct Peak {
  double per_second = 0;
  std::string source;
};

// As published_peak(), with where it comes from.
std::optional<Peak> peak_of(const Gpu& gpu, std::string_view precision);

// "bf16" and its like by their whole name; others as they are.
std::string whole_precision_name(std::string_view name);

// The peaks of one device.
class DevicePeaks {
 public:
  // As peak_of(), with what the user gave before the table.
  std::optional<Peak> of(std::string_view precision) const;
  std::optional<Peak> memory() const;  // bytes per second
  const Gpu* gpu() const { return gpu_; }
  double share() const { return share_; }
  // What the user should know about these peaks, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend struct PeakLookup find_peaks(const DeviceFacts&, const std::vector<PeakOverride>&);
  const Gpu* gpu_ = nullptr;
  double share_ = 1;  // of the GPU's multiprocessors, where the device is a part of it (MIG)
  std::vector<PeakOverride> overrides_;
  std::vector<std::string> notes_;
};

// A device that is not in the table, or contradicts its row, has no peaks but those that the user
// gives: `error` says so, with the option to type. It is empty when the table has the device, or
// the user gave any peak for it.
//
// The row is found only by its name. The trace's other facts are checked against it:
// - another architecture than the row's: refused
// - another chip of it: the report says so
// - fewer multiprocessors: the device is a slice of the GPU (MIG), its compute peaks are that
//   share; memory bandwidth stays the whole GPU's, an upper bound
// - more multiprocessors: refused, it is another product of that name
// - a highest clock that differs by more than 5 %: likewise; published peaks have their own clock
struct PeakLookup {
  DevicePeaks peaks;
  std::string error;
};
PeakLookup find_peaks(const DeviceFacts& device, const std::vector<PeakOverride>& overrides);

// Why a number is no peak, where it is far below any device's: "989 FLOP/s is no peak: did you mean
// 989T?" Empty where it may be one.
std::string no_peak(std::string_view text, double per_second, bool of_memory);

// Rows whose name or CUDA name holds `text`, in any case and with its numbers whole: H20 is no part
// of H200. Simulated ones where no product is named so; all for an empty text.
std::vector<const Gpu*> search_gpus(std::string_view text);

// The row that `name` means: an exact name or CUDA name in any case, else the only row that holds
// it; a simulated one only for a name that says so ("simgpu SG4"). Null with `error` otherwise.
const Gpu* choose_gpu(std::string_view name, std::string& error);

}  // namespace flopinj::reduce
