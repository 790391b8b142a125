#include "environment.h"

#include <cstdlib>

#include "shell_word.h"

namespace flopinj {

void Environment::set(std::string name, std::string value) {
  changes_.push_back({std::move(name), std::move(value), false});
}

void Environment::prepend(std::string name, std::string value) {
  changes_.push_back({std::move(name), std::move(value), true});
}

void Environment::apply() const {
  for (const Change& change : changes_) {
    std::string value = change.value;
    const char* old = change.keep_old ? std::getenv(change.name.c_str()) : nullptr;
    if (old != nullptr && *old != '\0') value += std::string(":") + old;
    setenv(change.name.c_str(), value.c_str(), 1);
  }
}

std::string Environment::shell_exports() const {
  std::string lines;
  for (const Change& change : changes_) {
    lines += "export " + change.name + "=" + shell_quoted(change.value);
    if (change.keep_old) lines += "\"${" + change.name + ":+:$" + change.name + "}\"";
    lines += "\n";
  }
  return lines;
}

}  // namespace flopinj
