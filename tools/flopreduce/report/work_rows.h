// The work table: what every table of launches is added up from. A row has the launches of one
// signature, on one kind of device, in one range path, by one rule. Nothing in it is of a process:
// a job of 10,000 ranks has the rows of one.
//
// Rows and homes are two lists. A backward row of several forward operators is shared out among
// their layers and operators, and nothing says which launches a share got: it has no interval. A
// group by layer or operator adds up homes, any other group adds up rows.
//
// Where samples disagree, a row alone is an estimate, while a sum that holds all rows of the
// signature may be exact (report/work_table.h). So a key says whether its groups hold signatures
// whole, and group() takes the other sum there.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/work.h"
#include "tables/formulas.h"
#include "tables/id_map.h"

namespace flopinj::reduce {

struct Report;

// Operations of one number format: a precision's FLOP, or OP of an integer format.
struct FormatWork {
  uint8_t format = 0;  // Formulas::precisions(); from kMaxPrecisions on kIntegerFormats
  u128 operations = 0;
  u128 doubtful = 0;  // of these, as in Work
};

inline constexpr uint32_t kNoRange = kNoIndex;  // outside all ranges

struct WorkRow {
  uint32_t signature = 0;     // Report::signatures
  uint32_t kernel = 0;        // Report::kernels
  uint32_t chip = 0;          // Report::chips
  uint32_t range = kNoRange;  // Report::ranges
  uint32_t rule = 0;          // Report::rules
  uint32_t phase = 0;         // Report::phases
  Work work;
  // Of `work`, in a sum that holds all rows of the signature.
  uint64_t varying_in_whole = 0;
  Uncertainty uncertainty_in_whole;
  std::vector<FormatWork> formats;  // that it used

  Work in_whole() const;
};

// Where launches of a row belong: the layer and the operator that forward called.
struct WorkHome {
  uint32_t row = 0;           // WorkRows::rows
  uint32_t layer = kNoIndex;  // WorkRows::layers; kNoIndex: in none
  // Of forward without its loss, backward and recompute, the layer or the plain range that stands
  // for one: WorkRows::layers_or_ranges; kNoIndex: in none.
  uint32_t layer_or_range = kNoIndex;
  uint32_t operator_name = kNoIndex;  // WorkRows::operators; kNoIndex: in none
  Part part;                          // of the row
};

struct WorkRows {
  std::vector<WorkRow> rows;                                     // by signature and chip
  std::vector<WorkHome> homes;                                   // in the order of rows
  std::vector<std::string> layers, layers_or_ranges, operators;  // their names, sorted
  bool chosen = false;  // where() made it: its groups are in the order of their FLOP
};

// What launches of a group have in common.
enum class WorkKey : uint8_t {
  kKernel,
  kSignature,
  kChip,
  kPhase,
  kRule,
  kRange,           // the innermost around a launch
  kOutermostRange,  // the outermost around it
  kLayer,
  kLayerOrRange,  // WorkHome::layer_or_range
  kOperator,
  kPass,    // forward, with its loss; recompute; backward
  kFormat,  // a precision, or an integer format: of launches that used several, what each has
};
inline constexpr size_t kKeysInCommon = 5;  // the first
inline constexpr size_t kMostKeys = 3;
using WorkKeys = std::array<std::optional<WorkKey>, kMostKeys>;

// By place in WorkKey::kPass's list.
inline constexpr std::array<const char*, 3> kPasses = {"forward", "backward", "recompute"};

// Launches that agree in some keys.
struct WorkGroup {
  // By WorkKeys: places in the lists that WorkRow and WorkHome name, a format as FormatWork has it;
  // kNoIndex: in none.
  std::array<uint32_t, kMostKeys> ids{};
  // Of a format: of launches that used it, and of those of which a count is missing. FLOP are those
  // of the format; what launches of several formats have together (time at peak, DRAM bytes,
  // intervals) is not known of one.
  Work work;
  Flop flop;  // by_precision, integer and doubtful
  // Of a key that it is not made by, too: the id that all its launches have; nothing where they
  // are of several.
  std::optional<uint32_t> in_common(WorkKey key) const {
    const auto place = static_cast<size_t>(key);
    if (place >= common.size() || common[place] == kNoIndex) return std::nullopt;
    return common[place];
  }
  std::array<uint32_t, kKeysInCommon> common{};  // kNoIndex: of several
};

// Of `work`, launches of a row, what one format has; its operations are of the same launches.
Work of_format(Work work, const WorkRow& row, const FormatWork& format);

// In the order of ids. `every`: of one key, also ids that no launch has.
std::vector<WorkGroup> group(const Report& report, const WorkKeys& keys, bool every = false);

// The rows that a choice is of. `whole`: it holds all rows of a signature or none. Otherwise no
// group of them is exact that is an estimate in the rows.
WorkRows where(const WorkRows& all, const std::function<bool(const WorkRow&)>& holds, bool whole);
// The same of homes, each of which becomes a row.
WorkRows where_home(const WorkRows& all,
                    const std::function<bool(const WorkRow&, const WorkHome&)>& holds);

}  // namespace flopinj::reduce
