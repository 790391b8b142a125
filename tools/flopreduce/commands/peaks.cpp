// flopreduce peaks [NAME]: the table of peaks, or all about the GPUs that NAME fits.
#include "peaks/peaks.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands/command.h"
#include "commands/result.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

using Json = nlohmann::ordered_json;

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

// One line for each GPU, in 1e12 operations per second.
Section overview(const std::vector<const Gpu*>& found) {
  Table table{"peaks",
              {{"gpu", "GPU"},
               {"multiprocessors", "SMs"},
               {"clock_mhz", "MHz"},
               {"memory_gb_per_s", "GB/s"}}};
  for (const auto name : kPrecisionNames) {
    constexpr std::string_view kTensor = "tensor_";
    const bool tensor = name.starts_with(kTensor);
    table.columns.push_back({name.data(), name.data() + (tensor ? kTensor.size() : 0)});
  }
  for (const Gpu* gpu : found) {
    std::vector<Cell> row = {std::string(gpu->name), number(gpu->multiprocessors),
                             number(gpu->clock_mhz), number(gpu->memory_gb_s)};
    for (const double peak : gpu->dense) row.emplace_back(number(peak));
    table.rows.push_back(std::move(row));
  }
  return {"Peaks, 1e12 operations per second, dense (a fused multiply-add counts two)",
          {},
          std::move(table),
          {"  The first fp64, fp32 and fp16 are arithmetic outside the tensor cores, the rest is "
           "theirs.",
           "  Sources, sparse peaks and CUDA's device names: flopreduce peaks NAME"}};
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

Json gpu_json(const Gpu& gpu) {
  Json j;
  j["name"] = gpu.name;
  j["chip"] = gpu.chip.empty() ? Json(nullptr) : Json(gpu.chip);
  j["cuda_names"] = Json::array();
  for (std::string_view rest = gpu.cuda_names; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find('|'));
    j["cuda_names"].push_back(name);
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
  }
  j["multiprocessors"] = gpu.multiprocessors > 0 ? Json(gpu.multiprocessors) : Json(nullptr);
  j["clock_mhz"] = gpu.clock_mhz > 0 ? Json(gpu.clock_mhz) : Json(nullptr);
  j["tensor_clock_mhz"] = gpu.tensor_clock_mhz > 0 ? Json(gpu.tensor_clock_mhz) : Json(nullptr);
  j["memory_byte_per_s"] = gpu.memory_gb_s * 1e9;
  j["peak_flop_per_s"] = Json::object();
  for (size_t i = 0; i < kPrecisionNames.size(); ++i) {
    const double sparse = sparse_peak(gpu, static_cast<Precision>(i));
    const std::string name(kPrecisionNames[i]);
    if (gpu.dense[i] > 0) j["peak_flop_per_s"][name] = gpu.dense[i] * 1e12;
    if (sparse > 0) j["peak_flop_per_s"][name + "_sparse"] = sparse * 1e12;
  }
  j["printed"] = printed_words(gpu);
  j["source"] = gpu.source;
  j["note"] = gpu.note;
  return j;
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
  result.json = [&found] {
    Json j;
    j["schema_version"] = 1;
    j["gpus"] = Json::array();
    for (const Gpu* gpu : found) j["gpus"].push_back(gpu_json(*gpu));
    return j;
  };
  result.tables.push_back(all_peaks(found));
  if (found.size() > kInDetail)
    result.sections.push_back(overview(found));
  else
    for (const Gpu* gpu : found) result.sections.push_back(details(*gpu));
  return result;
}

int run_peaks(int argc, char** argv) {
  CLI::App app{"Peaks that utilization is measured against, with their sources.",
               "flopreduce peaks"};
  app.footer("Example: flopreduce peaks\n         flopreduce peaks h100");
  std::string name;
  OutputArguments output;
  app.add_option("NAME", name, "Part of a GPU's name; without it, all");
  output.add_to(app, result_forms());
  if (const int code = parse(app, argc, argv); code >= 0) return code;
  const auto found = search_gpus(name);
  if (found.empty()) {
    complain("no GPU in the table fits '" + printable(cut(name, 100)) +
             "'; flopreduce peaks lists all");
    return kExitUsage;
  }
  return write_result(result_of(found), output);
}

}  // namespace

const Command kPeaks = {"peaks", "the table of GPUs' peaks, with sources", run_peaks};

}  // namespace flopinj::reduce
