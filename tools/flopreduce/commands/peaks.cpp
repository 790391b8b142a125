// flopreduce peaks [NAME]: the table of peaks, or all about the GPUs that NAME fits.
#include "peaks/peaks.h"

#include <array>
#include <cstdio>
#include <memory>

#include "commands/arguments/command.h"
#include "commands/result.h"
#include "commands/schemas.h"
#include "sections/parts/records.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string number(double value) {
  std::array<char, 32> text{"-"};
  if (value > 0) std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

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
    std::vector<Cell> row = {std::string(name), dense * 1e12,
                             sparse > 0 ? Cell(sparse * 1e12) : Cell::none()};
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

std::vector<std::pair<std::string, double>> all_rates(const Gpu& gpu) {
  std::vector<std::pair<std::string, double>> rates;
  for (const auto name : kPrecisionNames)
    for (const std::string end : {"", "_sparse"})
      if (const double peak = published_peak(gpu, std::string(name) + end); peak > 0)
        rates.emplace_back(std::string(name) + end, peak * 1e12);
  return rates;
}

void gpu_fields(Fields& f, const Gpu& gpu) {
  const auto known = [](auto value) { return value > 0 ? std::optional(value) : std::nullopt; };
  f("name", gpu.name);
  f("chip", text_or_null(std::string(gpu.chip)), "as CUPTI names it");
  f("cuda_names", parts_of(gpu.cuda_names, '|'),
    "as CUDA names the device, without NVIDIA in front; empty for a board that is not one CUDA "
    "device");
  f("multiprocessors", known(gpu.multiprocessors));
  f("clock_mhz", known(gpu.clock_mhz), "that the peaks are at");
  f("tensor_clock_mhz", known(gpu.tensor_clock_mhz));
  f("memory_byte_per_s", gpu.memory_gb_s * 1e9);
  f.numbers_by_name("peak_flop_per_s", all_rates(gpu),
                    "by precision as in the report; NAME_sparse with 2:4 structured sparsity. "
                    "tensor_int: OP/s");
  f.word(
      "printed", std::string(gpu.printed),
      {"dense", "dense; sparse is twice that", "sparse; dense is half of that", "dense and sparse"},
      "which of the peaks the source prints");
  f("source", gpu.source);
  f("note", gpu.note);
}

void peaks_fields(Fields& f, const std::vector<const Gpu*>& gpus) {
  f.version();
  f.list("gpus", gpus, "", [](Fields& row, const Gpu* gpu) { gpu_fields(row, *gpu); });
}

Result result_of(const std::vector<const Gpu*>& found) {
  constexpr size_t kInDetail = 4;
  Result result;
  result.json = [&found] { return Fields::json_of([&](Fields& f) { peaks_fields(f, found); }); };
  result.tables = {peaks_table(false)};
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

Json peaks_schema() {
  return Fields::schema_of(
      "flopreduce peaks", "Published peaks of GPUs. A fused multiply-add counts as two operations.",
      [](Fields& f) { peaks_fields(f, search_gpus("")); });
}

const Command kPeaks = {"peaks", "the table of GPUs' peaks, with sources",
                        "Peaks that utilization is measured against, with their sources.",
                        define_peaks};

}  // namespace flopinj::reduce
