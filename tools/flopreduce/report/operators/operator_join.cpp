#include "report/operators/operator_join.h"

#include <algorithm>

namespace flopinj::reduce {
namespace {

template <class Paths>
const typename Paths::mapped_type* entry_of(const Paths& paths, uint32_t path) {
  const auto found = paths.find(path);
  return found == paths.end() ? nullptr : &found->second;
}

}  // namespace

u128 Part::of(u128 value) const {
  bool overflow = false;
  return mul_div_round(value, to, all, overflow) - mul_div_round(value, from, all, overflow);
}

Work Part::of(const Work& work) const {
  if (whole()) return work;
  const auto count = [&](uint64_t n) { return static_cast<uint64_t>(of(u128{n})); };
  Work out;
  out.launches = count(work.launches);
  out.unmeasured = count(work.unmeasured);
  out.varying = count(work.varying);
  out.agreeing = count(work.agreeing);
  out.fewest_windows = work.fewest_windows;
  out.unscreened = count(work.unscreened);
  out.flop = of(work.flop);
  out.matrix_flop = of(work.matrix_flop);
  out.doubtful = of(work.doubtful);
  out.left_out = of(work.left_out);
  out.time = {of(work.time.ns), count(work.time.estimated), count(work.time.windowed),
              count(work.time.unknown)};
  const double share = static_cast<double>(to - from) / static_cast<double>(all);
  out.roof = work.roof;
  for (double* ns : {&out.roof.compute_ns, &out.roof.integer_ns, &out.roof.memory_ns, &out.roof.ns})
    *ns *= share;
  out.roof.dram_bytes = of(work.roof.dram_bytes);
  for (uint64_t* launches :
       {&out.roof.no_peak, &out.roof.no_integer_peak, &out.roof.no_bytes, &out.roof.no_bandwidth})
    *launches = count(*launches);
  out.overflow = work.overflow;
  if (out.varying > 0)
    out.uncertainty.add_unknown(out.varying);  // which launches it got is unknown
  return out;
}

OperatorJoin::OperatorJoin(const OperatorCalls& calls) : calls_(calls) {
  for (const auto& [key, joined] : calls.joined) {
    const uint32_t backward = OperatorCalls::backward_of(key),
                   forward = OperatorCalls::forward_of(key);
    forwards_[backward].push_back({forward, joined.launches});
    backwards_[forward].push_back({backward, joined.numbers});
  }
  for (auto& [path, shares] : forwards_) std::sort(shares.begin(), shares.end());
  for (auto& [path, backwards] : backwards_) std::sort(backwards.begin(), backwards.end());
}

const std::vector<OperatorJoin::Share>* OperatorJoin::forwards_of(uint32_t backward) const {
  return entry_of(forwards_, backward);
}

const std::vector<OperatorJoin::Calls>* OperatorJoin::backwards_of(uint32_t forward) const {
  return entry_of(backwards_, forward);
}

}  // namespace flopinj::reduce
