// The work table: what every table of launches is added up from. A row has the launches of one
// signature, on one kind of device, in one range path, by one rule. Nothing in it is of a process:
// a job of 10,000 ranks has the rows of one.
//
// Rows and homes are two lists. A backward row of several forward operators is shared out among
// their layers and operators, and nothing says which launches a share got: it has no interval. A
// group by layer or operator adds up homes, any other group adds up rows.
//
// A key is a property of launches that groups are made by. Those below are places in lists of the
// report; a table may bring a key of its own, which says a text of each row.
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

// Launches that are in their phase on less evidence than others.
enum class PhasePart : uint8_t {
  kUnclear,    // of other: may have run forward, and their sequence numbers do not say
  kGradients,  // of other: products outside of autograd's nodes, as large as gradients that lack
  kProducts,   // of optimizer: multiply matrices, and no sequence number places them
};
// What they are called, and of which phase they are.
struct PhasePartName {
  const char *part, *phase;
};
inline constexpr std::array<PhasePartName, 3> kPhaseParts = {
    {{"unclear", "other"}, {"gradients", "other"}, {"products", "optimizer"}}};

struct WorkRow {
  uint32_t signature = 0;     // Report::signatures
  uint32_t kernel = 0;        // Report::kernels
  uint32_t chip = 0;          // Report::chips
  uint32_t range = kNoRange;  // Report::ranges
  uint32_t rule = 0;          // Report::rules
  uint32_t phase = 0;         // Report::phases
  uint8_t parts = 0;          // 1 << PhasePart, of each that its launches are of
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

// What launches of a group have in common. The column has the names of the ids.
struct WorkKey {
  const char *column, *heading, *meaning = "";
  // A place in a list of the report, and what the list says of it; kNoIndex: launches have none.
  uint32_t (*id)(const WorkRow&, const WorkHome&, const Report&) = nullptr;
  size_t (*size)(const Report&) = nullptr;
  std::string (*name)(const Report&, uint32_t id) = nullptr;
  // Of launches that have several ids: the one that follows; kNoIndex: it was the last.
  uint32_t (*next)(const WorkRow&, uint32_t id, const Report&) = nullptr;
  // In place of these four: the text itself, in the order of which the groups are; nothing: none.
  std::optional<std::string> (*text)(const WorkRow&, const WorkHome&, const Report&) = nullptr;
  bool holds_whole = false;  // a group has all launches of a signature on a kind of device, or none
  bool may_be_none = false;  // launches may have none
  bool of_homes = false;     // it looks at the home
};

// What a signature's hash is.
inline constexpr const char* kStableHashMeaning =
    "of a signature: the same in every trace of this program";

namespace by {
// Of a row.
extern const WorkKey kKernel, kSignature, kChip, kPhase, kRule;
extern const WorkKey kPhasePart;       // of some launches; they may be of several
extern const WorkKey kRange;           // the innermost around a launch
extern const WorkKey kAnyRange;        // each around it: a range has what is inside of it, too
extern const WorkKey kOutermostRange;  // the outermost around it
extern const WorkKey kPass;            // forward, with its loss; recompute; backward
// Of its homes.
extern const WorkKey kLayer, kOperator;
extern const WorkKey kLayerOrRange;  // WorkHome::layer_or_range
// A precision, or an integer format: of launches that used several, what each has. Its ids are
// those of FormatWork.
extern const WorkKey kFormat;
}  // namespace by

// A key, or none.
class ByKey {
 public:
  constexpr ByKey() = default;
  constexpr ByKey(const WorkKey& key) : key_(&key) {}
  constexpr explicit operator bool() const { return key_ != nullptr; }
  constexpr const WorkKey& operator*() const { return *key_; }
  constexpr const WorkKey* operator->() const { return key_; }
  constexpr bool operator==(const ByKey&) const = default;

 private:
  const WorkKey* key_ = nullptr;
};
inline constexpr size_t kMostKeys = 3;
using WorkKeys = std::array<ByKey, kMostKeys>;

// By place in by::kPass's list.
inline constexpr std::array<const char*, 3> kPasses = {"forward", "backward", "recompute"};

// Launches that agree in some keys.
struct WorkGroup {
  // By WorkKeys; kNoIndex: none. Of a key that says a text, places in the order of the texts.
  std::array<uint32_t, kMostKeys> ids{};
  // Of a format: of launches that used it, and of those of which a count is missing. FLOP are those
  // of the format; what launches of several formats have together (time at peak, DRAM bytes,
  // intervals) is not known of one.
  Work work;
  Flop flop;  // by_precision, integer and doubtful
  // Whose launches it has: places in WorkRows::homes, if a key is of homes, else in WorkRows::rows.
  std::vector<uint32_t> members;
  bool of_homes = false;
  // Of a key that it is not made by, too: the id that all its launches have; nothing where they
  // have several, or none, or the key says a text.
  std::optional<uint32_t> in_common(const WorkKey& key, const Report& report) const;
  // The name of its key at this place in WorkKeys; nothing: launches without any.
  std::optional<std::string> name(const WorkKey& key, size_t place, const Report& report) const;
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
