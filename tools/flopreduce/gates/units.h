// Units of numbers in conditions, and of the figures that these are held against.
#pragma once
#include <string>
#include <string_view>

namespace flopinj::reduce {

struct Unit {
  const char* name;  // "ms"
  const char* of;    // "time"; units of one thing are converted
  double size;       // in the smallest unit of it: 1e6 for ms, since time has ns
  bool prefixes;     // k, M, G and so on may be before it
};

// The unit that a column's key names, such as ns of gpu_time_ns; null: it has none.
const Unit* unit_of_key(std::string_view key);

// The unit with which `text` begins, as a whole word, and an SI prefix before it ("G", or empty).
// Null: it begins with none.
struct WrittenUnit {
  const Unit* unit = nullptr;
  std::string_view prefix = {};
  size_t length = 0;  // of both
};
WrittenUnit unit_at(std::string_view text);

// "ns, us, ms, s, min, h": the units of the same thing.
std::string units_like(const Unit& unit);

}  // namespace flopinj::reduce
