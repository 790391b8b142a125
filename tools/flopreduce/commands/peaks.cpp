// flopreduce peaks [NAME]: the table of peaks, or all about the GPUs that NAME fits.
#include "peaks/peaks.h"

#include <array>
#include <cstdio>
#include <memory>

#include "commands/arguments/command.h"
#include "commands/result.h"
#include "commands/schemas.h"
#include "peaks/simulated.h"
#include "sections/parts/records.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string number(double value) {
  std::array<char, 32> text{"-"};
  if (value > 0) std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string printed_words(const Gpu& gpu) {
  if (gpu.sparsity <= 0) return "dense";
  switch (gpu.printed) {
    case Printed::kDense:
      return "dense; sparse is twice that";
    case Printed::kSparse:
      return "sparse; dense is half of that";
    case Printed::kBoth:
      break;
  }
  return "dense and sparse";
}

// One line for each GPU, in 1e12 operations per second: what is outside the tensor cores, and
// theirs. Both together are wider than a terminal.
void add_overview(std::vector<Section>& sections, const std::vector<const Gpu*>& gpus,
                  const std::string& of) {
  Table plain{"peaks",
              {{"gpu", "GPU"},
               {"multiprocessors", "SMs"},
               {"clock_mhz", "MHz"},
               {"memory_gb_per_s", "GB/s"}}};
  Table tensor{"tensor_peaks", {{"gpu", "GPU"}}};
  constexpr std::string_view kTensor = "tensor_";
  for (const auto name : kPrecisionNames)
    if (name.starts_with(kTensor))
      tensor.columns.push_back({name.data(), name.data() + kTensor.size()});
    else
      plain.columns.push_back({name.data(), name.data()});
  for (const Gpu* gpu : gpus) {
    std::vector<Cell> of_plain = {std::string(gpu->name), number(gpu->multiprocessors),
                                  number(gpu->clock_mhz), number(gpu->memory_gb_s)};
    std::vector<Cell> of_tensor = {std::string(gpu->name)};
    bool any = false;
    for (size_t i = 0; i < kPrecisionNames.size(); ++i) {
      const bool is_tensor = kPrecisionNames[i].starts_with(kTensor);
      any = any || (is_tensor && gpu->dense[i] > 0);
      (is_tensor ? of_tensor : of_plain).emplace_back(number(gpu->dense[i]));
    }
    plain.rows.push_back(std::move(of_plain));
    if (any) tensor.rows.push_back(std::move(of_tensor));
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

Section details(const Gpu& gpu) {
  Table table{"peaks",
              {{"precision", "precision"},
               {"dense_flop_per_s", "dense", Kind::kRate},
               {"sparse_flop_per_s", "sparse", Kind::kRate}}};
  for (size_t i = 0; i < kPrecisionNames.size(); ++i) {
    if (gpu.dense[i] <= 0) continue;
    const double sparse = sparse_peak(gpu, static_cast<Precision>(i));
    table.rows.push_back({std::string(kPrecisionNames[i]), gpu.dense[i] * 1e12,
                          sparse > 0 ? Cell(sparse * 1e12) : Cell::none()});
  }
  std::vector<Line> above = {
      "  CUDA names  " +
          (gpu.cuda_names.empty() ? "none: not one CUDA device" : std::string(gpu.cuda_names)),
      "  chip        " + (gpu.chip.empty() ? "-" : std::string(gpu.chip)) + ", " +
          number(gpu.multiprocessors) + " multiprocessors, " + number(gpu.clock_mhz) + " MHz" +
          (gpu.tensor_clock_mhz != gpu.clock_mhz
               ? " (tensor cores " + number(gpu.tensor_clock_mhz) + " MHz)"
               : ""),
      "  memory      " + number(gpu.memory_gb_s) + " GB/s",
      "  source      " + std::string(gpu.source) + "; prints " + printed_words(gpu)};
  if (!gpu.note.empty()) above.emplace_back("  note        " + std::string(gpu.note));
  return {std::string(gpu.name), std::move(above), std::move(table), {}};
}

std::vector<std::string_view> cuda_names(const Gpu& gpu) {
  std::vector<std::string_view> names;
  for (std::string_view rest = gpu.cuda_names; !rest.empty();) {
    names.push_back(rest.substr(0, rest.find('|')));
    rest.remove_prefix(std::min(rest.size(), names.back().size() + 1));
  }
  return names;
}

std::vector<std::pair<std::string, double>> all_rates(const Gpu& gpu) {
  std::vector<std::pair<std::string, double>> rates;
  for (size_t i = 0; i < kPrecisionNames.size(); ++i) {
    const double sparse = sparse_peak(gpu, static_cast<Precision>(i));
    const std::string name(kPrecisionNames[i]);
    if (gpu.dense[i] > 0) rates.emplace_back(name, gpu.dense[i] * 1e12);
    if (sparse > 0) rates.emplace_back(name + "_sparse", sparse * 1e12);
  }
  return rates;
}

void gpu_fields(Fields& f, const Gpu& gpu) {
  const auto known = [](auto value) { return value > 0 ? std::optional(value) : std::nullopt; };
  f("name", gpu.name);
  f("chip", text_or_null(std::string(gpu.chip)), "as CUPTI names it");
  f("cuda_names", cuda_names(gpu),
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
      "printed", printed_words(gpu),
      {"dense", "dense; sparse is twice that", "sparse; dense is half of that", "dense and sparse"},
      "which of the peaks the source prints");
  f("source", gpu.source);
  f("note", gpu.note);
}

void peaks_fields(Fields& f, const std::vector<const Gpu*>& gpus) {
  f.version();
  f.list("gpus", gpus, "", [](Fields& row, const Gpu* gpu) { gpu_fields(row, *gpu); });
}

// For programs: one row for each peak.
Table all_peaks(const std::vector<const Gpu*>& found) {
  Table table{"peaks",
              {{"gpu", "GPU"},
               {"precision", "precision"},
               {"dense_flop_per_s", "dense", Kind::kRate},
               {"sparse_flop_per_s", "sparse", Kind::kRate},
               {"source", "source"}}};
  for (const Gpu* gpu : found)
    for (size_t i = 0; i < kPrecisionNames.size(); ++i) {
      if (gpu->dense[i] <= 0) continue;
      const double sparse = sparse_peak(*gpu, static_cast<Precision>(i));
      table.rows.push_back({std::string(gpu->name), std::string(kPrecisionNames[i]),
                            gpu->dense[i] * 1e12, sparse > 0 ? Cell(sparse * 1e12) : Cell::none(),
                            std::string(gpu->source)});
    }
  return table;
}

Result result_of(const std::vector<const Gpu*>& found) {
  constexpr size_t kInDetail = 4;
  Result result;
  result.json = [&found] { return Fields::json_of([&](Fields& f) { peaks_fields(f, found); }); };
  result.tables.push_back(all_peaks(found));
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
