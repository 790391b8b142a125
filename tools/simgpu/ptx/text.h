// PTX text as a module: names resolved, nothing decoded yet.
//
// Source of the grammar: NVIDIA, "PTX ISA" (chapters 4, 5, 7 and 11). Text of newer versions is
// taken as long as its instructions are known (decode.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace simgpu::ptx {

// One line that says what is wrong with the text, and in which line of it.
struct TextError : std::runtime_error {
  TextError(int line, const std::string& problem)
      : std::runtime_error("line " + std::to_string(line) + ": " + problem) {}
};

enum class Space { kGeneric, kGlobal, kShared, kLocal, kConst, kParam };

// .u32, .f16x2, ...: how many bytes a value has and how its bits are read.
struct Type {
  enum class Kind { kNone, kBits, kUnsigned, kSigned, kFloat, kPredicate };
  Kind kind = Kind::kNone;
  uint32_t bytes = 0;
  std::string name;  // without the dot

  bool operator==(const Type& other) const { return name == other.name; }
  explicit operator bool() const { return kind != Kind::kNone; }
};
// kNone where the word is no type.
Type type_of(std::string_view word);

// Who else may use a name: of the modules that are linked the own one alone, or all; of several
// that are weak one counts.
enum class Linkage : uint8_t { kOwn, kVisible, kWeak };

// A part of a variable's first value: bytes, or the address of a name.
struct Initial {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  uint64_t value = 0;
  std::string name;  // not empty: its address + value
};

struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  uint32_t alignment = 1;
  uint64_t bytes = 0;      // 0: .extern .shared x[], whose size the launch gives
  bool is_extern = false;  // .extern: another module's, or dynamic shared memory
  Linkage linkage = Linkage::kOwn;
  std::vector<Initial> initial;
  int line = 0;
};

struct Operand {
  enum class Kind {
    kRegister,  // `index` of the function's registers
    kSpecial,   // %tid.x: `name`
    kInteger,   // `value`
    kFloat32,   // `value`: its bits
    kFloat64,   // `value`: its bits
    kName,      // a variable, label or function
    kVariable,  // `index` of the function's variables
    kAddress,   // `parts[0]` + `value`, or `value` alone where there is none
    kVector,    // `parts`
    kSink,      // _
  };
  Kind kind = Kind::kSink;
  uint32_t index = 0;
  uint64_t value = 0;
  std::string name;
  std::vector<Operand> parts;
  bool negated = false;  // !p
  int second = -1;       // p|q: the register of q
};

struct Instruction {
  int line = 0;
  int guard = -1;  // register of the predicate
  bool guard_negated = false;
  std::string text;                // add.rn.f32
  std::vector<std::string> words;  // add, rn, f32
  std::vector<Operand> operands;
  // call: (results), callee, (arguments), prototype: operands has these in the order of the text.
  uint32_t results = 0, arguments = 0;
  uint32_t scope = 0;
};

struct Parameter {
  std::string name;
  Type type;
  uint32_t alignment = 1;
  uint64_t bytes = 0;
  uint64_t offset = 0;  // in the packed buffer: natural alignment, in order
  bool is_register = false;
  uint32_t index = 0;  // of the function's registers, or of its variables
};

struct Function {
  std::string name;
  bool is_entry = false, has_body = false;
  Linkage linkage = Linkage::kOwn;
  std::vector<Parameter> results, parameters;
  std::vector<Type> registers;      // their types
  std::vector<Variable> variables;  // .shared, .local and .param of the body
  std::vector<Instruction> instructions;
  std::map<std::string, uint32_t> labels;  // "scope name" to the index of an instruction
  std::vector<uint32_t> parent_scopes;     // of scope i
  std::map<std::string, std::vector<std::string>> branch_targets;  // .branchtargets
  uint32_t cluster[3] = {0, 0, 0};                                 // .reqnctapercluster
  uint32_t block[3] = {0, 0, 0};                                   // .reqntid
  uint64_t most_threads = 0;                                       // .maxntid
  uint32_t registers_of_thread = 0;  // that ptxas needs for it; 0: the text does not say
  int line = 0;

  uint64_t parameter_bytes() const {
    return parameters.empty() ? 0 : parameters.back().offset + parameters.back().bytes;
  }
};

struct Module {
  int version = 0;  // 90: 9.0
  std::string target;
  std::vector<Variable> variables;
  std::vector<std::unique_ptr<Function>> functions;
};

// The next multiple of `to`, a power of two.
constexpr uint64_t align(uint64_t at, uint64_t to) { return (at + to - 1) / to * to; }

// Each .version begins a module; several are linked. Lines of comment may have what ptxas says of a
// kernel, of which its registers are taken:
//   // ptxas sm_90: NAME: 32 registers, 0 bytes shared
// Throws TextError.
Module parse(std::string_view text);

// Makes one module of several, as a linker does. Throws TextError where a name has two meanings.
Module link(std::vector<Module> modules);

}  // namespace simgpu::ptx
