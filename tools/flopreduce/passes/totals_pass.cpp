#include "passes/totals_pass.h"

#include <algorithm>
#include <tuple>

#include "flop_trace_fields.h"

namespace flopinj::reduce {
namespace {

constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ULL;

}  // namespace

size_t TotalsPass::ContextHash::operator()(const ContextKey& k) const {
  return (k.thread_stream * kPrime) ^ ((k.path + 1ULL) * 0xC2B2AE3D27D4EB4FULL);
}
size_t TotalsPass::RowHash::operator()(const RowKey& k) const {
  const uint64_t h = (k.signature_chip * kPrime) ^ ((k.path_rule + 1) * 0xC2B2AE3D27D4EB4FULL);
  return h ^ (h >> 29);
}

// Ids change their meaning with the trace.
void TotalsPass::use_trace(uint32_t trace) {
  if (trace == trace_) return;
  trace_ = trace;
  context_index_.clear();
  row_index_.clear();
  cache_.fill({});
}

void TotalsPass::packet(uint32_t trace, const Packet& packet, DamageLog& damage) {
  using Field = trace_fields::TracePacketField;
  const auto field = static_cast<Field>(packet.body_field);
  if (field != Field::launch_batch && field != Field::tally_batch) return;
  use_trace(trace);
  if (field == Field::launch_batch)
    launch_batch(packet, damage);
  else
    tally_batch(packet, damage);
}

uint32_t TotalsPass::context(uint32_t thread, uint32_t stream, uint32_t path) {
  const ContextKey key{static_cast<uint64_t>(thread) << 32 | stream, path};
  const auto found = context_index_.find(key);
  if (found != context_index_.end()) return found->second;
  const TraceState& trace = model_.traces[trace_];
  const uint32_t unknown_device =
      trace.devices.get(1);  // id 0, which Model::join() gives every trace
  const uint32_t device = stream == 0 ? unknown_device : trace.streams.get(stream);
  const uint32_t known_path = path == 0 ? PathTable::kRoot : trace.paths.get(path);
  const uint32_t thread_name = thread == 0 ? NamePool::kEmpty : trace.threads.get(thread);
  Context c;
  c.lost = device == kNoIndex || known_path == kNoIndex || thread_name == kNoIndex;
  c.device = device != kNoIndex ? device : unknown_device;
  c.path = known_path != kNoIndex ? known_path : PathTable::kLost;
  c.rule = phases_.rule_of(c.path, thread_name != kNoIndex ? thread_name : NamePool::kEmpty);
  if (contexts_.size() >= kMaxRows) return kNoIndex;
  const auto index = static_cast<uint32_t>(contexts_.size());
  contexts_.push_back(c);
  context_index_.emplace(key, index);
  return index;
}

TotalsPass::LocalRow* TotalsPass::row(uint32_t context, uint32_t signature_id) {
  if (context == kNoIndex) return nullptr;
  const uint64_t key = static_cast<uint64_t>(context) << 32 | signature_id;
  Cached& cached = cache_[(key * kPrime) >> 52];
  if (cached.key == key) return &local_rows_[cached.row];
  const auto found = row_index_.find(key);
  uint32_t index = 0;
  if (found != row_index_.end()) {
    index = found->second;
  } else {
    if (local_rows_.size() >= kMaxRows) return nullptr;
    const uint32_t signature = model_.traces[trace_].signatures.get(signature_id);
    index = static_cast<uint32_t>(local_rows_.size());
    local_rows_.push_back(
        {context, signature != kNoIndex ? signature : SignatureTable::kUndefined, {}});
    row_index_.emplace(key, index);
  }
  cached = {key, index};
  return &local_rows_[index];
}

void TotalsPass::launch_batch(const Packet& packet, DamageLog& damage) {
  LaunchBatchReader batch;
  if (!batch.open(packet.body, damage)) return;
  uint32_t path = 0;
  uint32_t current = context(batch.thread(), batch.stream(), path);
  batch.for_each(last_durations_, damage, [&](const LaunchRow& launch) {
    if (launch.range_path != path) {
      path = launch.range_path;
      current = context(batch.thread(), batch.stream(), path);
    }
    LocalRow* to = row(current, launch.signature);
    if (to == nullptr) {
      damage.add(Damage::kTableFull);
      return;
    }
    Counts& c = to->counts;
    ++c.launches;  // cannot pass 2^64 one by one; tallies are checked
    c.graph += launch.graph ? 1 : 0;
    c.windowed += launch.windowed ? 1 : 0;
    if (!launch.timed) return;
    ++(launch.windowed ? c.windowed_timed : c.timed);
    if (!add_saturating(launch.windowed ? c.windowed_time_ns : c.time_ns, launch.duration_ns))
      damage.add(Damage::kOverflow);
  });
}

void TotalsPass::tally_batch(const Packet& packet, DamageLog& damage) {
  TallyBatchReader batch;
  if (!batch.open(packet.body, damage)) return;
  TallyRow t;
  while (batch.next(t)) {
    LocalRow* to = row(context(t.thread, t.stream, t.range_path), t.signature);
    if (to == nullptr) {
      damage.add(Damage::kTableFull);
      continue;
    }
    Counts c;
    c.launches = t.launches;
    c.graph = std::min(t.graph_launches, t.launches);
    c.windowed = t.windowed ? t.launches : 0;
    const bool possible =
        t.timed == 0 ? t.gpu_time_ns == 0 : t.gpu_time_ns / t.timed <= kLongestKernelNs;
    if (!possible) damage.add(Damage::kBadTime);
    if (possible) (t.windowed ? c.windowed_timed : c.timed) = t.timed;
    if (possible) (t.windowed ? c.windowed_time_ns : c.time_ns) = t.gpu_time_ns;
    if (!to->counts.add(c)) damage.add(Damage::kOverflow);
  }
}

void TotalsPass::end_input(DamageLog& damage) {
  for (const auto& local : local_rows_) {
    const Context& c = contexts_[local.context];
    if (c.lost || local.signature == SignatureTable::kUndefined)
      damage.add(Damage::kUndefinedId, std::max<uint64_t>(1, local.counts.launches));
    const uint32_t chip = model_.devices[c.device].chip;
    const uint32_t rule = phases_.rule_of_kernel(c.rule, local.signature);
    const RowKey key{static_cast<uint64_t>(local.signature) << 32 | chip,
                     static_cast<uint64_t>(c.path) << 32 | rule};
    const uint64_t device_key = static_cast<uint64_t>(local.signature) << 32 | c.device;
    if ((rows_.size() >= kMaxRows && !rows_.contains(key)) ||
        (device_rows_.size() >= kMaxRows && !device_rows_.contains(device_key))) {
      damage.add(Damage::kTableFull, std::max<uint64_t>(1, local.counts.launches));
      continue;
    }
    bool fits = rows_[key].add(local.counts);
    auto& [launches, graph] = device_rows_[device_key];
    fits = add_saturating(launches, local.counts.launches) && fits;
    fits = add_saturating(graph, local.counts.graph) && fits;
    fits = device_rules_[{c.device, rule}].add(local.counts) && fits;
    if (!fits) damage.add(Damage::kOverflow);
  }
  contexts_.clear();
  local_rows_.clear();
  trace_ = kNoIndex;
}

Totals TotalsPass::take() {
  Totals totals;
  for (const auto& [key, counts] : rows_)
    totals.rows.push_back(
        {static_cast<uint32_t>(key.signature_chip >> 32), static_cast<uint32_t>(key.signature_chip),
         static_cast<uint32_t>(key.path_rule >> 32), static_cast<uint32_t>(key.path_rule), counts});
  for (const auto& [key, counts] : device_rows_)
    totals.device_rows.push_back({static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key),
                                  counts.first, counts.second});
  for (const auto& [key, counts] : device_rules_)
    totals.device_rules.push_back({key.first, key.second, counts});
  std::sort(totals.rows.begin(), totals.rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.signature, a.chip, a.path, a.rule) <
           std::tie(b.signature, b.chip, b.path, b.rule);
  });
  std::sort(totals.device_rows.begin(), totals.device_rows.end(),
            [](const DeviceRow& a, const DeviceRow& b) {
              return std::tie(a.signature, a.device) < std::tie(b.signature, b.device);
            });
  return totals;
}

}  // namespace flopinj::reduce
