#include <collector/identity/cubin.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <vector>

namespace flopinj {
namespace {

using Bytes = std::span<const unsigned char>;

constexpr uint16_t kMachineCuda = 190;
constexpr uint32_t kSymbolTable = 2, kNoBits = 8;  // section types
constexpr size_t kHeaderBytes = 64, kSectionBytes = 64, kSymbolBytes = 24;
constexpr size_t kMaxSections = 1U << 19, kMaxNameBytes = 1U << 14;
constexpr size_t kMaxCalls = 1U << 18;  // of one image
constexpr size_t kMaxParameters = 4'096, kMaxParameterEnd = 32'764;
constexpr uint64_t kReservedSharedBytes = 1'024;

template <class T>
T field(Bytes bytes, size_t offset) {  // the caller knows that it is inside
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::optional<Bytes> part(Bytes bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

// --- the file -----------------------------------------------------------------------------------

struct Section {
  Bytes name_onwards;  // from the name to the end of the name table
  uint32_t type = 0, link = 0;
  uint64_t size = 0;
  Bytes contents;
};

class Elf {
 public:
  static std::optional<Elf> open(Bytes image) {
    constexpr unsigned char kMagic[] = {0x7f, 'E', 'L', 'F', 2, 1};  // 64 bits, little-endian
    if (image.size() < kHeaderBytes || std::memcmp(image.data(), kMagic, sizeof kMagic) != 0 ||
        field<uint16_t>(image, 18) != kMachineCuda || field<uint16_t>(image, 58) != kSectionBytes)
      return std::nullopt;
    Elf elf(image);
    elf.table_ = field<uint64_t>(image, 40);
    uint64_t count = field<uint16_t>(image, 60);
    uint64_t names = field<uint16_t>(image, 62);
    const auto first = part(image, elf.table_, kSectionBytes);
    if (!first) return std::nullopt;
    if (count == 0) count = field<uint64_t>(*first, 32);  // more than fit 16 bits
    if (names == 0xffff) names = field<uint32_t>(*first, 40);
    if (count > kMaxSections || names >= count || !part(image, elf.table_, count * kSectionBytes))
      return std::nullopt;
    elf.count_ = count;
    elf.names_ = elf.section(names).contents;
    return elf;
  }

  size_t sections() const { return count_; }
  uint32_t capability() const {
    constexpr size_t kAbiVersion = 8, kFlags = 48;
    const auto flags = field<uint32_t>(image_, kFlags);
    return (image_[kAbiVersion] >= 8 ? flags >> 8 : flags) & 0xff;
  }
  // Sections that reach beyond the image have no contents.
  Section section(size_t index) const {
    Section section;
    if (index >= count_) return section;
    const Bytes header = image_.subspan(table_ + index * kSectionBytes, kSectionBytes);
    const auto name = field<uint32_t>(header, 0);
    section.type = field<uint32_t>(header, 4);
    section.size = field<uint64_t>(header, 32);
    section.link = field<uint32_t>(header, 40);
    if (name < names_.size()) section.name_onwards = names_.subspan(name);
    if (section.type != kNoBits)
      section.contents = part(image_, field<uint64_t>(header, 24), section.size).value_or(Bytes{});
    return section;
  }

 private:
  explicit Elf(Bytes image) : image_(image) {}
  Bytes image_, names_;
  uint64_t table_ = 0;
  size_t count_ = 0;
};

// The text that starts here; empty where it has no end within bounds.
std::string_view text_at(Bytes bytes) {
  const size_t most = std::min(bytes.size(), kMaxNameBytes);
  const void* const end = most == 0 ? nullptr : std::memchr(bytes.data(), 0, most);
  if (end == nullptr) return {};
  const auto* const first = reinterpret_cast<const char*>(bytes.data());
  return {first, static_cast<size_t>(static_cast<const char*>(end) - first)};
}

// What follows `prefix` in the section's name.
std::string_view name_behind(const Section& section, std::string_view prefix) {
  const Bytes name = section.name_onwards;
  if (name.size() <= prefix.size() || std::memcmp(name.data(), prefix.data(), prefix.size()) != 0)
    return {};
  return text_at(name.subspan(prefix.size()));
}

bool is_named(const Section& section, std::string_view name) {
  const Bytes onwards = section.name_onwards;
  return text_at(onwards.first(std::min(onwards.size(), name.size() + 1))) == name;
}

// What symbols are called, by index.
class Symbols {
 public:
  explicit Symbols(const Elf& elf) {
    for (size_t i = 1; i < elf.sections(); ++i) {
      const Section section = elf.section(i);
      if (section.type != kSymbolTable) continue;
      symbols_ = section.contents;
      strings_ = elf.section(section.link).contents;
    }
  }
  std::string_view name_of(uint32_t index) const {
    const auto symbol = part(symbols_, uint64_t{index} * kSymbolBytes, kSymbolBytes);
    if (!symbol) return {};
    const auto name = field<uint32_t>(*symbol, 0);
    return name < strings_.size() ? text_at(strings_.subspan(name)) : std::string_view{};
  }

 private:
  Bytes symbols_, strings_;
};

// --- attributes ---------------------------------------------------------------------------------

// Gives every attribute to `each`, with its value, or with as many bytes as its value says. False
// where the last one is not whole.
bool read_attributes(Bytes info, auto each) {
  constexpr unsigned char kSized = 4;
  while (info.size() >= 4) {
    const bool sized = info[0] == kSized;
    const unsigned char attribute = info[1];
    const auto value = field<uint16_t>(info, 2);
    info = info.subspan(4);
    if (sized && value > info.size()) return false;
    const Bytes data = sized ? info.first(value) : Bytes{};
    info = info.subspan(data.size());
    each(attribute, value, data);
  }
  return true;
}

struct Parameters {
  std::vector<ParameterSlot> slots;  // by ordinal
  size_t found = 0;
  std::optional<uint32_t> end;  // of the last parameter
  bool valid = true;

  void add(size_t ordinal, uint32_t offset, uint32_t size) {
    if (ordinal >= kMaxParameters || size == 0) return void(valid = false);
    if (ordinal >= slots.size()) slots.resize(ordinal + 1);
    valid = valid && slots[ordinal].size == 0;  // each once
    slots[ordinal] = {offset, size};
    ++found;
  }

  // In order, apart from each other, and as long together as the file says they are.
  bool consistent() const {
    uint64_t at = 0;
    for (const ParameterSlot& slot : slots) {
      if (slot.offset < at) return false;
      at = uint64_t{slot.offset} + slot.size;
    }
    return valid && found == slots.size() && at <= kMaxParameterEnd && at == end.value_or(0);
  }
};

Parameters read_parameters(Bytes info) {
  constexpr unsigned char kParameter = 0x17, kParameterV2 = 0x45, kEnd = 0x19;
  Parameters parameters;
  const bool whole =
      read_attributes(info, [&](unsigned char attribute, uint16_t value, Bytes data) {
        if (attribute == kEnd) parameters.end = value;
        if (attribute != kParameter && attribute != kParameterV2) return;
        if (data.size() != 12) return void(parameters.valid = false);
        const uint32_t size =
            attribute == kParameter ? field<uint32_t>(data, 8) >> 18 : field<uint16_t>(data, 8);
        parameters.add(field<uint16_t>(data, 4), field<uint16_t>(data, 6), size);
      });
  parameters.valid = parameters.valid && whole;
  return parameters;
}

// --- functions ----------------------------------------------------------------------------------

struct Function {
  std::string_view name;
  Bytes code, constants, info;
  uint64_t own_hash = 0;
  uint64_t shared_bytes = 0;
  uint32_t registers = 0;
  bool cut = false, launches_kernels = false, launches_graphs = false;
  bool calls_by_address = false;  // functions that nothing names
  std::vector<uint32_t> calls;
  InstructionMix instructions;
};

struct Functions {
  std::vector<Function> all;
  std::unordered_map<std::string_view, uint32_t> by_name;

  Function* find(std::string_view name) {
    const auto at = by_name.find(name);
    return at == by_name.end() ? nullptr : &all[at->second];
  }
};

Functions find_functions(const Elf& elf) {
  Functions functions;
  for (size_t i = 1; i < elf.sections() && functions.all.size() < kMaxCubinFunctions; ++i) {
    const Section section = elf.section(i);
    const std::string_view name = name_behind(section, ".text.");
    if (name.empty() || section.contents.empty()) continue;
    if (!functions.by_name.try_emplace(name, static_cast<uint32_t>(functions.all.size())).second)
      continue;
    functions.all.emplace_back().name = name;
    functions.all.back().code = section.contents;
  }
  bool reserved = false;
  for (size_t i = 1; i < elf.sections(); ++i) {
    const Section section = elf.section(i);
    if (const auto name = name_behind(section, ".nv.info."); !name.empty()) {
      if (Function* const f = functions.find(name)) f->info = section.contents;
    } else if (const auto of = name_behind(section, ".nv.constant2."); !of.empty()) {
      if (Function* const f = functions.find(of)) f->constants = section.contents;
    } else if (const auto by = name_behind(section, ".nv.shared."); !by.empty()) {
      if (Function* const f = functions.find(by)) f->shared_bytes = section.size;
      reserved |= by == "reserved.0";
    }
  }
  if (reserved)
    for (Function& f : functions.all)
      f.shared_bytes -= std::min(f.shared_bytes, kReservedSharedBytes);
  return functions;
}

void read_registers(const Elf& elf, const Symbols& symbols, Functions& functions) {
  constexpr unsigned char kRegisters = 0x2f;
  for (size_t i = 1; i < elf.sections(); ++i) {
    const Section section = elf.section(i);
    if (!is_named(section, ".nv.info")) continue;
    read_attributes(section.contents, [&](unsigned char attribute, uint16_t, Bytes data) {
      if (attribute != kRegisters || data.size() != 8) return;
      if (Function* const f = functions.find(symbols.name_of(field<uint32_t>(data, 0))))
        f->registers = field<uint32_t>(data, 4);
    });
  }
}

size_t hashed_bytes(const Functions& functions, size_t most) {
  size_t sum = 0;
  for (const Function& f : functions.all)
    sum += std::min(f.code.size(), most) + std::min(f.constants.size(), most);
  return sum;
}

// Of each function so much that the image stays under its bound.
void hash_code(Functions& functions) {
  size_t most = SIZE_MAX;
  if (hashed_bytes(functions, most) > kMaxHashedBytes)
    for (most = kMaxHashedBytes; most > 64 && hashed_bytes(functions, most) > kMaxHashedBytes;)
      most /= 2;
  const auto hash = [most](Bytes bytes, uint64_t seed) {
    if (bytes.size() <= most) return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
    const uint64_t head = XXH3_64bits_withSeed(bytes.data(), most / 2, seed);
    return XXH3_64bits_withSeed(bytes.data() + bytes.size() - most / 2, most / 2, head);
  };
  for (Function& f : functions.all) {
    f.cut = f.code.size() > most || f.constants.size() > most;
    const uint64_t size = f.cut ? f.code.size() : 0;
    f.own_hash = hash(f.code, f.constants.empty() && size == 0 ? 0 : hash(f.constants, size));
  }
}

void read_instructions(const Elf& elf, Functions& functions) {
  size_t left = kMaxReadBytes;
  for (Function& f : functions.all) {
    if (f.code.size() > left) continue;
    left -= f.code.size();
    f.instructions = read_sass(f.code, elf.capability());
  }
}

// --- calls --------------------------------------------------------------------------------------

// The device runtime's launches, of all its versions, and what they call in the driver.
bool launches_kernels(std::string_view callee) {
  for (const std::string_view name :
       {"__cudaCDP2LaunchDevice", "cudaLaunchDevice", "__cuda_syscall_cnpv2LaunchDevice",
        "__cuda_syscall_cnpLaunchDevice", "cnpLaunchDevice"})
    if (callee.starts_with(name)) return true;
  return false;
}
bool launches_graphs(std::string_view callee) { return callee.starts_with("cudaGraphLaunch"); }

void read_calls(const Elf& elf, const Symbols& symbols, Functions& functions) {
  Bytes graph;
  for (size_t i = 1; i < elf.sections(); ++i)
    if (const Section section = elf.section(i); is_named(section, ".nv.callgraph"))
      graph = section.contents;
  constexpr uint32_t kFirstMark = 0xffff'fff0, kByAddress = 0xffff'fffd;
  const size_t calls = std::min(graph.size() / 8, kMaxCalls);
  if (calls < graph.size() / 8)  // what they call is not known
    for (Function& f : functions.all) f.instructions.known = false;
  uint32_t mark = 0;
  for (size_t i = 0; i < calls; ++i) {
    const auto callee = field<uint32_t>(graph, 8 * i + 4);
    if (callee >= kFirstMark) {
      mark = callee;
      continue;
    }
    Function* const caller = functions.find(symbols.name_of(field<uint32_t>(graph, 8 * i)));
    if (caller != nullptr && mark == kByAddress) caller->calls_by_address = true;
    const std::string_view name = symbols.name_of(callee);
    if (caller == nullptr || name.empty()) continue;
    caller->launches_kernels |= launches_kernels(name);
    caller->launches_graphs |= launches_graphs(name);
    if (const auto at = functions.by_name.find(name); at != functions.by_name.end())
      caller->calls.push_back(at->second);
  }
}

// Adds to functions what they call. Bounded for the whole image: past the bound a function has
// only itself.
class Called {
 public:
  explicit Called(const Functions& functions)
      : functions_(functions), seen_by_(functions.all.size(), UINT32_MAX) {}

  void add_to(uint32_t index, CubinFunction& out) {
    const Function& function = functions_.all[index];
    out.instructions = function.instructions;
    if (function.calls_by_address) out.instructions.known = false;
    if (function.calls.empty()) return;
    const bool all = reach(index);
    out.code_cut |= !all;
    out.instructions.known &= all;
    std::vector<uint64_t> hashes;
    for (const uint32_t called : reached_) {
      const Function& f = functions_.all[called];
      hashes.push_back(f.own_hash);
      out.code_cut |= f.cut;
      out.launches_kernels |= f.launches_kernels;
      out.launches_graphs |= f.launches_graphs;
      if (called != index) out.instructions.add(f.instructions);
      if (f.calls_by_address) out.instructions.known = false;
    }
    std::ranges::sort(hashes);
    const uint64_t called = XXH3_64bits(hashes.data(), hashes.size() * sizeof hashes[0]);
    out.code_hash = XXH3_64bits_withSeed(&function.own_hash, sizeof function.own_hash, called);
  }

 private:
  // False where not all could be followed.
  bool reach(uint32_t from) {
    reached_.assign(1, from);
    seen_by_[from] = from;
    for (size_t i = 0; i < reached_.size(); ++i) {
      for (const uint32_t callee : functions_.all[reached_[i]].calls) {
        if (++steps_ > kMaxSteps) return false;
        if (seen_by_[callee] == from) continue;
        seen_by_[callee] = from;
        reached_.push_back(callee);
      }
    }
    return true;
  }

  static constexpr size_t kMaxSteps = 1U << 22;
  const Functions& functions_;
  std::vector<uint32_t> seen_by_;  // the last function that reached this one
  std::vector<uint32_t> reached_;
  size_t steps_ = 0;
};

}  // namespace

bool read_cubin(Bytes image, const std::function<void(const CubinFunction&)>& each) {
  const std::optional<Elf> elf = Elf::open(image);
  if (!elf) return false;
  const Symbols symbols(*elf);
  Functions functions = find_functions(*elf);
  hash_code(functions);
  read_instructions(*elf, functions);
  read_registers(*elf, symbols, functions);
  read_calls(*elf, symbols, functions);
  Called called(functions);
  for (uint32_t i = 0; i < functions.all.size(); ++i) {
    const Function& f = functions.all[i];
    CubinFunction out;
    out.name = f.name;
    out.code_hash = f.own_hash;
    out.code_cut = f.cut;
    out.launches_kernels = f.launches_kernels;
    out.launches_graphs = f.launches_graphs;
    called.add_to(i, out);
    if (out.code_hash == 0) out.code_hash = 1;  // 0 is unknown
    out.registers_per_thread = f.registers;
    out.static_shared_bytes = static_cast<uint32_t>(std::min<uint64_t>(f.shared_bytes, UINT32_MAX));
    const Parameters parameters = read_parameters(f.info);
    out.parameters_known = !f.info.empty() && parameters.consistent();
    if (out.parameters_known)
      for (const ParameterSlot& slot : parameters.slots) out.parameters.push_back(slot);
    each(out);
  }
  return true;
}

}  // namespace flopinj
