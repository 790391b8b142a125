// A long list of rows in little memory: small numbers take a byte each, a text its number. Rows are
// added at the end and read in order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/forget.h"
#include "support/packed_values.h"

namespace flopinj::reduce {

// `Row`: as of write_packed().
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
    write_packed(chunks_.back(), row, [&](const std::string& text) { return number_of(text); });
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
      forget(chunks_[forgotten_]);
  }

 private:
  void read(Place& at, Row& row) const {
    if (at.byte == chunks_[at.chunk].size()) at = {at.chunk + 1, 0};
    const uint8_t* from = chunks_[at.chunk].data() + at.byte;
    read_packed(from, row, texts_);
    at.byte = static_cast<size_t>(from - chunks_[at.chunk].data());
  }
  uint32_t number_of(const std::string& text) {
    const auto [known, fresh] = places_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
    if (fresh) texts_.push_back(text);
    return known->second;
  }

  size_t forgotten_ = 0;  // of chunks_
  std::vector<std::vector<uint8_t>> chunks_;
  size_t size_ = 0;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, uint32_t> places_;  // of texts_
};

}  // namespace flopinj::reduce
