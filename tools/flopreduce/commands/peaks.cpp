// flopreduce peaks [NAME]: the table of peaks, or all about the GPUs that NAME fits.
#include "peaks/peaks.h"

#include <memory>

#include "commands/arguments/command.h"
#include "commands/forms.h"
#include "sections/parts/columns.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string number(double value) { return value > 0 ? printed("%.6g", value) : "-"; }

// One line for each GPU, in 1e12 operations per second: what is outside the tensor cores, and
// theirs. Both together are wider than a terminal.
void add_overview(std::vector<Section>& sections, const std::vector<const Gpu*>& gpus,
                  const std::string& of) {
  constexpr std::string_view kTensor = "tensor_";
  Table plain{"peaks",
              {{"gpu", "GPU"},
               {"multiprocessors", "SMs"},
               {"clock_mhz", "MHz"},
               {"memory_gb_per_s", "GB/s"}}};
  Table tensor{"tensor_peaks", {{"gpu", "GPU"}}};
  for (const auto name : kPrecisionNames)
    if (name.starts_with(kTensor))
      tensor.columns.push_back({name.data(), name.data() + kTensor.size()});
    else
      plain.columns.push_back({name.data(), name.data()});
  for (const Gpu* gpu : gpus) {
    std::vector<Cell> of_plain = {std::string(gpu->name), number(gpu->multiprocessors),
                                  number(gpu->clock_mhz), number(gpu->memory_gb_s)};
    std::vector<Cell> of_tensor = {std::string(gpu->name)};
    double any = 0;
    for (const auto name : kPrecisionNames) {
      const double peak = published_peak(*gpu, name);
      const bool is_tensor = name.starts_with(kTensor);
      (is_tensor ? of_tensor : of_plain).emplace_back(number(peak));
      any += is_tensor ? peak : 0;
    }
    plain.rows.push_back(std::move(of_plain));
    if (any > 0) tensor.rows.push_back(std::move(of_tensor));
  }
  if (!plain.rows.empty())
    sections.push_back(
        {"Peaks" + of + ", 1e12 operations per second (a fused multiply-add counts two)",
         {},
         std::move(plain),
         {}});
  if (!tensor.rows.empty())
    sections.push_back({"Peaks of tensor cores" + of + ", dense", {}, std::move(tensor), {}});
}

// Simulated ones apart: their names are long.
std::vector<Section> overview(const std::vector<const Gpu*>& found) {
  std::vector<const Gpu*> real, simulated;
  for (const Gpu* gpu : found) (is_simulated_device(gpu->name) ? simulated : real).push_back(gpu);
  std::vector<Section> sections;
  add_overview(sections, real, "");
  add_overview(sections, simulated, ", simulated");
  sections.back().below = {
      "  Sources, sparse peaks and CUDA's device names: flopreduce peaks NAME"};
  return sections;
}

// One row for each peak; for programs with the GPU and the source, which people read above it.
void add_peaks(Table& table, const Gpu& gpu, bool people) {
  for (const auto name : kPrecisionNames) {
    const double dense = published_peak(gpu, name);
    const double sparse = published_peak(gpu, std::string(name) + "_sparse");
    if (dense <= 0) continue;
    std::vector<Cell> row = {std::string(name), Figure::exact(dense * 1e12),
                             sparse > 0 ? Cell(Figure::exact(sparse * 1e12)) : Cell::none()};
    if (!people) {
      row.emplace(row.begin(), std::string(gpu.name));
      row.emplace_back(std::string(gpu.source));
    }
    table.rows.push_back(std::move(row));
  }
}

Table peaks_table(bool people) {
  Table table{"peaks",
              {{"precision", "precision"},
               {"dense_flop_per_s", "dense", Kind::kRate},
               {"sparse_flop_per_s", "sparse", Kind::kRate}}};
  if (people) return table;
  table.columns.insert(table.columns.begin(), {"gpu", "GPU"});
  table.columns.push_back({"source", "source"});
  return table;
}

Section details(const Gpu& gpu) {
  Table table = peaks_table(true);
  add_peaks(table, gpu, true);
  std::vector<Line> above = {
      "  CUDA names  " +
          (gpu.cuda_names.empty() ? "none: not one CUDA device" : std::string(gpu.cuda_names)),
      "  chip        " + (gpu.chip.empty() ? "-" : std::string(gpu.chip)) + ", " +
          number(gpu.multiprocessors) + " multiprocessors, " + number(gpu.clock_mhz) + " MHz" +
          (gpu.tensor_clock_mhz != gpu.clock_mhz
               ? " (tensor cores " + number(gpu.tensor_clock_mhz) + " MHz)"
               : ""),
      "  memory      " + number(gpu.memory_gb_s) + " GB/s",
      "  source      " + std::string(gpu.source) + "; prints " + std::string(gpu.printed)};
  if (!gpu.note.empty()) above.emplace_back("  note        " + std::string(gpu.note));
  return {std::string(gpu.name), std::move(above), std::move(table), {}};
}

// For programs.
Columns<const Gpu*> gpu_columns() {
  Columns<const Gpu*> c;
  const auto positive = [](auto number) {
    return [number](const Gpu* gpu) {
      const auto value = std::invoke(number, gpu);
      return value > 0 ? std::optional(value) : std::nullopt;
    };
  };
  c.text("gpu", "GPU", &Gpu::name);
  c.text("chip", "chip", &Gpu::chip, "as CUPTI names it");
  c.text(
      "cuda_names", "CUDA names", &Gpu::cuda_names,
      "as CUDA names the device, without NVIDIA in front, separated by |; empty for a board that "
      "is not one CUDA device");
  c.exact("multiprocessors", "multiprocessors", Kind::kRatio, positive(&Gpu::multiprocessors));
  c.exact("clock_mhz", "MHz", Kind::kRatio, positive(&Gpu::clock_mhz), "that the peaks are at");
  c.exact("tensor_clock_mhz", "MHz of tensor cores", Kind::kRatio,
          positive(&Gpu::tensor_clock_mhz));
  c.exact("memory_byte_per_s", "memory", Kind::kBandwidth,
          [](const Gpu* gpu) { return gpu->memory_gb_s * 1e9; });
  c.text("printed", "printed", &Gpu::printed, "which of the peaks the source prints");
  c.text("source", "source", &Gpu::source);
  c.text("note", "note", &Gpu::note);
  return c;
}

Result result_of(const std::vector<const Gpu*>& found) {
  constexpr size_t kInDetail = 4;
  Result result;
  const TableSource gpus(
      "gpus", "GPUs with published peaks",
      gpu_columns, [&found](const Report&) -> const auto& { return found; });
  result.tables = {peaks_table(false), gpus.for_programs({})};
  for (const Gpu* gpu : found) add_peaks(result.tables[0], *gpu, false);
  if (found.size() > kInDetail)
    result.sections = overview(found);
  else
    for (const Gpu* gpu : found) result.sections.push_back(details(*gpu));
  return result;
}

Action define_peaks(manual::CommandLine& app) {
  app.examples = {{"flopreduce peaks", "the table"}, {"flopreduce peaks h100", "all about a GPU"}};
  struct Arguments {
    std::string name;
    OutputArguments output;
  };
  const auto a = std::make_shared<Arguments>();
  app.add_option("NAME", a->name, "Part of a GPU's name; without it, all");
  a->output.add_to(app, result_forms());
  return [a] {
    const auto found = search_gpus(a->name);
    if (found.empty())
      throw Failure("no GPU in the table fits '" + printable(cut(a->name, 100)) +
                    "'; flopreduce peaks lists all");
    return write_result(result_of(found), a->output);
  };
}

}  // namespace

const Command kPeaks = {"peaks", "the table of GPUs' peaks, with sources",
                        "Peaks that utilization is measured against, with their sources.",
                        define_peaks};

}  // namespace flopinj::reduce
