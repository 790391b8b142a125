#include <collector/options/kernel_names.h>
#include <import/join_counters.h>
#include <import/launches.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

namespace flopinj::import {
namespace {

// A kernel as both recordings name it. Devices are counted in their order: a program may see
// another number of each.
using Key = std::tuple<size_t, std::string, std::array<uint32_t, 3>, std::array<uint32_t, 3>>;
// Launches in their order, as indices of Timeline::kernels.
using ByKernel = std::map<Key, std::vector<uint32_t>>;

ByKernel by_kernel(Timeline& t, bool shapes) {
  std::map<uint32_t, size_t> devices;
  for (const auto& [ordinal, info] : t.devices) devices.emplace(ordinal, devices.size());
  std::unordered_map<uint32_t, std::string> names;
  std::unordered_map<const Kernel*, uint32_t> indices;
  for (uint32_t i = 0; i < t.kernels.size(); ++i) indices[&t.kernels[i]] = i;
  ByKernel launches;
  for (const Launch& launch : launches_in_order(t)) {
    const Kernel& kernel = *launch.kernel;
    std::string& name = names[kernel.name];
    if (name.empty()) name = function_name(t.texts[kernel.name]);
    Key key{devices[t.streams[kernel.stream].device], name, {}, {}};
    if (shapes && kernel.shape != Kernel::kNotKnown) {
      std::get<2>(key) = t.shapes[kernel.shape].launch.grid;
      std::get<3>(key) = t.shapes[kernel.shape].launch.block;
    }
    launches[std::move(key)].push_back(indices[&kernel]);
  }
  return launches;
}

// Whether each name of one is always beside the same one of the other.
bool names_agree(const Timeline& a, const std::vector<uint32_t>& of_a, const Timeline& b,
                 const std::vector<uint32_t>& of_b) {
  std::map<uint32_t, uint32_t> to_b, to_a;
  for (size_t i = 0; i < of_a.size(); ++i) {
    const uint32_t name_a = a.kernels[of_a[i]].name, name_b = b.kernels[of_b[i]].name;
    if (to_b.try_emplace(name_a, name_b).first->second != name_b ||
        to_a.try_emplace(name_b, name_a).first->second != name_a)
      return false;
  }
  return true;
}

}  // namespace

// The last name in front of the parameters of its type or of itself that no scope follows.
std::string function_name(std::string_view kernel) {
  if (kernel.starts_with("_Z")) return std::string(function_base_name(kernel));
  size_t begin = 0;
  for (size_t at = 0; at < kernel.size(); ++at) {
    const char c = kernel[at];
    if (c == ' ' || c == ':') {
      begin = at + 1;
    } else if (c == '<' || c == '(') {
      size_t depth = 0, end = at;
      for (; end < kernel.size(); ++end) {
        if (kernel[end] == '<' || kernel[end] == '(') ++depth;
        if ((kernel[end] == '>' || kernel[end] == ')') && --depth == 0) break;
      }
      // "(anonymous namespace)::k", "Box<int>::k", "Box<int> k": what follows is the name.
      const std::string_view rest = kernel.substr(std::min(end + 1, kernel.size()));
      const bool scope =
          rest.starts_with("::") || (c == '<' && rest.starts_with(' ') && !rest.starts_with(" ("));
      if (!scope) return std::string(kernel.substr(begin, at - begin));
      at = end;
    }
  }
  return std::string(kernel.substr(begin));
}

std::string join_counters(Timeline& counters, Timeline& recording) {
  if (!recording.counted.empty()) return "the recording has counters of its own";
  const bool shapes = std::ranges::all_of(
      counters.kernels, [](const Kernel& kernel) { return kernel.shape != Kernel::kNotKnown; });
  const ByKernel from = by_kernel(counters, shapes), to = by_kernel(recording, shapes);
  uint64_t joined = 0;
  size_t kernels = 0;
  recording.metrics = counters.metrics;
  for (const auto& [key, launches] : to) {
    const auto found = from.find(key);
    if (found == from.end() || found->second.size() != launches.size() ||
        !names_agree(counters, found->second, recording, launches))
      continue;
    ++kernels;
    joined += launches.size();
    for (size_t i = 0; i < launches.size(); ++i)
      recording.counted.push_back({launches[i], counters.counted[found->second[i]].values});
  }
  if (joined == 0) return "no kernel was launched as often in it as in the recording";
  recording.process.counters = recording.process.measures = true;
  auto described = counters.devices.begin();
  for (auto& [ordinal, device] : recording.devices) {
    if (described == counters.devices.end()) break;
    if (device.name.empty() && device.compute_major == 0) device = described->second;
    ++described;
  }
  recording.say("import.counters",
                "counters of Nsight Compute are known of " + std::to_string(joined) + " of " +
                    std::to_string(recording.kernels.size()) + " launches, of " +
                    std::to_string(kernels) + " of " + std::to_string(to.size()) +
                    " kernels by name, grid and block" +
                    (joined == recording.kernels.size()
                         ? ""
                         : ": others were launched less or more often than in the recording"));
  return {};
}

}  // namespace flopinj::import
