#include "phases/given_names.h"

#include <algorithm>
#include <unordered_set>

#include "support/numbered_lines.h"
#include "support/text.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {
namespace {

constexpr std::string_view kAnyModule = "-";
// Of places in a trace times names of kernels: so many are looked at.
constexpr size_t kMostPairs = 1U << 24;

// The next field of a line, taken off it.
std::string_view field(std::string_view& line) {
  const std::string_view found = line.substr(0, line.find('\t'));
  line.remove_prefix(std::min(line.size(), found.size() + 1));
  return found;
}

void keep_common(std::vector<std::string>& scopes, const std::vector<std::string>& others) {
  const auto differ = std::mismatch(scopes.begin(), scopes.end(), others.begin(), others.end());
  scopes.erase(differ.first, scopes.end());
}

// Of XLA's ranges, "XlaModule:#hlo_module=jit_step,program_id=3#" and
// "Thunk:#name=jit(step)/dot,hlo_op=fusion.3#" (xla/service/gpu/runtime/annotation.cc): the value
// of a key, or nothing. It comes last or before numbers, while a name can hold anything.
std::string_view value_of(std::string_view range, std::string_view key) {
  const size_t at = range.rfind(key);
  if (at == range.npos || at == 0 || (range[at - 1] != '#' && range[at - 1] != ',')) return {};
  range.remove_prefix(at + key.size());
  return range.substr(0, range.find_first_of(",#"));
}

// A range of a trace.
struct Place {
  uint32_t path = 0;            // what takes its place
  uint32_t outside = 0;         // the same around XLA's ranges
  std::string_view module;      // XLA's; empty outside
  bool of_instruction = false;  // which is named
};

// Adds scopes to a path, as far as there is room.
uint32_t add_scopes(TraceTables& tables, uint32_t path, const std::vector<std::string>& scopes,
                    bool& full) {
  for (const std::string& scope : scopes) {
    const uint32_t name = tables.names.intern(scope, full);
    const uint32_t inside = tables.paths.intern(path, name, NamePool::kEmpty, false);
    if (inside == kNoIndex) {
      full = true;
      return path;
    }
    path = inside;
  }
  return path;
}

}  // namespace

GivenNames::Scopes GivenNames::scopes_in(const ByModule& modules, std::string_view module) {
  std::optional<Scopes> common;
  for (const auto& [of, scopes] : modules) {
    if (!module.empty() && of != module && of != kAnyModule) continue;
    if (common)
      keep_common(*common, scopes);
    else
      common = scopes;
  }
  return common.value_or(Scopes{});
}

std::optional<std::string> GivenNames::add_file(const std::string& name, std::string_view text) {
  GivenNames all = *this;
  const auto add_line = [&](std::string_view line, const std::string&) -> std::string {
    if (line.empty() || line.front() == '#') return "";
    const std::string_view kind = field(line);
    if (kind != "instruction" && kind != "kernel")
      return "'" + printable(cut(kind, 60)) + "' is neither instruction nor kernel";
    const std::string_view module = field(line), of = field(line);
    Scopes scopes;
    while (!line.empty() && scopes.size() <= kMaxScopes) scopes.emplace_back(field(line));
    if (module.empty() || of.empty() || scopes.empty() ||
        std::find(scopes.begin(), scopes.end(), "") != scopes.end())
      return "a field is missing or empty";
    if (scopes.size() > kMaxScopes) return "more than " + std::to_string(kMaxScopes) + " scopes";
    if (++all.count_ > kMaxGivenNames)
      return "more than " + std::to_string(kMaxGivenNames) + " names";
    ByModule& modules = (kind == "kernel" ? all.kernels_ : all.instructions_)[std::string(of)];
    const auto [entry, fresh] = modules.try_emplace(std::string(module), scopes);
    if (!fresh) keep_common(entry->second, scopes);
    return "";
  };
  if (auto error = for_each_line(
          name, text, kMaxNamesFileBytes,
          "a line is instruction or kernel, MODULE, NAME, SCOPE..., parted by tabs", add_line))
    return error;
  *this = std::move(all);
  return std::nullopt;
}

GivenNames::Applied GivenNames::apply(TraceTables& tables) const {
  Applied applied;
  const auto known = static_cast<uint32_t>(tables.paths.size());
  std::vector<Place> places(known);
  places[PathTable::kLost].path = places[PathTable::kLost].outside = PathTable::kLost;
  bool any = false;
  for (uint32_t i = PathTable::kLost + 1; i < known; ++i) {
    const PathTable::Path range = tables.paths[i];
    const std::string_view name = tables.names[range.name];
    Place place = places[range.parent];
    const std::string_view module = value_of(name, "hlo_module=");
    if (place.module.empty() && !module.empty()) {
      place.outside = place.path;
      place.module = module;
    }
    const auto given = instructions_.find(value_of(name, "hlo_op="));
    const Scopes scopes =
        given == instructions_.end() ? Scopes{} : scopes_in(given->second, place.module);
    if (!scopes.empty()) {
      any = place.of_instruction = true;
      place.path = add_scopes(tables, place.outside, scopes, applied.full);
    } else if (place.path == range.parent) {
      place.path = i;
    } else {
      const uint32_t moved =
          tables.paths.intern(place.path, range.name, range.domain, range.process_wide);
      if (moved == kNoIndex) applied.full = true;
      if (moved != kNoIndex) place.path = moved;
    }
    if (place.module.empty()) place.outside = place.path;
    places[i] = place;
  }
  std::unordered_set<uint32_t> launched;
  for (uint32_t i = SignatureTable::kUndefined + 1; i < tables.signatures.size(); ++i)
    launched.insert(tables.signatures[i].name);
  size_t pairs = 0;
  for (const auto& [kernel, modules] : kernels_) {
    const auto name = tables.names.find(kernel);
    if (!name || !launched.contains(*name)) continue;
    for (uint32_t i = 0; i < known; ++i) {
      if (places[i].of_instruction) continue;
      if (++pairs > kMostPairs) {
        applied.full = true;
        break;
      }
      const Scopes scopes = scopes_in(modules, places[i].module);
      if (scopes.empty()) continue;
      any = true;
      tables.given.of_kernel[GivenPaths::key(i, *name)] =
          add_scopes(tables, places[i].outside, scopes, applied.full);
    }
  }
  for (const Place& place : places) tables.given.of_path.push_back(place.path);
  applied.none = !any;
  return applied;
}

}  // namespace flopinj::reduce
