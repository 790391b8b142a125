// What each process did, by thread, stream, range path, rule and signature.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "report/report.h"
#include "tables/formulas.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Where the report has what the tables have.
struct FactPlaces {
  static uint64_t key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }
  // Adds the launches of a row to its path in the report. Of one that is new, layers(add) calls
  // add() with the layer of each place that its launches belong to.
  template <typename Layers>
  void add_path(const Row& row, Report& report, Layers&& layers) {
    const auto [entry, fresh] =
        paths.try_emplace(key(row.path, row.rule), static_cast<uint32_t>(report.paths.size()));
    if (fresh) {
      PathReport& path = report.paths.emplace_back();
      path.range = row.path;  // until sort_paths()
      path.rule = row.rule;
      bool first = true;
      layers([&](std::string layer) {
        if (!first && layer != path.layer) layer.clear();
        first = false;
        path.layer = std::move(layer);
      });
    }
    add_saturating(report.paths[entry->second].launches, row.counts.launches);
  }
  // When ranges have their places: `range_of`, by path.
  void sort_paths(const std::vector<uint32_t>& range_of, Report& report);

  std::unordered_map<uint64_t, uint32_t> paths;       // (path, rule) -> Report::paths
  std::unordered_map<uint64_t, uint32_t> signatures;  // (signature, chip) -> Report::signatures
};

// Fills report.facts from totals.facts. FLOP of the facts add up to the report's total.
void build_facts(const TraceTables& tables, const Totals& totals, Formulas& formulas,
                 const FactPlaces& places, Report& report);

}  // namespace flopinj::reduce
