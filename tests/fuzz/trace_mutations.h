// Makes new valid traces of old ones, which changes of single bytes rarely do. Packets are dropped,
// repeated, exchanged, and taken from other traces. Fields in them are changed at any depth by the
// rules of protobuf's wire format. Then lengths and check sums are corrected.
#pragma once
#include <cstddef>
#include <random>
#include <string>
#include <string_view>

namespace flopinj::test {

using TraceRandom = std::minstd_rand;

// Of at most so many bytes; empty where nothing of the trace fits.
std::string changed_trace(std::string_view bytes, size_t max_size, TraceRandom& random);
// Packets of the other among those of the first; empty where either has none.
std::string crossed_traces(std::string_view one, std::string_view other, size_t max_size,
                           TraceRandom& random);

}  // namespace flopinj::test
