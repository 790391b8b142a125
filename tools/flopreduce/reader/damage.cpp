#include "reader/damage.h"

namespace flopinj::reduce {

const DamageText& damage_text(Damage kind) {
  static constexpr std::array<DamageText, kDamageKinds> kText = {{
      {"bad_frame", "damaged places in the file (length or check sum wrong)", true},
      {"skipped_bytes", "bytes passed over in damaged places", true},
      {"torn_tail", "bytes at the end of an unfinished packet", true},
      {"gave_up", "bytes not searched: too much damage before them", true},
      {"lost_packets", "packets missing by their sequence numbers", true},
      {"repeated_packets", "packets seen before and left out (a file given twice?)", false},
      {"malformed_packet", "packets with a right check sum and unreadable content", true},
      {"no_header", "header lost: program, rank and simulation mark are not known", true},
      {"no_end", "no end mark: the trace was not closed, and later launches are not in it", false},
      {"goes_on", "no end mark yet: the program is running", false},
      {"stopped", "the recording could not be written to the end: see the diagnostics", true},
      {"bad_columns", "batches with columns that do not fit each other", true},
      {"bad_id", "definitions with an id out of range", true},
      {"undefined_id", "rows that name something never defined", true},
      {"parent_loop", "range paths that are their own ancestor or too deep", true},
      {"bad_counter", "counter samples that are negative, infinite or not a number", true},
      {"bad_time", "impossible durations", true},
      {"overflow", "sums held at their largest value", true},
      {"table_full", "definitions or rows beyond this program's limits", true},
      {"ledger", "ledger lines that disagree with the rows", true},
  }};
  return kText[static_cast<size_t>(kind)];
}

std::optional<Damage> damage_of_code(std::string_view code) {
  for (size_t k = 0; k < kDamageKinds; ++k)
    if (damage_text(static_cast<Damage>(k)).code == code) return static_cast<Damage>(k);
  return std::nullopt;
}

bool DamageLog::partial() const {
  for (size_t i = 0; i < kDamageKinds; ++i)
    if (count_[i] != 0 && damage_text(static_cast<Damage>(i)).partial) return true;
  return false;
}

}  // namespace flopinj::reduce
