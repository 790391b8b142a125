// The table of peaks against units x clocks, against simgpu's own time model, and by device names
// as drivers print them.
#include "peaks/peaks.h"

#include <algorithm>
#include <set>
#include <string>

#include "catch.h"
#include "driver/execution/timing.h"
#include "support/data.h"
#include "support/text.h"

using namespace flopinj::reduce;

namespace {

const Gpu& row(const std::string& name) {
  for (const Gpu& gpu : gpus())
    if (gpu.name == name) return gpu;
  throw std::runtime_error(name);
}

// What one multiprocessor does in one clock cycle, as fused multiply-adds. Tensor rates: the
// architectures' white papers, operations per clock and multiprocessor divided by two (GB100: twice
// GH100's for each format, fp4 twice fp8). GeForce boards run fp16, bf16, tf32 and fp8 products
// with an fp32 accumulator at half the rate of the chip, A10G and L40 by their data sheets, too.
struct UnitRates {
  std::string_view units;
  std::array<double, kPrecisionNames.size()> per_clock;
};
// clang-format off
constexpr UnitRates kRates[] = {
    //                fp64 fp32 fp16  t64  tf32   f16   b16   fp8   fp6    fp4  int8
    {"GK210",         {  64, 192,   0,   0,    0,    0,    0,    0,    0,     0,    0}},
    {"GP100",         {  32,  64, 128,   0,    0,    0,    0,    0,    0,     0,    0}},
    {"GV100",         {  32,  64, 128,   0,    0,  512,    0,    0,    0,     0,    0}},
    {"TU10x",         {   2,  64, 128,   0,    0,  512,    0,    0,    0,     0, 1024}},
    {"TU10x GeForce", {   2,  64, 128,   0,    0,  256,    0,    0,    0,     0, 1024}},
    {"GA100",         {  32,  64, 256,  64,  512, 1024, 1024,    0,    0,     0, 2048}},
    {"GA10x",         {   2, 128, 128,   0,  256,  512,  512,    0,    0,     0, 1024}},
    {"GA10x GeForce", {   2, 128, 128,   0,  128,  256,  256,    0,    0,     0, 1024}},
    {"GA10x, A10G",   {   2, 128, 128,   0,  128,  256,  256,    0,    0,     0,  512}},
    {"AD10x",         {   2, 128, 128,   0,  256,  512,  512, 1024,    0,     0, 1024}},
    {"AD102, L40",    {   2, 128, 128,   0,  128,  256,  256,  512,    0,     0,  512}},
    {"AD10x GeForce", {   2, 128, 128,   0,  128,  256,  256,  512,    0,     0, 1024}},
    {"GH100",         {  64, 128, 256, 128, 1024, 2048, 2048, 4096,    0,     0, 4096}},
    {"GB100",         {  64, 128,   0,  64, 2048, 4096, 4096, 8192, 8192, 16384, 8192}},
    {"GB20x",         {   2, 128, 128,   0,  256,  512,  512, 1024,    0,  2048, 1024}},
    {"GB20x GeForce", {   2, 128, 128,   0,  128,  256,  256,  512,    0,  2048, 1024}},
};
// clang-format on

double tera(const Gpu& gpu, std::string_view precision) { return published_peak(gpu, precision); }

double peak(const DevicePeaks& peaks, const std::string& precision) {
  const auto found = peaks.of(precision);
  return found ? found->per_second : 0;
}

DevicePeaks known(const DeviceFacts& device, const std::vector<PeakOverride>& overrides = {}) {
  auto found = find_peaks(device, overrides);
  REQUIRE(found.error.empty());
  return found.peaks;
}

PeakOverride option(const std::string& text) {
  const auto parsed = parse_peak(text);
  REQUIRE(parsed.error.empty());
  return parsed.value;
}

}  // namespace

TEST_CASE(
    "every published peak is multiprocessors x units x 2 x clock, within its rounding: 34 for "
    "33.5") {
  size_t derived = 0;
  for (const Gpu& gpu : gpus()) {
    if (gpu.units.empty()) continue;
    const auto rates = std::ranges::find(kRates, gpu.units, &UnitRates::units);
    REQUIRE(rates != std::end(kRates));
    for (size_t i = 0; i < kPrecisionNames.size(); ++i) {
      const bool vector_clock = i <= 3;  // to tensor_fp64
      const double mhz = vector_clock ? gpu.clock_mhz : gpu.tensor_clock_mhz;
      const double tera = gpu.multiprocessors * rates->per_clock[i] * 2 * mhz * 1e-6;
      INFO(gpu.name << " " << kPrecisionNames[i]);
      CHECK(gpu.dense[i] == Approx(tera).epsilon(0.017));
      derived += gpu.dense[i] > 0 ? 1 : 0;
    }
  }
  CHECK(derived > 250);
}

TEST_CASE("rates per multiprocessor are those of the programming guide and of the tensor cores") {
  // Results per clock outside the tensor cores: CUDA C++ Programming Guide, "Throughput of Native
  // Arithmetic Instructions", compute capabilities 3.7 to 12.0. Tensor cores and the fp16
  // multiply-adds of each per clock: the architectures' white papers.
  struct Architecture {
    std::string_view name;
    double fp64, fp32, fp16;
    double cores, each;
  };
  constexpr Architecture kArchitectures[] = {
      {"GK210", 64, 192, 0, 0, 0},    {"GP100", 32, 64, 128, 0, 0},
      {"GV100", 32, 64, 128, 8, 64},  {"TU10x", 2, 64, 128, 8, 64},
      {"GA100", 32, 64, 256, 4, 256}, {"GA10x", 2, 128, 128, 4, 128},
      {"AD10", 2, 128, 128, 4, 128},  {"GH100", 64, 128, 256, 4, 512},
      {"GB100", 64, 128, 0, 4, 1024},  // fp16: no document prints it
      {"GB20x", 2, 128, 128, 4, 128},
  };
  for (const UnitRates& rates : kRates) {
    INFO(rates.units);
    const auto found =
        std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                     [&](const Architecture& a) { return rates.units.starts_with(a.name); });
    REQUIRE(found != std::end(kArchitectures));
    const auto rate = [&](std::string_view name) {
      return rates.per_clock[static_cast<size_t>(std::ranges::find(kPrecisionNames, name) -
                                                 kPrecisionNames.begin())];
    };
    CHECK(rate("fp64") == found->fp64);
    CHECK(rate("fp32") == found->fp32);
    CHECK(rate("fp16") == found->fp16);
    // GeForce, A10G and L40: half, with an fp32 accumulator.
    const bool half = rates.units != found->name && rates.units != "AD10x";
    const double fp16 = rate("tensor_fp16");
    CHECK(fp16 == found->cores * found->each / (half ? 2 : 1));
    // Half the width of a format is twice the rate.
    const auto none_or = [&](std::string_view p, double expected) {
      CHECK((rate(p) == 0 || rate(p) == expected));
    };
    const bool geforce = rates.units.ends_with("GeForce");
    none_or("tensor_tf32", fp16 / 2);
    none_or("tensor_bf16", fp16);
    none_or("tensor_fp8", fp16 * 2);
    none_or("tensor_fp6", fp16 * 2);
    none_or("tensor_fp4", fp16 * (geforce ? 8 : 4));  // not halved
    none_or("tensor_int8", fp16 * (geforce ? 4 : 2));
  }
}

TEST_CASE("the table has no bad row, and says which row of another is bad") {
  CHECK(read_peaks(data::kPeaks).error.empty());
  CHECK(gpus().size() >= 60);
  const std::string header(data::kPeaks.substr(0, data::kPeaks.find('\n') + 1));
  const auto columns = parts_of(std::string_view(header).substr(0, header.size() - 1), '\t');
  for (size_t i = 0; i < kPrecisionNames.size(); ++i) CHECK(columns[7 + i] == kPrecisionNames[i]);
  const std::string good =
      "Z9\tGZ900\tZ9\t10\t1000\t900\t300\t1\t2\t4\t-\t-\t8\t-\t-\t-\t-\t-\t-\tdense\t-\tpaper\t-\n";
  const std::string text = header + good;  // its rows are parts of it
  const auto one = read_peaks(text);
  REQUIRE(one.gpus.size() == 1);
  CHECK(one.gpus[0].name == "Z9");
  CHECK(tera(one.gpus[0], "tensor_fp16") == 8);
  CHECK(one.gpus[0].note.empty());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string row = good;
    row.replace(row.find(from), from.size(), to);
    const std::string rows = header + good + row;
    const auto table = read_peaks(rows);
    CHECK(table.gpus.empty());
    return table.error;
  };
  CHECK(with("Z9", "Z9") == "line 3: a name is another row's, too");
  CHECK(with("\tpaper", "").find("line 3: not 23 cells") == 0);
  CHECK(with("300", "3x").find("no number") != std::string::npos);
  CHECK(with("300", "-300").find("no number") != std::string::npos);
  CHECK(with("300", "").find("empty") != std::string::npos);
  CHECK(with("paper", "-").find("missing") != std::string::npos);
  CHECK(with("dense", "thick").find("known words") != std::string::npos);
}

TEST_CASE("peaks that papers and documents quote") {
  // K80 board 8.73 and 2.91 T; V100 125 T in fp16 on tensor cores; P100 PCIe 9.3 T in fp32.
  const Gpu& k80 = row("K80 board");
  CHECK(tera(k80, "fp32") == 8.73);
  CHECK(tera(k80, "fp64") == 2.91);
  CHECK(peak(known({"Tesla V100-SXM2-16GB", "GV100", 80, 1530000}), "tensor_fp16") == 125e12);
  CHECK(peak(known({"Tesla P100-PCIE-16GB", "GP100", 56, 1328500}), "fp32") == 9.3e12);
  // One CUDA device of a K80 is one of its two GPUs.
  CHECK(peak(known({"Tesla K80", "", 13, 823500}), "fp32") == Approx(8.73e12 / 2));
}

TEST_CASE("devices are known by the names that drivers give them, old and new") {
  const auto h200 = known({"NVIDIA H200", "GH100", 132, 1980000});
  CHECK(h200.gpu()->name == "H200 SXM 141GB");
  CHECK(h200.notes().size() == 1);  // the row's own
  CHECK(peak(h200, "tensor_bf16") == 989.5e12);
  CHECK(h200.memory()->per_second == 4.8e12);
  CHECK(known({"NVIDIA A100-SXM4-80GB", "GA100", 108, 1410000}).gpu() ==
        known({"A100-SXM4-80GB", "", 0, 0}).gpu());
  CHECK(known({"NVIDIA A100-SXM4-40GB"}).gpu()->memory_gb_s == 1555);
  CHECK(known({"NVIDIA H100 80GB HBM3"}).gpu()->name == "H100 SXM5 80GB");
  CHECK(known({"NVIDIA H100 PCIe"}).gpu()->name == "H100 PCIe 80GB");
  CHECK(known({"NVIDIA GeForce RTX 3090 Ti"}).gpu()->name == "RTX 3090 Ti");
  CHECK(known({"GeForce RTX 2080 Ti"}).gpu()->name == "RTX 2080 Ti");
}

TEST_CASE("sparse peaks, and formats that a chip counts together") {
  const auto a100 = known({"NVIDIA A100-SXM4-80GB"});
  CHECK(peak(a100, "tensor_int8_sparse") == 1248e12);
  CHECK(peak(a100, "tensor_tf32_sparse") == 312e12);
  CHECK_FALSE(a100.of("tensor_fp64_sparse"));
  CHECK_FALSE(a100.of("tensor_fp8"));
  CHECK_FALSE(a100.of("tensor_other"));
  const auto b200 = known({"NVIDIA B200"});
  CHECK(peak(b200, "tensor_fp4_fp6_fp8") == 9000e12);
  CHECK(peak(b200, "tensor_fp4_sparse") == 18000e12);
  // Only the sparse figure is printed: the source says that dense is half of it.
  CHECK(b200.of("tensor_bf16")->source.find("half of the sparse") != std::string::npos);
  CHECK(b200.of("fp32")->source.find("half") == std::string::npos);
  CHECK(peak(known({"Tesla T4"}), "tensor_fp16_bf16_tf32") == 65e12);
}

TEST_CASE("a slice of a GPU has its share of the compute peaks, and says so") {
  const auto slice = known({"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "GA100", 14, 1410000});
  CHECK(slice.share() == Approx(14.0 / 108));
  CHECK(peak(slice, "tensor_bf16") == Approx(312e12 * 14 / 108));
  CHECK(slice.memory()->per_second == 1555e9);
  REQUIRE(slice.notes().size() == 1);
  CHECK(slice.notes()[0].find("108 multiprocessors, this device 14") != std::string::npos);
}

TEST_CASE("what contradicts its row is refused or told") {
  const auto other_chip = find_peaks({"NVIDIA H100 PCIe", "AD102", 114, 1755000}, {});
  CHECK(other_chip.error.find("has chip GH100, this device AD102") != std::string::npos);
  // A 12 GB card of the same name has two multiprocessors more.
  const auto more = find_peaks({"NVIDIA GeForce RTX 3080", "GA102", 70, 1710000}, {});
  CHECK(more.error.find("68 multiprocessors, this device 70") != std::string::npos);
  CHECK(more.error.find("--peak 'NVIDIA GeForce RTX 3080:fp32=VALUE'") != std::string::npos);
  const auto clock = known({"NVIDIA A10", "GA102", 72, 1500000});
  CHECK(clock.notes()[0].find("1500 MHz") != std::string::npos);
  CHECK(clock.notes()[0].find("a clock of 1695 MHz") != std::string::npos);
  const auto die = known({"NVIDIA GeForce RTX 4070", "AD103", 46, 2475000});
  CHECK(die.notes()[0].find("chip AD104") != std::string::npos);
}

TEST_CASE("an unknown GPU is refused with the option to type, or has what the user gives") {
  const auto unknown = find_peaks({"NVIDIA Z9 \x1b[31m", "GZ900", 1, 1}, {});
  CHECK(unknown.error.find("not in the table of peaks") != std::string::npos);
  CHECK(unknown.error.find("--peak") != std::string::npos);
  CHECK(unknown.error.find('\x1b') == std::string::npos);
  const auto given = known({"NVIDIA Z9", "GZ900", 1, 1}, {option("z9:fp32=67T")});
  CHECK(peak(given, "fp32") == 67e12);
  CHECK(given.of("fp32")->source == "--peak");
  CHECK_FALSE(given.of("fp64"));
  CHECK_FALSE(given.memory());
}

TEST_CASE("a device without a name has the peaks that the user gives for all") {
  const auto unknown = find_peaks({"", "GZ900", 1, 1}, {});
  CHECK(unknown.error.find("a device without a name is not in the table") != std::string::npos);
  CHECK(unknown.error.find("--peak 'fp32=VALUE'") != std::string::npos);
  CHECK(peak(known({"", "GZ900", 1, 1}, {option("fp32=67T")}), "fp32") == 67e12);
}

// A board of A100 whose name is no product's.
TEST_CASE("an A100 of 40 GB has its peaks by its board's name, too") {
  const auto board = known({"NVIDIA A100-PG509-200", "GA100", 108, 1410000});
  const auto product = known({"NVIDIA A100-SXM4-40GB", "GA100", 108, 1410000});
  for (const char* precision : {"fp64", "fp32", "fp16", "tensor_tf32", "tensor_bf16"})
    CHECK(peak(board, precision) == peak(product, precision));
  CHECK(board.memory()->per_second == product.memory()->per_second);
}

TEST_CASE("--peak goes over the table, the last one for a precision first") {
  const std::vector<PeakOverride> options = {option("A100:bf16=300T"), option("H200:bf16=1G"),
                                             option("memory=1.5T"), option("bf16=310T")};
  const auto a100 = known({"NVIDIA A100-SXM4-80GB"}, options);
  CHECK(peak(a100, "tensor_bf16") == 310e12);
  CHECK(peak(a100, "tensor_fp16") == 312e12);
  CHECK(a100.memory()->per_second == 1.5e12);
}

TEST_CASE("--peak of a product is of no other that has its name in its own") {
  const auto l40s = known({"NVIDIA L40S", "AD102", 142, 2520000}, {option("NVIDIA L4:fp32=30T")});
  CHECK(peak(l40s, "fp32") == peak(known({"NVIDIA L40S"}), "fp32"));
  CHECK(peak(known({"NVIDIA L4"}, {option("NVIDIA L4:fp32=30T")}), "fp32") == 30e12);
  CHECK(peak(known({"NVIDIA L4"}, {option("l4:fp32=30T")}), "fp32") == 30e12);
  CHECK(peak(known({"NVIDIA L40S"}, {option("L40:fp32=30T")}), "fp32") != 30e12);
  // A row's own name is a product's too; a part of several products' names is each of theirs.
  CHECK(peak(known({"NVIDIA H100 80GB HBM3"}, {option("H100 SXM5 80GB:fp32=1T")}), "fp32") == 1e12);
  CHECK(peak(known({"NVIDIA H100 80GB HBM3"}, {option("H100:fp32=1T")}), "fp32") == 1e12);
  // A slice is another device than the whole.
  const std::string slice = "NVIDIA A100-SXM4-40GB MIG 1g.5gb";
  CHECK(peak(known({slice}, {option(slice + ":fp32=1T")}), "fp32") == 1e12);
  CHECK(peak(known({"NVIDIA A100-SXM4-40GB"}, {option(slice + ":fp32=1T")}), "fp32") != 1e12);
}

TEST_CASE("--peak of a device that is in no table is of that one alone") {
  std::vector<PeakOverride> options = {option("Z9:fp32=1T"), option("Z9:fp64=2T")};
  note_whole_names(options, {{"NVIDIA Z9"}, {"NVIDIA Z9 Super"}});
  CHECK(applies(options[0], {"NVIDIA Z9"}));
  CHECK_FALSE(applies(options[0], {"NVIDIA Z9 Super"}));
  note_whole_names(options, {{"NVIDIA Z9 Super"}});
  CHECK(applies(options[1], {"NVIDIA Z9 Super"}));
}

TEST_CASE("--peak: what is wrong with it") {
  CHECK(option("tensor_fp8_sparse=2P").precision == "tensor_fp8_sparse");
  CHECK(option("fp8_sparse=2P").precision == "tensor_fp8_sparse");
  CHECK(option("fp16=2P").precision == "fp16");
  CHECK(parse_peak("fp32").error.find("PRECISION=VALUE") != std::string::npos);
  CHECK(parse_peak("fp33=1T").error.find("'fp33' is none of fp64, fp32") != std::string::npos);
  CHECK(parse_peak(":fp32=1T").error.find("device") != std::string::npos);
  for (const char* value : {"", "0", "-1T", "1X", "inf", "nan", "1e400", "1TT", "1e12T", "0x10"})
    CHECK(parse_peak("fp32=" + std::string(value)).error.find("above 0") != std::string::npos);
}

TEST_CASE("--peak: a number that lacks its prefix is no peak") {
  CHECK(parse_peak("bf16=989").error ==
        "--peak bf16=989: 989 FLOP/s is no peak: did you mean 989T?");
  CHECK(parse_peak("fp32=66900").error.find("66.9 kFLOP/s is no peak: did you mean 66900G?") !=
        std::string::npos);
  CHECK(parse_peak("memory=4.8").error.find("4.8 B/s is no peak: did you mean 4.8T?") !=
        std::string::npos);
  CHECK(parse_peak("memory=3352").error.find("did you mean 3352G?") != std::string::npos);
  CHECK(parse_peak("fp32=67k").error.find("67 kFLOP/s is no peak: say how many FLOP/s") !=
        std::string::npos);
  // The slowest of the table, a simulated one, has 1.6 GFLOP/s and 10 GB/s.
  for (const Gpu& gpu : gpus()) {
    for (const double peak : gpu.dense)
      if (peak > 0) CHECK(no_peak("1", peak * 1e12, false).empty());
    CHECK(no_peak("1", gpu.memory_gb_s * 1e9, true).empty());
  }
}

TEST_CASE("a simulated device has its model's peaks and never a real GPU's") {
  CHECK(known({"simgpu GH100 (simulated)", "GH100", 132, 1980000, true})
            .gpu()
            ->source.find("simulated") != std::string_view::npos);
  CHECK_FALSE(find_peaks({"NVIDIA H200", "GH100", 132, 1980000, true}, {}).error.empty());
}

TEST_CASE("simulated peaks are the rates at which simgpu's own clock runs") {
  using simgpu::Count;
  REQUIRE(static_cast<size_t>(std::ranges::count_if(gpus(), [](const Gpu& gpu) {
            return is_simulated_device(gpu.name);
          })) == simgpu::chips().size());
  const uint64_t many = uint64_t{1} << 60;  //   beside which a launch is nothing
  for (const simgpu::Chip& chip : simgpu::chips()) {
    const auto peaks = known({"simgpu " + std::string(chip.name) + " (simulated)", chip.cupti_name,
                              chip.sm_count, chip.clock_mhz * 1000, true});
    CHECK(peaks.notes().empty());
    const auto rate = [&](Count kind, double operations) {
      simgpu::Counts counts;
      counts[kind] = many;
      return operations * static_cast<double>(many) * 1e9 /
             static_cast<double>(simgpu::kernel_duration_ns(chip, counts));
    };
    INFO(chip.name);
    CHECK(peak(peaks, "fp32") == Approx(rate(Count::kFfma, 2)).epsilon(1e-6));
    CHECK(peak(peaks, "fp64") == Approx(rate(Count::kDfma, 2)).epsilon(1e-6));
    CHECK(peak(peaks, "fp16") == Approx(rate(Count::kHfma, 4)).epsilon(1e-6));
    CHECK(peak(peaks, "tensor_fp16") == Approx(rate(Count::kTensorFp16, 1)).epsilon(1e-6));
    CHECK(peak(peaks, "tensor_bf16") == Approx(rate(Count::kTensorBf16, 1)).epsilon(1e-6));
    CHECK(peak(peaks, "tensor_tf32") == Approx(rate(Count::kTensorTf32, 1)).epsilon(1e-6));
    CHECK(peak(peaks, "tensor_fp64") == Approx(rate(Count::kTensorFp64, 1)).epsilon(1e-6));
    CHECK(peak(peaks, "tensor_fp8") == Approx(rate(Count::kTensorFp8, 1)).epsilon(1e-6));
    CHECK(peaks.memory()->per_second == Approx(rate(Count::kDramReadBytes, 1)).epsilon(1e-6));
  }
}

TEST_CASE("GPUs are chosen by name") {
  std::string error;
  CHECK(choose_gpu("k80 board", error)->name == "K80 board");
  CHECK(choose_gpu("NVIDIA H200", error)->name == "H200 SXM 141GB");  // exact before part
  CHECK(choose_gpu("v100s", error)->name == "V100S PCIe 32GB");
  CHECK(choose_gpu("a100", error) == nullptr);
  CHECK(error.find("A100 PCIe 40GB, A100 PCIe 80GB") != std::string::npos);
  CHECK(choose_gpu("nothing", error) == nullptr);
  CHECK(error.find("not in the table") != std::string::npos);
}

TEST_CASE("a product's number is whole, and a simulated GPU answers for none") {
  const auto names = [](std::string_view text) {
    std::set<std::string_view> found;
    for (const Gpu* gpu : search_gpus(text)) found.insert(gpu->name);
    return found;
  };
  CHECK(names("h20") == std::set<std::string_view>{"H20 SXM5 96GB"});
  CHECK(names("L4") == std::set<std::string_view>{"L4"});
  CHECK(names("3090") == std::set<std::string_view>{"RTX 3090", "RTX 3090 Ti"});
  CHECK(names("409").empty());
  CHECK(names("SG4") == std::set<std::string_view>{"simgpu SG4 (simulated)"});
  CHECK(names("").size() == gpus().size());
  std::string error;
  // GB10 is the beginning of a simulated GB100's name, H2 that of two products.
  CHECK(choose_gpu("GB10", error)->name == "GB10");
  for (const char* none : {"SG4", "GB1", "H2", "GA102", "GH100"}) {
    INFO(none);
    CHECK(choose_gpu(none, error) == nullptr);
    CHECK(error.find("not in the table") != std::string::npos);
  }
  for (const Gpu& gpu : gpus()) CHECK(choose_gpu(gpu.name, error) == &gpu);
  CHECK(choose_gpu("simgpu SG4", error)->name == "simgpu SG4 (simulated)");
  // The same of --peak, for a device that is in no table.
  std::vector<PeakOverride> options = {option("H30:fp32=1T"), option("H300:fp32=2T")};
  CHECK_FALSE(applies(options[0], {"NVIDIA H300"}));
  CHECK(applies(options[1], {"NVIDIA H300"}));
}

TEST_CASE("products beside the usual ones have rows of their own") {
  // Second sources: tools/flopreduce/peaks/README.md.
  CHECK(peak(known({"NVIDIA H20", "GH100", 78}), "tensor_bf16") == 148e12);
  CHECK(known({"NVIDIA H20"}).memory()->per_second == 4e12);
  // Export rules count bits x TOPS, 4,800 at most: of int8 on an H20, and of fp8 on an L20.
  CHECK(peak(known({"NVIDIA H20"}), "tensor_int8") * 8 * 2 < 4800e12);
  CHECK(peak(known({"NVIDIA L20", "AD102", 92, 2520000}), "tensor_fp8") * 8 * 2 < 4800e12);
  const double h100 = peak(known({"NVIDIA H100 80GB HBM3"}), "tensor_bf16");
  CHECK(peak(known({"NVIDIA H800", "GH100", 132, 1980000}), "tensor_bf16") ==
        Approx(h100).epsilon(0.001));
  CHECK(peak(known({"NVIDIA H800"}), "fp64") == 1e12);
  CHECK(known({"NVIDIA H800 PCIe", "GH100", 114}).gpu()->name == "H800 PCIe 80GB");
  for (const char* model : {"-SXM4-80GB", " 80GB PCIe"}) {
    const auto a800 = known({"NVIDIA A800" + std::string(model), "GA100", 108, 1410000});
    const auto a100 = known({"NVIDIA A100" + std::string(model), "GA100", 108, 1410000});
    CHECK(a800.gpu()->dense == a100.gpu()->dense);
    CHECK(a800.memory()->per_second == a100.memory()->per_second);
  }
  CHECK(known({"NVIDIA A800 40GB Active", "GA100", 108, 1410000}).memory()->per_second == 1555e9);
  const auto station = known({"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "GB202", 188});
  CHECK(peak(station, "tensor_fp4_sparse") == 4000e12);
  CHECK(peak(station, "tensor_bf16") == 503.8e12);
  const auto server = known({"NVIDIA RTX PRO 6000 Blackwell Server Edition", "GB202", 188});
  CHECK(server.memory()->per_second == 1597e9);
  const auto spark = known({"NVIDIA GB10", "GB20B", 48});
  CHECK(peak(spark, "tensor_fp4_sparse") == 1000e12);
  CHECK_FALSE(spark.of("tensor_bf16"));  // no document prints it
  CHECK(peak(known({"TITAN RTX", "TU102", 72, 1770000}), "tensor_fp16") == 130e12);
}
