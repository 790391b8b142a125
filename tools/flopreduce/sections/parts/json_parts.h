// JSON values that many subjects have.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "report/report.h"

namespace flopinj::reduce {

using Json = nlohmann::ordered_json;

// FLOP and other integers that may pass 2^53, where many JSON readers round: decimal strings.
inline std::string decimal(u128 value) { return to_decimal(value); }
inline Json time_json(u128 ns) { return ns > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(ns); }
inline Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// "flop" is null while a launch is unmeasured; then "flop_partial" holds the sum of the others.
Json work_json(const Work& work);
Json precision_json(const Report& report, const Flop& flop);
// Integer operations of the tensor cores by source, as member "integer_op", where there are any.
void add_integer_op(Json& to, const Flop& flop);
Json signature_json(const SignatureReport& signature);
// Members "backward_forward_expected" and, where there are such, "..._range" and "..._basis".
void add_expected(Json& to, const std::optional<ExpectedRatio>& expected);
Json verdict_json(RatioVerdict verdict);
Json ledger_line_json(const LedgerLine& line);

template <class Items, class ItemJson>
Json list_json(const Items& items, ItemJson&& item_json) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(item_json(item));
  return list;
}

}  // namespace flopinj::reduce
