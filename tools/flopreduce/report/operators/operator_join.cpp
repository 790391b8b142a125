#include "report/operators/operator_join.h"

#include <algorithm>

#include "support/members.h"

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
  const auto shared = [&]<typename Number>(Number& part, Number sum) {
    part = static_cast<Number>(of(u128{sum}));
  };
  const double share = static_cast<double>(to - from) / static_cast<double>(all);
  Work out;
  for_each_pair(Work::sums(out), Work::sums(work), shared);
  for_each_pair(GpuTime::sums(out.time), GpuTime::sums(work.time), shared);
  for_each_pair(Roof::sums(out.roof), Roof::sums(work.roof), shared);
  for_each_pair(Roof::times(out.roof), Roof::times(work.roof),
                [&](double& part, double sum) { part = sum * share; });
  out.fewest_windows = work.fewest_windows;
  out.overflow = work.overflow;
  if (out.varying > 0)
    out.uncertainty.add_unknown(out.varying);  // which launches it got is unknown
  return out;
}

ModelFlop Part::of(const ModelFlop& model) const {
  ModelFlop out = model;
  for_each_pair(ModelFlop::sums(out), ModelFlop::sums(model),
                [&]<typename Number>(Number& part, Number sum) {
                  part = static_cast<Number>(of(u128{sum}));
                });
  return out;
}

OperatorJoin::OperatorJoin(const OperatorCalls& calls) : calls_(calls) {
  for (const auto& [key, joined] : calls.joined) {
    const uint32_t backward = OperatorCalls::backward_of(key),
                   forward = OperatorCalls::forward_of(key);
    forwards_[backward].push_back({forward, joined.launches});
    backwards_[forward].push_back({backward, joined});
  }
  for (auto& [path, shares] : forwards_) std::sort(shares.begin(), shares.end());
  for (auto& [path, backwards] : backwards_) std::ranges::sort(backwards, {}, &Calls::first);
}

const std::vector<OperatorJoin::Share>* OperatorJoin::forwards_of(uint32_t backward) const {
  return entry_of(forwards_, backward);
}

const std::vector<OperatorJoin::Calls>* OperatorJoin::backwards_of(uint32_t forward) const {
  return entry_of(backwards_, forward);
}

}  // namespace flopinj::reduce
