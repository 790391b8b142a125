#include "ptx/decode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "ptx/instructions.h"
#include "ptx/lanes.h"

namespace simgpu::ptx {
namespace {

using OperandKind = Operand::Kind;
using CodeKind = Code::Kind;

constexpr uint32_t kNowhere = ~uint32_t{0};

std::optional<Special> special_of(std::string_view name) {
  // In the order of Special.
  // clang-format off
  static constexpr std::array<std::string_view, 43> kNames{
      "%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y",
      "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid", "%warpid", "%nwarpid", "%smid",
      "%nsmid", "%gridid", "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge",
      "%lanemask_gt", "%dynamic_smem_size", "%total_smem_size", "%clusterid.x", "%clusterid.y",
      "%clusterid.z", "%nclusterid.x", "%nclusterid.y", "%nclusterid.z", "%cluster_ctaid.x",
      "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_nctaid.x", "%cluster_nctaid.y",
      "%cluster_nctaid.z", "%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster",
      "%envreg1", "%envreg2", "%aggr_smem_size"};
  // clang-format on
  static_assert(kNames.size() == static_cast<size_t>(Special::kZero) + 1);
  const auto it = std::ranges::find(kNames, name);
  if (it == kNames.end()) return std::nullopt;
  return static_cast<Special>(it - kNames.begin());
}

// Where the names of a module are.
struct Addresses {
  std::map<std::string, uint64_t> variables;
  std::map<std::string, uint32_t> routines;  // numbers
  uint64_t shared_bytes = 0;                 // of the module's own .shared variables
};

// Splits an instruction's words: what changes rounding or marks it only, and the rest.
struct Words {
  std::vector<std::string> rest;  // rest[0] is the instruction's name
  FloatMode mode;
  bool saturate = false, relu = false, approximate = false, full = false;
  uint8_t whole = 4;  // rounding to a whole number (FloatMode::Rounding); 4: none
  bool has(std::string_view word) const { return std::ranges::find(rest, word) != rest.end(); }
  std::string joined() const {
    std::string text;
    for (const std::string& word : rest) text += (text.empty() ? "" : ".") + word;
    return text;
  }
  Type type(size_t from_end = 0) const {
    return from_end < rest.size() ? type_of(rest[rest.size() - 1 - from_end]) : Type{};
  }
};

Words words_of(const Instruction& instruction) {
  Words words;
  for (const std::string& word : instruction.words) {
    if (word == "rn" || word == "rna" || word == "uni" || word == "aligned" ||
        word == "satfinite") {
    } else if (word == "rz") {
      words.mode.rounding = FloatMode::kZero;
    } else if (word == "rm") {
      words.mode.rounding = FloatMode::kDown;
    } else if (word == "rp") {
      words.mode.rounding = FloatMode::kUp;
    } else if (word == "ftz") {
      words.mode.flush = true;
    } else if (word == "sat") {
      words.saturate = true;
    } else if (word == "relu") {
      words.relu = true;
    } else if (word == "approx") {
      words.approximate = true;
    } else if (word == "full") {
      words.approximate = words.full = true;
    } else if (word == "rni" || word == "rzi" || word == "rmi" || word == "rpi") {
      words.whole = word == "rni"   ? FloatMode::kNearest
                    : word == "rzi" ? FloatMode::kZero
                    : word == "rmi" ? FloatMode::kDown
                                    : FloatMode::kUp;
    } else {
      words.rest.push_back(word);
    }
  }
  return words;
}

class FunctionDecoder {
 public:
  FunctionDecoder(const Function& function, const Addresses& addresses)
      : function_(function), addresses_(addresses) {}

  Routine decode(uint64_t& shared_bytes) {
    routine_.name = function_.name;
    lay_out(shared_bytes);
    std::vector<uint32_t> starts;
    for (const Instruction& one : function_.instructions) {
      starts.push_back(static_cast<uint32_t>(routine_.code.size()));
      instruction_ = &one;
      if (!angles_.empty() && is_label(starts.size() - 1)) angles_.clear();
      instruction();
      if (!one.operands.empty()) angles_.erase(one.operands[0].index);
    }
    starts.push_back(static_cast<uint32_t>(routine_.code.size()));
    add_plain(CodeKind::kReturn);  // behind the last one
    for (Code& code : routine_.code)
      if (code.kind == CodeKind::kBranch) code.value = starts.at(code.value);
    for (const uint32_t target : targets_)
      routine_.lists[target] = starts.at(routine_.lists[target]);
    routine_.frame_bytes = static_cast<uint32_t>(align(routine_.frame_bytes, 64));
    return std::move(routine_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw TextError(instruction_ != nullptr ? instruction_->line : function_.line, problem);
  }
  [[noreturn]] void unknown() const {
    fail("the instruction " + instruction_->text + " is not known");
  }

  // --- places

  uint32_t room(uint64_t bytes) {
    const uint64_t at = align(routine_.frame_bytes, 64);
    if (at + bytes > (uint64_t{1} << 28))
      fail("function " + function_.name + " has too many registers");
    routine_.frame_bytes = static_cast<uint32_t>(at + bytes);
    return static_cast<uint32_t>(at);
  }
  uint32_t room_for(const Type& type) {
    if (type.kind == Type::Kind::kPredicate) return room(4);
    return room(uint64_t{kLanes} * (type.bytes == 16 ? 16 : type.bytes == 8 ? 8 : 4));
  }

  void lay_out(uint64_t& shared_bytes) {
    for (const Type& one : function_.registers) registers_.push_back(room_for(one));
    uint64_t local = 0;
    for (const Variable& one : function_.variables) {
      if (one.space == Space::kShared) {
        shared_bytes = align(shared_bytes, one.alignment);
        variables_.push_back(shared_bytes);
        shared_bytes += one.bytes;
      } else if (one.space == Space::kLocal) {
        local = align(local, one.alignment);
        variables_.push_back(local);
        local += one.bytes;
      } else if (one.space == Space::kParam) {
        variables_.push_back(is_kernel_parameter(variables_.size())
                                 ? kernel_parameter(variables_.size()).offset
                                 : room(lane_bytes(one.bytes) * kLanes));
      } else {
        throw TextError(one.line, "a variable of a function is .shared, .local or .param");
      }
    }
    routine_.local_bytes = static_cast<uint32_t>(align(local, 16));
    for (const Parameter& one : function_.parameters) routine_.parameters.push_back(passed(one));
    for (const Parameter& one : function_.results) routine_.results.push_back(passed(one));
  }

  static uint64_t lane_bytes(uint64_t bytes) { return align(std::max<uint64_t>(bytes, 8), 8); }

  bool is_kernel_parameter(size_t variable) const {
    return function_.is_entry && variable < function_.parameters.size();
  }
  const Parameter& kernel_parameter(size_t variable) const {
    return function_.parameters[variable];
  }

  Routine::Passed passed(const Parameter& one) const {
    if (function_.is_entry) return {};
    if (one.is_register) return {registers_[one.index], kLanes * (one.type.bytes == 8 ? 8U : 4U)};
    return {static_cast<uint32_t>(variables_[one.index]),
            static_cast<uint32_t>(lane_bytes(one.bytes) * kLanes)};
  }

  uint32_t constant(uint64_t value, const Type& type) {
    if (type.kind == Type::Kind::kPredicate) {
      const uint32_t at = room(4);
      routine_.constants.push_back({at, false, value != 0 ? kAllLanes : 0, 1});
      return at;
    }
    const bool wide = type.bytes == 8;
    if (!wide && type.bytes < 4) value &= (uint64_t{1} << (8 * type.bytes)) - 1;
    const auto [it, fresh] = constants_.try_emplace({value, wide}, 0);
    if (fresh) {
      it->second = room_for(type);
      routine_.constants.push_back({it->second, wide, value});
    }
    return it->second;
  }
  uint32_t special(Special which, bool wide) {
    const auto [it, fresh] = specials_.try_emplace({which, wide}, 0);
    if (fresh) {
      it->second = room(kLanes * (wide ? 8 : 4));
      routine_.specials.push_back({it->second, wide, which});
    }
    return it->second;
  }

  static uint64_t literal(const Operand& operand, const Type& type) {
    const bool is_float = type.kind == Type::Kind::kFloat || type.kind == Type::Kind::kBits;
    if (operand.kind == OperandKind::kInteger) return operand.value;
    if (operand.kind == OperandKind::kFloat32)
      return type.bytes == 8 && is_float
                 ? std::bit_cast<uint64_t>(static_cast<double>(
                       std::bit_cast<float>(static_cast<uint32_t>(operand.value))))
                 : operand.value;
    return type.bytes == 4
               ? std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.value)))
               : operand.value;
  }

  const Type& register_type(const Operand& operand) const {
    return function_.registers[operand.index];
  }
  static bool same_place(const Type& a, const Type& b) {
    const auto width = [](const Type& t) {
      return t.kind == Type::Kind::kPredicate ? 1 : t.bytes == 16 ? 16 : t.bytes == 8 ? 8 : 4;
    };
    return width(a) == width(b);
  }

  // What a name's address is; in a register where it is only known in a call.
  std::optional<uint64_t> address_of(const Operand& operand) const {
    if (operand.kind == OperandKind::kVariable) {
      const Variable& one = function_.variables[operand.index];
      if (one.space == Space::kLocal) return std::nullopt;
      return variables_[operand.index] + operand.value;
    }
    if (const auto it = addresses_.variables.find(operand.name); it != addresses_.variables.end())
      return it->second + operand.value;
    if (const auto it = addresses_.routines.find(operand.name); it != addresses_.routines.end())
      return kCodeWindow | it->second;
    fail("'" + operand.name + "' is not known");
  }

  uint32_t source(const Operand& operand, const Type& type) {
    switch (operand.kind) {
      case OperandKind::kRegister: {
        if (!same_place(register_type(operand), type))
          fail("'" + operand.name + "' has another size than ." + type.name);
        return operand.negated ? inverted(registers_[operand.index]) : registers_[operand.index];
      }
      case OperandKind::kSpecial:
        if (operand.name == "WARP_SZ") return constant(kLanes, type);
        if (operand.name.starts_with("%clock") || operand.name.starts_with("%globaltimer")) {
          Code code = plain(CodeKind::kPlain);
          code.handler = &read_clock;
          code.d = room_for(type);
          code.wide_d = type.bytes == 8;
          add(code);
          return code.d;
        }
        if (const auto which = special_of(operand.name)) return special(*which, type.bytes == 8);
        if (operand.name.starts_with("%envreg")) return constant(0, type);
        fail("'" + operand.name + "' is not known");
      case OperandKind::kInteger:
      case OperandKind::kFloat32:
      case OperandKind::kFloat64:
        return constant(literal(operand, type), type);
      case OperandKind::kName:
        if (operand.name == "WARP_SZ") return constant(kLanes, type);
        [[fallthrough]];
      case OperandKind::kVariable: {
        if (const auto known = address_of(operand)) return constant(*known, type);
        Code code = plain(CodeKind::kPlain);  // a .local variable
        code.handler = &add_local_base;
        code.d = room_for(type);
        code.wide_d = type.bytes == 8;
        code.a = special(Special::kLocalBase, false);
        code.value = variables_[operand.index] + operand.value;
        add(code);
        return code.d;
      }
      default:
        fail("an operand of " + instruction_->text + " has no such form");
    }
  }

  uint32_t destination(const Operand& operand, const Type& type) {
    if (operand.kind == OperandKind::kSink) return room_for(type);
    if (operand.kind != OperandKind::kRegister)
      fail("a result of " + instruction_->text + " is no register");
    if (!same_place(register_type(operand), type))
      fail("'" + operand.name + "' has another size than ." + type.name);
    return registers_[operand.index];
  }

  uint32_t inverted(uint32_t predicate) {
    Code code = plain(CodeKind::kPlain);
    code.handler = row("not.pred").handler;
    code.a = code.b = predicate;
    code.d = room(4);
    add(code);
    return code.d;
  }

  const Operand& operand(size_t i) const {
    if (i >= instruction_->operands.size()) fail(instruction_->text + " has too few operands");
    return instruction_->operands[i];
  }
  void expect_operands(size_t count) const {
    if (instruction_->operands.size() != count)
      fail(instruction_->text + " has " + std::to_string(instruction_->operands.size()) +
           " operands, not " + std::to_string(count));
  }

  // --- code

  const Row& row(const std::string& name) const {
    const auto it = rows().find(name);
    if (it == rows().end()) unknown();
    return it->second;
  }

  Code plain(CodeKind kind) const {
    Code code;
    code.kind = kind;
    code.line =
        static_cast<uint32_t>(instruction_ != nullptr ? instruction_->line : function_.line);
    return code;
  }
  void add_plain(CodeKind kind) {
    instruction_ = nullptr;
    routine_.code.push_back(plain(kind));
  }
  void add(Code code) {
    if (instruction_->guard >= 0) {
      code.guard = guard_place_ != kNowhere ? guard_place_
                                            : registers_[static_cast<size_t>(instruction_->guard)];
      code.guarded = instruction_->guard_negated ? Code::Guard::kFalse : Code::Guard::kTrue;
    }
    routine_.code.push_back(code);
  }
  // Where an instruction is several codes and writes its own guard, the guard is kept.
  void keep_guard() {
    if (instruction_->guard < 0) return;
    Code code = plain(CodeKind::kPlain);
    code.handler = row("mov.pred").handler;
    code.a = code.b = registers_[static_cast<size_t>(instruction_->guard)];
    code.d = room(4);
    routine_.code.push_back(code);
    guard_place_ = code.d;
  }
  uint32_t list_of(std::span<const uint32_t> places) {
    const auto at = static_cast<uint32_t>(routine_.lists.size());
    routine_.lists.insert(routine_.lists.end(), places.begin(), places.end());
    return at;
  }

  // d, a, b, c of the row, which `further` operands follow.
  Code code_of(const Row& found, size_t further = 0) {
    expect_operands(2 + static_cast<size_t>(static_cast<bool>(found.b)) +
                    static_cast<size_t>(static_cast<bool>(found.c)) + further);
    Code code = plain(CodeKind::kPlain);
    code.handler = found.handler;
    code.a = source(operand(1), found.a);
    if (found.b) code.b = source(operand(2), found.b);
    if (found.c) code.c = source(operand(3), found.c);
    code.d = destination(operand(0), found.d);
    return code;
  }
  static constexpr uint8_t one_of(Count count) { return 1 + static_cast<uint8_t>(count); }

  // 1 + Count of what machine code makes several instructions of; 0: it is not of these. With .ftz
  // an approximation needs no scaling.
  static uint8_t special_count(const Words& words) {
    struct Kind {
      std::string_view name;
      Count f32, f64, approximate;
    };
    static constexpr Kind kKinds[] = {
        {"div", Count::kDivF32, Count::kDivF64, Count::kApproxDivF32},
        {"rcp", Count::kRcpF32, Count::kRcpF64, Count::kApproxRcpF32},
        {"sqrt", Count::kSqrtF32, Count::kSqrtF64, Count::kApproxSqrtF32},
        {"rsqrt", Count::kThreads, Count::kThreads, Count::kApproxRsqrtF32},
        {"ex2", Count::kThreads, Count::kThreads, Count::kApproxEx2F32},
        {"lg2", Count::kThreads, Count::kThreads, Count::kApproxLg2F32},
        {"sin", Count::kThreads, Count::kThreads, Count::kApproxSinCosF32},
        {"cos", Count::kThreads, Count::kThreads, Count::kApproxSinCosF32}};
    const auto kind = std::ranges::find(kKinds, words.rest[0], &Kind::name);
    if (kind == std::end(kKinds)) return 0;
    const std::string type = words.type().name;
    Count count = Count::kThreads;
    if (type == "f64" && !words.approximate) count = kind->f64;
    if (type == "f32" && !words.approximate) count = kind->f32;
    const bool scaled = !words.mode.flush || kind->approximate == Count::kApproxSinCosF32;
    if (type == "f32" && words.approximate && scaled) count = kind->approximate;
    if (words.full && count == Count::kApproxDivF32) count = Count::kFullDivF32;
    return count == Count::kThreads ? 0 : one_of(count);
  }

  void by_row(const Row& found, const Words& words) {
    Code code = code_of(found);
    code.count = found.count != 0 ? found.count : special_count(words);
    if (code.count == one_of(Count::kApproxSinCosF32) && !angles_.insert(operand(1).index).second)
      code.count = 0;
    code.mode = words.mode;
    code.option = words.whole;
    finish(code, found.d, words);
  }

  // Adds the code, and what .relu and .sat make of its result.
  void finish(Code code, const Type& type, const Words& words) {
    std::vector<std::string> behind;
    if (words.relu) behind.emplace_back("relu.");
    if (words.saturate && type.kind == Type::Kind::kFloat) behind.emplace_back("saturate.");
    const uint32_t result = code.d;
    for (const std::string& name : behind) {
      code.d = room_for(type);
      add(code);
      code.handler = row(name + type.name).handler;
      code.a = code.d;
      code.count = 0;
    }
    code.d = result;
    add(code);
  }

  void instruction() {
    guard_place_ = kNowhere;
    const Words words = words_of(*instruction_);
    using Method = void (FunctionDecoder::*)(const Words&);
    static const std::unordered_map<std::string_view, Method> kMethods{
        {"mov", &FunctionDecoder::move},
        {"ld", &FunctionDecoder::load},
        {"ldu", &FunctionDecoder::load},
        {"st", &FunctionDecoder::store},
        {"atom", &FunctionDecoder::atomic},
        {"red", &FunctionDecoder::atomic},
        {"setp", &FunctionDecoder::set_predicate},
        {"set", &FunctionDecoder::set},
        {"cvt", &FunctionDecoder::convert},
        {"cvta", &FunctionDecoder::convert_address},
        {"isspacep", &FunctionDecoder::is_in_space},
        {"mapa", &FunctionDecoder::map_to_rank},
        {"getctarank", &FunctionDecoder::rank_of_address},
        {"bra", &FunctionDecoder::branch},
        {"brx", &FunctionDecoder::branch_indexed},
        {"call", &FunctionDecoder::call},
        {"ret", &FunctionDecoder::give_back},
        {"exit", &FunctionDecoder::exit},
        {"trap", &FunctionDecoder::trapped},
        {"brkpt", &FunctionDecoder::trapped},
        {"bar", &FunctionDecoder::barrier},
        {"barrier", &FunctionDecoder::barrier},
        {"shfl", &FunctionDecoder::shuffled},
        {"vote", &FunctionDecoder::voted},
        {"match", &FunctionDecoder::matched},
        {"redux", &FunctionDecoder::reduced},
        {"activemask", &FunctionDecoder::active_lanes},
        {"elect", &FunctionDecoder::elected},
        {"mad", &FunctionDecoder::multiply_add},
        {"madc", &FunctionDecoder::multiply_add},
        {"add", &FunctionDecoder::sum},
        {"addc", &FunctionDecoder::sum},
        {"sub", &FunctionDecoder::sum},
        {"subc", &FunctionDecoder::sum},
        {"bfi", &FunctionDecoder::insert_bits},
        {"lop3", &FunctionDecoder::logic},
        {"nanosleep", &FunctionDecoder::sleep},
        {"cp", &FunctionDecoder::copy},
        {"mbarrier", &FunctionDecoder::barrier_objects},
        {"mma", &FunctionDecoder::matrix},
        {"wmma", &FunctionDecoder::matrix},
        {"ldmatrix", &FunctionDecoder::matrix},
        {"stmatrix", &FunctionDecoder::matrix},
        {"movmatrix", &FunctionDecoder::matrix},
        {"wgmma", &FunctionDecoder::warpgroup},
        // Of no effect here: memory is coherent, and there are no caches.
        {"membar", &FunctionDecoder::none},
        {"fence", &FunctionDecoder::none},
        {"prefetch", &FunctionDecoder::none},
        {"prefetchu", &FunctionDecoder::none},
        {"discard", &FunctionDecoder::none},
        {"applypriority", &FunctionDecoder::none},
        {"pmevent", &FunctionDecoder::none},
        {"griddepcontrol", &FunctionDecoder::none},
        {"setmaxnreg", &FunctionDecoder::none},
    };
    if (const auto it = kMethods.find(words.rest[0]); it != kMethods.end())
      return (this->*it->second)(words);
    by_name(words);
  }

  void by_name(const Words& words) {
    std::string name = words.joined();
    if (words.approximate && words.type().name == "f64") name.insert(name.find('.'), ".approx");
    if (words.saturate && words.type().kind == Type::Kind::kSigned)
      name.insert(name.find('.'), ".sat");
    by_row(row(name), words);
  }

  void none(const Words&) {}

  void move(const Words& words) {
    expect_operands(2);
    const Type type = words.type();
    if (!type) unknown();
    const Operand &to = operand(0), &from = operand(1);
    if (to.kind == OperandKind::kVector || from.kind == OperandKind::kVector)
      return move_parts(to, from, type);
    if (type.kind == Type::Kind::kPredicate) {
      Code code = plain(CodeKind::kPlain);
      code.handler = row("mov.pred").handler;
      code.a = code.b = source(from, type);
      code.d = destination(to, type);
      return add(code);
    }
    const Type bits = type_of("b" + std::to_string(8 * type.bytes));
    Code code = plain(CodeKind::kPlain);
    code.handler = row("mov." + bits.name).handler;
    code.a = source(from, type);
    code.d = destination(to, type);
    add(code);
  }

  void move_parts(const Operand& to, const Operand& from, const Type& type) {
    const bool packs = from.kind == OperandKind::kVector;
    const std::vector<Operand>& parts = packs ? from.parts : to.parts;
    if (parts.size() < 2 || parts.size() > 4 || type.bytes % parts.size() != 0 || type.bytes > 8)
      unknown();
    const auto part_bytes = static_cast<uint32_t>(type.bytes / parts.size());
    const Type part = type_of("b" + std::to_string(8 * part_bytes));
    std::vector<uint32_t> places;
    for (const Operand& one : parts)
      places.push_back(packs ? source(one, part) : destination(one, part));
    Code code = plain(CodeKind::kPlain);
    code.handler = packs ? &pack : &unpack;
    code.option = static_cast<uint8_t>(part_bytes);
    code.wide_d = code.wide_a = type.bytes == 8;
    code.list = list_of(places);
    code.list_size = static_cast<uint32_t>(places.size());
    if (packs)
      code.d = destination(to, type);
    else
      code.a = source(from, type);
    add(code);
  }

  // --- memory

  static Space space_in(const Words& words) {
    for (const std::string& word : words.rest) {
      if (word.starts_with("global")) return Space::kGlobal;
      if (word.starts_with("shared")) return Space::kShared;
      if (word == "local") return Space::kLocal;
      if (word == "const") return Space::kConst;
      if (word.starts_with("param")) return Space::kParam;
    }
    return Space::kGeneric;
  }

  // Fills a (or nothing) and value of the code by an operand [address].
  void address(Code& code, const Operand& where) {
    if (where.kind != OperandKind::kAddress) fail("an address is missing in " + instruction_->text);
    code.value = where.value;
    code.fixed_address = true;
    if (where.parts.empty()) return;
    const Operand& base = where.parts[0];
    if (base.kind == OperandKind::kRegister) {
      code.fixed_address = false;
      code.wide_a = register_type(base).bytes == 8;
      code.a = registers_[base.index];
      return;
    }
    if (const auto known = address_of(base)) {
      code.value += *known;
      // A variable of shared memory in an instruction without a space would need a window.
      return;
    }
    code.fixed_address = false;
    code.a = special(Special::kLocalBase, false);
    code.wide_a = false;
    code.value += variables_[base.index];
  }

  std::vector<uint32_t> values(const Operand& one, const Type& type, bool is_source, bool& wide) {
    std::vector<uint32_t> places;
    const auto each = [&](const Operand& part) {
      // A register may be wider than the value.
      Type as = type;
      if (part.kind == OperandKind::kRegister && !same_place(register_type(part), type)) {
        if (register_type(part).bytes < type.bytes) fail("'" + part.name + "' is too small");
        as = register_type(part);
      }
      wide = as.bytes == 8;
      places.push_back(is_source ? source(part, as) : destination(part, as));
    };
    if (one.kind == OperandKind::kVector)
      std::ranges::for_each(one.parts, each);
    else
      each(one);
    return places;
  }

  static uint32_t elements_in(const Words& words) {
    return words.has("v2") ? 2 : words.has("v4") ? 4 : words.has("v8") ? 8 : 1;
  }

  void access(const Words& words, const Operand& where, const Operand& value, bool is_load) {
    const Type type = words.type();
    if (!type || type.bytes > 8 || type.kind == Type::Kind::kPredicate) unknown();
    Code code = plain(CodeKind::kPlain);
    code.space = space_in(words);
    bool wide = false;
    const std::vector<uint32_t> places = values(value, type, !is_load, wide);
    if (places.size() != elements_in(words))
      fail(instruction_->text + " has another number of values");
    code.wide_d = wide;
    code.list = list_of(places);
    code.list_size = static_cast<uint32_t>(places.size());
    if (code.space == Space::kParam && !where.parts.empty() &&
        where.parts[0].kind == OperandKind::kVariable &&
        !is_kernel_parameter(where.parts[0].index)) {
      const Variable& one = function_.variables[where.parts[0].index];
      if (where.value + type.bytes * places.size() > lane_bytes(one.bytes))
        fail("'" + one.name + "' is smaller");
      code.handler = is_load ? &load_frame : &store_frame;
      code.a = static_cast<uint32_t>(variables_[where.parts[0].index]);
      code.b = static_cast<uint32_t>(lane_bytes(one.bytes));
      code.value = where.value;
      code.option = static_cast<uint8_t>(type.bytes) |
                    static_cast<uint8_t>(type.kind == Type::Kind::kSigned ? 0x80 : 0);
      return add(code);
    }
    address(code, where);
    const bool strong = std::ranges::any_of(
        std::initializer_list<std::string_view>{"volatile", "relaxed", "acquire", "release"},
        [&](std::string_view word) { return words.has(word); });
    code.handler = strong ? (is_load ? strong_load_handler(type) : strong_store_handler(type))
                          : (is_load ? load_handler(type) : store_handler(type));
    add(code);
  }
  void load(const Words& words) { access(words, operand(1), operand(0), true); }
  void store(const Words& words) { access(words, operand(0), operand(1), false); }

  void atomic(const Words& words) {
    const bool gives = words.rest[0] == "atom";
    const Type type = words.type();
    std::string operation;
    for (const std::string& word : words.rest)
      for (const std::string_view known :
           {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"})
        if (word == known) operation = word;
    Code code = plain(CodeKind::kPlain);
    code.handler =
        type && !words.has("v2") && !words.has("v4") ? atomic_handler(operation, type) : nullptr;
    if (code.handler == nullptr) unknown();
    code.space = space_in(words);
    const size_t at = gives ? 1 : 0;
    address(code, operand(at));
    code.b = source(operand(at + 1), type);
    if (operation == "cas") code.c = source(operand(at + 2), type);
    code.option = gives ? 1 : 0;
    if (gives) code.d = destination(operand(0), type);
    if (operation == "add" && code.space == Space::kShared) {
      if (type.name == std::string_view("f32")) code.count = one_of(Count::kSharedAddF32);
      if (type.name == std::string_view("f64")) code.count = one_of(Count::kSharedAddF64);
    }
    add(code);
  }

  void convert_address(const Words& words) {
    expect_operands(2);
    const Type type = words.type();
    const Space space = space_in(words);
    const uint64_t window = space == Space::kShared  ? kSharedWindow
                            : space == Space::kLocal ? kLocalWindow
                            : space == Space::kParam ? kParamWindow
                                                     : 0;
    Code code = plain(CodeKind::kPlain);
    code.handler = &to_window;
    code.value = words.has("to") ? uint64_t{0} - window : window;
    code.wide_d = type.bytes == 8;
    code.a = source(operand(1), type);
    code.d = destination(operand(0), type);
    if (!code.wide_d && window != 0) fail("generic addresses have 64 bits");
    add(code);
  }

  void map_to_rank(const Words& words) {
    expect_operands(3);
    const Type type = words.type();
    Code code = plain(CodeKind::kPlain);
    code.handler = &map_address;
    code.wide_d = type.bytes == 8;
    code.a = source(operand(1), type);
    code.b = source(operand(2), type_of("u32"));
    code.d = destination(operand(0), type);
    add(code);
  }
  void rank_of_address(const Words& words) {
    expect_operands(2);
    const Type type = words.type();
    Code code = plain(CodeKind::kPlain);
    code.handler = &rank_at;
    code.wide_a = type.bytes == 8;
    code.a = source(operand(1), type);
    code.d = destination(operand(0), type_of("u32"));
    add(code);
  }

  void is_in_space(const Words& words) {
    expect_operands(2);
    Code code = plain(CodeKind::kPlain);
    code.handler = &in_window;
    const Space space = space_in(words);
    code.value = space == Space::kShared  ? 1
                 : space == Space::kLocal ? 2
                 : space == Space::kParam ? 3
                                          : 0;
    code.a = source(operand(1), type_of("b64"));
    code.d = destination(operand(0), type_of("pred"));
    add(code);
  }

  void copy(const Words& words) {
    if (words.rest.size() > 1 && words.rest[1] == "async" && !words.has("bulk") &&
        !words.has("reduce")) {
      if (words.has("commit_group") || words.has("wait_group") || words.has("wait_all")) return;
      if (words.has("mbarrier")) {
        // The copies of a thread are done: it arrives. Without .noinc it is one more arrival.
        if (!words.has("arrive") || !words.has("noinc")) return;
        Code code = plain(CodeKind::kPlain);
        code.handler = barrier_object("arrive");
        code.space = Space::kShared;
        address(code, operand(0));
        code.b = constant(1, type_of("u32"));
        code.d = room_for(type_of("b64"));
        return add(code);
      }
      Code code = plain(CodeKind::kPlain);
      code.handler = &copy_async;
      address(code, operand(0));
      Code from = plain(CodeKind::kPlain);
      address(from, operand(1));
      const Operand& size = operand(2);
      if (size.kind != OperandKind::kInteger || from.fixed_address || code.fixed_address) unknown();
      if (size.value != 4 && size.value != 8 && size.value != 16) unknown();
      code.option = static_cast<uint8_t>(size.value);
      code.b = from.a;
      code.wide_b = from.wide_a;
      const std::array<uint32_t, 2> offsets{static_cast<uint32_t>(from.value),
                                            static_cast<uint32_t>(from.value >> 32)};
      code.list = list_of(offsets);
      code.list_size = 2;
      const bool has_size = instruction_->operands.size() > 3 && !words.has("L2::cache_hint");
      code.c = has_size ? source(operand(3), type_of("u32")) : constant(size.value, type_of("u32"));
      return add(code);
    }
    if (words.has("bulk") && !words.has("reduce") && !words.has("tensor")) return copy_bulk(words);
    unknown();
  }

  // An address with its offset, in 8 bytes a lane.
  uint32_t whole_address(const Operand& where) {
    Code code = plain(CodeKind::kPlain);
    address(code, where);
    if (code.fixed_address) return constant(code.value, type_of("u64"));
    code.handler = &add_value;
    code.d = room_for(type_of("u64"));
    add(code);
    return code.d;
  }

  void copy_bulk(const Words& words) {
    // Copies are done when they are asked for.
    if (words.has("commit_group") || words.has("wait_group") || words.has("prefetch")) return;
    const bool to_shared = words.has("mbarrier::complete_tx::bytes");
    if (to_shared == words.has("bulk_group") || words.has("cp_mask") || words.rest.size() < 5)
      unknown();
    Code code = plain(CodeKind::kPlain);
    code.handler = bulk_copy(to_shared);
    code.space = words.rest[4].starts_with("shared") ? Space::kShared : Space::kGlobal;
    std::vector<uint32_t> places{whole_address(operand(0)), whole_address(operand(1)),
                                 source(operand(2), type_of("u32"))};
    if (to_shared) places.push_back(whole_address(operand(3)));
    if (words.has("multicast::cluster")) places.push_back(source(operand(4), type_of("u16")));
    code.list = list_of(places);
    code.list_size = static_cast<uint32_t>(places.size());
    add(code);
  }

  void barrier_objects(const Words& words) {
    if (words.has("pending_count")) {
      expect_operands(2);
      const Row& found = row("and.b64");
      Code code = plain(CodeKind::kPlain);
      code.handler = found.handler;
      code.a = source(operand(1), found.a);
      code.b = constant(0xf'ffff, found.b);
      code.d = room_for(found.d);
      add(code);
      Code narrow = plain(CodeKind::kPlain);
      narrow.handler = row("cvt.u32.u64").handler;
      narrow.option = 4;
      narrow.a = code.d;
      narrow.d = destination(operand(0), type_of("u32"));
      return add(narrow);
    }
    std::string operation;
    for (const std::string& word : words.rest)
      for (const std::string_view known :
           {"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait",
            "try_wait", "noComplete", "parity"})
        if (word == known) operation += (operation.empty() ? "" : ".") + word;
    Code code = plain(CodeKind::kPlain);
    code.handler = barrier_object(operation);
    if (code.handler == nullptr) unknown();
    const bool gives =
        operation.starts_with("arrive") || operation.find("wait") != std::string::npos;
    const size_t at = gives ? 1 : 0;
    code.space = space_in(words) == Space::kGeneric ? Space::kGeneric : Space::kShared;
    address(code, operand(at));
    const bool waits = operation.find("wait") != std::string::npos;
    if (instruction_->operands.size() > at + 1)
      code.b = source(operand(at + 1), waits && operation.find("parity") == std::string::npos
                                           ? type_of("b64")
                                           : type_of("u32"));
    else
      code.b = constant(1, type_of("u32"));
    if (gives) code.d = destination(operand(0), waits ? type_of("pred") : type_of("b64"));
    if (operation.starts_with("try_wait")) {
      add(code);
      code = plain(CodeKind::kYield);
    }
    add(code);
  }

  // --- predicates

  void set_predicate(const Words& words) {
    const Type pred = type_of("pred");
    if (words.rest.size() < 3) unknown();
    const std::string& relation = words.rest[1];
    std::string combined;
    if (words.rest.size() == 4) combined = words.rest[2];
    if (words.type().name.ends_with("x2")) return set_pair(words);
    const Row& found = row("setp." + relation + "." + words.type().name);
    expect_operands(combined.empty() ? 3 : 4);
    const Operand& to = operand(0);
    Code code = plain(CodeKind::kPlain);
    code.handler = found.handler;
    code.mode = words.mode;
    code.a = source(operand(1), found.a);
    code.b = source(operand(2), found.b);
    const uint32_t d = destination(to, pred);
    if (combined.empty() && to.second < 0) {
      code.d = d;
      return add(code);
    }
    keep_guard();
    code.d = room(4);
    add(code);
    const uint32_t result = code.d;
    const uint32_t with = combined.empty() ? constant(1, pred) : source(operand(3), pred);
    const auto combine = [&](uint32_t of, uint32_t into) {
      Code both = plain(CodeKind::kPlain);
      both.handler = row((combined.empty() ? "and" : combined) + ".pred").handler;
      both.a = of;
      both.b = with;
      both.d = into;
      add(both);
    };
    const uint32_t opposite = to.second >= 0 ? inverted(result) : 0;
    // Both results are worked out before one is written: it may be an operand.
    const uint32_t first = room(4);
    combine(result, first);
    if (to.second >= 0) combine(opposite, registers_[static_cast<size_t>(to.second)]);
    Code last = plain(CodeKind::kPlain);
    last.handler = row("mov.pred").handler;
    last.a = last.b = first;
    last.d = d;
    add(last);
  }

  // The halves of a packed pair.
  std::array<uint32_t, 2> halves(const Operand& one, const Type& half) {
    const std::array<uint32_t, 2> places{room_for(half), room_for(half)};
    Code code = plain(CodeKind::kPlain);
    code.handler = &unpack;
    code.option = 2;
    code.a = source(one, type_of("b32"));
    code.list = list_of(places);
    code.list_size = 2;
    add(code);
    return places;
  }
  // What each half of two pairs is compared to.
  std::array<uint32_t, 2> compared_halves(const Words& words) {
    const std::string name = words.type().name;
    const Row& found = row("setp." + words.rest[1] + "." + name.substr(0, name.size() - 2));
    const std::array<uint32_t, 2> a = halves(operand(1), found.a), b = halves(operand(2), found.b);
    const std::array<uint32_t, 2> results{room(4), room(4)};
    for (size_t i = 0; i < 2; ++i) {
      Code code = plain(CodeKind::kPlain);
      code.handler = found.handler;
      code.mode = words.mode;
      code.a = a[i];
      code.b = b[i];
      code.d = results[i];
      add(code);
    }
    return results;
  }
  void set_pair(const Words& words) {
    const Type pred = type_of("pred");
    const Operand& to = operand(0);
    expect_operands(3);
    if (words.rest.size() != 3 || to.second < 0) unknown();
    keep_guard();
    const std::array<uint32_t, 2> results = compared_halves(words);
    const std::array<uint32_t, 2> places{destination(to, pred),
                                         registers_[static_cast<size_t>(to.second)]};
    for (size_t i = 0; i < 2; ++i) {
      Code code = plain(CodeKind::kPlain);
      code.handler = row("mov.pred").handler;
      code.a = code.b = results[i];
      code.d = places[i];
      add(code);
    }
  }

  // A number in place of a predicate: 1.0 or all bits, else 0.
  void set(const Words& words) {
    if (words.rest.size() < 4) unknown();
    const Type to = words.type(1), from = words.type();
    if (from.name.ends_with("x2")) {
      expect_operands(3);
      if (words.rest.size() != 4 || to.bytes != 4) unknown();
      const uint64_t yes = to.name == "f16x2" ? 0x3c00 : to.name == "bf16x2" ? 0x3f80 : 0xffff;
      const Type half = type_of("b16");
      std::array<uint32_t, 2> numbers{room_for(half), room_for(half)};
      const std::array<uint32_t, 2> results = compared_halves(words);
      for (size_t i = 0; i < 2; ++i) {
        Code chosen = plain(CodeKind::kPlain);
        chosen.handler = row("selp.b16").handler;
        chosen.a = constant(yes, half);
        chosen.b = constant(0, half);
        chosen.c = results[i];
        chosen.d = numbers[i];
        add(chosen);
      }
      Code packed = plain(CodeKind::kPlain);
      packed.handler = &pack;
      packed.option = 2;
      packed.list = list_of(numbers);
      packed.list_size = 2;
      packed.d = destination(operand(0), to);
      return add(packed);
    }
    const Row& found = row("setp." + words.rest[1] + "." + from.name);
    Code code = plain(CodeKind::kPlain);
    code.handler = found.handler;
    code.mode = words.mode;
    code.a = source(operand(1), found.a);
    code.b = source(operand(2), found.b);
    code.d = room(4);
    add(code);
    uint32_t result = code.d;
    if (words.rest.size() == 5) {
      Code both = plain(CodeKind::kPlain);
      both.handler = row(words.rest[2] + ".pred").handler;
      both.a = result;
      both.b = source(operand(3), type_of("pred"));
      both.d = room(4);
      add(both);
      result = both.d;
    }
    const uint64_t yes = to.name == "f32"    ? 0x3f80'0000
                         : to.name == "f16"  ? 0x3c00
                         : to.name == "bf16" ? 0x3f80
                         : to.bytes == 2     ? 0xffff
                                             : 0xffff'ffff;
    const Type bits = type_of("b" + std::to_string(8 * to.bytes));
    Code chosen = plain(CodeKind::kPlain);
    chosen.handler = row("selp." + bits.name).handler;
    chosen.a = constant(yes, bits);
    chosen.b = constant(0, bits);
    chosen.c = result;
    chosen.d = destination(operand(0), to);
    add(chosen);
  }

  void convert(const Words& words) {
    const Type to = words.type(1), from = words.type();
    if (!to || !from || words.rest.size() != 3) unknown();
    const bool clamps =
        words.saturate && to.kind != Type::Kind::kFloat && from.kind != Type::Kind::kFloat;
    const Row& found = row("cvt." + std::string(clamps ? "sat." : "") + to.name + "." + from.name);
    Words effective = words;
    if (to.kind != Type::Kind::kFloat) effective.saturate = false;
    if (found.b) return by_row(found, effective);
    expect_operands(2);
    Code code = plain(CodeKind::kPlain);
    code.handler = found.handler;
    code.mode = words.mode;
    code.option = words.whole;
    // Registers may be wider than the types.
    const Operand &d = operand(0), &a = operand(1);
    code.a = narrowed_source(a, found.a);
    if (d.kind == OperandKind::kRegister && !same_place(register_type(d), found.d) &&
        found.d.bytes < 8) {
      code.d = room_for(found.d);
      finish(code, found.d, effective);
      Code wide = plain(CodeKind::kPlain);
      wide.handler =
          row(to.kind == Type::Kind::kSigned ? "cvt.s64." + to.name
                                             : "cvt.u64.u" + std::to_string(8 * to.bytes))
              .handler;
      wide.option = 4;
      wide.a = code.d;
      wide.d = registers_[d.index];
      return add(wide);
    }
    code.d = destination(d, found.d);
    finish(code, found.d, effective);
  }
  uint32_t narrowed_source(const Operand& one, const Type& type) {
    if (one.kind != OperandKind::kRegister || same_place(register_type(one), type) ||
        register_type(one).bytes < type.bytes)
      return source(one, type);
    Code code = plain(CodeKind::kPlain);
    code.handler = row("cvt.u32.u64").handler;
    code.option = 4;
    code.a = registers_[one.index];
    code.d = room_for(type);
    add(code);
    return code.d;
  }

  // --- arithmetic with forms of its own

  void sum(const Words& words) {
    if (!words.has("cc") && words.rest[0].size() == 3) return by_name(words);
    Code code = code_of(row(words.joined()));
    code.e = carry();
    add(code);
  }
  uint32_t carry() {
    if (carry_ == kNowhere) carry_ = room(4);
    return carry_;
  }

  void multiply_add(const Words& words) {
    if (!words.has("cc") && words.rest[0] == "mad") return by_name(words);
    // The product, then a sum with carry.
    const Type type = words.type();
    const std::string& half = words.rest[1];
    const Row& product = row("mul." + half + "." + type.name);
    const Row& added = row((words.rest[0] == "madc" ? "addc" : "add") +
                           std::string(words.has("cc") ? ".cc." : ".") + type.name);
    Code code = plain(CodeKind::kPlain);
    code.handler = product.handler;
    code.a = source(operand(1), product.a);
    code.b = source(operand(2), product.b);
    code.d = room_for(type);
    add(code);
    Code plus = plain(CodeKind::kPlain);
    plus.handler = added.handler;
    plus.a = code.d;
    plus.b = source(operand(3), added.b);
    plus.d = destination(operand(0), added.d);
    plus.e = carry();
    add(plus);
  }

  void insert_bits(const Words& words) {
    const Row& found = row(words.joined());
    Code code = code_of(found, 1);
    code.e = source(operand(4), found.c);
    add(code);
  }

  void logic(const Words& words) {
    Code code = code_of(row(words.joined()), 1);
    if (operand(4).kind != OperandKind::kInteger) unknown();
    code.option = static_cast<uint8_t>(operand(4).value);
    add(code);
  }

  // --- control

  bool is_label(size_t instruction) const {
    return std::ranges::any_of(function_.labels,
                               [&](const auto& one) { return one.second == instruction; });
  }
  uint32_t label(const std::string& name) const {
    for (uint32_t scope = instruction_->scope;; scope = function_.parent_scopes[scope]) {
      const auto it = function_.labels.find(std::to_string(scope) + " " + name);
      if (it != function_.labels.end()) return it->second;
      if (scope == 0) fail("there is no label " + name);
    }
  }

  void branch(const Words&) {
    expect_operands(1);
    Code code = plain(CodeKind::kBranch);
    code.value = label(operand(0).name);
    add(code);
  }
  void branch_indexed(const Words&) {
    expect_operands(2);
    const auto list = function_.branch_targets.find(operand(1).name);
    if (list == function_.branch_targets.end()) fail("there are no targets " + operand(1).name);
    Code code = plain(CodeKind::kIndexed);
    code.a = source(operand(0), type_of("u32"));
    code.list = static_cast<uint32_t>(routine_.lists.size());
    code.list_size = static_cast<uint32_t>(list->second.size());
    for (const std::string& name : list->second) {
      targets_.push_back(static_cast<uint32_t>(routine_.lists.size()));
      routine_.lists.push_back(label(name));
    }
    add(code);
  }

  void call(const Words&) {
    const size_t results = instruction_->results;
    const Operand& callee = operand(results);
    std::vector<uint32_t> places;
    const auto passed = [&](const Operand& one) {
      if (one.kind == OperandKind::kVariable)
        places.push_back(static_cast<uint32_t>(variables_[one.index]));
      else if (one.kind == OperandKind::kRegister)
        places.push_back(registers_[one.index]);
      else if (one.kind == OperandKind::kSink)
        places.push_back(room(lane_bytes(8) * kLanes));
      else
        places.push_back(source(one, type_of("b32")));
    };
    for (size_t i = 0; i < results; ++i) passed(operand(i));
    for (size_t i = 0; i < instruction_->arguments; ++i) passed(operand(results + 1 + i));
    Code code = plain(CodeKind::kCall);
    code.list = list_of(places);
    code.list_size = static_cast<uint32_t>(places.size());
    if (callee.kind == OperandKind::kRegister) {
      code.option = 1;
      code.a = registers_[callee.index];
    } else if (const Handler system = system_call(callee.name)) {
      code.kind = CodeKind::kPlain;
      code.handler = system;
    } else {
      const auto it = addresses_.routines.find(callee.name);
      if (it == addresses_.routines.end())
        fail("the function " + callee.name + " is not in this module");
      code.value = it->second;
    }
    add(code);
  }
  void give_back(const Words&) { add(plain(CodeKind::kReturn)); }
  void exit(const Words&) { add(plain(CodeKind::kExit)); }
  void sleep(const Words&) { add(plain(CodeKind::kYield)); }
  void trapped(const Words&) {
    Code code = plain(CodeKind::kPlain);
    code.handler = &trap;
    add(code);
  }

  // --- among lanes and warps

  void barrier(const Words& words) {
    if (words.has("cluster")) {
      Code code = plain(words.has("arrive") ? CodeKind::kPlain : CodeKind::kBarrier);
      code.handler = &arrive_in_cluster;
      code.option = kCluster;
      return add(code);
    }
    if (words.has("warp")) {
      Code code = together(operand(0), Code::Meeting::kNone);
      code.handler = &nothing;
      return add(code);
    }
    const Type u32 = type_of("u32");
    Code code = plain(CodeKind::kBarrier);
    size_t at = 0;
    if (words.has("red")) {
      const bool counts = words.has("popc");
      code.option = counts ? kPopc : words.has("and") ? kAnd : kOr;
      code.d = destination(operand(at++), counts ? u32 : type_of("pred"));
    } else if (words.has("arrive")) {
      code.option = kArrive;
    }
    code.a = source(operand(at++), u32);
    const bool red = words.has("red");
    const size_t left = instruction_->operands.size() - at;
    if (left == (red ? 2U : 1U)) {
      code.option |= kCounted;
      code.b = source(operand(at++), u32);
    } else if (left != (red ? 1U : 0U)) {
      unknown();
    }
    if (red) code.c = source(operand(at), type_of("pred"));
    add(code);
  }

  Code together(const Operand& mask, Code::Meeting meeting) {
    Code code = plain(CodeKind::kTogether);
    code.meeting = meeting;
    const std::array<uint32_t, 1> place{source(mask, type_of("b32"))};
    code.list = list_of(place);
    code.list_size = 1;
    return code;
  }
  void shuffled(const Words& words) {
    if (!words.has("sync")) unknown();
    expect_operands(5);
    Code code = together(operand(4), Code::Meeting::kShuffle);
    code.handler = &shuffle;
    const Type b32 = type_of("b32");
    code.option = static_cast<uint8_t>(words.has("up")     ? Shuffle::kUp
                                       : words.has("down") ? Shuffle::kDown
                                       : words.has("bfly") ? Shuffle::kBfly
                                                           : Shuffle::kIdx);
    code.a = source(operand(1), b32);
    code.b = source(operand(2), b32);
    code.c = source(operand(3), b32);
    code.d = destination(operand(0), b32);
    code.e = operand(0).second >= 0 ? registers_[static_cast<size_t>(operand(0).second)] : room(4);
    add(code);
  }
  void voted(const Words& words) {
    if (!words.has("sync")) unknown();
    expect_operands(3);
    const bool ballot = words.has("ballot");
    Code code = together(operand(2), ballot ? Code::Meeting::kBallot : Code::Meeting::kVote);
    code.handler = &vote;
    code.option = static_cast<uint8_t>(ballot             ? Vote::kBallot
                                       : words.has("any") ? Vote::kAny
                                       : words.has("all") ? Vote::kAll
                                                          : Vote::kUni);
    code.a = source(operand(1), type_of("pred"));
    code.d = destination(operand(0), ballot ? type_of("b32") : type_of("pred"));
    add(code);
  }
  void matched(const Words& words) {
    expect_operands(3);
    const Type type = words.type();
    Code code =
        together(operand(2), type.bytes == 8 ? Code::Meeting::kWide : Code::Meeting::kMatch);
    code.handler = match_handler(words.has("all") ? "all" : "any", type);
    if (code.handler == nullptr) unknown();
    code.a = source(operand(1), type);
    code.d = destination(operand(0), type_of("b32"));
    code.e = operand(0).second >= 0 ? registers_[static_cast<size_t>(operand(0).second)] : room(4);
    add(code);
  }
  void reduced(const Words& words) {
    expect_operands(3);
    const Type type = words.type();
    Code code = together(operand(2), Code::Meeting::kReduce);
    code.handler = reduction_handler(words.rest.size() > 2 ? words.rest[2] : "", type);
    if (code.handler == nullptr) unknown();
    code.a = source(operand(1), type);
    code.d = destination(operand(0), type);
    add(code);
  }
  void active_lanes(const Words&) {
    Code code = plain(CodeKind::kPlain);
    code.handler = &active_mask;
    code.d = destination(operand(0), type_of("b32"));
    add(code);
  }
  void elected(const Words&) {
    expect_operands(2);
    Code code = together(operand(1), Code::Meeting::kElect);
    code.handler = &elect;
    if (operand(0).second < 0) unknown();
    code.e = registers_[static_cast<size_t>(operand(0).second)];
    code.d = operand(0).kind == OperandKind::kSink ? room(kLanes * 4)
                                                   : destination(operand(0), type_of("b32"));
    add(code);
  }

  void matrix(const Words&) {
    Code code = plain(CodeKind::kTogether);
    std::string problem;
    if (!matrix_code(*instruction_, code, problem))
      fail("the instruction " + instruction_->text + " is not known" +
           (problem.empty() ? "" : ": " + problem));
    std::vector<uint32_t> places;
    for (size_t i = 0; i < instruction_->operands.size(); ++i) {
      const Operand& one = operand(i);
      if (one.kind == OperandKind::kAddress) {
        address(code, one);
        if (code.fixed_address) {
          code.a = constant(code.value, type_of("u64"));
          code.wide_a = true;
          code.value = 0;
          code.fixed_address = false;
        }
      } else if (one.kind == OperandKind::kVector) {
        for (const Operand& part : one.parts) {
          if (part.kind != OperandKind::kRegister) fail("parts of a matrix are registers");
          places.push_back(registers_[part.index]);
        }
      } else {
        places.push_back(one.kind == OperandKind::kRegister ? registers_[one.index]
                                                            : source(one, type_of("u32")));
      }
    }
    code.space = instruction_->words[0] == "wmma" || instruction_->words[0].ends_with("matrix")
                     ? space_in(words_of(*instruction_))
                     : Space::kGeneric;
    code.c = list_of(places);  // not a list of masks: all lanes take part
    code.e = static_cast<uint32_t>(places.size());
    add(code);
  }

  void warpgroup(const Words& words) {
    // Products are done when they are issued.
    if (words.has("fence") || words.has("commit_group") || words.has("wait_group")) return;
    Code code = plain(CodeKind::kTogether);
    std::string problem;
    if (!words.has("mma_async") || !warpgroup_code(*instruction_, code, problem))
      fail("the instruction " + instruction_->text + " is not known" +
           (problem.empty() ? "" : ": " + problem));
    std::vector<uint32_t> places;
    for (size_t i = 0; i < 3; ++i) {
      const Operand& one = operand(i);
      if (one.kind != OperandKind::kVector) {
        places.push_back(source(one, type_of("b64")));
        continue;
      }
      for (const Operand& part : one.parts)
        places.push_back(i == 0 ? destination(part, type_of("b32")) : source(part, type_of("b32")));
    }
    places.push_back(source(operand(3), type_of("pred")));
    code.c = list_of(places);  // not a list of masks: all lanes take part
    add(code);
  }

  const Function& function_;
  const Addresses& addresses_;
  const Instruction* instruction_ = nullptr;
  Routine routine_;
  std::vector<uint32_t> registers_;  // places
  std::vector<uint64_t> variables_;  // offsets in their memory, or places of .param
  std::map<std::pair<uint64_t, bool>, uint32_t> constants_;
  std::map<std::pair<Special, bool>, uint32_t> specials_;
  std::set<uint32_t> angles_;      // registers whose sine or cosine was taken since the last label
  std::vector<uint32_t> targets_;  // entries of lists that are labels
  uint32_t carry_ = kNowhere;
  uint32_t guard_place_ = kNowhere;
};

// Gives every variable of the module an address, then their first values.
void place_variables(const Module& module, const Allocate& allocate, Addresses& addresses,
                     Program& program) {
  for (const Variable& one : module.variables) {
    uint64_t address = 0;
    switch (one.space) {
      case Space::kShared:
        if (one.bytes == 0) continue;  // behind all others, once these are known
        addresses.shared_bytes = align(addresses.shared_bytes, one.alignment);
        address = addresses.shared_bytes;
        addresses.shared_bytes += one.bytes;
        break;
      case Space::kConst:
      case Space::kGlobal:
        if (one.is_extern)
          throw TextError(one.line, "the variable " + one.name + " is not in this module");
        address = allocate(std::max<uint64_t>(one.bytes, 1));
        if (address == 0) throw std::bad_alloc();
        program.globals[one.name] = {address, one.bytes};
        break;
      default:
        throw TextError(one.line, "a variable of a module is .global, .const or .shared");
    }
    addresses.variables[one.name] = address;
  }
}

void fill_variables(const Module& module, const Addresses& addresses) {
  for (const Variable& one : module.variables) {
    if (one.initial.empty() || one.space == Space::kShared) continue;
    auto* const memory = reinterpret_cast<std::byte*>(addresses.variables.at(one.name));
    for (const Initial& part : one.initial) {
      uint64_t value = part.value;
      if (!part.name.empty()) {
        if (const auto it = addresses.variables.find(part.name); it != addresses.variables.end())
          value += it->second;
        else if (const auto routine = addresses.routines.find(part.name);
                 routine != addresses.routines.end())
          value += kCodeWindow | routine->second;
        else
          throw TextError(one.line, "'" + part.name + "' is not known");
      }
      if (part.offset + part.bytes <= one.bytes)
        std::memcpy(memory + part.offset, &value, part.bytes);
    }
  }
}

}  // namespace

Program decode(const Module& module, const Allocate& allocate) {
  Program program;
  Addresses addresses;
  for (const auto& function : module.functions)
    if (function->has_body) {
      const auto number = static_cast<uint32_t>(addresses.routines.size());
      addresses.routines[function->name] = number;
    }
  place_variables(module, allocate, addresses, program);
  fill_variables(module, addresses);
  const auto own_shared = [](const Function& function, uint64_t from) {
    for (const Variable& one : function.variables)
      if (one.space == Space::kShared) from = align(from, one.alignment) + one.bytes;
    return from;
  };
  // Shared memory: the module's variables, those of functions that are called, which may run in any
  // kernel, those of the kernel, and behind the largest kernel's the dynamic part.
  uint64_t called = addresses.shared_bytes, dynamic = 0, dynamic_alignment = 16;
  for (const auto& function : module.functions)
    if (!function->is_entry) called = own_shared(*function, called);
  for (const auto& function : module.functions)
    dynamic = std::max(dynamic, own_shared(*function, called));
  for (const Variable& one : module.variables)
    if (one.space == Space::kShared)
      dynamic_alignment = std::max<uint64_t>(dynamic_alignment, one.alignment);
  dynamic = align(dynamic, dynamic_alignment);
  for (const Variable& one : module.variables)
    if (one.space == Space::kShared && one.bytes == 0) addresses.variables[one.name] = dynamic;

  program.routines.resize(addresses.routines.size());
  uint64_t functions_end = addresses.shared_bytes;
  for (const auto& function : module.functions) {
    if (!function->has_body) continue;
    uint64_t kernel_end = called;
    FunctionDecoder decoder(*function, addresses);
    const uint32_t number = addresses.routines.at(function->name);
    program.routines[number] = decoder.decode(function->is_entry ? kernel_end : functions_end);
    if (!function->is_entry) continue;
    Kernel kernel;
    kernel.name = function->name;
    kernel.routine = number;
    kernel.parameters = function->parameters;
    kernel.parameter_bytes = static_cast<uint32_t>(function->parameter_bytes());
    kernel.shared_bytes = static_cast<uint32_t>(kernel_end);
    kernel.dynamic_begin = static_cast<uint32_t>(dynamic);
    std::ranges::copy(function->cluster, kernel.cluster);
    std::ranges::copy(function->block, kernel.block);
    kernel.most_threads = static_cast<uint32_t>(std::min<uint64_t>(function->most_threads, 1024));
    if (function->registers_of_thread != 0) kernel.registers = function->registers_of_thread;
    program.kernels.push_back(std::move(kernel));
  }
  return program;
}

}  // namespace simgpu::ptx
