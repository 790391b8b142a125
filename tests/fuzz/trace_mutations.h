// Makes new traces of old ones where bytes alone rarely would: packets are dropped, repeated,
// exchanged and taken from other traces, fields inside of them changed by the rules of protobuf's
// wire format, at any depth, and lengths and check sums are right again.
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
