#include "sections/parts/fields.h"

namespace flopinj::reduce {
namespace {

Json flop_type() { return {{"type", "number"}, {"minimum", 0}}; }
Json exact_type() { return {{"type", "string"}, {"pattern", "^(0|[1-9][0-9]*)$"}}; }

Json exact_text(const Cell& cell) {
  const auto* whole = std::get_if<u128>(&cell.value);
  return whole != nullptr ? Json(to_decimal(*whole)) : Json(nullptr);
}

Json map_of(Json type) { return {{"type", "object"}, {"additionalProperties", std::move(type)}}; }
Json list_of(Json type) { return {{"type", "array"}, {"items", std::move(type)}}; }

std::string suffixed(const char* key, const char* suffix) { return std::string(key) + suffix; }

Json number_json(u128 value) {
  return value <= UINT64_MAX ? Json(static_cast<uint64_t>(value))
                             : Json(static_cast<double>(value));
}

// Many readers of JSON round larger integers: these are texts.
constexpr u128 kMostWhole = u128{1} << 53;
Json whole_json(u128 value) {
  return value <= kMostWhole ? Json(static_cast<uint64_t>(value)) : Json(to_decimal(value));
}
Json whole_type() {
  return {{"type", Json::array({"integer", "string"})},
          {"minimum", 0},
          {"pattern", "^[1-9][0-9]{15,}$"}};
}

Json or_null(Json type) {
  if (type.contains("type") && !type.contains("properties")) {
    if (type["type"].is_string()) type["type"] = Json::array({type["type"]});
    type["type"].push_back("null");
    if (type.contains("enum")) type["enum"].push_back(nullptr);
    return type;
  }
  return {{"oneOf", Json::array({Json{{"type", "null"}}, std::move(type)})}};
}

}  // namespace

Kind Fields::kind_of(Value::Type type) {
  switch (type) {
    case Value::Type::kText:
      return Kind::kText;
    case Value::Type::kNumber:
      return Kind::kRatio;
    case Value::Type::kFlag:
    case Value::Type::kWhole:
      break;
  }
  return Kind::kCount;
}

Json Fields::json_value(const Value& value) {
  const Cell& cell = value.cell;
  if (const auto* text = std::get_if<std::string>(&cell.value)) return *text;
  if (const auto* number = std::get_if<double>(&cell.value)) return *number;
  const auto* whole = std::get_if<u128>(&cell.value);
  if (whole == nullptr) return nullptr;
  if (value.type == Value::Type::kFlag) return *whole != 0;
  return value.type == Value::Type::kWhole ? whole_json(*whole) : number_json(*whole);
}

Json Fields::schema_of_value(const Value& value) {
  switch (value.type) {
    case Value::Type::kText:
      return {{"type", "string"}};
    case Value::Type::kFlag:
      return {{"type", "boolean"}};
    case Value::Type::kWhole:
      return whole_type();
    case Value::Type::kNumber:
      break;
  }
  return {{"type", "number"}};
}

void Fields::add(const char* key, Kind kind, const Value& value, const char* about) {
  const bool exact = kind == Kind::kFlop || kind == Kind::kOperations;
  if (json_ != nullptr) {
    (*json_)[key] = json_value(value);
    if (exact) (*json_)[suffixed(key, "_exact")] = exact_text(value.cell);
  }
  if (schema_ == nullptr) return;
  Json type = schema_of_value(value);
  if (kind == Kind::kFlop || kind == Kind::kOperations || kind == Kind::kShare) type["minimum"] = 0;
  add_schema(key, std::move(type), about, value.nullable);
  if (exact) add_schema(suffixed(key, "_exact").c_str(), exact_type(), "", true);
}

void Fields::version() {
  if (json_ != nullptr) (*json_)["schema_version"] = kSchemaVersion;
  if (schema_ != nullptr) add_schema("schema_version", {{"const", kSchemaVersion}}, "", false);
}

void Fields::sum(const char* key, const Cell& cell, const char* about) {
  const bool partial = has(cell.marks, Mark::kAtLeast);
  flop(key, partial ? Cell::none() : cell, about);
  flop(suffixed(key, "_partial").c_str(), partial ? cell : Cell::none(),
       "of the measured launches, where some are not measured");
}

void Fields::bounded(const char* key, Kind kind, const Cell& cell, Mark bounds, const char* about) {
  const bool lower = has(bounds, Mark::kAtLeast);
  const bool upper = has(bounds, Mark::kAtMost);
  const auto where = [&](bool there) { return there ? cell : Cell::none(); };
  this->cell(key, kind, where(!lower && !upper), about);
  this->cell(suffixed(key, "_at_least").c_str(), kind, where(lower && !upper),
             "where launches are missing from it: then it is null");
  this->cell(suffixed(key, "_at_most").c_str(), kind, where(upper && !lower));
}

void Fields::cell(const char* key, Kind kind, const Cell& cell, const char* about) {
  Value value = value_of(cell);
  switch (kind) {
    case Kind::kText:
      value.type = Value::Type::kText;
      break;
    case Kind::kFlop:
    case Kind::kOperations:
    case Kind::kRate:
    case Kind::kBandwidth:
    case Kind::kRatio:
    case Kind::kShare:
      value.type = Value::Type::kNumber;
      break;
    default:
      break;
  }
  add(key, kind, value, about);
}

void Fields::word(const char* key, const std::optional<std::string>& value,
                  std::initializer_list<const char*> words, const char* about) {
  if (json_ != nullptr) (*json_)[key] = value ? Json(*value) : Json(nullptr);
  if (schema_ == nullptr) return;
  Json type{{"type", "string"}, {"enum", Json::array()}};
  for (const char* one : words) type["enum"].push_back(one);
  add_schema(key, std::move(type), about, true);
}

void Fields::flop_by_name(const char* key, const std::vector<std::pair<std::string, u128>>& flop,
                          const char* about) {
  const std::string exact = suffixed(key, "_exact");
  if (json_ != nullptr) {
    (*json_)[key] = (*json_)[exact] = Json::object();
    for (const auto& [name, value] : flop) {
      (*json_)[key][name] = number_json(value);
      (*json_)[exact][name] = to_decimal(value);
    }
  }
  if (schema_ == nullptr) return;
  add_schema(key, map_of(flop_type()), about, false);
  add_schema(exact.c_str(), map_of(exact_type()), "", false);
}

void Fields::numbers_by_name(const char* key,
                             const std::vector<std::pair<std::string, double>>& numbers,
                             const char* about) {
  if (json_ != nullptr) {
    Json& to = (*json_)[key] = Json::object();
    for (const auto& [name, number] : numbers) to[name] = number;
  }
  if (schema_ != nullptr) add_schema(key, map_of({{"type", "number"}}), about, false);
}

void Fields::ns_by_name(const char* key,
                        const std::vector<std::pair<std::string, std::optional<u128>>>& times,
                        const char* about) {
  if (json_ != nullptr) {
    Json& to = (*json_)[key] = Json::object();
    for (const auto& [name, ns] : times) to[name] = ns ? whole_json(*ns) : Json(nullptr);
  }
  if (schema_ == nullptr) return;
  Json time = or_null(whole_type());
  add_schema(key, map_of(std::move(time)), about, false);
}

void Fields::flops(const char* key, const std::vector<u128>& flop, const char* about) {
  const std::string exact = suffixed(key, "_exact");
  if (json_ != nullptr) {
    (*json_)[key] = (*json_)[exact] = Json::array();
    for (const u128 value : flop) {
      (*json_)[key].push_back(number_json(value));
      (*json_)[exact].push_back(to_decimal(value));
    }
  }
  if (schema_ == nullptr) return;
  add_schema(key, list_of(flop_type()), about, false);
  add_schema(exact.c_str(), list_of(exact_type()), "", false);
}

void Fields::add_schema(const char* key, Json type, const char* about, bool nullable) {
  if (nullable) type = or_null(std::move(type));
  if (*about != '\0') type["description"] = about;
  Json& record = schema_->record;
  record["properties"][key] = std::move(type);
  record["required"].push_back(key);
  record["unevaluatedProperties"] = false;
}

void Fields::add_part(const char* name) {
  Json& record = schema_->record;
  record["allOf"].push_back({{"$ref", "#/$defs/" + std::string(name)}});
  record["unevaluatedProperties"] = false;
}

Json Fields::whole_schema(const char* title, const char* about, Json record, Json definitions) {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", title},
              {"description", about}};
  schema.update(record);
  if (!definitions.empty()) schema["$defs"] = std::move(definitions);
  return schema;
}

}  // namespace flopinj::reduce
