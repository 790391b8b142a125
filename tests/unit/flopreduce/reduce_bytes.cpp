#include "reduce_bytes.h"

#include <algorithm>
#include <sstream>

template class nlohmann::basic_json<>;

namespace flopinj::test {

reduce::Report reduce_bytes(const std::vector<std::string>& traces, reduce::ReduceOptions options) {
  options.choose_copies = reduce::most_complete;
  options.flop_over_time = true;
  reduce::Reducer reducer(std::move(options));
  int number = 0;
  for (const auto& bytes : traces)
    reducer.add(
        reduce::Input::from_memory("trace" + std::to_string(number++), bytes.data(), bytes.size()));
  return reducer.any_input() ? reducer.run() : reduce::Report{};
}

Merged merge_bytes(const std::vector<Named>& inputs) {
  reduce::Merge merge;
  for (const auto& i : inputs)
    merge.add(reduce::Input::from_memory(i.name, i.bytes.data(), i.bytes.size()));
  merge.choose();
  Merged merged;
  merged.recordings = merge.recordings();
  merge.write([&](std::string_view bytes) { merged.bytes += bytes; });
  merged.errors = merge.errors();
  merged.damaged = merge.damaged();
  return merged;
}

std::string json_text_of(const reduce::Report& report) {
  std::ostringstream out;
  reduce::write_json(out, reduce::report_tables(report));
  return out.str();
}

nlohmann::ordered_json json_of(std::span<const reduce::Table> tables) {
  std::ostringstream out;
  reduce::write_json(out, tables);
  return nlohmann::ordered_json::parse(out.str());
}

nlohmann::json json_of(const reduce::Report& report) {
  return nlohmann::json::parse(json_text_of(report));
}

nlohmann::json row_of(const nlohmann::json& report, const char* table, const char* column,
                      const std::string& text) {
  for (const auto& row : report[table])
    if (row[column] == text) return row;
  return nullptr;
}

nlohmann::json timeless_json_of(const reduce::Report& report) {
  auto json = json_of(report);
  for (const char* moments : {"largest_gaps", "flop_over_time"}) json.erase(moments);
  for (auto& process : json["processes"]) process.erase("files");
  for (auto& damage : json["damage"]) damage.erase("file");
  std::sort(json["damage"].begin(), json["damage"].end());
  auto& screen = json["screen"];
  screen.erase(std::remove_if(screen.begin(), screen.end(),
                              [](const auto& row) { return row["part"] == "warning"; }),
               screen.end());
  for (auto& row : json["notices"]) {  // "FILE: the trace was not closed ..."
    const std::string text = row["notice"];
    const size_t name = text.find(" not closed");
    if (name != text.npos) row["notice"] = text.substr(name);
  }
  return json;
}

std::string text_of(const reduce::Report& report) {
  std::ostringstream out;
  reduce::write_text(out, reduce::report_sections(report), {});
  return out.str();
}

}  // namespace flopinj::test
