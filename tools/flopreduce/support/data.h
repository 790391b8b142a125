// Data files of the rooms, as the program holds them.
#pragma once
#include <string_view>

namespace flopinj::reduce::data {

extern const std::string_view kPeaks;       // peaks/peaks.tsv
extern const std::string_view kPrecisions;  // peaks/precisions.tsv
extern const std::string_view kPhaseRules;  // phases/built_in.rules

}  // namespace flopinj::reduce::data
