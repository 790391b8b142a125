#include "peaks/peaks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "support/data.h"
#include "support/program_name.h"
#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr std::string_view kMemory = "memory";
constexpr std::string_view kSparseEnd = "_sparse";
constexpr std::string_view kTensor = "tensor_";

constexpr std::string_view kPrinted[] = {"dense", "dense; sparse is twice that",
                                         "sparse; dense is half of that", "dense and sparse"};

// The cells of one line: a text, a number, or "-" for neither.
class LineOfPeaks {
 public:
  explicit LineOfPeaks(std::string_view line) : cells_(parts_of(line, '\t')) {}

  size_t size() const { return cells_.size(); }
  std::string_view text() {
    const std::string_view cell = cells_[at_++];
    fine_ = fine_ && !cell.empty();
    return cell == "-" ? std::string_view() : cell;
  }
  template <typename Number>
  Number number() {
    Number value = 0;
    const std::string_view cell = text();
    const auto [end, wrong] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    fine_ = fine_ && (cell.empty() || (wrong == std::errc() && end == cell.end() && value > 0));
    return value;
  }
  bool fine() const { return fine_; }

 private:
  std::vector<std::string_view> cells_;
  size_t at_ = 0;
  bool fine_ = true;
};

}  // namespace

PeakTable read_peaks(std::string_view text) {
  PeakTable table;
  std::vector<std::string_view> lines = parts_of(text, '\n');
  std::set<std::string_view> names;
  constexpr size_t kColumns = 12 + kPrecisionNames.size();
  for (size_t i = 1; i < lines.size() && !lines[i].empty(); ++i) {
    LineOfPeaks row(lines[i]);
    Gpu gpu;
    const auto fail = [&](const std::string& why) {
      return PeakTable{{}, "line " + std::to_string(i + 1) + ": " + why};
    };
    if (row.size() != kColumns) return fail("not " + std::to_string(kColumns) + " cells");
    gpu.name = row.text();
    gpu.chip = row.text();
    gpu.cuda_names = row.text();
    gpu.multiprocessors = row.number<uint32_t>();
    gpu.clock_mhz = row.number<double>();
    gpu.tensor_clock_mhz = row.number<double>();
    gpu.memory_gb_s = row.number<double>();
    for (double& peak : gpu.dense) peak = row.number<double>();
    gpu.sparse_fp4 = row.number<double>();
    gpu.printed = row.text();
    gpu.units = row.text();
    gpu.source = row.text();
    gpu.note = row.text();
    if (!row.fine()) return fail("a cell is empty or no number above 0; '-' is for none");
    if (gpu.source.empty() || gpu.memory_gb_s <= 0 || gpu.dense[0] <= 0 || gpu.dense[1] <= 0)
      return fail("source, GB/s, fp64 or fp32 is missing");
    if (std::ranges::find(kPrinted, gpu.printed) == std::end(kPrinted))
      return fail("what the source prints is none of the known words");
    std::vector<std::string_view> known = parts_of(gpu.cuda_names, '|');
    known.push_back(gpu.name);
    for (const auto name : std::set<std::string_view>(known.begin(), known.end()))
      if (!names.insert(name).second) return fail("a name is another row's, too");
    table.gpus.push_back(gpu);
  }
  return table;
}

const std::vector<Gpu>& gpus() {
  static const PeakTable kTable = read_peaks(data::kPeaks);
  return kTable.gpus;
}

double published_peak(const Gpu& gpu, std::string_view name) {
  const bool sparse = name.ends_with(kSparseEnd), tensor = name.starts_with(kTensor);
  if (sparse) name.remove_suffix(kSparseEnd.size());
  if (tensor) name.remove_prefix(kTensor.size());
  double highest = 0;
  for (const auto format : tensor ? parts_of(name, '_') : std::vector{name})
    for (size_t i = 0; i < kPrecisionNames.size(); ++i) {
      if (kPrecisionNames[i] != (tensor ? std::string(kTensor) : "") + std::string(format))
        continue;
      double peak = gpu.dense[i];
      if (sparse && format == "fp4")
        peak = gpu.sparse_fp4;
      else if (sparse)
        peak *= tensor && format != "fp64" && gpu.printed != kPrinted[0] ? 2 : 0;
      highest = std::max(highest, peak);
    }
  return highest;
}

bool is_simulated_device(std::string_view name) { return name.starts_with("simgpu "); }

namespace {

// Driver's names without what old and new drivers differ in, and without a MIG profile.
std::string_view product_name(std::string_view cuda_name) {
  constexpr std::string_view kVendor = "NVIDIA ";
  if (cuda_name.starts_with(kVendor)) cuda_name.remove_prefix(kVendor.size());
  return cuda_name.substr(0, cuda_name.find(" MIG "));
}

const Gpu* gpu_of_device(const DeviceFacts& device) {
  const bool simulated = device.simulated || is_simulated_device(device.name);
  const std::string_view name = simulated ? device.name : product_name(device.name);
  for (const Gpu& gpu : gpus())
    if (is_simulated_device(gpu.name) == simulated)
      for (const auto known : parts_of(gpu.cuda_names, '|'))
        if (known == name) return &gpu;
  return nullptr;
}

bool is_named(const Gpu& gpu, std::string_view lower_name) {
  std::vector<std::string_view> names = parts_of(gpu.cuda_names, '|');
  names.push_back(gpu.name);
  return std::ranges::any_of(names, [&](std::string_view n) { return lower(n) == lower_name; });
}

bool is_slice(std::string_view name) { return name.find(" MIG ") != std::string_view::npos; }

// A slice of a GPU (MIG) is another device than the GPU.
bool same_name(std::string_view a, std::string_view b) {
  return is_slice(a) || is_slice(b) ? lower(a) == lower(b)
                                    : lower(product_name(a)) == lower(product_name(b));
}

// Whether `name` holds `part`, in any case and with its numbers whole: "H20" is no part of "H200".
bool holds(std::string_view name, std::string_view part) {
  const std::string all = lower(name), wanted = lower(part);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t at = all.find(wanted); at != all.npos; at = all.find(wanted, at + 1)) {
    const size_t end = at + wanted.size();
    const bool cut =
        !wanted.empty() && ((at > 0 && is_digit(all[at - 1]) && is_digit(all[at])) ||
                            (end < all.size() && is_digit(all[end - 1]) && is_digit(all[end])));
    if (!cut) return true;
  }
  return false;
}

bool is_product(std::string_view name) {
  const std::string wanted = lower(product_name(name));
  return std::ranges::any_of(gpus(), [&](const Gpu& gpu) { return is_named(gpu, wanted); });
}

std::string source_of(const Gpu& gpu, std::string_view precision) {
  std::string source(gpu.source);
  const bool tensor = precision.starts_with(kTensor) && precision != "tensor_fp64";
  const bool sparse = precision.ends_with(kSparseEnd);
  if (tensor && !sparse && gpu.printed.starts_with("sparse"))
    source += "; half of the sparse figure";
  if (tensor && sparse && gpu.printed.starts_with("dense;")) source += "; twice the dense figure";
  return source;
}

std::string option_to_type(const DeviceFacts& device) {
  const std::string of = device.name.empty() ? "" : printable(device.name) + ":";
  return "give its peak: --peak '" + of +
         "fp32=VALUE' (for each precision that it uses, and memory=VALUE; say 67T)";
}

// What contradicts the row: a line, with `refuse` where the row cannot be this device's.
std::string check(const DeviceFacts& d, const Gpu& gpu, double& share,
                  std::vector<std::string>& notes, bool& refuse) {
  const std::string row = "the table's " + std::string(gpu.name);
  if (!d.chip.empty() && !gpu.chip.empty() && d.chip != gpu.chip) {
    const std::string text =
        row + " has chip " + std::string(gpu.chip) + ", this device " + printable(cut(d.chip, 64));
    refuse = d.chip.substr(0, 2) != gpu.chip.substr(0, 2);
    if (refuse) return text;
    notes.push_back(text);
  }
  if (d.multiprocessors != 0 && gpu.multiprocessors != 0 &&
      d.multiprocessors != gpu.multiprocessors) {
    std::string text = row + " has " + std::to_string(gpu.multiprocessors) +
                       " multiprocessors, this device " + std::to_string(d.multiprocessors);
    refuse = d.multiprocessors > gpu.multiprocessors;
    if (refuse) return text;
    share = static_cast<double>(d.multiprocessors) / gpu.multiprocessors;
    notes.push_back(text + ": compute peaks are that share, memory bandwidth the whole GPU's");
  }
  const double clock = d.clock_khz / 1e3;
  if (clock > 0 && gpu.clock_mhz > 0 && std::fabs(clock / gpu.clock_mhz - 1) > 0.05)
    notes.push_back(row + " stands on a clock of " + std::to_string(std::lround(gpu.clock_mhz)) +
                    " MHz, this device reaches " + std::to_string(d.clock_khz / 1000) + " MHz");
  return "";
}

}  // namespace

bool applies(const PeakOverride& option, const DeviceFacts& device) {
  if (option.device.empty() || same_name(device.name, option.device)) return true;
  if (is_slice(option.device)) return false;
  if (is_product(option.device)) {
    const Gpu* gpu = gpu_of_device(device);
    return gpu != nullptr && is_named(*gpu, lower(product_name(option.device)));
  }
  return !option.whole_name && holds(device.name, option.device);
}

void note_whole_names(std::vector<PeakOverride>& options, const std::vector<DeviceFacts>& devices) {
  for (auto& option : options)
    option.whole_name = std::any_of(devices.begin(), devices.end(), [&](const DeviceFacts& device) {
      return same_name(device.name, option.device);
    });
}

std::string whole_precision_name(std::string_view name) {
  std::string_view stem = name;
  if (stem.ends_with(kSparseEnd)) stem.remove_suffix(kSparseEnd.size());
  const auto known = [](std::string_view n) { return std::ranges::count(kPrecisionNames, n) > 0; };
  const std::string tensor(kTensor);
  return (!known(stem) && known(tensor + std::string(stem)) ? tensor : "") + std::string(name);
}

std::optional<Peak> peak_of(const Gpu& gpu, std::string_view precision) {
  const double peak = published_peak(gpu, precision);
  if (peak <= 0) return std::nullopt;
  return Peak{peak * 1e12, source_of(gpu, precision)};
}

std::string no_peak(std::string_view text, double per_second, bool of_memory) {
  constexpr double kLeast = 1e6;  // a thousandth of what the slowest device in the table has
  if (per_second >= kLeast) return "";
  const std::string unit = of_memory ? "B/s" : "FLOP/s";
  const std::string amount = format_si(per_second) + (per_second < 1000 ? " " : "") + unit;
  if (text.find_first_not_of("0123456789.") != text.npos)  // a prefix, or an exponent
    return amount + " is no peak: say how many " + unit + ", such as 67T";
  const bool tera = per_second < (of_memory ? 100 : 20'000);  // larger ones are in G
  return amount + " is no peak: did you mean " + std::string(text) + (tera ? "T?" : "G?");
}

ParsedOverride parse_peak(std::string_view text) {
  const std::string shown = "--peak " + printable(cut(text, 200)) + ": ";
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos)
    return {{}, shown + "must be [DEVICE:]PRECISION=VALUE, such as fp32=67T"};
  std::string_view key = text.substr(0, equals);
  ParsedOverride out;
  if (const size_t colon = key.rfind(':'); colon != std::string_view::npos) {
    out.value.device = std::string(key.substr(0, colon));
    key.remove_prefix(colon + 1);
    if (out.value.device.empty()) return {{}, shown + "the device before ':' is missing"};
  }
  out.value.precision = whole_precision_name(key);
  const bool tensor = out.value.precision.starts_with(kTensor) &&
                      out.value.precision.size() > kTensor.size() &&
                      out.value.precision.size() < 64;
  if (!tensor && key != kMemory &&
      std::ranges::find(kPrecisionNames, key) == kPrecisionNames.end()) {
    std::string names;
    for (const auto name : kPrecisionNames) names += std::string(name) + ", ";
    return {{}, shown + "'" + printable(cut(key, 64)) + "' is none of " + names + "memory"};
  }
  const auto value = parse_si(text.substr(equals + 1));
  if (!value || *value <= 0)
    return {{}, shown + "the value must be a number above 0, such as 67T or 6.7e13"};
  if (const std::string why = no_peak(text.substr(equals + 1), *value, key == kMemory);
      !why.empty())
    return {{}, shown + why};
  out.value.per_second = *value;
  return out;
}

std::optional<Peak> DevicePeaks::of(std::string_view precision) const {
  for (const auto& o : overrides_)
    if (o.precision == precision) return Peak{o.per_second, "--peak"};
  if (gpu_ == nullptr) return std::nullopt;
  auto peak = peak_of(*gpu_, precision);
  if (peak) peak->per_second *= share_;
  return peak;
}

std::optional<Peak> DevicePeaks::memory() const {
  for (const auto& o : overrides_)
    if (o.precision == kMemory) return Peak{o.per_second, "--peak"};
  if (gpu_ == nullptr) return std::nullopt;
  return Peak{gpu_->memory_gb_s * 1e9, std::string(gpu_->source)};
}

PeakLookup find_peaks(const DeviceFacts& device, const std::vector<PeakOverride>& overrides) {
  PeakLookup out;
  // The last of several for one precision counts, as with other options.
  for (auto o = overrides.rbegin(); o != overrides.rend(); ++o)
    if (applies(*o, device)) out.peaks.overrides_.push_back(*o);
  const std::string shown = device.name.empty() ? kNoDeviceName : printable(cut(device.name, 200));
  const Gpu* gpu = gpu_of_device(device);
  std::string contradiction;
  if (gpu != nullptr) {
    bool refuse = false;
    contradiction = check(device, *gpu, out.peaks.share_, out.peaks.notes_, refuse);
    if (!refuse) {
      out.peaks.gpu_ = gpu;
      if (!gpu->note.empty()) out.peaks.notes_.emplace_back(gpu->note);
      return out;
    }
  }
  if (!out.peaks.overrides_.empty()) return out;
  out.error =
      (gpu == nullptr ? shown + " is not in the table of peaks" : shown + ": " + contradiction) +
      "; " + option_to_type(device);
  return out;
}

std::vector<const Gpu*> search_gpus(std::string_view text) {
  std::vector<const Gpu*> products, simulated;
  for (const Gpu& gpu : gpus())
    if (holds(gpu.name, text) || holds(gpu.cuda_names, text))
      (is_simulated_device(gpu.name) ? simulated : products).push_back(&gpu);
  const bool both = text.empty() || products.empty();
  if (both) products.insert(products.end(), simulated.begin(), simulated.end());
  return products;
}

const Gpu* choose_gpu(std::string_view name, std::string& error) {
  const std::string wanted = lower(product_name(name));
  auto found = search_gpus(wanted);
  const auto is_exact = [&](const Gpu* gpu) { return is_named(*gpu, wanted); };
  const auto exact = std::find_if(found.begin(), found.end(), is_exact);
  if (exact != found.end()) return *exact;
  // A simulated one has to be asked for as such.
  if (wanted.find("sim") == wanted.npos)
    std::erase_if(found, [](const Gpu* gpu) { return is_simulated_device(gpu->name); });
  if (found.size() == 1) return found[0];
  error = "GPU '" + printable(cut(name, 100)) + "' is " +
          (found.empty() ? "not in the table" : "ambiguous");
  if (!found.empty()) {
    error += ": ";
    for (size_t i = 0; i < found.size() && i < 8; ++i)
      error += (i > 0 ? ", " : "") + std::string(found[i]->name);
    if (found.size() > 8) error += " and more";
  }
  error += "; see " + typed("peaks") + ", or give its peak as a number";
  return nullptr;
}

}  // namespace flopinj::reduce
