// Every figure that the published documents print or that follows from theirs, by our arithmetic.
// "K80": course report on PALEO and platform percent of peak (2022). "Sevilla": Estimating Training
// Compute of Deep Learning Models (2022).
#include "projection/projection.h"

#include "catch.h"
#include "peaks/peaks.h"
#include "support/si_number.h"

using namespace flopinj::reduce;

TEST_CASE("K80: inference times and throughputs of three networks") {
  std::string error;
  const Gpu* k80 = choose_gpu("K80 board", error);
  REQUIRE(k80 != nullptr);
  const double fp32 = published_peak(*k80, "fp32") * 1e12;
  const double fp64 = published_peak(*k80, "fp64") * 1e12;
  struct Printed {
    const char* flop;
    double single_s, single_per_s, double_s, double_per_s;
  };
  // As the document prints them, all digits.
  constexpr Printed kPrinted[] = {
      {"15503M", 0.0017758304696449026, 563.1168161001096, 0.005327491408934708, 187.7056053667032},
      {"1606M", 0.00018396334478808707, 5435.865504358655, 0.0005518900343642612,
       1811.9551681195517},
      {"3922M", 0.0004492554410080183, 2225.9051504334525, 0.001347766323024055, 741.9683834778174},
  };
  for (const auto& p : kPrinted) {
    const double flop = parse_si(p.flop).value();
    const Inference single = inference(flop, fp32, 1);
    const Inference twice = inference(flop, fp64, 1);
    INFO(p.flop);
    CHECK(single.seconds == Approx(p.single_s).epsilon(1e-12));
    CHECK(single.examples_per_second == Approx(p.single_per_s).epsilon(1e-12));
    CHECK(twice.seconds == Approx(p.double_s).epsilon(1e-12));
    CHECK(twice.examples_per_second == Approx(p.double_per_s).epsilon(1e-12));
  }
}

TEST_CASE("Sevilla: iGPT-L by device time is 8.1e21") {
  std::string error;
  const Gpu* v100 = choose_gpu("V100 SXM2", error);
  REQUIRE(v100 != nullptr);
  TrainingByTime t;
  t.seconds = 2500.0 * 86400;
  t.peak_flop_per_s = published_peak(*v100, "tensor_fp16") * 1e12;
  t.utilization = kAssumedLanguage;
  CHECK(t.flop() == Approx(8.1e21).epsilon(1e-12));
}

TEST_CASE("Sevilla: CNN-LSTM example as printed, and corrected") {
  TrainingByOperations t;
  t.recurrent_steps = 20;
  t.examples = 100.0 * 128;
  t.epochs = 10;
  t.forward_flop = 1.024e12;  // 2 H^2 W^2 C D / S^2
  CHECK(t.flop() == Approx(7.86432e18).epsilon(1e-12));
  // Direct convolution: 200 x 200 x 16 outputs of 5 x 5 x 5 multiply-adds.
  const double convolution = 2.0 * 200 * 200 * 16 * 5 * 5 * 5;
  CHECK(convolution == 1.6e8);
  const double lstm = 4.0 * 2 * (640000 + 256) * 256;
  CHECK(lstm == Approx(1.311e9).epsilon(1e-3));
  t.forward_flop = convolution + lstm;
  t.non_recurrent_flop = 2.0 * 256 * 10;
  CHECK(t.flop() == Approx(1.13e16).epsilon(1e-3));
}

TEST_CASE("Sevilla: the Transformer's 6.97e18 needs 3.1e8 FLOP a token, not the printed 3.1e9") {
  // Per token: six pairs of three attention and two feed-forward layers, and the last projection.
  const double attention = 2.0 * 16 * (64 * (2 * 64 + 64) + 20 * (64 + 64) + 64 * 1024);
  CHECK(attention == 2572288);
  const double feed_forward = 2.0 * 2 * 1024 * 4096;
  CHECK(feed_forward == 16777216);
  const double token = 6 * (3 * attention + 2 * feed_forward) + 2.0 * 1024 * 30000;
  CHECK(token == Approx(3.1e8).epsilon(0.01));
  TrainingByOperations t;
  t.forward_flop = 3.1e8;
  t.examples = 25000.0 * 300000;
  CHECK(t.flop() == Approx(6.97e18).epsilon(1e-3));
  t.forward_flop = 3.1e9;
  CHECK(t.flop() == Approx(6.97e19).epsilon(1e-3));
}

TEST_CASE("Sevilla: the two methods agree within a factor of 1.7, here for the Transformer") {
  // 3.5 days on eight P100 (Vaswani and others 2017, big model).
  std::string error;
  const Gpu* p100 = choose_gpu("P100 SXM2 16GB", error);
  REQUIRE(p100 != nullptr);
  TrainingByTime t;
  t.seconds = 3.5 * 86400;
  t.devices = 8;
  t.peak_flop_per_s = published_peak(*p100, "fp32") * 1e12;
  for (const double utilization : {kAssumedLanguage, kAssumedOther}) {
    t.utilization = utilization;
    CHECK(factor_between(t.flop(), 6.975e18) < 1.7);
    CHECK(training_seconds(t.flop(), 8, t.peak_flop_per_s, utilization) == Approx(3.5 * 86400));
  }
}

TEST_CASE("VGG: the printed 99.00 % counts a pooling layer as a convolution, and is VGG16's") {
  // The document's convention: a bias is an operation for each output, ReLU 2 for each value, 2 x 2
  // pooling 3 for each output, the last pooling 49 for each of its 7 x 7 x 512 outputs.
  struct Share {
    double printed, strict, total;
  };
  const auto share = [](int thirds,
                        int deep) {  // convolutions in the first two and last three blocks
    double convolution = 0;
    double other = 0;
    double channels = 3;
    double size = 224;
    for (const double width : {64.0, 128.0, 256.0, 512.0, 512.0}) {
      const int count = width < 256 ? thirds : deep;
      for (int i = 0; i < count; ++i) {
        convolution += size * size * width * (9 * channels + 1);
        other += 2 * size * size * width;
        channels = width;
      }
      size /= 2;
      other += 3 * size * size * width;
    }
    const double pooling = 49.0 * 7 * 7 * 512;
    const double linear = 4096.0 * (25088 + 1) + 4096.0 * 4097 + 1000.0 * 4097 + 2 * 2 * 4096;
    const double total = convolution + other + pooling + linear;
    return Share{(convolution + pooling) / total, convolution / total, total};
  };
  const Share vgg16 = share(2, 3);
  CHECK(vgg16.total == 15516752872.0);
  CHECK(vgg16.printed == Approx(15361407488.0 / 15516752872.0).epsilon(1e-12));
  CHECK(vgg16.printed == Approx(0.9900).margin(5e-5));
  CHECK(vgg16.strict == Approx(0.9899).margin(5e-5));
  CHECK(share(2, 4).strict == Approx(0.9919).margin(5e-5));  // the real VGG19
}

TEST_CASE("steps of a recording multiply") {
  CHECK(TrainingBySteps{5938356, 1000}.flop() == 5938356000.0);
}

TEST_CASE("factors do not depend on the order") {
  CHECK(factor_between(2, 3) == 1.5);
  CHECK(factor_between(3, 2) == 1.5);
}

TEST_CASE("numbers with SI prefixes") {
  CHECK(parse_si("8.73T") == 8.73e12);
  CHECK(parse_si("15503M") == 15503e6);
  CHECK(parse_si("1k") == 1000.0);
  CHECK(parse_si("2.5e-3") == 2.5e-3);
  CHECK(parse_si(".5") == 0.5);
  CHECK(parse_si("1E") == 1e18);  // exa; an exponent needs digits
  CHECK(parse_si("1E3") == 1e3);
  for (const char* bad : {"", "T", "1m", "1 T", "1TB", "1.2.3", "--1", "+1", "1e999", "1e3k"})
    CHECK_FALSE(parse_si(bad));
  CHECK(format_si(6.975e18) == "6.975 E");
  CHECK(format_si(1e30) == "1e+06 Y");
  CHECK(format_si(999.96) == "1000");
  CHECK(format_si(999960) == "1 M");
  CHECK(format_si(0) == "0");
}
