// The fields of a record, each named once: key, value, and meaning. A function adds a record's
// fields to a Fields; of them the JSON form is made, its schema, and the cells of tables.
//
//   void kernel_fields(Fields& f, const KernelReport& k) {
//     f("name", k.name);
//     f.flop("flop", k.flop, "executed");
//     f.list("signatures", k.signatures, "as launched", signature_fields);
//   }
//
// Every record has all of its fields: a value that is not known is null, never absent. For a schema
// the function runs over an empty record, so it must not look into what may be missing there.
#pragma once
#include <concepts>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sections/parts/table.h"

namespace flopinj::reduce {

using Json = nlohmann::ordered_json;

// Of every JSON form.
inline constexpr int kSchemaVersion = 3;

class Fields {
 public:
  // Where nothing says whether a Cell can be without a value, it can.
  struct Value {
    enum class Type : uint8_t { kText, kFlag, kWhole, kNumber };
    Type type = Type::kText;
    bool nullable = false;
    Cell cell;
  };

  void version();  // of the JSON forms
  // A text, a flag, a number, or a list of such; std::optional where it may not be known.
  template <typename V>
  void operator()(const char* key, const V& value, const char* about = "") {
    if constexpr (requires { value_of(value); })
      add(key, kind_of(value_of(value).type), value_of(value), about);
    else
      add_values(key, value, about, true, false);
  }
  // A list; null where it is not there.
  template <typename Items>
  void values_if(bool there, const char* key, const Items& items, const char* about = "") {
    add_values(key, items, about, there, true);
  }
  // Its exact decimal text is in KEY_exact: many readers of JSON round integers from 2^53 on. What
  // is a double has none.
  void flop(const char* key, auto&& value, const char* about = "") {
    add(key, Kind::kFlop, number(std::forward<decltype(value)>(value)), about);
  }
  // A sum that launches may be missing from (">="): then it is null, and KEY_partial has what is
  // known of it.
  void sum(const char* key, const Cell& cell, const char* about = "");
  void ns(const char* key, auto&& value, const char* about = "") {
    add(key, Kind::kNanoseconds, value_of(std::forward<decltype(value)>(value)), about);
  }
  void share(const char* key, auto&& value, const char* about = "") {
    add(key, Kind::kShare, number(std::forward<decltype(value)>(value)), about);
  }
  // A figure that may be only a bound, as `bounds` says: then it is null, and KEY_at_least or
  // KEY_at_most has it; with both marks nothing is known.
  void bounded(const char* key, Kind kind, const Cell& cell, Mark bounds, const char* about = "");
  void cell(const char* key, Kind kind, const Cell& cell, const char* about = "");
  // One of a few words.
  void word(const char* key, const std::optional<std::string>& value,
            std::initializer_list<const char*> words, const char* about = "");
  // FLOP by the name of a number format, and the same as exact texts in KEY_exact.
  void flop_by_name(const char* key, const std::vector<std::pair<std::string, u128>>& flop,
                    const char* about);

  void numbers_by_name(const char* key, const std::vector<std::pair<std::string, double>>& numbers,
                       const char* about);
  // Times by name; null where one is not known.
  void ns_by_name(const char* key,
                  const std::vector<std::pair<std::string, std::optional<u128>>>& times,
                  const char* about);
  void flops(const char* key, const std::vector<u128>& flop, const char* about);

  template <typename F>
  void object(const char* key, const char* about, F&& fields) {
    add_object(key, about, true, false, fields);
  }
  // null where it is not there.
  template <typename F>
  void object_if(bool there, const char* key, const char* about, F&& fields) {
    add_object(key, about, there, true, fields);
  }
  template <typename Items, typename F>
  void list(const char* key, const Items& items, const char* about, F&& fields) {
    add_list(key, items, about, true, false, fields);
  }
  template <typename Items, typename F>
  void list_if(bool there, const char* key, const Items& items, const char* about, F&& fields) {
    add_list(key, items, about, there, true, fields);
  }
  // An object with a member for each item.
  template <typename Items, typename Name, typename F>
  void map(const char* key, const Items& items, const char* about, Name&& name, F&& fields) {
    if (json_ != nullptr) {
      Json& to = (*json_)[key] = Json::object();
      for (const auto& item : items) to[name(item)] = json_of([&](Fields& f) { fields(f, item); });
    }
    if (schema_ != nullptr)
      add_schema(key, {{"type", "object"}, {"additionalProperties", schema_of_item(items, fields)}},
                 about, false);
  }
  // Fields that several records have; the schema says them once, under that name.
  template <typename F>
  void part(const char* name, F&& fields) {
    if (schema_ == nullptr) return fields(*this);
    if (!schema_->definitions->contains(name)) {
      (*schema_->definitions)[name] = nullptr;  // it may hold itself
      Json part = schema_of_fields(fields);
      part.erase("unevaluatedProperties");
      part.erase("type");  // the record's own says whether it may be null
      (*schema_->definitions)[name] = std::move(part);
    }
    add_part(name);
  }

  template <typename F>
  static Json json_of(F&& fields) {
    Json json = Json::object();
    Fields f;
    f.json_ = &json;
    fields(f);
    return json;
  }
  template <typename F>
  static Json schema_of(const char* title, const char* about, F&& fields) {
    Json definitions = Json::object();
    Schema top{{}, &definitions};
    Fields f;
    f.schema_ = &top;
    Json record = f.schema_of_fields(fields);
    return whole_schema(title, about, std::move(record), std::move(definitions));
  }

 private:
  struct Schema {
    Json record;        // of the record whose fields are added
    Json* definitions;  // of all records
  };

  static Value::Type type_of(const auto& value) {
    using V = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::same_as<V, bool>)
      return Value::Type::kFlag;
    else if constexpr (std::floating_point<V>)
      return Value::Type::kNumber;
    else if constexpr (std::integral<V> || std::same_as<V, u128>)
      return Value::Type::kWhole;
    else
      return Value::Type::kText;
  }
  template <typename V>
  requires std::integral<V> || std::floating_point<V> || std::same_as<V, u128> ||
      std::convertible_to<V, std::string_view>
  static Value value_of(const V& value) {
    Cell cell;
    if constexpr (std::floating_point<V>)
      cell = Figure::exact(value);
    else if constexpr (std::convertible_to<V, std::string_view>)
      cell = std::string(value);
    else
      cell = Figure::exact(value);
    return {type_of(value), false, std::move(cell)};
  }
  template <typename V>
  requires requires(const V& v) { value_of(v); }
  static Value value_of(const std::optional<V>& value) {
    Value out = value_of(value ? *value : V{});
    if (!value) out.cell = Cell::none();
    out.nullable = true;
    return out;
  }
  static Value value_of(const Cell& cell) { return {Value::Type::kWhole, true, cell}; }
  // The same, as any JSON number: it may be beyond what an integer can be.
  static Value number(const auto& value) {
    Value out = value_of(value);
    out.type = Value::Type::kNumber;
    return out;
  }
  static Kind kind_of(Value::Type type);

  void add(const char* key, Kind kind, const Value& value, const char* about);
  template <typename Items>
  void add_values(const char* key, const Items& items, const char* about, bool there,
                  bool nullable) {
    if (json_ != nullptr) {
      Json& to = (*json_)[key] = there ? Json(Json::array()) : Json(nullptr);
      if (there)
        for (const auto& item : items) to.push_back(json_value(value_of(item)));
    }
    using Item = std::remove_cvref_t<decltype(*std::begin(items))>;
    if (schema_ != nullptr)
      add_schema(key, {{"type", "array"}, {"items", schema_of_value(value_of(Item{}))}}, about,
                 nullable);
  }
  template <typename F>
  void add_object(const char* key, const char* about, bool there, bool nullable, F& fields) {
    if (json_ != nullptr) (*json_)[key] = there ? json_of(fields) : Json(nullptr);
    if (schema_ != nullptr) add_schema(key, schema_of_fields(fields), about, nullable);
  }
  template <typename Items, typename F>
  void add_list(const char* key, const Items& items, const char* about, bool there, bool nullable,
                F& fields) {
    if (json_ != nullptr) {
      Json& to = (*json_)[key] = there ? Json(Json::array()) : Json(nullptr);
      if (there)
        for (const auto& item : items) to.push_back(json_of([&](Fields& f) { fields(f, item); }));
    }
    if (schema_ != nullptr)
      add_schema(key, {{"type", "array"}, {"items", schema_of_item(items, fields)}}, about,
                 nullable);
  }
  template <typename Items, typename F>
  Json schema_of_item(const Items& items, F& fields) {
    using Item = std::remove_cvref_t<decltype(*std::begin(items))>;
    if (std::begin(items) != std::end(items))
      return schema_of_fields([&](Fields& f) { fields(f, *std::begin(items)); });
    return schema_of_fields([&](Fields& f) { fields(f, Item{}); });
  }
  template <typename F>
  Json schema_of_fields(F&& fields) {
    Schema schema{{{"type", "object"}}, schema_->definitions};
    Fields f;
    f.schema_ = &schema;
    fields(f);
    return std::move(schema.record);
  }
  static Json json_value(const Value& value);
  static Json schema_of_value(const Value& value);
  static Json whole_schema(const char* title, const char* about, Json record, Json definitions);
  void add_schema(const char* key, Json type, const char* about, bool nullable);
  void add_part(const char* name);

  // What is made: one of these.
  Json* json_ = nullptr;
  Schema* schema_ = nullptr;
};

}  // namespace flopinj::reduce
