// What the sequence number of a launch shows of its place; launches are distinguished by it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace flopinj::reduce {

enum class NumberTells : uint8_t {
  kNothing = 0,  // there is none, or no operator of its thread has gradients
  kBetween = 1,  // the launch ran in a forward pass
  kUnclear = 2,  // in a forward pass or outside of all: not known
  kAgain = 3,    // forward again, inside of backward: passes/sequence/own_numbers.h
  // No launch of its training step is by an operator, and launches of other steps are: names were
  // off.
  kNameless = 4,
};
inline constexpr size_t kNumberTells = 5;

}  // namespace flopinj::reduce
