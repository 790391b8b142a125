#include <algorithm>
#include <charconv>
#include <set>

#include "peaks/peaks.h"
#include "support/data.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr std::string_view kPrinted[] = {"dense", "dense; sparse is twice that",
                                         "sparse; dense is half of that", "dense and sparse"};

// The cells of one line: a text, a number, or "-" for neither.
class Row {
 public:
  explicit Row(std::string_view line) : cells_(parts_of(line, '\t')) {}

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
    Row row(lines[i]);
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
  constexpr std::string_view kTensor = "tensor_", kSparse = "_sparse";
  const bool sparse = name.ends_with(kSparse), tensor = name.starts_with(kTensor);
  if (sparse) name.remove_suffix(kSparse.size());
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

}  // namespace flopinj::reduce
