// Sequences of work, launch by launch, and where a recorder would look: what intervals are tested
// on.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace flopinj::test {

inline const std::vector<std::string>& shapes_of_work() {
  static const std::vector<std::string> kShapes = {
      "uniform",  "two values", "exponential", "lognormal", "trend",  "noisy trend",
      "periodic", "slow wave",  "bursts",      "warm-up",   "growing"};
  return kShapes;
}

// Own arithmetic on the generator's bits, so that every standard library gives the same numbers.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double normal() {
    return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586 * uniform());
  }

 private:
  std::mt19937_64 bits_;
};

// FLOP of each launch.
inline std::vector<double> work_of(const std::string& shape, size_t launches, Random& random) {
  std::vector<double> work;
  size_t burst = 0;
  for (size_t i = 0; i < launches; ++i) {
    const auto at = static_cast<double>(i);
    const double u = random.uniform();
    double value = 0;
    if (shape == "uniform") value = 100 + 900 * u;
    if (shape == "two values") value = u < 0.3 ? 1000 : 100;
    if (shape == "exponential") value = -1000 * std::log(1 - u);
    if (shape == "lognormal") value = 1000 * std::exp(random.normal());
    if (shape == "trend") value = 1000 + 3 * at;
    if (shape == "noisy trend") value = 1000 + at / 10 + 500 * u;
    if (shape == "periodic") value = i % 5 == 0 ? 4000 : 100;
    if (shape == "slow wave") value = 1000 + 900 * std::sin(at / 160);
    if (shape == "bursts") {
      if (burst == 0 && u < 0.01) burst = 1 + static_cast<size_t>(60 * random.uniform());
      value = burst > 0 ? 5000 : 500;
      if (burst > 0) --burst;
    }
    if (shape == "warm-up") value = i < 20 ? 100'000 : 1000 + 100 * u;
    if (shape == "growing") value = 100 + at * u;
    work.push_back(std::floor(value));
  }
  return work;
}

struct Window {
  size_t first = 0, count = 0;
};

// The recorder's way: the first launches in one window, then single launches at random, at gaps of
// `growth` times what was launched so far, or of `most` launches where that is less.
inline std::vector<Window> windows_of(size_t launches, double growth, double most, Random& random) {
  std::vector<Window> windows{{0, 3}};
  double at = 3;
  while (true) {
    at += 1 + std::min(most, growth * at) * (0.5 + random.uniform());
    if (at >= static_cast<double>(launches)) return windows;
    windows.push_back({static_cast<size_t>(at), 1});
  }
}

// The same, but one launch at random in each of stretches: 64 of 16, 17, 18, ... launches, then
// 160, 320, ..., every second of which is sampled. Once a sample differs, they are all sampled, and
// have 1,024 launches at most.
inline std::vector<Window> stretches_of(const std::vector<double>& work, Random& random) {
  std::vector<Window> windows{{0, 3}};
  bool differs = work[1] != work[0] || work[2] != work[0];
  size_t begin = 3;
  for (size_t round = 0;; ++round) {
    size_t length = round < 64 ? 16 + round : size_t{80} << (round - 63);
    if (differs) length = std::min<size_t>(length, 1024);
    const size_t at = begin + static_cast<size_t>(random.uniform() * static_cast<double>(length));
    if (at >= work.size()) return windows;
    begin += length;
    if (round >= 64 && round % 2 != 0 && !differs) continue;
    windows.push_back({at, 1});
    differs = differs || work[at] != work[0];
  }
}

}  // namespace flopinj::test
