#include "tables/trace_tables.h"

#include <algorithm>

#include "support/forget.h"
#include "support/text.h"
#include "tables/formulas.h"

namespace flopinj::reduce {

uint32_t TraceTables::device_index(uint32_t trace, uint32_t id) {
  constexpr uint32_t kMaxDeviceId = 1024;
  if (id > kMaxDeviceId) id = 0;
  IdMap& ids = traces[trace].devices;  // shifted by one: id 0 has a device too
  const uint32_t found = ids.get(id + 1);
  if (found != kNoIndex) return found;
  const auto index = static_cast<uint32_t>(devices.size());
  Device& device = devices.emplace_back();
  device.trace = trace;
  device.id = id;
  ids.set(id + 1, index);
  ++traces[trace].device_count;
  return index;
}

std::string TraceTables::range_label(uint32_t path) const {
  constexpr size_t kLimit = 256;
  const PathTable::Path& range = paths[path];
  const std::string domain = range.domain == NamePool::kEmpty ? "" : names[range.domain] + ":";
  return cut(domain + names[range.name], kLimit);
}

std::string TraceTables::path_string(uint32_t path, bool escaped) const {
  constexpr size_t kLimit = 1024;
  if (path == PathTable::kRoot) return "(no range)";
  std::vector<uint32_t> levels;
  for (; path > PathTable::kLost; path = paths[path].parent) levels.push_back(path);
  std::string text = path == PathTable::kLost ? "(lost range)" : "";
  for (auto level = levels.rbegin(); level != levels.rend() && text.size() <= kLimit; ++level) {
    if (!text.empty()) text += "/";
    for (const char c : range_label(*level)) {
      if (escaped && c == '/') text += '\\';
      text += c;
    }
  }
  return cut(text, kLimit);
}

// What a recording has no counters of is not 0.
void TraceTables::note_what_was_not_asked() {
  std::vector<TensorWorkAsked> asked(required.size());
  for (const auto& trace : traces)
    for (const auto& group : trace.group_list)
      for (const uint32_t metric : group.metrics)
        asked[devices[group.device].chip].add(names[metric]);
  for (const auto& device : devices)
    if (!asked[device.chip].all(device.facts.compute_major(), device.facts.compute_minor()))
      required[device.chip].tensor_not_asked = true;
}

// The same kernel on another chip is other machine code, so counters are shared only between
// devices of a kind.
void TraceTables::give_chips() {
  for (; with_chip_ < devices.size(); ++with_chip_) {
    Device& device = devices[with_chip_];
    std::string kind = device.facts.chip();
    if (kind.empty()) kind = device.facts.name();
    const bool unknown = kind.empty() && device.id == 0;
    if (kind.empty())
      kind = (unknown ? std::string("unknown device")
                      : "undescribed device " + std::to_string(device.id - 1)) +
             " of process " + std::to_string(device.trace);
    const auto [entry, fresh] =
        chip_of_kind_.try_emplace(kind, static_cast<uint32_t>(chips.size()));
    if (fresh) {
      chips.push_back(kind);
      no_device.push_back(unknown);
    }
    device.chip = entry->second;
  }
}

// Traces and their devices come in a fixed order: floating-point means depend on it.
void TraceTables::join_metrics() {
  samples_by_device.pack([&](uint32_t signature, uint32_t device, const SampleSet& set) {
    if (SampleSet* joined = samples_by_chip.at(signature, devices[device].chip))
      joined->merge(set.metrics);
  });
}

void TraceState::share_with(const TraceState& other) {
  for (IdMap TraceState::*ids :
       {&TraceState::strings, &TraceState::functions, &TraceState::signatures, &TraceState::paths,
        &TraceState::streams, &TraceState::threads, &TraceState::groups, &TraceState::devices,
        &TraceState::stream_numbers})
    (this->*ids).share_with(other.*ids);
  patterns.share_with(other.patterns);
}

void TraceTables::end_trace(uint32_t trace) {
  give_chips();
  join_metrics();
  if (trace > 0) traces[trace].share_with(traces[trace - 1]);
}

void TraceTables::join() {
  for (uint32_t i = 0; i < traces.size(); ++i) device_index(i, 0);
  give_chips();
  join_metrics();
  samples_by_device.end();
  samples_by_device.for_each(
      [&](uint32_t signature, uint32_t device, const std::vector<GroupSamples>& groups) {
        if (SampleSet* joined = samples_by_chip.at(signature, devices[device].chip))
          joined->merge(groups);
      });
  required.resize(chips.size());
  for (const auto& trace : traces)
    for (const auto& group : trace.group_list) {
      RequiredGroups& of_chip = required[devices[group.device].chip];
      of_chip.add(group.name, group.required, group.needed_if, group.unavailable);
      if (group.instead_of) of_chip.add_substitute(group.name, *group.instead_of);
    }
  note_what_was_not_asked();
  for (auto& trace : traces) forget(trace.group_list);
}

}  // namespace flopinj::reduce
