#include <collector/identity/cubin.h>
#include <collector/identity/signature_table.h>
#include <injector/handles/modules.h>
#include <injector/process/thread_context.h>

#include <algorithm>

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
         static_cast<uint16_t>(f.parameters.size()), f.parameters_known, f.launches_kernels,
         f.launches_graphs, f.instructions.known, f.instructions.moves_registers,
         static_cast<uint8_t>(image.instructions.size() - first), static_cast<uint32_t>(first)});
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
        "a module came in a form that is not a cubin: its kernels are told apart by name, "
        "parameters and registers, not by their code");
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
        "name, parameters and registers, not by their code");
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
  std::erase_if(image_of_, [&](const auto& entry) { return entry.second == data.moduleId; });
}

void Modules::bind(ThreadContext& thread, CUmodule module) {
  const bool one = thread.modules_loaded.count == 1;
  thread.modules_loaded.count = 0;
  if (!one || module == nullptr) return;
  const MutexLock lock(mutex_);
  const auto image = images_.find(thread.modules_loaded.last);
  if (image == images_.end()) return;
  image->second.bound = true;
  image_of_[module] = image->first;
}

std::optional<Modules::Code> Modules::code_in(const Image& image, uint64_t name_hash) {
  const auto at = std::ranges::lower_bound(image.functions, name_hash, {}, &Function::name_hash);
  if (at == image.functions.end() || at->name_hash != name_hash) return std::nullopt;
  Code code{at->code_hash, at->parameters_known, at->launches_kernels, at->launches_graphs, {}, {}};
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

std::optional<Modules::Code> Modules::find(CUmodule module, std::string_view kernel) const {
  const uint64_t name_hash = stable_name_hash(kernel);
  const MutexLock lock(mutex_);
  if (const auto bound = image_of_.find(module); module != nullptr && bound != image_of_.end())
    if (const auto image = images_.find(bound->second); image != images_.end())
      return code_in(image->second, name_hash);
  std::optional<Code> found;
  for (const auto& [id, image] : images_) {
    if (module != nullptr && image.bound) continue;  // it is another module's
    const std::optional<Code> code = code_in(image, name_hash);
    if (!code) continue;
    if (found && *found != *code) return std::nullopt;
    found = code;
  }
  return found;
}

}  // namespace flopinj
