#include "passes/launches.h"

#include <algorithm>

#include "reader/launch_batch.h"

namespace flopinj::reduce {

Launches::Launches(const TraceTables& tables, const Totals& totals, const PhaseRules& rules,
                   PhaseMap& phases, const NumberSource& numbers, Formulas& formulas,
                   const std::vector<PeakOverride>& peaks, ReadBatches read)
    : tables_(tables),
      rules_(rules),
      phases_(phases),
      split_(&numbers),
      formulas_(formulas),
      work_(tables, totals, formulas),
      roofs_(tables, totals, formulas, peaks),
      classes_(tables),
      read_(std::move(read)) {}

void Launches::for_each(const std::function<bool(const TimedLaunch&)>& visit) {
  read_([&](uint32_t trace, const Packet& packet) { return batch(trace, packet, visit); });
}

// Ids that no packet defined have the same places as in the totals.
bool Launches::batch(uint32_t trace, const Packet& packet,
                     const std::function<bool(const TimedLaunch&)>& visit) {
  DamageLog told;
  LaunchBatchReader batch;
  if (!batch.open(packet.body, told)) return true;
  const TraceState& state = tables_.traces[trace];
  const auto known = [](uint32_t index, uint32_t otherwise) {
    return index != kNoIndex ? index : otherwise;
  };
  const uint32_t thread_name = known(state.threads.get(batch.thread()), NamePool::kEmpty);
  TimedLaunch launch;
  launch.trace = trace;
  const uint32_t device = state.streams.get(batch.stream());
  launch.stream = device != kNoIndex ? batch.stream() : 0;
  launch.device = state.device_of(batch.stream());
  batch.read(state.patterns, list_);
  batch.read_times(list_, told);
  NumberCuts numbers(split_.of(trace, batch.thread(), list_));
  launch.path = kNoIndex;  // none yet
  NumberTells path_tells = NumberTells::kNothing;
  uint32_t path_rule = 0;
  bool more = true;
  for (size_t i = 0; more && i < list_.size; ++i) {
    const LaunchRow row = list_.row(i);
    const NumberTells tells = numbers.next();
    if (!row.timed || row.start_ns >= kLatestStart) continue;
    launch.signature = known(state.signatures.get(row.signature), SignatureTable::kUndefined);
    const uint32_t path = tables_.path_of(
        row.range_path == 0 ? PathTable::kRoot
                            : known(state.paths.get(row.range_path), PathTable::kLost),
        launch.signature);
    if (path != launch.path || tells != path_tells) {
      launch.path = path;
      path_tells = tells;
      path_rule = phases_.rule_of(path, thread_name, tells);
    }
    launch.rule = phases_.rule_of_kernel(path_rule, launch.signature);
    launch.start_ns = row.start_ns;
    launch.duration_ns = row.duration_ns;
    launch.windowed = row.windowed;
    launch.graph = row.graph;
    launch.step = row.step;
    more = visit(launch);
  }
  return more;
}

Launches::Share& Launches::share(const TimedLaunch& launch) {
  const uint32_t chip = tables_.devices[launch.device].chip;
  const auto [entry, fresh] =
      shares_.try_emplace(static_cast<uint64_t>(launch.signature) << 32 | chip);
  Share& share = entry->second;
  if (!fresh) return share;
  const uint32_t home = classes_.home(launch.signature, chip);
  share.result = &work_.result(home, chip);
  share.from = &handed_out_[static_cast<uint64_t>(home) << 32 | chip];
  return share;
}

bool Launches::estimated(const TimedLaunch& launch) { return share(launch).result->estimated(); }

const Flop* Launches::next_flop(const TimedLaunch& launch) {
  const Share& of = share(launch);
  const SignatureResult& result = *of.result;
  if (result.flop.status != FlopStatus::kMeasured) return nullptr;
  const uint64_t all = result.counts.launches;
  const uint64_t place = *of.from < all ? (*of.from)++ : all - 1;  // the latter for damaged sums
  flop_ = result.estimated() ? result.flop.of(place, 1, all) : result.flop.of(0, 1, 1);
  return &flop_;
}

std::optional<double> Launches::least_ns(const TimedLaunch& launch, const Flop& flop) {
  const Row row{launch.signature, tables_.devices[launch.device].chip, 0, 0, {}};
  const Roof roof = roofs_.of(row, flop, 1);
  return roof.no_peak == 0 ? std::optional(roof.compute_ns) : std::nullopt;
}

}  // namespace flopinj::reduce
