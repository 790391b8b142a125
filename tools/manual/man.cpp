#include <algorithm>
#include <cctype>

#include "manual/manual.h"

namespace flopinj::manual {
namespace {

// Text for roff: nothing in it is a request or an escape. Quotes that are only quotes, and
// hyphens that can be copied and searched for.
std::string roff(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '`')
      out += "\\(ga";
    else if (c == '^')
      out += "\\(ha";
    else if (c == '~')
      out += "\\(ti";
    else
      out += c;
  }
  return out;
}

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

void synopsis(std::ostream& out, const Program& program, const Command& command) {
  out << ".B " << roff(program.name) << (command.name.empty() ? "" : " " + roff(command.name))
      << "\n[" << italic("OPTION") << "...]";
  for (const Option& o : command.options) {
    if (!o.names.empty()) continue;
    out << ' ' << (o.required ? "" : "[") << italic(o.value) << (o.many ? "..." : "")
        << (o.required ? "" : "]");
  }
  if (!command.operands.empty()) out << ' ' << roff(command.operands);
  out << '\n';
}

void option(std::ostream& out, const Option& o) {
  out << ".TP\n";
  for (size_t i = 0; i < o.names.size(); ++i) out << (i > 0 ? ", " : "") << bold(o.names[i]);
  if (!o.value.empty()) out << (o.names.empty() ? "" : " ") << italic(o.value);
  out << '\n' << roff(o.text.empty() ? "-" : o.text);
  if (const std::string values = values_text(o); !values.empty())
    out << " (" << roff(values) << ")";
  out << ".\n";
}

void entries(std::ostream& out, const std::vector<Entry>& list) {
  for (const Entry& e : list) out << ".TP\n" << bold(e.term) << '\n' << roff(e.text) << '\n';
}

void section(std::ostream& out, const char* title, const std::vector<Entry>& list) {
  if (list.empty()) return;
  out << ".SH " << title << '\n';
  entries(out, list);
}

void examples(std::ostream& out, const Program& program) {
  out << ".SH EXAMPLES\n";
  for (const Command& command : program.commands)
    for (const Entry& e : command.examples)
      out << ".PP\n"
          << roff(capital(e.text)) << ":\n.PP\n.RS 4\n.nf\n"
          << roff(e.term) << "\n.fi\n.RE\n";
}

void details(std::ostream& out, const Command& command) {
  out << roff(command.text) << '\n';
  for (const Option& o : command.options) option(out, o);
  for (const List& list : command.lists) {
    out << ".SS " << roff(list.title) << '\n';
    entries(out, list.entries);
  }
  if (!command.notes.empty()) out << ".PP\n" << roff(command.notes) << '\n';
}

}  // namespace

void write_man(std::ostream& out, const Program& program) {
  out << ".\\\" Made from the definitions of the command line.\n.TH " << capitals(program.name)
      << " 1 \"\" \"flopinj " << roff(program.version) << "\" \"flopinj\"\n.nh\n.ad l\n.SH NAME\n"
      << roff(program.name) << " \\- " << roff(program.purpose) << "\n.SH SYNOPSIS\n";
  for (size_t i = 0; i < program.commands.size(); ++i) {
    if (i > 0) out << ".br\n";
    synopsis(out, program, program.commands[i]);
  }
  for (const Command& command : program.commands) {
    if (command.name.empty())
      out << ".SH DESCRIPTION\n";
    else
      out << ".SH " << capitals(roff(program.name + " " + command.name)) << '\n';
    details(out, command);
  }
  section(out, "EXIT STATUS", program.exit_status);
  section(out, "ENVIRONMENT", program.environment);
  section(out, "FILES", program.files);
  examples(out, program);
  out << ".SH SEE ALSO\n";
  for (size_t i = 0; i < program.see_also.size(); ++i)
    out << (i > 0 ? ",\n" : "") << ".BR " << roff(program.see_also[i]) << " (1)"
        << (i + 1 < program.see_also.size() ? " ," : "") << '\n';
}

std::optional<bool> answer(std::ostream& out, const Program& program,
                           const std::vector<std::string>& arguments) {
  if (arguments.empty()) return std::nullopt;
  const bool generate = arguments[0] == "--generate" && arguments.size() == 2;
  if (arguments[0] == "--complete")
    complete(out, program, {arguments.begin() + 1, arguments.end()});
  else if (!generate)
    return std::nullopt;
  else if (arguments[1] == "man")
    write_man(out, program);
  else if (arguments[1] == "bash" || arguments[1] == "zsh" || arguments[1] == "fish")
    write_completion(out, program, arguments[1]);
  else
    return false;
  return static_cast<bool>(out.flush());
}

}  // namespace flopinj::manual
