#include "peaks/peak_table.h"

namespace flopinj::reduce {
namespace {

// clang-format off

// Vector rates: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions". Tensor
// rates: the architecture's white paper, operations per clock and multiprocessor divided by two.
// GeForce boards run fp16, bf16, tf32 and fp8 products with an fp32 accumulator at half the rate of
// the chip.
//   fp64 fp32 fp16  t64  tf32   f16   b16   fp8   fp6    fp4  int8
constexpr UnitRates kGk210{"GK210",
    {  64, 192,   0,   0,    0,    0,    0,    0,    0,     0,    0},
    "CUDA C++ Programming Guide 11, Arithmetic Instructions, compute capability 3.7"};
constexpr UnitRates kGp100{"GP100",
    {  32,  64, 128,   0,    0,    0,    0,    0,    0,     0,    0},
    "NVIDIA Tesla P100 white paper"};
constexpr UnitRates kGv100{"GV100",
    {  32,  64, 128,   0,    0,  512,    0,    0,    0,     0,    0},
    "NVIDIA Tesla V100 GPU Architecture white paper"};
constexpr UnitRates kTu10x{"TU10x",
    {   2,  64, 128,   0,    0,  512,    0,    0,    0,     0, 1024},
    "NVIDIA Turing GPU Architecture white paper"};
constexpr UnitRates kTuGeForce{"TU10x GeForce",
    {   2,  64, 128,   0,    0,  256,    0,    0,    0,     0, 1024},
    "NVIDIA Turing GPU Architecture white paper"};
constexpr UnitRates kGa100{"GA100",
    {  32,  64, 256,  64,  512, 1024, 1024,    0,    0,     0, 2048},
    "NVIDIA A100 Tensor Core GPU Architecture white paper"};
constexpr UnitRates kGa10x{"GA10x",
    {   2, 128, 128,   0,  256,  512,  512,    0,    0,     0, 1024},
    "NVIDIA Ampere GA102 GPU Architecture white paper"};
constexpr UnitRates kGaGeForce{"GA10x GeForce",
    {   2, 128, 128,   0,  128,  256,  256,    0,    0,     0, 1024},
    "NVIDIA Ampere GA102 GPU Architecture white paper"};
constexpr UnitRates kGaA10g{"GA10x, A10G",
    {   2, 128, 128,   0,  128,  256,  256,    0,    0,     0,  512},
    "NVIDIA Ampere GA102 GPU Architecture white paper, halved as the A10G's data sheet has it"};
constexpr UnitRates kAd10x{"AD10x",
    {   2, 128, 128,   0,  256,  512,  512, 1024,    0,     0, 1024},
    "NVIDIA Ada GPU Architecture white paper"};
constexpr UnitRates kAdL40{"AD102, L40",
    {   2, 128, 128,   0,  128,  256,  256,  512,    0,     0,  512},
    "NVIDIA Ada GPU Architecture white paper, halved as the L40's data sheet has it"};
constexpr UnitRates kAdHalf{"AD10x GeForce",
    {   2, 128, 128,   0,  128,  256,  256,  512,    0,     0, 1024},
    "NVIDIA Ada GPU Architecture white paper"};
constexpr UnitRates kGh100{"GH100",
    {  64, 128, 256, 128, 1024, 2048, 2048, 4096,    0,     0, 4096},
    "NVIDIA H100 Tensor Core GPU Architecture white paper"};
constexpr UnitRates kGb100{"GB100",
    {  64, 128,   0,  64, 2048, 4096, 4096, 8192, 8192, 16384, 8192},
    "twice GH100's tensor rates for each format, fp4 twice fp8: "
    "NVIDIA Blackwell Architecture Technical Brief"};
constexpr UnitRates kGbGeForce{"GB20x GeForce",
    {   2, 128, 128,   0,  128,  256,  256,  512,    0,  2048, 1024},
    "NVIDIA RTX Blackwell GPU Architecture white paper"};

constexpr std::string_view kK80 =
    "NVIDIA Tesla K80 data sheet (board: 8.73 and 2.91 TFLOPS, 480 GB/s)";
constexpr std::string_view kP100 = "NVIDIA Tesla P100 white paper and data sheet";
constexpr std::string_view kV100 = "NVIDIA V100 Tensor Core GPU data sheet";
constexpr std::string_view kTuring = "NVIDIA Turing GPU Architecture white paper";
constexpr std::string_view kA100 = "NVIDIA A100 Tensor Core GPU data sheet";
constexpr std::string_view kGa102 = "NVIDIA Ampere GA102 GPU Architecture white paper";
constexpr std::string_view kGeForce30 =
    "NVIDIA GeForce RTX 30 series specifications; rates of the GA102 white paper";
constexpr std::string_view kAda = "NVIDIA Ada GPU Architecture white paper";
constexpr std::string_view kGeForce40 =
    "NVIDIA GeForce RTX 40 series specifications; rates of the Ada white paper";
constexpr std::string_view kH100 =
    "NVIDIA H100 Tensor Core GPU Architecture white paper and data sheet";
constexpr std::string_view kH100Nvl = "NVIDIA H100 Tensor Core GPU data sheet, NVL";
constexpr std::string_view kH200 = "NVIDIA H200 Tensor Core GPU data sheet";
constexpr std::string_view kGh200 = "NVIDIA GH200 Grace Hopper Superchip data sheet";
constexpr std::string_view kBlackwell = "NVIDIA Blackwell Architecture Technical Brief";
constexpr std::string_view kHgxB200 = "NVIDIA Blackwell data sheet, HGX B200, per GPU";
constexpr std::string_view kGb200 =
    "NVIDIA Blackwell Architecture Technical Brief 2.1, table 2, GB200 NVL72, per GPU";
constexpr std::string_view kHgxB300 = "NVIDIA HGX B300 data sheet, per GPU";
constexpr std::string_view kGb300 = "NVIDIA GB300 NVL72 data sheet, per GPU";
constexpr std::string_view kRtxBlackwell = "NVIDIA RTX Blackwell GPU Architecture white paper";

constexpr std::string_view kHalfRate =
    "fp16 and fp8 products with an fp16 accumulator run at twice this: give their peak with --peak";
constexpr std::string_view kK80Note =
    "one of the board's two GPUs: half of what the data sheet prints";
constexpr std::string_view kNoInt8 = "NVIDIA's documents disagree about int8; none is given here";

using enum Printed;

constexpr Gpu kGpus[] = {
// name, chip, CUDA names, multiprocessors, MHz, tensor MHz, GB/s,
//  {fp64, fp32, fp16, t.fp64, t.tf32, t.fp16, t.bf16, t.fp8, t.fp6, t.fp4, t.int8}, sparsity,
//  sparse fp4
{"K80", "GK210", "Tesla K80", 13, 875, 875, 240,
 {1.455, 4.365, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, kDense, &kGk210, kK80, kK80Note},
{"K80 board", "GK210", "", 26, 875, 875, 480,
 {2.91, 8.73, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, kDense, &kGk210, kK80, "both GPUs of the board"},
{"P100 PCIe 12GB", "GP100", "Tesla P100-PCIE-12GB", 56, 1303, 1303, 549,
 {4.7, 9.3, 18.7, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, kDense, &kGp100, kP100, ""},
{"P100 PCIe 16GB", "GP100", "Tesla P100-PCIE-16GB", 56, 1303, 1303, 732,
 {4.7, 9.3, 18.7, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, kDense, &kGp100, kP100, ""},
{"P100 SXM2 16GB", "GP100", "Tesla P100-SXM2-16GB", 56, 1480, 1480, 732,
 {5.3, 10.6, 21.2, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, kDense, &kGp100, kP100, ""},
{"V100 PCIe", "GV100", "Tesla V100-PCIE-16GB|Tesla V100-PCIE-32GB", 80, 1380, 1380, 900,
 {7, 14, 28, 0, 0, 112, 0, 0, 0, 0, 0}, 0, 0, kDense, &kGv100, kV100, ""},
{"V100 SXM2", "GV100", "Tesla V100-SXM2-16GB|Tesla V100-SXM2-32GB", 80, 1530, 1530, 900,
 {7.8, 15.7, 31.3, 0, 0, 125, 0, 0, 0, 0, 0}, 0, 0, kDense, &kGv100, kV100, ""},
{"V100S PCIe 32GB", "GV100", "Tesla V100S-PCIE-32GB", 80, 1597, 1597, 1134,
 {8.2, 16.4, 32.7, 0, 0, 130, 0, 0, 0, 0, 0}, 0, 0, kDense, &kGv100, kV100, ""},
{"T4", "TU104", "Tesla T4", 40, 1590, 1590, 320,
 {0.254, 8.1, 16.3, 0, 0, 65, 0, 0, 0, 0, 130}, 0, 0, kDense, &kTu10x, "NVIDIA T4 data sheet", ""},
{"Quadro RTX 6000", "TU102", "Quadro RTX 6000", 72, 1770, 1770, 672,
 {0.51, 16.3, 32.6, 0, 0, 130.5, 0, 0, 0, 0, 261}, 0, 0, kDense, &kTu10x, kTuring, ""},
{"Quadro RTX 8000", "TU102", "Quadro RTX 8000", 72, 1770, 1770, 672,
 {0.51, 16.3, 32.6, 0, 0, 130.5, 0, 0, 0, 0, 261}, 0, 0, kDense, &kTu10x, kTuring, ""},
{"RTX 2080 Ti", "TU102", "GeForce RTX 2080 Ti", 68, 1545, 1545, 616,
 {0.42, 13.4, 26.9, 0, 0, 53.8, 0, 0, 0, 0, 215.2}, 0, 0, kDense, &kTuGeForce, kTuring, kHalfRate},
{"A100 PCIe 40GB", "GA100", "A100-PCIE-40GB", 108, 1410, 1410, 1555,
 {9.7, 19.5, 78, 19.5, 156, 312, 312, 0, 0, 0, 624}, 2, 0, kBoth, &kGa100, kA100, ""},
{"A100 PCIe 80GB", "GA100", "A100 80GB PCIe", 108, 1410, 1410, 1935,
 {9.7, 19.5, 78, 19.5, 156, 312, 312, 0, 0, 0, 624}, 2, 0, kBoth, &kGa100, kA100, ""},
{"A100 SXM4 40GB", "GA100", "A100-SXM4-40GB", 108, 1410, 1410, 1555,
 {9.7, 19.5, 78, 19.5, 156, 312, 312, 0, 0, 0, 624}, 2, 0, kBoth, &kGa100, kA100, ""},
{"A100 SXM4 80GB", "GA100", "A100-SXM4-80GB", 108, 1410, 1410, 2039,
 {9.7, 19.5, 78, 19.5, 156, 312, 312, 0, 0, 0, 624}, 2, 0, kBoth, &kGa100, kA100, ""},
{"A30", "GA100", "A30", 56, 1440, 1440, 933,
 {5.2, 10.3, 41.3, 10.3, 82, 165, 165, 0, 0, 0, 330},
 2, 0, kBoth, &kGa100, "NVIDIA A30 Tensor Core GPU data sheet",
 "fp16 outside tensor cores is worked out from units and clock"},
{"A10", "GA102", "A10", 72, 1695, 1695, 600,
 {0.49, 31.2, 31.2, 0, 62.5, 125, 125, 0, 0, 0, 250},
 2, 0, kBoth, &kGa10x, "NVIDIA A10 Tensor Core GPU data sheet",
 "fp64 and fp16 outside tensor cores are worked out from units and clock"},
{"A10G", "GA102", "A10G", 80, 1710, 1710, 600,
 {0.55, 35, 35, 0, 35, 70, 70, 0, 0, 0, 140},
 2, 0, kBoth, &kGaA10g, "NVIDIA A10G data sheet (AWS G5)",
 "fp64 and fp16 outside tensor cores are worked out from units and clock"},
{"A40", "GA102", "A40", 84, 1740, 1740, 696,
 {0.58, 37.4, 37.4, 0, 74.8, 149.7, 149.7, 0, 0, 0, 299.3}, 2, 0, kBoth, &kGa10x, kGa102, ""},
{"RTX A6000", "GA102", "RTX A6000", 84, 1800, 1800, 768,
 {0.6, 38.7, 38.7, 0, 77.4, 154.8, 154.8, 0, 0, 0, 309.7}, 2, 0, kBoth, &kGa10x, kGa102, ""},
{"RTX 3060", "GA106", "GeForce RTX 3060", 28, 1777, 1777, 360,
 {0.2, 12.7, 12.7, 0, 12.7, 25.5, 25.5, 0, 0, 0, 101.9},
 2, 0, kDense, &kGaGeForce, kGeForce30, kHalfRate},
{"RTX 3070", "GA104", "GeForce RTX 3070", 46, 1725, 1725, 448,
 {0.32, 20.3, 20.3, 0, 20.3, 40.6, 40.6, 0, 0, 0, 162.6},
 2, 0, kBoth, &kGaGeForce, kGa102, kHalfRate},
{"RTX 3080 10GB", "GA102", "GeForce RTX 3080", 68, 1710, 1710, 760,
 {0.47, 29.8, 29.8, 0, 29.8, 59.5, 59.5, 0, 0, 0, 238},
 2, 0, kBoth, &kGaGeForce, kGa102, kHalfRate},
{"RTX 3080 Ti", "GA102", "GeForce RTX 3080 Ti", 80, 1665, 1665, 912,
 {0.53, 34.1, 34.1, 0, 34.1, 68.2, 68.2, 0, 0, 0, 272.8},
 2, 0, kDense, &kGaGeForce, kGeForce30, kHalfRate},
{"RTX 3090", "GA102", "GeForce RTX 3090", 82, 1695, 1695, 936,
 {0.56, 35.6, 35.6, 0, 35.6, 71, 71, 0, 0, 0, 284}, 2, 0, kBoth, &kGaGeForce, kGa102, kHalfRate},
{"RTX 3090 Ti", "GA102", "GeForce RTX 3090 Ti", 84, 1860, 1860, 1008,
 {0.625, 40, 40, 0, 40, 80, 80, 0, 0, 0, 320}, 2, 0, kBoth, &kGaGeForce, kAda, kHalfRate},
{"L4", "AD104", "L4", 58, 2040, 2040, 300,
 {0.47, 30.3, 30.3, 0, 60, 121, 121, 242.5, 0, 0, 242.5},
 2, 0, kSparse, &kAd10x, "NVIDIA L4 Tensor Core GPU data sheet",
 "fp64 is worked out from units and clock"},
{"L40", "AD102", "L40", 142, 2490, 2490, 864,
 {1.41, 90.5, 90.5, 0, 90.5, 181, 181, 362, 0, 0, 362},
 2, 0, kBoth, &kAdL40, "NVIDIA L40 GPU data sheet",
 "fp64 is worked out from units and clock"},
{"L40S", "AD102", "L40S", 142, 2520, 2520, 864,
 {1.43, 91.6, 91.6, 0, 183, 362, 362, 733, 0, 0, 733},
 2, 0, kBoth, &kAd10x, "NVIDIA L40S data sheet",
 "the data sheet's 16-bit figure stands on a clock of 2490 MHz, the others on 2520"},
{"RTX 6000 Ada", "AD102", "RTX 6000 Ada Generation", 142, 2505, 2505, 960,
 {1.42, 91.1, 91.1, 0, 182.1, 364.2, 364.2, 728.5, 0, 0, 728.5}, 2, 0, kBoth, &kAd10x, kAda, ""},
{"RTX 4060", "AD107", "GeForce RTX 4060", 24, 2460, 2460, 272,
 {0.236, 15.1, 15.1, 0, 15.1, 30.2, 30.2, 60.5, 0, 0, 120.9},
 2, 0, kDense, &kAdHalf, kGeForce40, kHalfRate},
{"RTX 4060 Ti", "AD106", "GeForce RTX 4060 Ti", 34, 2535, 2535, 288,
 {0.345, 22.1, 22.1, 0, 22.1, 44.1, 44.1, 88.3, 0, 0, 176.5},
 2, 0, kDense, &kAdHalf, kGeForce40, kHalfRate},
{"RTX 4070", "AD104", "GeForce RTX 4070", 46, 2475, 2475, 504,
 {0.455, 29.1, 29.1, 0, 29.1, 58.3, 58.3, 116.6, 0, 0, 233.2},
 2, 0, kDense, &kAdHalf, kGeForce40, kHalfRate},
{"RTX 4070 Ti", "AD104", "GeForce RTX 4070 Ti", 60, 2610, 2610, 504,
 {0.626, 40.1, 40.1, 0, 40.1, 80.2, 80.2, 160.4, 0, 0, 320.7},
 2, 0, kBoth, &kAdHalf, kAda, kHalfRate},
{"RTX 4080", "AD103", "GeForce RTX 4080", 76, 2505, 2505, 716.8,
 {0.76, 48.7, 48.7, 0, 48.7, 97.5, 97.5, 194.9, 0, 0, 389.9},
 2, 0, kBoth, &kAdHalf, kAda, kHalfRate},
{"RTX 4080 SUPER", "AD103", "GeForce RTX 4080 SUPER", 80, 2550, 2550, 736,
 {0.816, 52.2, 52.2, 0, 52.2, 104.4, 104.4, 208.9, 0, 0, 417.8},
 2, 0, kDense, &kAdHalf, kGeForce40, kHalfRate},
{"RTX 4090", "AD102", "GeForce RTX 4090", 128, 2520, 2520, 1008,
 {1.29, 82.6, 82.6, 0, 82.6, 165.2, 165.2, 330.3, 0, 0, 660.6},
 2, 0, kBoth, &kAdHalf, kAda, kHalfRate},
{"H100 SXM5 80GB", "GH100", "H100 80GB HBM3", 132, 1980, 1830, 3352,
 {33.5, 66.9, 133.8, 66.9, 494.7, 989.4, 989.4, 1978.9, 0, 0, 1978.9}, 2, 0, kBoth, &kGh100, kH100,
 "fp64 products of the tensor cores are printed at the higher clock"},
{"H100 PCIe 80GB", "GH100", "H100 PCIe", 114, 1755, 1620, 2039,
 {25.6, 51.2, 102.4, 51.2, 378, 756, 756, 1513, 0, 0, 1513}, 2, 0, kBoth, &kGh100, kH100,
 "fp64 products of the tensor cores are printed at the higher clock"},
{"H100 NVL 94GB", "GH100", "H100 NVL", 132, 1785, 1545, 3938,
 {30, 60, 120.6, 60, 417.5, 835.5, 835.5, 1670.5, 0, 0, 1670.5}, 2, 0, kSparse, &kGh100, kH100Nvl,
 "fp16 outside tensor cores is worked out from units and clock"},
{"H200 SXM 141GB", "GH100", "H200", 132, 1980, 1830, 4800,
 {34, 67, 133.8, 67, 494.5, 989.5, 989.5, 1979, 0, 0, 1979}, 2, 0, kSparse, &kGh100, kH200,
 "fp16 outside tensor cores is the H100's"},
{"H200 NVL 141GB", "GH100", "H200 NVL", 132, 1785, 1545, 4800,
 {30, 60, 120.6, 60, 417.5, 835.5, 835.5, 1670.5, 0, 0, 1670.5}, 2, 0, kSparse, &kGh100, kH200,
 "fp16 outside tensor cores is worked out from units and clock"},
{"GH200 96GB", "GH100", "GH200 480GB", 132, 1980, 1830, 4000,
 {34, 67, 133.8, 67, 494.5, 989.5, 989.5, 1979, 0, 0, 1979}, 2, 0, kSparse, &kGh100, kGh200,
 "fp16 outside tensor cores is the H100's"},
{"GH200 144GB", "GH100", "GH200 144G HBM3e", 132, 1980, 1830, 4900,
 {34, 67, 133.8, 67, 494.5, 989.5, 989.5, 1979, 0, 0, 1979}, 2, 0, kSparse, &kGh100, kGh200,
 "fp16 outside tensor cores is the H100's"},
{"B100", "GB100", "B100", 0, 0, 0, 8000,
 {30, 60, 0, 30, 900, 1750, 1750, 3500, 3500, 7000, 3500},
 2, 14000, kSparse, nullptr, kBlackwell, ""},
{"B200", "GB100", "B200", 148, 1965, 1856, 8000,
 {37, 75, 0, 37, 1125, 2250, 2250, 4500, 4500, 9000, 4500}, 2, 18000, kSparse, &kGb100, kHgxB200,
 "multiprocessors and clocks are what CUDA reports, not printed"},
{"B300", "", "B300 SXM6 AC", 0, 0, 0, 8000,
 {1.25, 75, 0, 1.25, 1125, 2250, 2250, 4500, 4500, 13500, 0},
 2, 18000, kBoth, nullptr, kHgxB300, kNoInt8},
{"GB200", "GB100", "GB200", 152, 2062, 2008, 8000,
 {40, 80, 0, 40, 1250, 2500, 2500, 5000, 5000, 10000, 5000}, 2, 20000, kSparse, &kGb100,
 kGb200, "multiprocessors and clocks are what CUDA reports, not printed"},
{"GB300", "", "GB300", 0, 0, 0, 8000,
 {1.4, 83.3, 0, 1.4, 1250, 2500, 2500, 5000, 5000, 15000, 0},
 2, 20000, kBoth, nullptr, kGb300, kNoInt8},
{"RTX 5070", "GB205", "GeForce RTX 5070", 48, 2512, 2512, 672,
 {0.48, 30.9, 30.9, 0, 30.9, 61.7, 61.7, 123.5, 0, 493.9, 246.9},
 2, 987.8, kBoth, &kGbGeForce, kRtxBlackwell, kHalfRate},
{"RTX 5070 Ti", "GB203", "GeForce RTX 5070 Ti", 70, 2452, 2452, 896,
 {0.69, 43.9, 43.9, 0, 43.9, 87.9, 87.9, 175.8, 0, 703, 351.5},
 2, 1406, kBoth, &kGbGeForce, kRtxBlackwell, kHalfRate},
{"RTX 5080", "GB203", "GeForce RTX 5080", 84, 2617, 2617, 960,
 {0.88, 56.3, 56.3, 0, 56.3, 112.6, 112.6, 225.1, 0, 900.4, 450.2},
 2, 1801, kBoth, &kGbGeForce, kRtxBlackwell, kHalfRate},
{"RTX 5090", "GB202", "GeForce RTX 5090", 170, 2407, 2407, 1792,
 {1.64, 104.8, 104.8, 0, 104.8, 209.5, 209.5, 419, 0, 1676, 838},
 2, 3352, kBoth, &kGbGeForce, kRtxBlackwell, kHalfRate},
};

// clang-format on

}  // namespace

std::span<const Gpu> gpus() { return kGpus; }

double sparse_peak(const Gpu& gpu, Precision precision) {
  if (precision == Precision::kTensorFp4) return gpu.sparse_fp4;
  if (precision < Precision::kTensorTf32) return 0;
  return gpu.sparsity * gpu.dense[static_cast<size_t>(precision)];
}

}  // namespace flopinj::reduce
