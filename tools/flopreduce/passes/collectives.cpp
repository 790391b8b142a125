#include "passes/collectives.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace flopinj::reduce {
namespace {

uint64_t difference(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

}  // namespace

void Collectives::add(uint32_t device, uint32_t kernel, uint32_t step, uint64_t begin_ns,
                      uint64_t length_ns) {
  if (launches_ == kMost) return;
  kernels_[kernel][device].push_back({step, begin_ns, length_ns});
  if (++launches_ == kMost) kernels_.clear();
}

void Collectives::add(Collectives&& o) {
  launches_ = std::min(kMost, launches_ + o.launches_);
  if (launches_ == kMost) return kernels_.clear();
  for (auto& [kernel, devices] : o.kernels_)
    for (auto& [device, launches] : devices) {
      Launches& to = kernels_[kernel][device];
      if (to.empty())
        to = std::move(launches);
      else
        to.insert(to.end(), launches.begin(), launches.end());
    }
}

// On all ranks of a communicator its collectives end at once, but for the time of the slowest link.
// Collectives of different communicators end at any time.
bool Collectives::agree(const Launches& a, const Launches& b) {
  constexpr uint64_t kApartNs = 100'000, kOfTime = 50;  // one part in so many
  if (a.size() != b.size() || a.size() < 2) return false;
  size_t apart = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].step != b[i].step || a[i].length_ns == 0 || b[i].length_ns == 0) return false;
    if (i == 0) continue;
    const uint64_t in_a = difference(a[i].end_ns(), a[i - 1].end_ns());
    const uint64_t in_b = difference(b[i].end_ns(), b[i - 1].end_ns());
    if (difference(in_a, in_b) > std::max(kApartNs, in_a / kOfTime)) ++apart;
  }
  constexpr size_t kOnceIn = 10;
  return apart <= a.size() / kOnceIn;
}

void Collectives::add_up(const OfDevices& devices, std::map<uint32_t, Waiting>& waiting) {
  if (devices.size() < 2) return;
  for (size_t i = 0; i < devices.front().second->size(); ++i) {
    uint32_t last = 0;
    uint64_t shortest = UINT64_MAX, second = UINT64_MAX, all = 0;
    for (const auto& one : devices) {
      const uint64_t ns = (*one.second)[i].length_ns;
      if (ns < shortest) {
        second = std::exchange(shortest, ns);
        last = one.first;
      } else {
        second = std::min(second, ns);
      }
    }
    for (const auto& one : devices) {
      const uint64_t waited = (*one.second)[i].length_ns - shortest;
      Waiting& of = waiting[one.first];
      ++of.collectives;
      of.ns += waited;
      all += waited;
    }
    if (second == shortest) continue;  // several came last
    Waiting& awaited = waiting[last];
    ++awaited.last;
    awaited.awaited_ns += all / (devices.size() - 1);
  }
}

// Devices are of one communicator where they agree with the first of it.
void Collectives::compare(const OfDevices& devices, std::map<uint32_t, Waiting>& waiting) {
  std::vector<OfDevices> groups;
  for (const auto& its : devices) {
    const auto group = std::ranges::find_if(
        groups, [&](const OfDevices& one) { return agree(*one.front().second, *its.second); });
    if (group == groups.end())
      groups.push_back({its});
    else
      group->push_back(its);
  }
  for (const auto& group : groups) add_up(group, waiting);
}

std::map<uint32_t, Collectives::Waiting> Collectives::compare(
    const std::function<size_t(uint32_t device)>& run_of) {
  std::map<uint32_t, Waiting> waiting;
  if (launches_ == kMost) return waiting;  // what is left out may be any
  for (auto& [kernel, devices] : kernels_) {
    if (devices.size() < 2) continue;
    std::map<size_t, OfDevices> runs;
    for (auto& [device, launches] : devices) {
      std::ranges::sort(launches, {}, [](const One& one) {
        return std::tuple(one.step, one.begin_ns, one.length_ns);
      });
      runs[run_of(device)].emplace_back(device, &launches);
    }
    for (const auto& [run, of] : runs)
      if (of.size() > 1) compare(of, waiting);
  }
  return waiting;
}

}  // namespace flopinj::reduce
