#include "counters/config_image.h"

#include <algorithm>
#include <cstring>

#include "chips.h"
#include "counters/checksum.h"

namespace simgpu::cupti {
namespace {

constexpr uint64_t kMagic = 0x31676663'75706773;  // "sgpucfg1"

struct Header {
  uint64_t magic;
  uint64_t bytes;     // header and items
  uint64_t checksum;  // of everything after this field
  uint32_t chip;
  uint32_t passes;
  uint32_t items;
  uint32_t reserved;
};
struct Item {
  uint16_t counter;
  uint16_t pass;
};
constexpr size_t kChecked = offsetof(Header, chip);

}  // namespace

bool Schedule::pass_is_sass(size_t pass) const {
  return pass < passes.size() && !passes[pass].empty() && is_sass(passes[pass].front());
}

Schedule schedule_passes(uint32_t chip, std::vector<Counter> counters) {
  std::ranges::sort(counters);
  counters.erase(std::unique(counters.begin(), counters.end()), counters.end());
  const uint32_t family = chips()[chip].family;
  std::ranges::stable_sort(
      counters, [family](Counter a, Counter b) { return weight(a, family) > weight(b, family); });
  Schedule result{chip, {}};
  std::vector<uint32_t> used;
  std::vector<Counter> sass;
  for (const Counter counter : counters) {
    if (is_sass(counter)) {
      sass.push_back(counter);
      continue;
    }
    const uint32_t need = weight(counter, family);
    const auto free =
        std::ranges::find_if(used, [&](uint32_t taken) { return taken + need <= kPassCapacity; });
    const auto pass = static_cast<size_t>(free - used.begin());
    if (free == used.end()) {
      used.push_back(0);
      result.passes.emplace_back();
    }
    used[pass] += need;
    result.passes[pass].push_back(counter);
  }
  if (!sass.empty()) result.passes.push_back(std::move(sass));
  return result;
}

std::vector<uint8_t> write_config_image(const Schedule& schedule) {
  std::vector<Item> items;
  for (size_t pass = 0; pass < schedule.passes.size(); ++pass)
    for (const Counter counter : schedule.passes[pass])
      items.push_back({static_cast<uint16_t>(counter), static_cast<uint16_t>(pass)});
  const size_t bytes = sizeof(Header) + items.size() * sizeof(Item);
  Header header{kMagic,
                bytes,
                0,
                schedule.chip,
                static_cast<uint32_t>(schedule.passes.size()),
                static_cast<uint32_t>(items.size()),
                0};
  std::vector<uint8_t> image(bytes);
  std::memcpy(image.data(), &header, sizeof header);
  if (!items.empty())
    std::memcpy(image.data() + sizeof header, items.data(), items.size() * sizeof(Item));
  header.checksum = checksum(std::span(image).subspan(kChecked));
  std::memcpy(image.data(), &header, sizeof header);
  return image;
}

std::optional<Schedule> read_config_image(std::span<const uint8_t> image) {
  Header header;
  if (image.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, image.data(), sizeof header);
  if (header.magic != kMagic || header.bytes > image.size() || header.items > kCounters ||
      header.bytes != sizeof header + header.items * sizeof(Item) || header.passes > header.items ||
      header.checksum != checksum(image.subspan(kChecked, header.bytes - kChecked)))
    return std::nullopt;
  Schedule schedule{header.chip, {}};
  schedule.passes.resize(header.passes);
  for (size_t i = 0; i < header.items; ++i) {
    Item item;
    std::memcpy(&item, image.data() + sizeof header + i * sizeof item, sizeof item);
    if (item.counter >= kCounters || item.pass >= header.passes) return std::nullopt;
    schedule.passes[item.pass].push_back(static_cast<Counter>(item.counter));
  }
  return schedule;
}

}  // namespace simgpu::cupti
