#include <collector/schedule/measuring_budget.h>

#include <algorithm>

namespace flopinj {
namespace {

constexpr double kNewWeight = 0.25;  // of a window in the moving averages
constexpr double kReportedSlowDown = 100;
constexpr uint32_t kEnoughSlowDowns = 3;

uint64_t mean_of(uint64_t sum, uint64_t n) { return n == 0 ? 0 : sum / n; }
uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

void average(double& value, double sample, bool known) {
  value = known ? value + kNewWeight * (sample - value) : sample;
}

}  // namespace

void MeasuringBudget::calls_outside(uint64_t calls, uint64_t ns) {
  outside_calls_ = calls;
  outside_ns_ = ns;
}

void MeasuringBudget::window(bool instrumented, const WindowCost& cost, uint64_t gpu_ns) {
  overhead_ns_ += cost.overhead_ns;
  calls_ns_ += cost.calls_ns;
  launches_ += cost.launches;
  hidden_ns_ += std::min(cost.calls_ns, less(gpu_ns, less(cost.open_ns, cost.calls_ns)));
  tried(instrumented, cost.overhead_ns);
  if (cost.launches == 0) return;
  Kind& kind = kinds_[instrumented ? 1 : 0];
  average(kind.call_ns, static_cast<double>(waiting_ns(cost)) / cost.launches, kind.call_known);
  kind.call_known = true;
}

void MeasuringBudget::tried(bool instrumented, uint64_t overhead_ns) {
  Kind& kind = kinds_[instrumented ? 1 : 0];
  average(kind.overhead_ns, static_cast<double>(overhead_ns), kind.known);
  kind.known = true;
}

uint64_t MeasuringBudget::waiting_ns(const WindowCost& cost) const {
  return less(cost.calls_ns, cost.launches * mean_of(outside_ns_, outside_calls_));
}

uint64_t MeasuringBudget::spent_ns() const {
  const uint64_t undisturbed =
      std::max(launches_ * mean_of(outside_ns_, outside_calls_), hidden_ns_);
  return overhead_ns_ + std::max(less(calls_ns_, undisturbed), slow_down_ns_);
}

void MeasuringBudget::slow_down_seen(double times) {
  worst_slow_down_ = std::max(worst_slow_down_, times);
  ++slow_downs_seen_;
}

uint64_t MeasuringBudget::predicted_ns(bool instrumented, uint64_t call_ns,
                                       uint64_t usual_ns) const {
  const Kind& own = kinds_[instrumented ? 1 : 0];
  const Kind& kind = own.known ? own : kinds_[instrumented ? 0 : 1];
  if (call_ns == 0 && instrumented) {
    const double times = slow_downs_seen_ < kEnoughSlowDowns ? kReportedSlowDown : worst_slow_down_;
    call_ns = static_cast<uint64_t>(static_cast<double>(usual_ns) * times);
  }
  const auto call = std::max(static_cast<uint64_t>(kind.call_ns), call_ns);
  return static_cast<uint64_t>(kind.overhead_ns) + call;
}

uint64_t MeasuringBudget::left_ns(bool incomplete, uint64_t now_ns) const {
  if (share_ == kUnlimited) return UINT64_MAX;
  const uint64_t wall = less(now_ns, began_ns_) + (incomplete ? startup_ns_ : 0);
  return less(static_cast<uint64_t>(share_ * static_cast<double>(wall)), spent_ns() + reserved_ns_);
}

}  // namespace flopinj
