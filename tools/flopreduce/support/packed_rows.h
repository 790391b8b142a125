// A long list of rows in little memory: small numbers take a byte each, a text its number. Rows are
// added at the end and read in order.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "support/wide.h"

namespace flopinj::reduce {

// `Row` names its members: `static auto packed(Self& of)` returns std::tie() of them. They are
// unsigned numbers, texts, such rows, and optional values, arrays and vectors of these.
template <typename Row>
class PackedRows {
  static constexpr size_t kBytesInChunk = 1U << 16;

 public:
  // Where a row begins.
  struct Place {
    size_t chunk = 0, byte = 0;
  };
  class Iterator {
   public:
    Iterator() = default;
    Iterator(const PackedRows& of, Place at, size_t left) : of_(&of), at_(at), left_(left) {
      if (left_ > 0) of.read(at_, row_);
    }
    const Row& operator*() const { return row_; }
    const Row* operator->() const { return &row_; }
    Iterator& operator++() {
      if (--left_ > 0) of_->read(at_, row_);
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const { return left_ == other.left_; }

   private:
    const PackedRows* of_ = nullptr;
    Place at_;
    size_t left_ = 0;  // this one included
    Row row_{};
  };

  void push_back(const Row& row) {
    if (chunks_.empty() || chunks_.back().size() >= kBytesInChunk) {
      if (!chunks_.empty()) chunks_.back().shrink_to_fit();
      const bool first = chunks_.empty();
      chunks_.emplace_back().reserve(first ? 0 : kBytesInChunk + kBytesInChunk / 16);
    }
    write(row);
    ++size_;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void shrink_to_fit() {
    if (!chunks_.empty()) chunks_.back().shrink_to_fit();
  }
  Iterator begin() const { return {*this, {}, size_}; }
  Iterator end() const { return {}; }
  // Of the next row that is added.
  Place next_place() const {
    if (chunks_.empty()) return {};
    return chunks_.back().size() < kBytesInChunk ? Place{chunks_.size() - 1, chunks_.back().size()}
                                                 : Place{chunks_.size(), 0};
  }
  // Some that were added there.
  Iterator from(Place place, size_t count) const { return {*this, place, count}; }
  // Gives back what it can of the memory of rows before this place, which are read no more.
  void forget_before(Place place) {
    for (; forgotten_ < std::min(place.chunk, chunks_.size()); ++forgotten_)
      chunks_[forgotten_] = {};
  }

 private:
  template <typename V>
  void write(const V& value) {
    if constexpr (std::same_as<V, u128> || std::unsigned_integral<V>) {
      auto left = value;
      if constexpr (!std::same_as<V, bool>)
        for (; left > 0x7F; left = static_cast<V>(left >> 7))
          chunks_.back().push_back(static_cast<uint8_t>(static_cast<uint8_t>(left) | 0x80));
      chunks_.back().push_back(static_cast<uint8_t>(left));
    } else if constexpr (std::same_as<V, std::string>) {
      const auto [known, fresh] = places_.try_emplace(value, static_cast<uint32_t>(texts_.size()));
      if (fresh) texts_.push_back(value);
      write(known->second);
    } else if constexpr (requires { value.has_value(); }) {
      write(value.has_value());
      if (value) write(*value);
    } else if constexpr (requires { typename std::tuple_size<V>::type; }) {
      for (const auto& one : value) write(one);
    } else if constexpr (requires(V v) { v.resize(size_t{}); }) {
      write(value.size());
      for (const auto& one : value) write(one);
    } else {
      std::apply([&](const auto&... members) { (write(members), ...); }, V::packed(value));
    }
  }
  void read(Place& at, Row& row) const {
    if (at.byte == chunks_[at.chunk].size()) at = {at.chunk + 1, 0};
    const uint8_t* from = chunks_[at.chunk].data() + at.byte;
    read_value(from, row);
    at.byte = static_cast<size_t>(from - chunks_[at.chunk].data());
  }
  template <typename V>
  void read_value(const uint8_t*& from, V& value) const {
    if constexpr (std::same_as<V, u128> || std::unsigned_integral<V>) {
      value = 0;
      if constexpr (std::same_as<V, bool>)
        value = *from != 0;
      else
        for (unsigned shift = 0;; shift += 7, ++from) {
          value = static_cast<V>(value | static_cast<V>(static_cast<V>(*from & 0x7F) << shift));
          if (*from < 0x80) break;
        }
      ++from;
    } else if constexpr (std::same_as<V, std::string>) {
      uint32_t text = 0;
      read_value(from, text);
      value = texts_[text];
    } else if constexpr (requires { value.has_value(); }) {
      bool has = false;
      read_value(from, has);
      if (has)
        read_value(from, value.emplace());
      else
        value.reset();
    } else if constexpr (requires { typename std::tuple_size<V>::type; }) {
      for (auto& one : value) read_value(from, one);
    } else if constexpr (requires(V v) { v.resize(size_t{}); }) {
      size_t size = 0;
      read_value(from, size);
      value.resize(size);
      for (auto& one : value) read_value(from, one);
    } else {
      std::apply([&](auto&... members) { (read_value(from, members), ...); }, V::packed(value));
    }
  }

  size_t forgotten_ = 0;  // of chunks_
  std::vector<std::vector<uint8_t>> chunks_;
  size_t size_ = 0;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, uint32_t> places_;  // of texts_
};

}  // namespace flopinj::reduce
