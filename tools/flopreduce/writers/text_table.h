// A table on a terminal: columns as wide as their content, or as the terminal leaves them.
#pragma once
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "sections/parts/table.h"

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
  explicit TextTable(std::vector<Column> columns);
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Where `fit`, no line is wider than `width`; else only the name is cut for it. The result are
  // the headings of the columns that were left out.
  std::vector<std::string> print(std::ostream& out, size_t width, bool fit,
                                 const Style& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // the first are the headings
};

}  // namespace flopinj::reduce
