#include "passes/lost_parts.h"

#include <utility>

namespace flopinj::reduce {

LostParts::LostParts(const std::vector<Segment>& segments, std::vector<bool> in_parts,
                     LogRoom* room, Ended ended)
    : segments_(segments),
      in_parts_(std::move(in_parts)),
      first_(in_parts_.size()),
      room_(room),
      ended_(std::move(ended)) {
  for (size_t i = segments.size(); i-- > 0;) first_[segments[i].trace] = i;
}

void LostParts::join(Devices& all, Devices next) {
  while (!next.empty()) {
    auto part = next.extract(next.begin());
    const auto before =
        all.try_emplace(part.key(), part.mapped().kept(), true, &spare_, room_).first;
    if (before->second.take(part.mapped())) continue;
    all.erase(before);
    all.insert(std::move(part));
  }
}

void LostParts::end(uint32_t trace, Devices devices) {
  for (auto& [number, device] : devices) device.end();
  ended_(trace, std::move(devices));
}

void LostParts::add(size_t segment, Devices devices) {
  const uint32_t number = segments_[segment].trace;
  if (is_whole(segment)) return end(number, std::move(devices));
  Devices whole;
  {
    const std::lock_guard lock(lock_);
    const auto trace = traces_.try_emplace(number, Trace{first_[number], {}, {}}).first;
    auto& [next, all, waiting] = trace->second;
    waiting.emplace(segment, std::move(devices));
    for (; !waiting.empty() && waiting.begin()->first == next; ++next) {
      if (is_first(next))
        all = std::move(waiting.begin()->second);
      else
        join(all, std::move(waiting.begin()->second));
      waiting.erase(waiting.begin());
    }
    if (is_of(next, number)) return;
    whole = std::move(all);
    traces_.erase(trace);
  }
  end(number, std::move(whole));
}

}  // namespace flopinj::reduce
