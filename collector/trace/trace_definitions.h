// Definitions on their way into the trace: Interned messages, spread over as many packets as they
// need.
#pragma once
#include <collector/identity/ids.h>
#include <collector/identity/signature_table.h>
#include <collector/ranges/range_path_table.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flopinj {

inline constexpr size_t kMaxTextBytes = 64U << 10;  // of one name, message or command line

struct StreamDefinition {
  StreamId id;
  DeviceId device;
  uint32_t context = 0, stream = 0;
  bool green_context = false;
};
struct ThreadDefinition {
  ThreadId id;
  uint32_t os_tid = 0;
  StringId name;
};
struct Definitions {
  std::vector<StringDefinition> strings;
  std::vector<const KernelFunction*> functions;
  std::vector<StringId> function_names;  // parallel to functions; interned by the caller
  std::vector<const Signature*> signatures;
  std::vector<PathDefinition> paths;
  std::vector<StreamDefinition> streams;
  std::vector<ThreadDefinition> threads;
  bool empty() const;
};

// Where one packet stops and the next goes on: lists in the order of dependence, definitions in the
// order of ids. The definitions outlive it.
class DefinitionPackets {
 public:
  explicit DefinitionPackets(const Definitions& definitions) : d_(definitions) {}
  bool done() const { return list_ == kLists; }
  // Appends as many definitions as one packet should have to its body.
  void fill(std::string& body);

 private:
  static constexpr int kLists = 6;
  const Definitions& d_;
  int list_ = 0;
  size_t index_ = 0;
};

}  // namespace flopinj
