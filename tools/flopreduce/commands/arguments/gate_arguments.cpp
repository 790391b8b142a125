
#include <algorithm>
#include <iostream>

#include "commands/arguments/arguments.h"
#include "gates/figures.h"
#include "support/text.h"
#include "terminal_colors.h"

namespace flopinj::reduce {

void GateArguments::add_to(manual::CommandLine& app, const char* example) {
  const auto read = [this](const std::vector<std::string>& texts) {
    texts_ = texts;
    for (const auto& text : texts) {
      std::string error;
      if (text == "list")
        list_ = true;
      else if (!Gate::parse(text, gates_.emplace_back(), error))
        throw Failure("--fail-if: " + error);
    }
  };
  several(app.add_option_function<std::vector<std::string>>(
              "--fail-if", read,
              "Exit with 1 when CONDITION holds, such as '" + std::string(example) +
                  "'; a number may have a unit (3ms, 5GB, 30%). It may be given several times. "
                  "'list' prints the names of figures"),
          "CONDITION");
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

void GateArguments::check_names(std::span<const Table> tables) const {
  for (const Gate& gate : gates_)
    for (const Gate::Sides& sides : gate.comparisons())
      if (const auto why = wrong_name(tables, sides))
        throw Failure("--fail-if '" + printable(cut(gate.text(), 500)) + "': " + *why);
}

int GateArguments::check(const std::vector<GateResult>& results) {
  int code = kExitFine;
  for (const GateResult& r : results) {
    if (r.verdict == Verdict::kPassed) continue;
    const std::string text = "'" + printable(cut(r.condition, 500)) + "'";
    if (r.verdict == Verdict::kInvalid) {
      complain("--fail-if " + text + ": " + r.message);
      code = kExitUsage;
      continue;
    }
    complain(painted_verdict("gate failed", false, STDERR_FILENO) + ": " + text +
             (r.verdict == Verdict::kNotKnown ? " cannot be decided: " : ": ") + r.message);
    code = std::max(code, kExitGate);
  }
  return code;
}

}  // namespace flopinj::reduce
