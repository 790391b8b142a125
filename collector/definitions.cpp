// The Interned packets: definitions, spread over as many packets as they need.
#include <collector/packet.h>
#include <collector/trace_writer.h>

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
}

void add(InternedBuilder& in, const ThreadDefinition& thread) {
  using F = f::InternedThreadField;
  pbf_builder<F> t(in, f::InternedField::threads);
  t.add_uint32(F::id, thread.id.value);
  t.add_uint32(F::os_tid, thread.os_tid);
  t.add_uint32(F::name, thread.name.value);
}

// Where one packet stops and the next goes on: lists in the order of dependence, definitions in the
// order of ids.
class Cursor {
 public:
  explicit Cursor(const Definitions& definitions) : d_(definitions) {}

  bool done() const { return list_ > 5; }

  void fill(PacketBuilder& packet, const std::string& body) {
    InternedBuilder in(packet, f::TracePacketField::interned);
    const auto more = [&] { return body.size() < kEnoughBytes; };
    while (!done() && more()) {
      if (!add_next(in)) {
        ++list_;
        index_ = 0;
      }
    }
  }

 private:
  template <class List, class Add>
  bool step(const List& list, Add&& add_one) {
    if (index_ >= list.size()) return false;
    add_one(index_++);
    return true;
  }

  bool add_next(InternedBuilder& in) {
    switch (list_) {
      case 0:
        return step(d_.strings, [&](size_t i) { add(in, d_.strings[i]); });
      case 1:
        return step(d_.functions,
                    [&](size_t i) { add(in, *d_.functions[i], d_.function_names[i]); });
      case 2:
        return step(d_.signatures, [&](size_t i) { add(in, *d_.signatures[i]); });
      case 3:
        return step(d_.paths, [&](size_t i) { add(in, d_.paths[i]); });
      case 4:
        return step(d_.streams, [&](size_t i) { add(in, d_.streams[i]); });
      case 5:
        return step(d_.threads, [&](size_t i) { add(in, d_.threads[i]); });
      default:
        return false;
    }
  }

  const Definitions& d_;
  int list_ = 0;
  size_t index_ = 0;
};

}  // namespace

bool Definitions::empty() const {
  return strings.empty() && functions.empty() && signatures.empty() && paths.empty() &&
         streams.empty() && threads.empty();
}

void TraceWriter::definitions(const Definitions& definitions) {
  if (definitions.empty()) return;
  for (Cursor cursor(definitions); !cursor.done();)
    packet([&](PacketBuilder& p) { cursor.fill(p, body_); });
}

}  // namespace flopinj
