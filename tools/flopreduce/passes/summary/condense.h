// Summaries: what a report needs of traces, in the form of traces themselves (proto/FORMAT.md). The
// launches of each recorded process are added up; all else stays as it is.
//
// A summary of a summary is the same summary, to the byte, and recordings do not depend on each
// other. So joining summaries is summarizing them together: in any order, in any grouping, and with
// inputs given twice. And so one recording is in memory at a time: of the others it is known where
// they are.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/summary/found.h"
#include "phases/operators.h"
#include "phases/phases.h"
#include "reader/damage.h"
#include "reader/input.h"

namespace flopinj::reduce {

struct Recording;

class Merge {
 public:
  Merge();
  ~Merge();
  // Looks which recordings an input has. One that cannot be used adds a line to errors(). False
  // where it has none.
  void add(std::unique_ptr<Input> input);
  bool add(Input& input);  // which outlives this
  // Only recordings of these sessions are taken; before choose().
  void use_only(std::set<uint64_t> sessions) { only_ = std::move(sessions); }
  // After the last input: which recordings the summary has.
  void choose();
  bool any() const { return !chosen_.empty(); }
  // Before choose(): the recordings of all inputs, copies included, in the order of the inputs.
  std::span<const Found> found() const { return found_; }
  const std::string& name(const Found& found) const;  // of its input
  // Of each session the summary that its recording is taken from; null where a trace's parts are.
  std::map<uint64_t, const Input*> sources() const;
  uint64_t recordings() const { return chosen_.size(); }
  bool too_many() const { return found_.size() >= kMostFound; }
  // The summary, piece by piece. After choose().
  void write(const std::function<void(std::string_view)>& to);
  // A line for each input that was not used, or not wholly.
  const std::vector<std::string>& errors() const { return errors_; }
  // A line for each recording with damage, which the summary says too. After write().
  const std::vector<std::string>& damaged() const { return damaged_; }

 private:
  // A recording of the summary: parts of it, or one that was a summary's.
  struct Chosen {
    TraceOrder order;
    std::span<const Found> parts;
  };
  void leave_out_simulated();
  void name_nameless();
  void choose_among(std::span<Found> found);
  Recording condensed(std::span<const Found> parts, DamageLog& damage);
  struct Defined;
  bool copy(const Found& found, const std::function<void(std::string_view)>& to);
  std::string name_of(const Found& found) const;

  const PhaseRules rules_;
  // Ranks of a job have the same names: each is looked at once for all recordings.
  KnownMatches matches_{rules_};
  KnownOperators operators_;
  std::unique_ptr<Defined> defined_;  // by the recording before
  std::vector<std::unique_ptr<Input>> owned_;
  std::vector<Input*> inputs_;
  std::vector<Found> found_;
  std::optional<std::set<uint64_t>> only_;
  std::vector<Chosen> chosen_;
  std::vector<std::string> errors_, damaged_;
  std::string bytes_;  // of the recording that is copied
  OpenInput open_;     // its input
};

// Of the recordings in these inputs, by session: what a merge would take, as sources(). For
// ReduceOptions::choose_copies.
std::map<uint64_t, const Input*> most_complete(const std::vector<Input*>& inputs);

}  // namespace flopinj::reduce
