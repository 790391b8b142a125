// What the page draws from, as JSON. writers/html/data.js reads it.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sections/parts/table.h"

namespace flopinj::reduce {

class PageData {
 public:
  using Json = nlohmann::ordered_json;

  Json& operator[](const char* key) { return data_[key]; }

  // A text of the page by its number: long names are in many tables, and in the page once.
  Json text(std::string_view raw);
  // The same of a kernel; people see it without what all names share.
  Json kernel(std::string_view raw);

  Json table(const Table& table);
  Json section(const Section& section);
  static Json lines(const std::vector<Line>& lines);

  // The whole page.
  void write(std::ostream& out) &&;

 private:
  size_t number_of(std::string_view raw);
  Json cell(const Cell& cell, Mark marks, bool is_kernel);

  Json data_;
  Json texts_ = Json::array();
  std::unordered_map<std::string, size_t> numbers_;  // raw -> texts_
};

}  // namespace flopinj::reduce
