// Whether two reports say the same numbers, whatever the names.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace flopinj::reduce {

// Of JSON reports: the first key, as "kernels.flop", of which one has other numbers; nothing where
// all are equal. Lists may have another order, as rows of equal work are in that of their names.
// Identifiers are not compared, nor what damage took from the file.
std::optional<std::string> first_difference(const nlohmann::ordered_json& a,
                                            const nlohmann::ordered_json& b);

}  // namespace flopinj::reduce
