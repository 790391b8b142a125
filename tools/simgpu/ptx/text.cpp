#include "ptx/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

namespace simgpu::ptx {
namespace {

constexpr size_t kMostRegisters = 1 << 20;
constexpr uint64_t kMostVariableBytes = uint64_t{1} << 32;
constexpr int kMostNesting = 64;
constexpr uint32_t kMostRegistersOfThread = 255;

struct Token {
  enum class Kind { kWord, kNumber, kString, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;
  int line = 1;
};

bool begins_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}
bool in_word(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }

  const Token& now() const { return now_; }
  Token take() {
    Token taken = now_;
    advance();
    return taken;
  }
  bool is(std::string_view sign) const {
    return now_.text == sign && now_.kind != Token::Kind::kEnd;
  }
  bool is_scope() const { return is(":") && text_.substr(at_, 1) == ":"; }  // ::
  bool accept(std::string_view sign) {
    if (!is(sign)) return false;
    advance();
    return true;
  }
  void expect(std::string_view sign) {
    if (!accept(sign)) fail("'" + std::string(sign) + "' is missing before " + shown());
  }
  std::string_view word() {
    if (now_.kind != Token::Kind::kWord) fail("a name is missing before " + shown());
    return take().text;
  }
  [[noreturn]] void fail(const std::string& problem) const { throw TextError(now_.line, problem); }
  std::string shown() const {
    return now_.kind == Token::Kind::kEnd ? "the end"
                                          : "'" + std::string(now_.text.substr(0, 40)) + "'";
  }
  void skip_line() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    advance();
  }

 private:
  void advance() {
    skip_blanks();
    now_.line = line_;
    if (at_ >= text_.size()) {
      now_ = {Token::Kind::kEnd, {}, line_};
      return;
    }
    const size_t from = at_;
    const char c = text_[at_];
    if (c == '"') {
      do ++at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n');
      if (at_ < text_.size()) ++at_;
      now_.kind = Token::Kind::kString;
    } else if (begins_word(c)) {
      // A directive ends where the next one begins: .reg.b32.
      for (++at_; at_ < text_.size() && in_word(text_[at_]); ++at_)
        if (c == '.' && text_[at_] == '.') break;
      now_.kind = Token::Kind::kWord;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      while (at_ < text_.size() && (in_word(text_[at_]) || is_exponent_sign())) ++at_;
      now_.kind = Token::Kind::kNumber;
    } else {
      ++at_;
      now_.kind = Token::Kind::kSign;
    }
    now_.text = text_.substr(from, at_ - from);
  }
  // 1.5e-3, but not 0x1e-3.
  bool is_exponent_sign() const {
    return (text_[at_] == '-' || text_[at_] == '+') && at_ > 1 &&
           (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') && number_has_point();
  }
  bool number_has_point() const {
    size_t from = at_;
    while (from > 0 && in_word(text_[from - 1])) --from;
    return text_.substr(from, at_ - from).find('.') != std::string_view::npos;
  }
  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '\0') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (text_.substr(at_, 2) == "/*") {
        const size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
        line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                             text_.begin() + static_cast<ptrdiff_t>(end), '\n'));
        at_ = std::min(end + 2, text_.size());
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  Token now_;
};

std::vector<std::string> split(std::string_view text, std::string_view at) {
  std::vector<std::string> words;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(at, from), text.size());
    words.emplace_back(text.substr(from, end - from));
    from = end + at.size();
  }
  return words;
}

// What ptxas said of kernels: registers by name.
std::map<std::string, uint32_t> registers_said(std::string_view text) {
  std::map<std::string, uint32_t> said;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with("// ptxas ")) continue;
    const std::vector<std::string> parts = split(line, ": ");  // the chip, the kernel, numbers
    if (parts.size() != 3) continue;
    uint32_t registers = 0;
    std::from_chars(parts[2].data(), parts[2].data() + parts[2].size(), registers);
    if (registers <= kMostRegistersOfThread) said.emplace(parts[1], registers);
  }
  return said;
}

std::optional<Space> space_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, Space>, 5> kSpaces{{{".global", Space::kGlobal},
                                                                       {".shared", Space::kShared},
                                                                       {".local", Space::kLocal},
                                                                       {".const", Space::kConst},
                                                                       {".param", Space::kParam}}};
  for (const auto& [name, space] : kSpaces)
    if (word == name) return space;
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(text) {}

  Module parse() {
    std::vector<Module> before;
    while (tokens_.now().kind != Token::Kind::kEnd) {
      if (tokens_.is(".version") && module_.version != 0)
        before.push_back(std::exchange(module_, Module{}));
      top_level();
    }
    if (module_.version == 0) tokens_.fail("there is no .version");
    if (before.empty()) return std::move(module_);
    before.push_back(std::move(module_));
    return link(std::move(before));
  }

 private:
  using Kind = Operand::Kind;

  // --- declarations

  void top_level() {
    if (tokens_.accept(";")) return;
    bool is_extern = false;
    Linkage linkage = Linkage::kOwn;
    for (;;) {
      const int line = tokens_.now().line;
      const std::string_view word = tokens_.word();
      if (word == ".extern" || word == ".visible") {
        is_extern |= word == ".extern";
        linkage = Linkage::kVisible;
      } else if (word == ".weak" || word == ".common") {
        linkage = Linkage::kWeak;
      } else if (word == ".version") {
        const std::vector<std::string> numbers = split(tokens_.take().text, ".");
        if (numbers.size() != 2) tokens_.fail(".version is no version");
        module_.version = 10 * integer_of(numbers[0]) + integer_of(numbers[1]);
        return;
      } else if (word == ".target") {
        module_.target = tokens_.word();
        while (tokens_.accept(",")) tokens_.word();
        return;
      } else if (word == ".address_size") {
        if (tokens_.take().text != "64") tokens_.fail("addresses of 32 bits are not known");
        return;
      } else if (word == ".file" || word == ".loc") {
        return tokens_.skip_line();
      } else if (word == ".section") {
        return section();
      } else if (word == ".entry" || word == ".func") {
        return function(word == ".entry", linkage);
      } else if (word == ".alias") {
        tokens_.fail(".alias is not known");
      } else if (const auto space = space_of(word)) {
        const size_t first = module_.variables.size();
        declare(*space, is_extern, module_.variables);
        for (size_t i = first; i < module_.variables.size(); ++i)
          module_.variables[i].linkage = linkage;
        return tokens_.expect(";");
      } else {
        throw TextError(line, "the directive " + std::string(word) + " is not known");
      }
    }
  }

  void section() {
    tokens_.word();
    tokens_.expect("{");
    for (int depth = 1; depth > 0; tokens_.take()) {
      if (tokens_.now().kind == Token::Kind::kEnd) tokens_.fail("a section has no end");
      depth += tokens_.is("{") ? 1 : tokens_.is("}") ? -1 : 0;
      if (depth == 0) break;
    }
    tokens_.expect("}");
  }

  int integer_of(std::string_view text) const {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0)
      tokens_.fail("'" + std::string(text) + "' is no number");
    return value;
  }

  Type take_type() {
    const std::string_view word = tokens_.word();
    const Type type = word.starts_with('.') ? type_of(word.substr(1)) : Type{};
    if (!type) tokens_.fail("'" + std::string(word) + "' is no type");
    return type;
  }

  // [.align N] [.ptr [.space] [.align N]] [.v2|.v4] .type: of variables and parameters.
  struct Declared {
    Type type;
    uint32_t alignment = 0;
    uint32_t elements = 1;
  };
  Declared declared_type() {
    Declared declared;
    for (;;) {
      if (tokens_.accept(".align")) {
        const int alignment = integer_of(tokens_.take().text);
        if (alignment == 0 || alignment > 4096 || (alignment & (alignment - 1)) != 0)
          tokens_.fail("an alignment is a power of two");
        declared.alignment = static_cast<uint32_t>(alignment);
      } else if (tokens_.accept(".v2")) {
        declared.elements = 2;
      } else if (tokens_.accept(".v4")) {
        declared.elements = 4;
      } else if (!tokens_.accept(".attribute")) {
        break;
      } else {
        while (!tokens_.accept(")")) tokens_.take();
      }
    }
    declared.type = take_type();
    const uint32_t natural = declared.type.bytes * declared.elements;
    if (declared.alignment == 0) declared.alignment = std::max(natural, 1U);
    return declared;
  }

  uint64_t times(uint64_t a, uint64_t b) const {
    if (a != 0 && b > kMostVariableBytes / a) tokens_.fail("a variable is too large");
    return a * b;
  }

  // name [n][m] ...: its number of elements; 0 for [].
  uint64_t dimensions(bool& is_open) {
    uint64_t count = 1;
    is_open = false;
    while (tokens_.accept("[")) {
      if (tokens_.accept("]")) {
        is_open = true;
        continue;
      }
      count = times(count, number(tokens_.take()));
      tokens_.expect("]");
    }
    return count;
  }

  void declare(Space space, bool is_extern, std::vector<Variable>& into) {
    const Declared declared = declared_type();
    do {
      Variable variable;
      variable.line = tokens_.now().line;
      variable.name = tokens_.word();
      variable.space = space;
      variable.is_extern = is_extern;
      variable.alignment = declared.alignment;
      const uint64_t each = uint64_t{declared.type.bytes} * declared.elements;
      bool is_open = false;
      uint64_t count = 1;
      if (tokens_.accept("<")) {  // .param .b32 x<3>
        const int copies = integer_of(tokens_.take().text);
        tokens_.expect(">");
        variable.bytes = each;
        for (int i = 0; i < copies; ++i) {
          Variable one = variable;
          one.name += std::to_string(i);
          into.push_back(std::move(one));
        }
        continue;
      }
      count = dimensions(is_open);
      variable.bytes = is_open ? 0 : times(each, count);
      if (tokens_.accept("=")) {
        uint64_t end = 0;
        initial(variable, declared.type.bytes, end, 0);
        if (is_open) variable.bytes = end;
        if (end > variable.bytes) tokens_.fail("a variable has more values than room");
      }
      into.push_back(std::move(variable));
    } while (tokens_.accept(","));
  }

  void initial(Variable& variable, uint32_t bytes, uint64_t& at, int depth) {
    if (depth > kMostNesting) tokens_.fail("values are nested too deeply");
    if (tokens_.accept("{")) {
      if (!tokens_.is("}")) do
          initial(variable, bytes, at, depth + 1);
        while (tokens_.accept(","));
      return tokens_.expect("}");
    }
    Initial part;
    part.offset = at;
    part.bytes = bytes;
    at += bytes;
    if (tokens_.now().kind == Token::Kind::kWord) {
      const std::string_view word = tokens_.word();
      part.name = word;
      if (word == "generic" && tokens_.accept("(")) {
        part.name = tokens_.word();
        tokens_.expect(")");
      }
      if (tokens_.accept("+")) part.value = number(tokens_.take());
      if (bytes != 8) tokens_.fail("an address has 8 bytes");
    } else {
      part.value = constant(bytes);
    }
    variable.initial.push_back(std::move(part));
  }

  // A signed number of a value of so many bytes.
  uint64_t constant(uint32_t bytes) {
    const bool negative = tokens_.accept("-");
    const Token token = tokens_.take();
    Operand value = literal(token, negative);
    if (value.kind == Kind::kFloat64 && bytes == 4)
      return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(value.value)));
    return value.value;
  }

  // --- functions

  Parameter parameter() {
    Parameter made;
    const std::string_view word = tokens_.word();
    made.is_register = word == ".reg";
    if (word != ".param" && word != ".reg") tokens_.fail("a parameter is .param or .reg");
    uint32_t given_alignment = 0;
    if (tokens_.accept(".align"))
      given_alignment = static_cast<uint32_t>(integer_of(tokens_.take().text));
    made.type = take_type();
    if (tokens_.accept(".ptr")) {
      while (tokens_.now().kind == Token::Kind::kWord && tokens_.now().text.starts_with('.'))
        if (tokens_.word() == ".align") tokens_.take();
    }
    made.name = tokens_.word();
    bool is_open = false;
    made.bytes = times(made.type.bytes, dimensions(is_open));
    made.alignment = std::max({given_alignment, made.type.bytes, 1U});
    if ((made.alignment & (made.alignment - 1)) != 0)
      tokens_.fail("an alignment is a power of two");
    return made;
  }

  std::vector<Parameter> parameters() {
    std::vector<Parameter> all;
    if (!tokens_.accept("(")) return all;
    while (!tokens_.accept(")")) {
      if (!all.empty()) tokens_.expect(",");
      all.push_back(parameter());
    }
    uint64_t end = 0;
    for (Parameter& one : all) {
      one.offset = align(end, one.alignment);
      end = one.offset + one.bytes;
    }
    return all;
  }

  void function(bool is_entry, Linkage linkage) {
    auto made = std::make_unique<Function>();
    made->is_entry = is_entry;
    made->linkage = is_entry && linkage == Linkage::kOwn ? Linkage::kVisible : linkage;
    made->line = tokens_.now().line;
    if (!is_entry) made->results = parameters();
    made->name = tokens_.word();
    made->parameters = parameters();
    while (!tokens_.is("{") && !tokens_.accept(";")) performance_directive(*made);
    if (tokens_.is("{")) {
      made->has_body = true;
      function_ = made.get();
      scopes_.clear();
      open_scope();
      for (std::vector<Parameter>* const list : {&made->results, &made->parameters})
        for (Parameter& one : *list) declare_parameter(one);
      tokens_.expect("{");
      body();
      function_ = nullptr;
    }
    const auto same = std::ranges::find_if(module_.functions,
                                           [&](const auto& f) { return f->name == made->name; });
    if (same == module_.functions.end())
      module_.functions.push_back(std::move(made));
    else if (!(*same)->has_body)
      *same = std::move(made);
    else if (made->has_body)
      tokens_.fail("there are two functions " + made->name);
  }

  void performance_directive(Function& made) {
    const std::string_view word = tokens_.word();
    if (word == ".reqnctapercluster" || word == ".reqntid" || word == ".maxntid") {
      uint32_t sizes[3] = {1, 1, 1};
      size_t count = 0;
      do sizes[count++] = static_cast<uint32_t>(integer_of(tokens_.take().text));
      while (count < 3 && tokens_.accept(","));
      if (word == ".reqnctapercluster") std::ranges::copy(sizes, made.cluster);
      if (word == ".reqntid") std::ranges::copy(sizes, made.block);
      if (word == ".maxntid") made.most_threads = times(times(sizes[0], sizes[1]), sizes[2]);
    } else if (word == ".minnctapersm" || word == ".maxnreg" || word == ".maxclusterrank" ||
               word == ".maxnctapersm") {
      tokens_.take();
    } else if (word == ".pragma") {
      tokens_.take();
      tokens_.expect(";");
    } else if (word == ".explicitcluster" || word == ".noreturn" || word == ".blocksareclusters") {
    } else if (word == ".abi_preserve" || word == ".abi_preserve_control") {
      tokens_.take();
    } else {
      tokens_.fail("the directive " + std::string(word) + " is not known");
    }
  }

  void declare_parameter(Parameter& one) {
    if (one.is_register) {
      one.index = add_register(one.name, one.type);
      return;
    }
    Variable variable;
    variable.name = one.name;
    variable.space = Space::kParam;
    variable.bytes = one.bytes;
    variable.alignment = one.alignment;
    one.index = add_variable(std::move(variable));
  }

  // --- scopes of names

  struct Named {
    bool is_register = false;
    uint32_t index = 0;
  };
  struct Scope {
    uint32_t number = 0;
    std::map<std::string, Named, std::less<>> names;
  };

  void open_scope() {
    if (scopes_.size() > kMostNesting) tokens_.fail("scopes are nested too deeply");
    const uint32_t parent = scopes_.empty() ? 0 : scopes_.back().number;
    scopes_.push_back({static_cast<uint32_t>(function_->parent_scopes.size()), {}});
    function_->parent_scopes.push_back(parent);
  }

  uint32_t add_register(const std::string& name, const Type& type) {
    if (function_->registers.size() >= kMostRegisters) tokens_.fail("there are too many registers");
    const auto index = static_cast<uint32_t>(function_->registers.size());
    function_->registers.push_back(type);
    scopes_.back().names[name] = {true, index};
    return index;
  }

  uint32_t add_variable(Variable variable) {
    const auto index = static_cast<uint32_t>(function_->variables.size());
    scopes_.back().names[variable.name] = {false, index};
    function_->variables.push_back(std::move(variable));
    return index;
  }

  const Named* find(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto it = scope->names.find(name); it != scope->names.end()) return &it->second;
    return nullptr;
  }

  // --- bodies

  void body() {
    for (;;) {
      if (tokens_.accept("}")) {
        scopes_.pop_back();
        if (scopes_.empty()) return;
      } else if (tokens_.accept("{")) {
        open_scope();
      } else if (tokens_.accept(";")) {
      } else if (tokens_.now().kind == Token::Kind::kEnd) {
        tokens_.fail("function " + function_->name + " has no end");
      } else if (tokens_.now().text.starts_with('.')) {
        body_directive();
      } else {
        statement();
      }
    }
  }

  void body_directive() {
    const std::string_view word = tokens_.word();
    if (word == ".reg") {
      declare_registers();
    } else if (word == ".loc" || word == ".file") {
      return tokens_.skip_line();
    } else if (word == ".pragma") {
      tokens_.take();
    } else if (const auto space = space_of(word)) {
      std::vector<Variable> declared;
      declare(*space, false, declared);
      for (Variable& one : declared) add_variable(std::move(one));
    } else {
      tokens_.fail("the directive " + std::string(word) + " is not known");
    }
    tokens_.expect(";");
  }

  void declare_registers() {
    uint32_t elements = 1;
    if (tokens_.accept(".v2")) elements = 2;
    if (elements != 1 || tokens_.is(".v4")) tokens_.fail("registers of vectors are not known");
    const Type type = take_type();
    do {
      const std::string name(tokens_.word());
      if (!tokens_.accept("<")) {
        add_register(name, type);
        continue;
      }
      const int count = integer_of(tokens_.take().text);
      tokens_.expect(">");
      for (int i = 0; i < count; ++i) add_register(name + std::to_string(i), type);
    } while (tokens_.accept(","));
  }

  void statement() {
    const int line = tokens_.now().line;
    if (!tokens_.is("@")) {
      const std::string_view word = tokens_.word();
      if (!tokens_.is_scope() && tokens_.accept(":")) {
        if (tokens_.is(".branchtargets")) return branch_targets(std::string(word));
        if (tokens_.is(".callprototype") || tokens_.is(".calltargets")) {
          while (!tokens_.accept(";")) {
            if (tokens_.now().kind == Token::Kind::kEnd) tokens_.fail("a prototype has no end");
            tokens_.take();
          }
          return;
        }
        function_->labels[label_key(scopes_.back().number, word)] =
            static_cast<uint32_t>(function_->instructions.size());
        return;
      }
      return instruction(line, word, -1, false);
    }
    tokens_.expect("@");
    const bool negated = tokens_.accept("!");
    const std::string_view name = tokens_.word();
    const Named* const named = find(name);
    if (named == nullptr || !named->is_register ||
        function_->registers[named->index].kind != Type::Kind::kPredicate)
      tokens_.fail("'" + std::string(name) + "' is no predicate");
    instruction(line, tokens_.word(), static_cast<int>(named->index), negated);
  }

  void branch_targets(const std::string& name) {
    tokens_.expect(".branchtargets");
    std::vector<std::string>& targets = function_->branch_targets[name];
    do targets.emplace_back(tokens_.word());
    while (tokens_.accept(","));
    tokens_.expect(";");
  }

  static std::string label_key(uint32_t scope, std::string_view name) {
    return std::to_string(scope) + " " + std::string(name);
  }

  void instruction(int line, std::string_view opcode, int guard, bool negated) {
    Instruction made;
    made.line = line;
    made.guard = guard;
    made.guard_negated = negated;
    made.text = opcode;
    // .shared::cta is .shared; wgmma and barriers have words with colons.
    while (tokens_.accept(":")) {
      tokens_.expect(":");
      made.text += "::" + std::string(tokens_.word());
    }
    made.words = split(made.text, ".");
    made.scope = scopes_.back().number;
    if (made.words[0] == "call") {
      call_operands(made);
    } else if (!tokens_.is(";")) {
      do made.operands.push_back(operand());
      while (tokens_.accept(","));
    }
    tokens_.expect(";");
    function_->instructions.push_back(std::move(made));
  }

  void call_operands(Instruction& made) {
    const auto list = [&](uint32_t& count) {
      while (!tokens_.accept(")")) {
        if (count++ != 0) tokens_.expect(",");
        made.operands.push_back(operand());
      }
    };
    if (tokens_.accept("(")) {
      list(made.results);
      tokens_.expect(",");
    }
    made.operands.push_back(operand());
    if (!tokens_.accept(",")) return;
    if (tokens_.accept("(")) {
      list(made.arguments);
      if (!tokens_.accept(",")) return;
    }
    made.operands.push_back(operand());  // its prototype, or a list of targets
  }

  // --- operands

  Operand operand() {
    Operand made;
    if (tokens_.accept("!")) {
      made = simple();
      made.negated = true;
    } else if (tokens_.accept("{")) {
      made.kind = Kind::kVector;
      if (!tokens_.is("}")) do
          made.parts.push_back(operand());
        while (tokens_.accept(","));
      tokens_.expect("}");
    } else if (tokens_.accept("[")) {
      made = address();
    } else {
      made = simple();
    }
    if (tokens_.accept("|")) {
      const Operand second = simple();
      if (second.kind == Kind::kRegister)
        made.second = static_cast<int>(second.index);
      else if (second.kind != Kind::kSink)
        tokens_.fail("behind | comes a register");
    }
    return made;
  }

  Operand address() {
    Operand made;
    made.kind = Kind::kAddress;
    Operand base = simple();
    made.value = std::exchange(base.value, 0);
    if (base.kind != Kind::kInteger) made.parts.push_back(std::move(base));
    if (tokens_.accept("+"))
      made.value += number(tokens_.accept("-") ? negated_token() : tokens_.take());
    else if (tokens_.accept("-"))
      made.value -= number(tokens_.take());
    if (tokens_.accept("]")) return made;
    tokens_.fail("an address of this form is not known");
  }

  Token negated_token() {
    // "+-4": the sign belongs to the number.
    Token token = tokens_.take();
    negative_ = "-" + std::string(token.text);
    token.text = negative_;
    return token;
  }

  Operand simple() {
    if (tokens_.now().kind == Token::Kind::kNumber) return literal(tokens_.take(), false);
    if (tokens_.accept("-")) return literal(tokens_.take(), true);
    if (tokens_.accept("~")) {
      Operand made = literal(tokens_.take(), false);
      made.value = ~made.value;
      return made;
    }
    const std::string_view word = tokens_.word();
    Operand made;
    if (word == "_") return made;
    if (const Named* const named = find(word)) {
      made.kind = named->is_register ? Kind::kRegister : Kind::kVariable;
      made.index = named->index;
    } else {
      made.kind = word.starts_with('%') ? Kind::kSpecial : Kind::kName;
    }
    made.name = word;
    if (made.kind == Kind::kName || made.kind == Kind::kVariable) {  // x+4 in mov
      if (tokens_.accept("+")) made.value = number(tokens_.take());
    }
    return made;
  }

  Operand literal(const Token& token, bool negative) const {
    Operand made;
    const std::string text(token.text);
    if (token.kind != Token::Kind::kNumber)
      tokens_.fail("a number is missing before '" + text + "'");
    if (text.size() > 2 && text[0] == '0' &&
        std::string_view("fFdD").find(text[1]) != std::string::npos) {
      const bool is_double = text[1] == 'd' || text[1] == 'D';
      made.kind = is_double ? Kind::kFloat64 : Kind::kFloat32;
      made.value = digits(std::string_view(text).substr(2), 16);
      if (negative) made.value ^= is_double ? uint64_t{1} << 63 : uint64_t{1} << 31;
    } else if (text.find('.') != std::string::npos) {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size())
        tokens_.fail("'" + text + "' is no number");
      made.kind = Kind::kFloat64;
      made.value = std::bit_cast<uint64_t>(negative ? -value : value);
    } else {
      made.kind = Kind::kInteger;
      made.value = negative ? uint64_t{0} - number(token) : number(token);
    }
    return made;
  }

  uint64_t digits(std::string_view text, int base) const {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
      tokens_.fail("'" + std::string(text) + "' is no number");
    return value;
  }

  uint64_t number(const Token& token) const {
    std::string_view text = token.text;
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    if (text.ends_with('U')) text.remove_suffix(1);
    const bool prefixed = text.size() > 1 && text[0] == '0';
    uint64_t value = 0;
    if (prefixed && (text[1] == 'x' || text[1] == 'X'))
      value = digits(text.substr(2), 16);
    else if (prefixed && (text[1] == 'b' || text[1] == 'B'))
      value = digits(text.substr(2), 2);
    else
      value = digits(text, prefixed ? 8 : 10);
    return negative ? uint64_t{0} - value : value;
  }

  Tokens tokens_;
  Module module_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  std::string negative_;
};

}  // namespace

Type type_of(std::string_view word) {
  struct One {
    std::string_view name;
    Type::Kind kind;
    uint32_t bytes;
  };
  using Kind = Type::Kind;
  static constexpr std::array kTypes{
      One{"b8", Kind::kBits, 1},      One{"b16", Kind::kBits, 2},
      One{"b32", Kind::kBits, 4},     One{"b64", Kind::kBits, 8},
      One{"b128", Kind::kBits, 16},   One{"u8", Kind::kUnsigned, 1},
      One{"u16", Kind::kUnsigned, 2}, One{"u32", Kind::kUnsigned, 4},
      One{"u64", Kind::kUnsigned, 8}, One{"s8", Kind::kSigned, 1},
      One{"s16", Kind::kSigned, 2},   One{"s32", Kind::kSigned, 4},
      One{"s64", Kind::kSigned, 8},   One{"f16", Kind::kFloat, 2},
      One{"f16x2", Kind::kFloat, 4},  One{"bf16", Kind::kFloat, 2},
      One{"bf16x2", Kind::kFloat, 4}, One{"tf32", Kind::kFloat, 4},
      One{"f32", Kind::kFloat, 4},    One{"f32x2", Kind::kFloat, 8},
      One{"f64", Kind::kFloat, 8},    One{"e4m3", Kind::kFloat, 1},
      One{"e5m2", Kind::kFloat, 1},   One{"e4m3x2", Kind::kFloat, 2},
      One{"e5m2x2", Kind::kFloat, 2}, One{"pred", Kind::kPredicate, 4},
  };
  for (const One& one : kTypes)
    if (one.name == word) return {one.kind, one.bytes, std::string(word)};
  return {};
}

Module parse(std::string_view text) {
  Module module = Parser(text).parse();
  const std::map<std::string, uint32_t> registers = registers_said(text);
  for (const auto& function : module.functions)
    if (const auto it = registers.find(function->name); it != registers.end())
      function->registers_of_thread = it->second;
  return module;
}

}  // namespace simgpu::ptx
