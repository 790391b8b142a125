// A table on a terminal: columns as wide as their content, the name column cut to what the width
// leaves.
#pragma once
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace flopinj::reduce {

struct Style {
  bool color = false;
  std::string bold(const std::string& s) const { return paint("1", s); }
  std::string warn(const std::string& s) const { return paint("1;33", s); }
  std::string bad(const std::string& s) const { return paint("1;31", s); }
  std::string dim(const std::string& s) const { return paint("2", s); }

 private:
  std::string paint(const char* code, const std::string& s) const {
    return color ? std::string("\033[") + code + "m" + s + "\033[0m" : s;
  }
};

class TextTable {
 public:
  // The first column is the name, to the left; all others are to the right. Cells must be
  // printable().
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  void print(std::ostream& out, size_t width, const Style& style) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace flopinj::reduce
