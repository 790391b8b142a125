#include "passes/launches.h"

#include <utility>

namespace flopinj::reduce {
namespace {

class OneByOne final : public LaunchConsumer {
 public:
  OneByOne(const TraceTables& tables, const std::function<bool(const TimedLaunch&)>& visit)
      : tables_(tables), visit_(visit) {}
  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  bool goes_on() const override { return goes_on_; }

 private:
  const TraceTables& tables_;
  const std::function<bool(const TimedLaunch&)>& visit_;
  bool goes_on_ = true;
};

void OneByOne::launches(const RowTable& rows, const LaunchPiece& piece) {
  const IdMap& streams = tables_.traces[rows.trace()].streams;
  for (size_t i = 0; goes_on_ && i < piece.size; ++i) {
    if (piece.duration_ns[i] == LaunchPiece::kNoTime || piece.start_ns[i] >= kLatestStart) continue;
    const RowTable::Info& row = rows.info(piece.row[i]);
    const uint32_t stream = rows.lane_of(row).stream;
    goes_on_ = visit_({.start_ns = piece.start_ns[i],
                       .duration_ns = piece.duration_ns[i],
                       .trace = rows.trace(),
                       .device = row.device,
                       .stream = streams.get(stream) != kNoIndex ? stream : 0,
                       .signature = row.signature,
                       .path = row.path,
                       .rule = row.rule,
                       .step = piece.step,
                       .windowed = piece.windowed,
                       .graph = piece.graph});
  }
}

}  // namespace

Launches::Launches(const TraceTables& tables, const Totals& totals, const PhaseRules& rules,
                   Formulas& formulas, const std::vector<PeakOverride>& peaks, Read read)
    : tables_(tables),
      rules_(rules),
      formulas_(formulas),
      work_(tables, totals, formulas),
      roofs_(tables, totals, formulas, peaks),
      classes_(tables),
      read_(std::move(read)) {}

void Launches::for_each(const std::function<bool(const TimedLaunch&)>& visit) {
  read_(std::make_unique<OneByOne>(tables_, visit));
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

bool Launches::at_least(const TimedLaunch& launch) { return share(launch).result->flop.unscreened; }

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
