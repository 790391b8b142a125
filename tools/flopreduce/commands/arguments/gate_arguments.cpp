#include "commands/arguments/gate_arguments.h"

#include <algorithm>
#include <iostream>

#include "commands/arguments/command.h"
#include "gates/figures.h"
#include "support/text.h"

namespace flopinj::reduce {

void GateArguments::add_to(manual::CommandLine& app, const char* example) {
  several(app.add_option("--fail-if", texts_,
                         "Exit with 1 when CONDITION holds, such as '" + std::string(example) +
                             "'; may be given several times. 'list' prints the names of figures"),
          "CONDITION");
}

void GateArguments::finish() {
  for (const auto& text : texts_) {
    if (text == "list") {
      list_ = true;
      continue;
    }
    std::string error;
    if (!Gate::parse(text, gates_.emplace_back(), error)) throw Failure("--fail-if: " + error);
  }
}

bool GateArguments::may_name(const std::string& part) const {
  return list_ || std::ranges::any_of(texts_, [&](const std::string& text) {
           return text.find(part) != std::string::npos;
         });
}

std::vector<GateResult> GateArguments::results(std::span<const Table> tables) const {
  if (list_) {
    size_t width = 0;
    const auto figures = list_figures(tables);
    for (const auto& [name, value] : figures)
      width = std::max(width, std::min<size_t>(name.size(), 60));
    for (const auto& [name, value] : figures)
      std::cout << name << std::string(width - std::min(width, name.size()) + 2, ' ') << value
                << '\n';
  }
  std::vector<GateResult> results;
  for (const Gate& gate : gates_)
    results.push_back(
        gate.evaluate([&](const FigurePath& path) { return find_figure(tables, path); }));
  return results;
}

int GateArguments::check(const std::vector<GateResult>& results) {
  int code = kExitFine;
  for (const GateResult& r : results) {
    const std::string text = "'" + printable(cut(r.condition, 500)) + "'";
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
