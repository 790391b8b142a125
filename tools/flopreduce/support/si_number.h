// Numbers as people write them: 8.73T, 2.5e12, 400M.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "support/wide.h"

namespace flopinj::reduce {

// k, M, G, T, P, E, Z, Y, and K, which is k.
bool is_si_prefix(char c);

// A finite number of at least 0, decimal, with an exponent or an SI prefix. Nothing for anything
// else, "1e12T" too.
std::optional<double> parse_si(std::string_view text);

// As parse_si(), or with B, which people write for 10^9 of parameters and tokens: "7B".
std::optional<double> parse_count(std::string_view text);

// "0.4", or in per cent: "40%".
std::optional<double> parse_share(std::string_view text);

// Seconds of "1.5", "12s", "5ms", "3us", "7ns", "2m", "30min", "84h" and "3.5d".
std::optional<double> parse_seconds(std::string_view text);

// As parse_si(), read from the front of `text`, which loses the number. Letters that follow
// directly make it none.
std::optional<double> take_si(std::string_view& text);

// What parse_si() takes, where it is an integer below 2^128, to its last digit.
std::optional<u128> parse_whole(std::string_view text);

// "8.73 T", four significant digits, for any size; "0.0123" below 1.
std::string format_si(double value);

}  // namespace flopinj::reduce
