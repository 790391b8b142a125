// JSON that is whole in memory, read where it lies: a value is the text that it is written as.
//
// The readers of a profiler's file look at a few members of each of its millions of events, so they
// pass over the others without making anything of them. What they pass over is checked for its
// brackets and quotes only.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace flopinj::import {

// Where the value that begins at `at` ends; null where the text ends before it does, or has no
// value there. Numbers and words end before the first byte that cannot be theirs: at the end of a
// text that goes on elsewhere they may be cut off.
const char* end_of_json(const char* at, const char* end);
const char* skip_json_space(const char* at, const char* end);

// Gives each member's name and value, as they are written, to take(name, value), which returns
// false to leave out the rest. False where `object` is none, or is malformed.
template <class Take>
bool json_members(std::string_view object, Take&& take);
// Likewise each element of an array, to take(value).
template <class Take>
bool json_elements(std::string_view array, Take&& take);

// A string's characters; of a value that is none, its text. `buffer` is for those with escapes.
std::string_view json_string(std::string_view value, std::string& buffer);
// Of a number, or of a string that is one.
std::optional<int64_t> json_whole(std::string_view value);
std::optional<double> json_number(std::string_view value);
// A decimal number of microseconds, in whole nanoseconds. What is below them is left out.
// `finer` is set where it is no whole number of microseconds.
std::optional<int64_t> json_microseconds(std::string_view value, bool& finer);

// Implementation

template <class Take>
bool json_members(std::string_view object, Take&& take) {
  const char* at = object.data();
  const char* const end = at + object.size();
  if (at == end || *at != '{') return false;
  at = skip_json_space(at + 1, end);
  if (at != end && *at == '}') return true;
  while (at != end && *at == '"') {
    const char* const name = at + 1;
    const char* const name_end = end_of_json(at, end);
    if (name_end == nullptr) return false;
    at = skip_json_space(name_end, end);
    if (at == end || *at != ':') return false;
    at = skip_json_space(at + 1, end);
    const char* const value_end = end_of_json(at, end);
    if (value_end == nullptr) return false;
    if (!take(std::string_view(name, static_cast<size_t>(name_end - 1 - name)),
              std::string_view(at, static_cast<size_t>(value_end - at))))
      return true;
    at = skip_json_space(value_end, end);
    if (at == end || *at != ',') return at != end && *at == '}';
    at = skip_json_space(at + 1, end);
  }
  return false;
}

template <class Take>
bool json_elements(std::string_view array, Take&& take) {
  const char* at = array.data();
  const char* const end = at + array.size();
  if (at == end || *at != '[') return false;
  at = skip_json_space(at + 1, end);
  if (at != end && *at == ']') return true;
  while (true) {
    const char* const value_end = end_of_json(at, end);
    if (value_end == nullptr) return false;
    if (!take(std::string_view(at, static_cast<size_t>(value_end - at)))) return true;
    at = skip_json_space(value_end, end);
    if (at == end || *at != ',') return at != end && *at == ']';
    at = skip_json_space(at + 1, end);
  }
}

}  // namespace flopinj::import
