#include <collector/identity/cubin.h>
#include <collector/identity/signature_table.h>
#include <injector/handles/modules.h>
#include <injector/process/thread_context.h>

#include <algorithm>
#include <iterator>

namespace flopinj {

Modules::Image Modules::read(const CUpti_ModuleResourceData& data, bool& is_cubin, bool& cut) {
  Image image;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(data.pCubin);
  is_cubin = read_cubin({bytes, data.cubinSize}, [&](const CubinFunction& f) {
    cut |= f.code_cut;
    const size_t first = image.instructions.size();
    for (size_t i = 0; i < kSassOperations; ++i)
      if (f.instructions.counts[i] != InstructionCounts{})
        image.instructions.push_back({static_cast<SassOperation>(i), f.instructions.counts[i]});
    image.functions.push_back(
        {stable_name_hash(f.name), f.code_hash, static_cast<uint32_t>(image.parameters.size()),
         f.registers_per_thread, f.static_shared_bytes, static_cast<uint16_t>(f.parameters.size()),
         f.parameters_known, f.launches_kernels, f.launches_graphs, f.instructions.known,
         f.instructions.moves_registers, static_cast<uint8_t>(image.instructions.size() - first),
         static_cast<uint32_t>(first)});
    image.parameters.insert(image.parameters.end(), f.parameters.begin(), f.parameters.end());
  });
  image.functions.shrink_to_fit();
  image.parameters.shrink_to_fit();
  image.instructions.shrink_to_fit();
  std::ranges::sort(image.functions, {}, &Function::name_hash);
  return image;
}

void Modules::loaded(ThreadContext* thread, const CUpti_ModuleResourceData& data) {
  if (data.pCubin == nullptr) return;
  bool is_cubin = false, cut = false;
  Image image = read(data, is_cubin, cut);
  if (!is_cubin) {
    edge_.collector->diagnostic(
        Severity::kInfo, "module.unreadable",
        "a module came in a form that is not a cubin: its kernels are told apart by name, not by "
        "their code");
    return;
  }
  if (cut)
    edge_.collector->diagnostic(
        Severity::kInfo, "module.large",
        "a module has more code than is hashed: of its long kernels only the first and the last "
        "part are compared");
  if (thread != nullptr) thread->modules_loaded.push(data.moduleId);
  const MutexLock lock(mutex_);
  if (functions_ + image.functions.size() > kMaxFunctions)
    return edge_.collector->diagnostic(
        Severity::kWarning, "module.too_many",
        "more kernels are loaded than can be followed: those of further modules are told apart by "
        "name, not by their code");
  functions_ += image.functions.size();
  Image& known = images_[data.moduleId];
  functions_ -= known.functions.size();
  known = std::move(image);
}

void Modules::unloading(const CUpti_ModuleResourceData& data) {
  const MutexLock lock(mutex_);
  const auto known = images_.find(data.moduleId);
  if (known == images_.end()) return;
  functions_ -= known->second.functions.size();
  images_.erase(known);
  for (auto owner = images_of_.begin(); owner != images_of_.end();) {
    std::erase(owner->second, data.moduleId);
    owner = owner->second.empty() ? images_of_.erase(owner) : std::next(owner);
  }
}

bool Modules::bind(ThreadContext& thread, const void* owner, bool loaded) {
  const bool one = thread.modules_loaded.count == 1;
  thread.modules_loaded.count = 0;
  if (owner == nullptr) return false;
  const MutexLock lock(mutex_);
  if (loaded) images_of_.erase(owner);  // of another one, whose end nobody saw
  const auto image = one ? images_.find(thread.modules_loaded.last) : images_.end();
  if (image == images_.end()) return false;
  image->second.bound = true;
  images_of_[owner].push_back(image->first);
  return true;
}

void Modules::is_of(const void* module, const void* library) {
  const MutexLock lock(mutex_);
  if (images_of_.contains(module)) return;
  if (const auto images = images_of_.find(library); images != images_of_.end())
    images_of_[module] = std::vector(images->second);
}

std::optional<KernelCode> Modules::code_in(const Image& image, uint64_t name_hash) {
  const auto at = std::ranges::lower_bound(image.functions, name_hash, {}, &Function::name_hash);
  if (at == image.functions.end() || at->name_hash != name_hash) return std::nullopt;
  KernelCode code;
  code.code_hash = at->code_hash;
  code.parameters_known = at->parameters_known;
  code.launches_kernels = at->launches_kernels;
  code.launches_graphs = at->launches_graphs;
  code.registers_per_thread = at->registers;
  code.static_shared_bytes = at->shared_bytes;
  for (size_t i = 0; i < at->parameters; ++i)
    code.parameters.push_back(image.parameters[at->first_parameter + i]);
  code.instructions.known = at->code_read;
  code.instructions.moves_registers = at->moves_registers;
  for (size_t i = 0; i < at->operations; ++i) {
    const Operation& of = image.instructions[at->first_operation + i];
    code.instructions[of.operation] = of.counts;
  }
  return code;
}

// Of kernels that do not agree, so much as holds whichever of them it is.
void Modules::add(std::optional<Code>& found, const std::optional<KernelCode>& code) {
  if (!code) return;
  if (!found) return void(found = Code{*code});
  if (*found == *code) return;
  found->several = true;
  found->code_hash = 0;
  const bool moves = found->instructions.moves_registers || code->instructions.moves_registers;
  found->instructions = {.moves_registers = moves};
  found->launches_kernels |= code->launches_kernels;
  found->launches_graphs |= code->launches_graphs;
  const bool known = found->registers_per_thread != 0 && code->registers_per_thread != 0;
  found->registers_per_thread =
      known ? std::max(found->registers_per_thread, code->registers_per_thread) : 0;
  found->static_shared_bytes = std::max(found->static_shared_bytes, code->static_shared_bytes);
  found->parameters_known =
      found->parameters_known && code->parameters_known && found->parameters == code->parameters;
  if (!found->parameters_known) found->parameters.clear();
}

std::optional<Modules::Code> Modules::find(const void* owner, CUfunction handle,
                                           std::string_view kernel) const {
  const uint64_t name_hash = stable_name_hash(kernel);
  std::optional<Code> found;
  const MutexLock lock(mutex_);
  for (const void* const of : {owner, static_cast<const void*>(handle)})
    if (const auto bound = images_of_.find(of); !found && bound != images_of_.end())
      for (const uint32_t id : bound->second)
        if (const auto image = images_.find(id); image != images_.end())
          add(found, code_in(image->second, name_hash));
  if (found) return found;
  for (const auto& [id, image] : images_)
    if (owner == nullptr || !image.bound)  // else it is another one's
      add(found, code_in(image, name_hash));
  if (found) found->guessed = true;
  return found;
}

}  // namespace flopinj
