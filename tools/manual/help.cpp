#include <algorithm>

#include "manual/manual.h"

namespace flopinj::manual {
namespace {

constexpr size_t kIndent = 2;  // of terms
constexpr size_t kTextColumn = 26;

std::string spaces(size_t n) { return std::string(n, ' '); }

// Words of `text` from column `at` on, in lines from `left` on. Lines of the text stay lines.
void wrapped(std::ostream& out, const std::string& text, size_t at, size_t left, size_t width) {
  size_t begin = 0;
  bool first_of_line = true;
  while (begin < text.size()) {
    if (text[begin] == '\n' || text[begin] == ' ') {
      if (text[begin] == '\n') {
        out << '\n' << spaces(left);
        at = left;
        first_of_line = true;
      }
      ++begin;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const size_t size = end - begin;
    if (!first_of_line && at + 1 + size > width) {
      out << '\n' << spaces(left);
      at = left;
      first_of_line = true;
    }
    if (!first_of_line) out << ' ', ++at;
    out << text.substr(begin, size);
    at += size;
    first_of_line = false;
    begin = end;
  }
  out << '\n';
}

void entry(std::ostream& out, const std::string& term, const std::string& text, size_t width,
           size_t column = kTextColumn) {
  out << spaces(kIndent) << term;
  size_t at = kIndent + term.size();
  if (at + 2 > column) {
    out << '\n';
    at = 0;
  }
  out << spaces(column - at);
  wrapped(out, text, column, column, width);
}

void entries(std::ostream& out, const std::string& title, const std::vector<Entry>& list,
             size_t width) {
  if (list.empty()) return;
  size_t column = 0;
  for (const Entry& e : list) column = std::max(column, kIndent + e.term.size() + 2);
  out << '\n' << title << ":\n";
  for (const Entry& e : list) entry(out, e.term, e.text, width, std::min(column, kTextColumn));
}

// "-o, --output FILE"; an option without a short name is under the other long names.
std::string names_text(const Option& o) {
  if (o.names.empty()) return o.value + (o.many ? "..." : "");
  std::string text = o.names.front().starts_with("--") ? "    " : "";
  for (size_t i = 0; i < o.names.size(); ++i) text += (i > 0 ? ", " : "") + o.names[i];
  return o.value.empty() ? text : text + " " + o.value;
}

void options(std::ostream& out, const char* title, const Command& command, bool positional,
             size_t width) {
  bool any = false;
  for (const Option& o : command.options) {
    if (o.names.empty() != positional) continue;
    if (!any) out << '\n' << title << ":\n";
    any = true;
    const std::string values = values_text(o);
    entry(out, names_text(o), o.text + (values.empty() ? "" : " (" + values + ")"), width);
  }
}

std::vector<Entry> exit_status_of(const Program& program, const Command& command) {
  std::vector<Entry> list;
  for (const Entry& e : program.exit_status) {
    const auto of = [&](const Command& c) {
      return !c.name.empty() && e.text.starts_with(c.name + ": ");
    };
    const bool of_one = std::any_of(program.commands.begin(), program.commands.end(), of);
    if (!of_one)
      list.push_back(e);
    else if (of(command))
      list.push_back({e.term, e.text.substr(command.name.size() + 2)});
  }
  return list;
}

}  // namespace

std::string values_text(const Option& o) {
  constexpr size_t kMost = 30;  // that help has room for; completion knows them all
  const bool named = o.choices.size() > kMost ||
                     std::all_of(o.choices.begin(), o.choices.end(), [&](const auto& choice) {
                       return o.text.find(choice) != std::string::npos;
                     });
  std::string text;
  if (!named)
    for (size_t i = 0; i < o.choices.size(); ++i)
      text += (i == 0 ? "" : i + 1 < o.choices.size() ? ", " : " or ") + o.choices[i];
  if (!o.preset.empty()) text += (text.empty() ? "" : "; ") + o.preset + " if not given";
  return text;
}

void write_help(std::ostream& out, const Program& program, const Command& command, size_t width) {
  const std::string name = program.name + (command.name.empty() ? "" : " " + command.name);
  std::string usage = "Usage: " + name + " [OPTION...]";
  std::vector<Entry> next;  // commands that begin with this one's name
  for (const Command& other : program.commands) {
    const std::string prefix = command.name.empty() ? "" : command.name + " ";
    if (other.name.size() > prefix.size() && other.name.starts_with(prefix) &&
        other.name.find(' ', prefix.size()) == std::string::npos)
      next.push_back({other.name.substr(prefix.size()), other.purpose});
  }
  bool takes_words = false;
  for (const Option& o : command.options) {
    if (!o.names.empty()) continue;
    takes_words = true;
    usage += (o.required ? " " : " [") + o.value + (o.many ? "..." : "") + (o.required ? "" : "]");
  }
  if (!takes_words && !next.empty()) usage += " COMMAND";
  if (!command.operands.empty()) usage += " " + command.operands;
  wrapped(out, usage, 0, 7, width);
  out << '\n';
  wrapped(out, command.text, 0, 0, width);
  entries(out, "Commands (" + name + " COMMAND --help)", next, width);
  options(out, "Arguments", command, true, width);
  options(out, "Options", command, false, width);
  for (const List& list : command.lists) entries(out, list.title, list.entries, width);
  if (!command.notes.empty()) {
    out << '\n';
    wrapped(out, command.notes, 0, 0, width);
  }
  if (!command.examples.empty()) out << "\nExamples:\n";
  for (const Entry& e : command.examples) {
    out << spaces(kIndent) << e.term << '\n' << spaces(2 * kIndent + 2);
    wrapped(out, e.text, 2 * kIndent + 2, 2 * kIndent + 2, width);
  }
  entries(out, "Exit status", exit_status_of(program, command), width);
}

}  // namespace flopinj::manual
