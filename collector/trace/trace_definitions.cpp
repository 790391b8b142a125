#include <collector/trace/trace_definitions.h>
#include <collector/trace/trace_messages.h>

#include <algorithm>

namespace flopinj {
namespace {

using protozero::pbf_builder;
using InternedBuilder = pbf_builder<f::InternedField>;

// Bytes after which a packet of definitions is closed. The largest single definition is a string of
// kMaxTextBytes.
constexpr size_t kEnoughBytes = 1U << 20;

void add(InternedBuilder& in, const StringDefinition& string) {
  using F = f::InternedStringField;
  pbf_builder<F> s(in, f::InternedField::strings);
  s.add_uint32(F::id, string.id.value);
  s.add_bytes(F::value, string.value.data(), std::min(string.value.size(), kMaxTextBytes));
}

// Of all parameters with their padding: the end of the last one.
uint32_t parameter_bytes(const FunctionInfo& info) {
  uint32_t bytes = 0;
  for (const ParameterSlot& slot : info.parameters)
    bytes = std::max(bytes, slot.offset + slot.size);
  return bytes;
}

// What computes all it can goes without saying.
void add_instructions(pbf_builder<f::InternedFunctionField>& function, const InstructionMix& mix) {
  if (!mix.known) return;
  using F = f::InternedCountedInstructionsField;
  function.add_bool(f::InternedFunctionField::code_read, true);
  uint32_t computes = 1;
  for (size_t i = 0; i < kSassOperations; ++i)
    if (mix.counts[i].one != 0 || mix.counts[i].all != 0) computes |= 2U << i;
  function.add_uint32(f::InternedFunctionField::computes, computes);
  for (size_t i = 0; i < kSassOperations; ++i) {
    const InstructionCounts& counts = mix.counts[i];
    if (counts.none == 0 && counts.one == 0) continue;
    pbf_builder<F> b(function, f::InternedFunctionField::instructions);
    b.add_enum(F::operation, static_cast<int32_t>(i + 1));
    if (counts.none != 0) b.add_uint32(F::none, counts.none);
    if (counts.one != 0) b.add_uint32(F::one, counts.one);
    if (counts.all != 0) b.add_uint32(F::all, counts.all);
  }
}

void add(InternedBuilder& in, const KernelFunction& function, StringId name) {
  using F = f::InternedFunctionField;
  pbf_builder<F> b(in, f::InternedField::functions);
  b.add_uint32(F::id, function.id.value);
  b.add_uint32(F::name, name.value);
  b.add_uint32(F::parameter_bytes, parameter_bytes(function.info));
  b.add_uint32(F::registers_per_thread, function.info.registers_per_thread);
  b.add_uint32(F::static_shared_bytes, function.info.static_shared_bytes);
  b.add_bool(F::parameters_known, function.info.parameters_known);
  if (function.info.code_hash != 0) b.add_fixed64(F::code_hash, function.info.code_hash);
  if (function.info.launches_kernels || function.info.launches_graphs)
    b.add_bool(F::launches_work, true);
  if (function.never_measure) b.add_bool(F::never_measured, true);
  add_instructions(b, function.info.instructions);
}

void add(InternedBuilder& in, const Signature& signature) {
  using F = f::InternedSignatureField;
  const LaunchShape& shape = signature.shape;
  pbf_builder<F> s(in, f::InternedField::signatures);
  s.add_uint32(F::id, signature.id.value);
  s.add_uint32(F::function, signature.function != nullptr ? signature.function->id.value : 0);
  s.add_uint32(F::grid_x, shape.grid[0]);
  s.add_uint32(F::grid_y, shape.grid[1]);
  s.add_uint32(F::grid_z, shape.grid[2]);
  s.add_uint32(F::block_x, shape.block[0]);
  s.add_uint32(F::block_y, shape.block[1]);
  s.add_uint32(F::block_z, shape.block[2]);
  s.add_uint32(F::cluster_x, shape.cluster[0]);
  s.add_uint32(F::cluster_y, shape.cluster[1]);
  s.add_uint32(F::cluster_z, shape.cluster[2]);
  s.add_uint32(F::dynamic_shared_bytes, shape.dynamic_shared_bytes);
  s.add_fixed64(F::fingerprint, signature.fingerprint);
  s.add_fixed64(F::stable_hash, signature.stable_hash);
  s.add_enum(F::parameter_class, static_cast<int32_t>(signature.parameter_class));
}

void add(InternedBuilder& in, const PathDefinition& path) {
  using F = f::InternedRangePathField;
  pbf_builder<F> r(in, f::InternedField::range_paths);
  r.add_uint32(F::id, path.id.value);
  r.add_uint32(F::parent, path.parent.value);
  r.add_uint32(F::name, path.name.value);
  r.add_uint32(F::domain, path.domain.value);
  r.add_enum(F::kind, static_cast<int32_t>(path.kind));
}

void add(InternedBuilder& in, const StreamDefinition& stream) {
  using F = f::InternedStreamField;
  pbf_builder<F> s(in, f::InternedField::streams);
  s.add_uint32(F::id, stream.id.value);
  s.add_uint32(F::device, stream.device.value);
  s.add_uint32(F::context, stream.context);
  s.add_uint32(F::stream, stream.stream);
  if (stream.green_context) s.add_bool(F::green_context, true);
}

void add(InternedBuilder& in, const ThreadDefinition& thread) {
  using F = f::InternedThreadField;
  pbf_builder<F> t(in, f::InternedField::threads);
  t.add_uint32(F::id, thread.id.value);
  t.add_uint32(F::os_tid, thread.os_tid);
  t.add_uint32(F::name, thread.name.value);
}

template <class List, class Add>
bool add_one(const List& list, size_t& index, Add&& add) {
  if (index >= list.size()) return false;
  add(index++);
  return true;
}

// False when the list has no more.
bool add_next(InternedBuilder& in, const Definitions& d, int list, size_t& index) {
  switch (list) {
    case 0:
      return add_one(d.strings, index, [&](size_t i) { add(in, d.strings[i]); });
    case 1:
      return add_one(d.functions, index,
                     [&](size_t i) { add(in, *d.functions[i], d.function_names[i]); });
    case 2:
      return add_one(d.signatures, index, [&](size_t i) { add(in, *d.signatures[i]); });
    case 3:
      return add_one(d.paths, index, [&](size_t i) { add(in, d.paths[i]); });
    case 4:
      return add_one(d.streams, index, [&](size_t i) { add(in, d.streams[i]); });
    default:
      return add_one(d.threads, index, [&](size_t i) { add(in, d.threads[i]); });
  }
}

}  // namespace

bool Definitions::empty() const {
  return strings.empty() && functions.empty() && signatures.empty() && paths.empty() &&
         streams.empty() && threads.empty();
}

void DefinitionPackets::fill(std::string& body) {
  PacketBuilder packet(body);
  InternedBuilder in(packet, f::TracePacketField::interned);
  while (!done() && body.size() < kEnoughBytes) {
    if (add_next(in, d_, list_, index_)) continue;
    ++list_;
    index_ = 0;
  }
}

}  // namespace flopinj
