// Reports of the driver, passed on to the subscribers that asked for them.
#include <cupti.h>

#include "process.h"

namespace simgpu::cupti {
namespace {

Process& of(void* self) { return *static_cast<Process*>(self); }

void resource(Process& process, CUpti_CallbackIdResource id, CUcontext context, CUstream stream,
              void* descriptor) {
  if (!process.callbacks.wants(CUPTI_CB_DOMAIN_RESOURCE, id)) return;
  CUpti_ResourceData data{};
  data.context = context;
  data.resourceHandle.stream = stream;
  data.resourceDescriptor = descriptor;
  process.callbacks.deliver(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

void module_event(Process& process, CUpti_CallbackIdResource id, CUcontext context,
                  const ModuleInfo* module) {
  if (process.environment.faults.no_modules) return;
  CUpti_ModuleResourceData data{};
  data.moduleId = module->module_id;
  data.cubinSize = module->image_bytes;
  data.pCubin = static_cast<const char*>(module->image);
  resource(process, id, context, nullptr, &data);
}

void api_enter(void* self, ApiCall* call) { of(self).callbacks.api(*call, CUPTI_API_ENTER); }
void api_exit(void* self, ApiCall* call) {
  Process& process = of(self);
  process.callbacks.api(*call, CUPTI_API_EXIT);
  const uint64_t fatal = process.environment.faults.fatal_error;
  if (fatal != 0 && process.kernels >= fatal) process.fail_for_good();
}

void kernel_end(void* self, const KernelRun* run) {
  Process& process = of(self);
  process.kernels.fetch_add(1, std::memory_order_relaxed);
  const bool in_window = process.ranges.any_started() && process.ranges.kernel(*run);
  process.each_activity([&](Activity& activity) {
    if (activity.wants_kernels()) activity.kernel(*run, in_window);
  });
}

void memory_copy(void* self, const MemoryCopy* copy) {
  Process& process = of(self);
  if (process.ranges.any_started()) process.ranges.copy(*copy);
  process.each_activity([&](Activity& activity) { activity.copy(*copy); });
}

void context_created(void* self, CUcontext context, uint32_t, uint32_t) {
  resource(of(self), CUPTI_CBID_RESOURCE_CONTEXT_CREATED, context, nullptr, nullptr);
}
void context_destroying(void* self, CUcontext context, uint32_t, uint32_t) {
  resource(of(self), CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, context, nullptr, nullptr);
  of(self).ranges.context_destroyed(context);
}
void stream_created(void* self, CUcontext context, CUstream stream, uint32_t) {
  resource(of(self), CUPTI_CBID_RESOURCE_STREAM_CREATED, context, stream, nullptr);
}
void stream_destroying(void* self, CUcontext context, CUstream stream, uint32_t) {
  resource(of(self), CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, context, stream, nullptr);
}
void module_loaded(void* self, CUcontext context, const ModuleInfo* module) {
  of(self).loaded_kernels += module->kernels;
  if (of(self).ranges.any_started()) of(self).ranges.module_loaded(context, module->module_id);
  module_event(of(self), CUPTI_CBID_RESOURCE_MODULE_LOADED, context, module);
  // The module as it is profiled follows: here always the one that was loaded.
  module_event(of(self), CUPTI_CBID_RESOURCE_MODULE_PROFILED, context, module);
}
void module_unloading(void* self, CUcontext context, const ModuleInfo* module) {
  of(self).loaded_kernels -= module->kernels;
  module_event(of(self), CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, context, module);
}

// By GraphEvent.
constexpr CUpti_CallbackIdResource kGraphCallbacks[] = {
    CUPTI_CBID_RESOURCE_GRAPH_CREATED,     CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_GRAPH_CLONED,      CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,  CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING};

void graph(void* self, GraphEvent event, const GraphInfo* info) {
  CUpti_GraphData data{};
  data.graph = info->graph;
  data.originalGraph = info->original_graph;
  data.node = info->node;
  data.originalNode = info->original_node;
  data.nodeType = info->node_type;
  data.graphExec = info->exec;
  resource(of(self), kGraphCallbacks[static_cast<size_t>(event)], nullptr, nullptr, &data);
}

void synchronized(void* self, CUcontext context, CUstream stream) {
  Callbacks& callbacks = of(self).callbacks;
  const auto id = stream == nullptr ? CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED
                                    : CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED;
  if (!callbacks.wants(CUPTI_CB_DOMAIN_SYNCHRONIZE, id)) return;
  CUpti_SynchronizeData data{};
  data.context = context;
  data.stream = stream;
  callbacks.deliver(CUPTI_CB_DOMAIN_SYNCHRONIZE, id, &data);
}

}  // namespace

Observer make_observer(Process& process) {
  return {.self = &process,
          .api_enter = api_enter,
          .api_exit = api_exit,
          .kernel_begin = nullptr,
          .kernel_end = kernel_end,
          .memory_copy = memory_copy,
          .context_created = context_created,
          .context_destroying = context_destroying,
          .stream_created = stream_created,
          .stream_destroying = stream_destroying,
          .module_loaded = module_loaded,
          .module_unloading = module_unloading,
          .graph = graph,
          .synchronized = synchronized};
}

}  // namespace simgpu::cupti
