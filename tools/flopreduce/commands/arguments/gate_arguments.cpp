#include "commands/arguments/gate_arguments.h"

#include <nlohmann/json.hpp>

#include "commands/arguments/command.h"
#include "gates/figures.h"
#include "support/text.h"

namespace flopinj::reduce {

void GateArguments::add_to(CLI::App& app, const char* example) {
  app.add_option("--fail-if", texts_,
                 "Exit with 1 when CONDITION holds, such as '" + std::string(example) +
                     "'; may be given several times")
      ->type_name("CONDITION")
      ->take_all()
      ->allow_extra_args(false);
}

int GateArguments::finish() {
  for (const auto& text : texts_) {
    std::string error;
    if (!Gate::parse(text, gates_.emplace_back(), error)) {
      complain("--fail-if: " + error);
      return kExitUsage;
    }
  }
  return -1;
}

int GateArguments::check(const nlohmann::ordered_json& result) const {
  int code = kExitFine;
  for (const Gate& gate : gates_) {
    const GateResult r =
        gate.evaluate([&](const FigurePath& path) { return find_figure(result, path); });
    const std::string text = "'" + printable(cut(gate.text(), 500)) + "'";
    switch (r.verdict) {
      case Verdict::kPassed:
        break;
      case Verdict::kFailed:
        complain("gate failed: " + text + ": " + r.message);
        if (code == kExitFine) code = kExitGate;
        break;
      case Verdict::kNotKnown:
        complain("gate failed: " + text + " cannot be decided: " + r.message);
        if (code == kExitFine) code = kExitGate;
        break;
      case Verdict::kInvalid:
        complain("--fail-if " + text + ": " + r.message);
        code = kExitUsage;
        break;
    }
  }
  return code;
}

}  // namespace flopinj::reduce
