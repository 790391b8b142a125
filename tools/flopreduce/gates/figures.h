// Figures of a JSON report by name, for gates.
//
// A name is a path of member names: total.flop, phases.forward.gpu_time_ns. In a list, a part is an
// index or the "name", "path", "rule", "layer" or "operator" of an element, if no other has it:
// kernels.0.launches, kernels."sgemm(float*)".flop. Numbers and true/false (1/0) are figures, to
// the last digit where KEY_exact is beside KEY; null is a figure that is not known. `flop` and a
// few other short names are whole paths (figures.cpp).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gates/gate.h"

namespace flopinj::reduce {

// All names of a report's figures, short ones first, and what they are: "-" where that is not
// known. Of lists the first element; bounded.
struct NamedValue {
  std::string name, value;
};
std::vector<NamedValue> list_figures(const nlohmann::ordered_json& report);

GateFigure find_figure(const nlohmann::ordered_json& report, const FigurePath& path);

}  // namespace flopinj::reduce
