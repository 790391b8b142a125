// The metrics of the host API: names per chip family and the counters each adds up.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "counters/counters.h"

namespace simgpu::cupti {

enum class Rollup : uint8_t { kSum, kAvg, kMin, kMax };
inline constexpr const char* kRollupSuffixes[] = {".sum", ".avg", ".min", ".max"};

// How a value relates to the unit's instances: a total that is spread over them, or the same value
// on each.
enum class Spread : uint8_t { kTotal, kEach };

struct MetricInfo {
  const char* base;      // name without rollup
  const char* families;  // one character per chip family, 'x' where the name exists
  const char* description;
  const char* unit;  // hardware unit the name begins with
  const char* dimension;
  Spread spread;
  uint32_t instances;
  std::array<Counter, 4> counters;  // added up; unused places are Counter::kNone
};

struct Metric {
  const MetricInfo* info;
  Rollup rollup;
};

std::span<const MetricInfo> all_metrics();
bool exists(const MetricInfo& metric, uint32_t chip);

// With a rollup ("dram__bytes_read.sum"), as configuration and evaluation want it.
std::optional<Metric> find_metric(uint32_t chip, std::string_view name);
// With or without a rollup, as the property queries allow.
const MetricInfo* find_metric_info(uint32_t chip, std::string_view name);

std::vector<Counter> counters_of(const Metric& metric);
// Of all metrics of the chip with `text` in their name; empty text: none.
CounterSet counters_named(uint32_t chip, std::string_view text);

// From counter totals of a range. The work is taken as evenly spread over the instances.
double evaluate(const Metric& metric, const CounterValues& totals);

}  // namespace simgpu::cupti
