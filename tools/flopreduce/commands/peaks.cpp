// flopreduce peaks [NAME]: the table of peaks, or all about the GPUs that NAME fits.
#include "peaks/peaks.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "commands/forms.h"
#include "sections/parts/cells.h"
#include "sections/parts/columns.h"
#include "support/program_name.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string number(double value) { return value > 0 ? printed("%.6g", value) : "-"; }

using Gpus = std::vector<const Gpu*>;

// One line for each GPU, in 1e12 operations per second: of the tensor cores, or of what is outside.
// Both together are wider than a terminal.
void add_overview(std::vector<Section>& sections, const Gpus& gpus, bool of_tensor,
                  const std::string& title) {
  constexpr std::string_view kTensor = "tensor_";
  Table table{of_tensor ? "tensor_peaks" : "peaks", {{"gpu", "GPU"}}};
  if (!of_tensor)
    for (const Column& column : {Column{"multiprocessors", "SMs"}, Column{"clock_mhz", "MHz"},
                                 Column{"memory_gb_per_s", "GB/s"}})
      table.columns.push_back(column);
  for (const auto name : kPrecisionNames)
    if (name.starts_with(kTensor) == of_tensor)
      table.columns.push_back({name.data(), name.data() + (of_tensor ? kTensor.size() : 0)});
  for (const Gpu* gpu : gpus) {
    TableRow row = {std::string(gpu->name)};
    if (!of_tensor)
      for (const double value : {double(gpu->multiprocessors), gpu->clock_mhz, gpu->memory_gb_s})
        row.emplace_back(number(value));
    double any = 0;
    for (const auto name : kPrecisionNames)
      if (name.starts_with(kTensor) == of_tensor) {
        any += published_peak(*gpu, name);
        row.emplace_back(number(published_peak(*gpu, name)));
      }
    if (any > 0) table.rows.push_back(std::move(row));
  }
  if (!table.rows.empty()) sections.push_back({title, {}, std::move(table), {}});
}

// Simulated ones apart: their names are long.
std::vector<Section> overview(const Gpus& found) {
  std::vector<Section> sections;
  for (const bool simulated : {false, true}) {
    Gpus gpus;
    std::ranges::copy_if(found, std::back_inserter(gpus), [&](const Gpu* gpu) {
      return is_simulated_device(gpu->name) == simulated;
    });
    const std::string of = simulated ? ", simulated" : "";
    add_overview(sections, gpus, false,
                 "Peaks" + of + ", 1e12 operations per second (a fused multiply-add counts two)");
    add_overview(sections, gpus, true, "Peaks of tensor cores" + of + ", dense");
  }
  sections.back().below = {"  Sources, sparse peaks and CUDA's device names: " +
                           typed("peaks NAME")};
  return sections;
}

struct PeakRow {
  const Gpu* gpu;
  std::string_view precision;
  Figure dense, sparse;
};

std::vector<PeakRow> peak_rows(const Gpus& gpus) {
  std::vector<PeakRow> rows;
  for (const Gpu* gpu : gpus)
    for (const auto name : kPrecisionNames) {
      const double sparse = published_peak(*gpu, std::string(name) + "_sparse");
      if (const double dense = published_peak(*gpu, name); dense > 0)
        rows.push_back({gpu, name, Figure::exact(dense * 1e12),
                        sparse > 0 ? Figure::exact(sparse * 1e12) : Figure()});
    }
  return rows;
}

// People read above the table which GPU it is of, and the source.
Columns<PeakRow> peak_columns() {
  Columns<PeakRow> c;
  c.text("gpu", "GPU", through(&PeakRow::gpu, &Gpu::name)).worth(Worth::kProgram);
  c.text("precision", "precision", &PeakRow::precision);
  c.figure("dense_flop_per_s", "dense", Kind::kRate, &PeakRow::dense);
  c.figure("sparse_flop_per_s", "sparse", Kind::kRate, &PeakRow::sparse);
  c.text("source", "source", through(&PeakRow::gpu, &Gpu::source)).worth(Worth::kProgram);
  return c;
}

TableSource peaks_of(const Gpus& gpus) {
  const auto rows_of = [rows = peak_rows(gpus)](const Report&) -> const auto& { return rows; };
  return {"peaks", "published peaks", peak_columns, rows_of};
}

Section details(const Gpu& gpu) {
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
  return {std::string(gpu.name), std::move(above), peaks_of({&gpu}).for_people({}), {}};
}

Columns<const Gpu*> gpu_columns() {
  Columns<const Gpu*> c;
  c.text("gpu", "GPU", &Gpu::name);
  c.text("chip", "chip", &Gpu::chip, "as CUPTI names it");
  c.text("cuda_names", "CUDA names", &Gpu::cuda_names,
         "as CUDA names the device, without NVIDIA in front, separated by |; empty for a board "
         "that is not one CUDA device");
  c.exact("multiprocessors", "multiprocessors", Kind::kRatio, unless_zero(&Gpu::multiprocessors));
  c.exact("clock_mhz", "MHz", Kind::kRatio, unless_zero(&Gpu::clock_mhz), "that the peaks are at");
  c.exact("tensor_clock_mhz", "MHz of tensor cores", Kind::kRatio,
          unless_zero(&Gpu::tensor_clock_mhz));
  c.exact("memory_byte_per_s", "memory", Kind::kBandwidth,
          [](const Gpu* gpu) { return gpu->memory_gb_s * 1e9; });
  c.text("printed", "printed", &Gpu::printed, "which of the peaks the source prints");
  c.text("source", "source", &Gpu::source);
  c.text("note", "note", &Gpu::note);
  return c;
}

Result result_of(const Gpus& found) {
  constexpr size_t kInDetail = 4;
  const auto rows_of = [&found](const Report&) -> const auto& { return found; };
  const TableSource gpus("gpus", "GPUs with published peaks", gpu_columns, rows_of);
  Result result;
  result.tables = {peaks_of(found).for_programs({}), gpus.for_programs({})};
  if (found.size() > kInDetail)
    result.sections = overview(found);
  else
    for (const Gpu* gpu : found) result.sections.push_back(details(*gpu));
  return result;
}

Action define_peaks(manual::CommandLine& app) {
  app.examples = {{typed("peaks"), "the table"}, {typed("peaks h100"), "all about a GPU"}};
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
      throw Failure("no GPU in the table fits '" + printable(cut(a->name, 100)) + "'; " +
                    typed("peaks") + " lists all");
    return write_result(result_of(found), a->output);
  };
}

}  // namespace

const ProgramCommand kPeaks({reducer_command("peaks"),
                             "Peaks that utilization is measured against, with their sources.",
                             define_peaks});

}  // namespace flopinj::reduce
